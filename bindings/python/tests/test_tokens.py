"""Token shards and the stream; the generator."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest

import pawl
from pawl import tokens
from pawl.tokens import TokenStream, Writer


class Given:
    """A generator of the caller's: phases that were chosen."""

    def __init__(self, *phases):
        self.phases, self.at = phases, 0

    def below(self, n):
        value = self.phases[self.at]
        self.at += 1
        assert value < n
        return value

    def state(self):
        return ("at", self.at)

    def set_state(self, state):
        self.at = state[1]


def shard(ids, name="ids", vocab=None, width=None):
    with Writer(name, vocab, width=width) as writer:
        writer.add(ids)
    return writer.paths[0]


def test_the_worked_example_of_a_shard():
    path = shard([1, 2, 3], vocab=256)
    data = path.read_bytes()
    assert len(data) == 1030 and data[:16].hex() == "88d8340101000000" + "0300000000010000"
    assert tokens.read_header(path) == (1, 3, 256)
    ids = tokens.open(path)
    assert isinstance(ids, np.memmap) and ids.dtype == np.dtype("<u2") and ids.tolist() == [1, 2, 3] and not ids.flags.writeable
    assert tokens.open(shard([], "none")).shape == (0,)
    assert tokens.open(shard([70000], "wide")).dtype == np.dtype("<u4")


def test_the_worked_example_of_the_stream():
    path = shard(range(10, 20))
    stream = TokenStream([path], 3, 2, Given(1, 0))
    inputs, targets = stream.next_batch()
    assert inputs.tolist() == [[11, 12, 13], [14, 15, 16]] and targets.tolist() == [[12, 13, 14], [15, 16, 17]]
    inputs, _ = stream.next_batch()
    assert inputs.tolist() == [[10, 11, 12], [13, 14, 15]]
    assert stream.cursor() == {"shard": 0, "offset": 6, "rng": ("at", 2)}
    assert inputs.dtype == np.int64 and inputs.flags.writeable


def test_golden_windows(golden):
    """Goal: the base order of the golden corpora, by the C stream and by the one over a caller's generator."""
    rows = [line.split("\t") for line in (golden / "tokens" / "cursors.tsv").read_text().split("\n") if line]
    assert rows
    set_folder = golden / "tokens" / "set"
    for rng in (7, pawl.PCG32(7).stream(3), Adapter(pawl.PCG32(7).stream(3))):
        a = TokenStream([set_folder], 16, 2, rng)
        b = TokenStream([set_folder], 16, 2, 7)
        for _ in range(200):
            np.testing.assert_array_equal(a.next_batch()[0], b.next_batch()[0])
        assert {k: tuple(v) if k == "rng" else v for k, v in a.cursor().items()} == b.cursor()


class Adapter:
    def __init__(self, inner):
        self.below, self.state, self.set_state = inner.below, inner.state, inner.set_state


def test_the_cursor_is_the_whole_position(seeded):
    """Goal: N batches, cursor, restore elsewhere, M batches are N + M. Method: shards of random sizes, also over a caller's generator."""
    paths = [shard([seeded.randrange(300) for _ in range(seeded.randint(9, 60))], f"s{i}") for i in range(3)]
    for make in (lambda: 5, lambda: pawl.PCG32(5), lambda: Adapter(pawl.PCG32(5))):
        straight = TokenStream(paths, 8, 3, make())
        batches = [straight.next_batch() for _ in range(30)]
        for n in (0, 1, 7, 29):
            first = TokenStream(paths, 8, 3, make())
            for _ in range(n):
                first.next_batch()
            second = TokenStream(paths, 8, 3, make())
            second.restore(first.cursor())
            for want in batches[n:]:
                got = second.next_batch()
                assert (got[0] == want[0]).all() and (got[1] == want[1]).all()
    again = pickle.loads(pickle.dumps(TokenStream(paths, 8, 3, 5)))
    assert (again.next_batch()[0] == TokenStream(paths, 8, 3, 5).next_batch()[0]).all()


def test_streams_are_pickled_where_they_stand():
    paths = [shard(range(50))]
    stream = TokenStream(paths, 4, 2, 3, dtype="uint16")
    stream.next_batch()
    other = pickle.loads(pickle.dumps(stream))
    assert other.cursor() == stream.cursor() and (other.next_batch()[0] == stream.next_batch()[0]).all()


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32", "uint32", "int16", "uint16", ">i4", ">i8", "u1"])
def test_dtypes(dtype):
    stream = TokenStream([shard(range(200))], 8, 2, 1, dtype=dtype)
    want = TokenStream(["ids"], 8, 2, 1).next_batch()
    got = stream.next_batch()
    assert got[0].dtype == np.dtype(dtype) and got[0].tolist() == want[0].tolist() and got[1].tolist() == want[1].tolist()


def test_an_id_that_does_not_fit_is_an_error():
    with pytest.raises(pawl.ArgumentError, match="does not fit"):
        TokenStream([shard(range(300, 320))], 4, 1, dtype="u1").next_batch()


def test_a_failed_restore_changes_nothing():
    stream = TokenStream([shard(range(50))], 4, 2, 3)
    at = stream.cursor()
    for bad in ({"shard": 1}, {"offset": 51}, {"offset": -1}, {"rng": (1, 2)}, {"rng": (1, 2**64 + 1)}):
        with pytest.raises(pawl.ArgumentError):
            stream.restore({**at, **bad})
        assert stream.cursor() == at
    foreign = TokenStream(["ids"], 4, 2, Given(0, 1))
    for bad in ({"shard": 1}, {"offset": 51}):
        with pytest.raises(pawl.ArgumentError):
            foreign.restore({**foreign.cursor(), **bad})


def test_what_a_generator_raises_goes_through():
    """Goal: the stream and the generator are where they were, also when phases were drawn before the one that raises."""

    class Breaks(Given):
        breaks = True

        def below(self, n):
            if self.at == 2 and self.breaks:
                raise ZeroDivisionError
            return super().below(n)

    rng = Breaks(1, 0, 2)
    stream = TokenStream([shard(range(10, 20))], 3, 6, rng)  # passes of two and three windows, then one that breaks
    at = stream.cursor()
    with pytest.raises(ZeroDivisionError):
        stream.next_batch()
    assert stream.cursor() == at and rng.at == 1
    rng.breaks = False
    assert stream.next_batch()[0][:, 0].tolist() == [11, 14, 10, 13, 16, 12]


def test_bad_shards_and_arguments(folder, golden):
    rows = [line.split("\t") for line in (golden / "tokens" / "bad.tsv").read_text().split("\n") if line]
    seen = 0
    for name, code, *_ in rows:
        path = golden / "tokens" / name
        if not path.is_file() or code == "-":
            continue
        try:
            tokens.open(path)
        except pawl.FormatError as error:
            assert error.code == code and error.path == path, name
            seen += 1
    assert seen > 10
    path = shard(range(5))
    with pytest.raises(pawl.FormatError) as info:
        TokenStream([path], 5, 1)
    assert info.value.code == "too-few-ids"
    with pytest.raises(pawl.FormatError) as info:
        TokenStream([path], 5, 1, Given(0))
    assert info.value.code == "too-few-ids" and info.value.path == path.absolute()
    for bad in ({"shards": str(path)}, {"shards": []}, {"seq_len": 0}, {"batch": 0}, {"rng": -1}, {"rng": 2**64}, {"dtype": "f4"}, {"vocab_size": 0}):
        with pytest.raises(pawl.ArgumentError):
            TokenStream(**{"shards": [path], "seq_len": 2, "batch": 1, **bad})
    with pytest.raises(TypeError):
        TokenStream([path], 2, 1, "seed")
    with pytest.raises(pawl.FormatError) as info:
        tokens.open(path, vocab_size=3)
    assert info.value.code in ("vocabulary", "id-range")
    assert tokens.open(path, vocab_size=5).tolist() == list(range(5))


def test_the_writer(folder):
    for i, bad in enumerate(([-1], [2**32], [1.5], np.zeros((2, 2), int))):
        writer = Writer(f"w{i}", None)
        with pytest.raises((pawl.ArgumentError, OverflowError)):
            writer.add(bad)
    with pytest.raises(pawl.ArgumentError, match="vocabulary|10"):
        Writer("v", 10).add([10])
    with pytest.raises(ZeroDivisionError), Writer("gone", None) as writer:
        writer.add([1])
        raise ZeroDivisionError
    assert not [p for p in (folder / "gone").iterdir()] if (folder / "gone").exists() else True
    with Writer("set", 300, doc_sep_id=256, shard_tokens=4, split="valid", dataset="d") as writer:
        for text in (b"abc", b"de", b""):
            writer.add(text)
    assert [p.name for p in writer.paths] == ["valid-00001.bin", "valid-00002.bin"]
    assert tokens.open(writer.paths[0]).tolist() == [256, 97, 98, 99]
    with pytest.raises(FileExistsError):
        Writer("set", 300)
    Writer("set", 300, replace=True).close()
    with pytest.raises(RuntimeError):
        writer.close()


def test_one_thread_at_a_time():
    stream = TokenStream([shard(range(5000))], 64, 64, 3)
    seen = []

    def use():
        for _ in range(200):
            try:
                stream.next_batch()
            except RuntimeError as error:
                seen.append(str(error))

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all("one at a time" in text for text in seen)


def test_a_checkpoint_knows_its_data_set():
    stream = TokenStream([shard(range(50), "a")], 4, 2, 3)
    stream.next_batch()
    pawl.save_checkpoint("r", 1, {}, stream=stream)
    c = pawl.load_checkpoint("r")
    assert c.state["data_cursor"] == {"shard": 0, "offset": stream.cursor()["offset"]} and c.rng == stream.cursor()["rng"]
    same = TokenStream(["a"], 4, 2, 3)
    c.restore(stream=same)
    assert same.cursor() == stream.cursor() and (same.next_batch()[0] == stream.next_batch()[0]).all()
    other = TokenStream([shard(range(60), "b")], 4, 2, 3)
    before = other.cursor()
    with pytest.raises(pawl.MismatchError, match="60|50"):
        c.restore(stream=other)
    assert other.cursor() == before
    foreign = TokenStream(["a"], 4, 2, Adapter(pawl.PCG32(1)))
    foreign.next_batch()
    pawl.save_checkpoint("f", 1, {}, stream=foreign)
    again = TokenStream(["a"], 4, 2, Adapter(pawl.PCG32(1)))
    pawl.load_checkpoint("f").restore(stream=again)
    assert (again.next_batch()[0] == foreign.next_batch()[0]).all()
    for bad in ({"rng": (1, 3)}, {"state": {"data_cursor": {"shard": 0, "offset": 0}}}):
        with pytest.raises(pawl.ArgumentError):
            pawl.save_checkpoint("r", 2, {}, stream=stream, **bad)


# ---- PCG32 ----


def test_pcg32():
    rng = pawl.PCG32(42)
    assert [rng.next_u32() for _ in range(6)] == [0xA15C02B7, 0x7B47F409, 0xBA1D3330, 0x83D2F293, 0xBFA4784B, 0xCBED606E]
    assert pawl.PCG32(1, 2) == pawl.PCG32(seed=1, seq=2) != pawl.PCG32(1, 3) and pawl.PCG32() == pawl.PCG32(0, 54)
    rng.normal()
    other = pickle.loads(pickle.dumps(rng))
    assert other == rng and other.spare == rng.spare is not None and other.normal() == rng.normal() and other.uniform() == rng.uniform()
    assert other.stream(2) == rng.stream(2)
    rng.spare = None
    assert rng.spare is None
    xs = list(range(10))
    pawl.PCG32(3).shuffle(xs)
    check = pawl.PCG32(3)
    ys = list(range(10))
    for i in range(9, 0, -1):
        j = check.below(i + 1)
        ys[i], ys[j] = ys[j], ys[i]
    assert xs == ys
    for call in (
        lambda: pawl.PCG32(-1), lambda: pawl.PCG32(2**64), lambda: rng.below(0), lambda: rng.below(2**32 + 1), lambda: rng.below(-1), lambda: rng.stream(-1),
        lambda: rng.set_state((0, 2)), lambda: rng.set_state((2**64, 1)),
    ):  # fmt: skip
        before = rng.state()
        with pytest.raises(pawl.ArgumentError):
            call()
        assert rng.state() == before
    assert rng.below(2**32) < 2**32 and rng.below(np.int64(1)) == 0
    for bad in ("x", 1.5, None):
        with pytest.raises(TypeError):
            pawl.PCG32(bad)


def test_pcg32_vectors(golden):
    rows = (golden / "pcg32" / "vectors.txt").read_text().split("\n")
    seen = 0
    for row in rows:
        parts = row.split()
        if parts and parts[0] == "next":
            rng = pawl.PCG32(int(parts[1]), int(parts[2]))
            assert [rng.next_u32() for _ in parts[3:]] == [int(p) for p in parts[3:]]
            seen += 1
    assert seen > 0
