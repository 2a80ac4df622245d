"""Safetensors files as NumPy arrays: the reference library's documented behaviour, and what differs on purpose."""

from __future__ import annotations

import gc
import os
import pickle
import random
import threading

import numpy as np
import pytest

import pawl
import pawl.numpy
from pawl.numpy import load, load_file, save, save_file

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

NUMPY_DTYPES = ["?", "u1", "i1", "<i2", "<u2", "<f2", "<i4", "<u4", "<f4", "<c8", "<f8", "<i8", "<u8"]


def parse_header(text: str) -> bytes:
    """A header as headers.tsv spells it: plain text, hex: prefixed bytes, <k x c> runs."""
    import re

    if text.startswith("hex:"):
        return bytes.fromhex(text[4:])
    return re.sub(r"<(\d+) x (.)>", lambda m: m[2] * int(m[1]), text).encode()


def test_every_header_has_the_reference_verdict(golden, folder):
    """Goal: compat mode agrees with every verdict of the reference core, from a file and, where NumPy has the shape, from memory."""
    text = (golden / "safetensors" / "headers.tsv").read_text()
    rows = [line.split("\t") for line in text.split("\n") if line and not line.startswith("#")]
    assert len(rows) == 148
    for verdict, zeros, header_text in rows:
        header = parse_header(header_text)
        data = len(header).to_bytes(8, "little") + header + bytes(int(zeros))
        (folder / "f").write_bytes(data)
        for call in (lambda: pawl.read_header("f", mode="compat"), lambda: load(data, mode="compat")):
            try:
                call()
                found = "ok"
            except pawl.FormatError as error:
                found = "ok" if error.code == "unsupported" else "refused"
            assert found == ("ok" if verdict == "ok" else "refused"), header_text


def test_canonical_files_come_back_byte_for_byte(golden):
    """Goal: load and save again is the same file, all 22 dtypes, packed ones too, and with raw words as with ml_dtypes."""
    import json

    manifest = json.loads((golden / "safetensors" / "files" / "manifest.json").read_text())
    files = manifest["files"] if isinstance(manifest, dict) and "files" in manifest else manifest
    seen = 0
    for item in files if isinstance(files, list) else [dict(v, name=k) for k, v in files.items()]:
        name = item.get("name") or item.get("file")
        path = golden / "safetensors" / "files" / name
        if not item.get("canonical") or not path.is_file():
            continue
        for floats in ("auto", "raw"):
            for copy in (True, False):
                tensors = load_file(path, floats=floats, copy=copy)
                assert save(tensors, pawl.safe_open(path).metadata()) == path.read_bytes(), (name, floats, copy)
        seen += 1
    assert seen > 20


@pytest.mark.parametrize("code", NUMPY_DTYPES)
def test_dtypes_and_layouts(code):
    """Goal: whatever the strides and the byte order, the values and C order come back, native and writable."""
    base = (np.arange(60) % 7).astype(code).reshape(3, 4, 5)
    big = base.astype(base.dtype.newbyteorder(">"))
    arrays = {
        "plain": base, "turned": base.T, "fortran": np.asfortranarray(base), "part": base[::2, 1:, ::-1], "big": big, "bigturned": big.T,
        "scalar": base[1, 2, 3], "none": base[:0], "once": base[:1], "wide": np.broadcast_to(base[0, 0], (2, 5)),
    }  # fmt: skip
    back = load(save(arrays))
    assert set(back) == set(arrays)
    for name, array in arrays.items():
        got = back[name]
        assert got.shape == np.shape(array) and got.dtype == base.dtype, name
        assert got.dtype.isnative and got.flags.c_contiguous and got.flags.writeable and got.flags.owndata
        np.testing.assert_array_equal(got, array)


def test_worked_example():
    """The page's file of 112 bytes: BF16 [[1, 2], [3, 4]] with format tinyllm."""
    data = save({"w": np.array([[1, 2], [3, 4]], "f4")}, {"format": "tinyllm"}, dtypes={"w": "BF16"})
    assert len(data) == 112 and data[:8] == (96).to_bytes(8, "little") and data[-8:].hex() == "803f004040408040"


def test_anything_with_a_buffer_is_an_array():
    import array

    class Dlpack:
        def __init__(self, a):
            self.a = a

        def __dlpack__(self, **kwargs):
            return self.a.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self.a.__dlpack_device__()

    inner = np.arange(6, dtype="f4").reshape(2, 3)
    back = load(save({"a": array.array("d", [1, 2]), "b": b"xyz", "c": bytearray(b"q"), "d": memoryview(inner), "e": Dlpack(inner), "f": np.float32(3)}))
    assert back["a"].tolist() == [1, 2] and bytes(back["b"]) == b"xyz" and bytes(back["c"]) == b"q"
    np.testing.assert_array_equal(back["d"], inner)
    np.testing.assert_array_equal(back["e"], inner)
    assert back["f"].shape == () and back["f"] == 3


def test_what_a_callers_object_raises_goes_through():
    class Bad:
        def __array__(self, *args, **kwargs):
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        save({"w": Bad()})

    class BadPath:
        def __fspath__(self):
            raise KeyError("path")

    with pytest.raises(KeyError):
        save_file({}, BadPath())
    with pytest.raises(ValueError, match="null"):
        save_file({}, "a\0b")
    with pytest.raises(TypeError):
        save_file({}, 3.5)


@pytest.mark.parametrize(
    "tensors, more, part",
    [
        ({"w": np.zeros(2, "O")}, {}, "no dtype of the format"),
        ({"w": np.zeros(2, "S3")}, {}, "no dtype of the format"),
        ({"w": np.zeros(2, "M8[s]")}, {}, "no dtype of the format"),
        ({"w": np.zeros(2, "c16")}, {}, "no dtype of the format"),
        ({"w": np.zeros(2, "f4")}, {"dtypes": {"x": "BF16"}}, "no tensor"),
        ({"w": np.zeros(2, "f4")}, {"dtypes": {"w": "BF61"}}, "there is no dtype"),
        ({"w": np.zeros(2, "f8")}, {"dtypes": {"w": "F32"}}, "cast them first"),
        ({"w": np.zeros(2, "f2")}, {"dtypes": {"w": "BF16"}}, "cast them first"),
        ({"w": np.zeros(2, "i4")}, {"dtypes": {"w": "F32"}}, "can't be written"),
        ({"w": np.zeros(2, "f4")}, {"dtypes": {"w": "I32"}}, "can't be written"),
        ({"w": np.zeros(2, "f4")}, {"dtypes": {"w": "F64"}}, "cast"),
        ({"w": np.zeros(2, "f4")}, {"allow": {"BF16"}}, "allowed are BF16"),
        ({"w": np.zeros(2, "f4")}, {"allow": {"F33"}}, "there is no dtype"),
        ({"w": np.zeros(2, "f4")}, {"overflow": "wrap"}, "overflow"),
        ({"w": np.full(2, 1e9, "f4")}, {"dtypes": {"w": "F8_E4M3"}}, "F8_E4M3"),
        ({"w": np.full(2, 1e9, "f4")}, {"dtypes": {"w": "F16"}, "overflow": "error"}, "F16"),
        ({"w": np.zeros(2, "f4")}, {"align": 7}, "align"),
        ({"\ud800": np.zeros(2, "f4")}, {}, "surrogate"),
        ({"__metadata__": np.zeros(2, "f4")}, {}, "__metadata__"),
        ({}, {"metadata": {"k": 1}}, "are str"),
        ({}, {"metadata": {1: "k"}}, "are str"),
        ({}, {"metadata": {"k": "\ud800"}}, "surrogate"),
    ],
)
def test_refusals_write_nothing(folder, tensors, more, part):
    with pytest.raises(pawl.ArgumentError, match=part):
        save_file(tensors, "f.safetensors", **more)
    assert os.listdir(folder) == []


def test_wrong_types_are_type_errors():
    with pytest.raises(TypeError):
        save({1: np.zeros(1)})
    with pytest.raises(TypeError):
        load(3)
    with pytest.raises(TypeError):
        pawl.safe_open(None)


def test_metadata_none_and_empty(folder):
    assert b"__metadata__" not in save({"w": np.zeros(1)})
    assert save({}, {})[8:26] == b'{"__metadata__":{}'
    save_file({}, "e", {})
    assert pawl.safe_open("e").metadata() == {} and load_file("e").metadata == {}
    save_file({}, "n")
    assert pawl.safe_open("n").metadata() is None and pawl.read_header("n").metadata is None


def test_narrowing_rounds_once_to_even():
    values = np.array([1 + 2**-8, 1 + 3 * 2**-8, -0.0, np.inf, 3e38], "f4")
    data = save({"w": values}, dtypes={"w": "BF16"})
    assert load(data, floats="raw")["w"].tolist() == [0x3F80, 0x3F82, 0x8000, 0x7F80, 0x7F62]
    assert load(data, floats="decode")["w"].dtype == np.float32
    saturated = save({"w": np.array([1e9, -np.inf], "f4")}, dtypes={"w": "F8_E4M3"}, overflow="saturate")
    assert load(saturated, floats="decode")["w"].tolist() == [448, -448]
    inf = save({"w": np.array([1e9], "f4")}, dtypes={"w": "F16"}, overflow="inf")
    assert load(inf)["w"][0] == np.inf
    turned = save({"w": np.arange(6, dtype=">f4").reshape(2, 3).T}, dtypes={"w": "F16"})
    assert load(turned)["w"].tolist() == [[0, 3], [1, 4], [2, 5]]


def test_words_are_written_untouched():
    words = np.array([0x7FC1, 0xFFFF, 0x0001], "u2")
    assert load(save({"w": words}, dtypes={"w": "BF16"}), floats="raw")["w"].tolist() == words.tolist()
    codes = np.arange(256, dtype="u1")
    for name in ("F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"):
        back = load(save({"w": codes}, dtypes={"w": name}), floats="raw")
        assert back.dtypes == {"w": name} and back["w"].tolist() == codes.tolist()
    assert pawl.numpy.load(save({"w": np.arange(4, dtype="u1").reshape(2, 2)}, dtypes={"w": "F4"}), floats="decode")["w"].shape == (2, 4)


def test_a_tensor_dict_keeps_what_the_file_says():
    data = save({"a": np.ones(4, "f4"), "b": np.ones((2, 8), "f4"), "c": np.ones(8, "f4")}, dtypes={"a": "BF16", "b": "F4", "c": "F6_E2M3"})
    for floats in ("auto", "raw", "decode"):
        tensors = load(data, floats=floats)
        assert save(tensors) == data, floats
        assert save(pickle.loads(pickle.dumps(tensors))) == data
    assert tensors.dtypes == {"c": "F6_E2M3", "b": "F4", "a": "BF16"}
    tensors["a"] = np.ones(3, "f8")  # replaced: the array decides
    assert load(save(tensors)).dtypes["a"] == "F64"
    raw = load(data, floats="raw")
    assert raw["b"].shape == (2, 4) and raw["c"].shape == (6,) and raw["a"].dtype == np.uint16


@pytest.mark.skipif(ml_dtypes is None, reason="ml_dtypes is not installed")
def test_ml_dtypes_are_used_when_there():
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e4m3fnuz", "float8_e5m2fnuz"):
        array = np.array([1, 2, 4], getattr(ml_dtypes, name))
        back = load(save({"w": array, "t": array[::-1]}))
        assert back["w"].dtype == array.dtype and back["w"].tolist() == array.tolist() and back["t"].tolist() == [4, 2, 1]
        save_file({"w": array}, "m")
        assert load_file("m", copy=False)["w"].dtype == array.dtype
    for name, dtype in (("float4_e2m1fn", "F4"), ("float6_e2m3fn", "F6_E2M3"), ("float6_e3m2fn", "F6_E3M2")):
        if hasattr(ml_dtypes, name):
            data = save({"w": np.array([[1, 2, 3, 4]], getattr(ml_dtypes, name))})
            assert load(data).dtypes == {"w": dtype} and load(data, floats="decode")["w"].tolist() == [[1, 2, 3, 4]]


def test_ml_dtypes_are_not_needed(python):
    """Goal: BF16 and F8 without the package: words, and the same file again. Method: an import hook that refuses it."""
    python(
        """
import sys
class No:
    def find_spec(self, name, *rest):
        if name == "ml_dtypes":
            raise ImportError("refused")
sys.meta_path.insert(0, No())
import numpy as np, pawl.numpy as pn
data = pn.save({"w": np.ones(3, "f4"), "e": np.ones(3, "f4")}, dtypes={"w": "BF16", "e": "F8_E4M3"})
back = pn.load(data)
assert back["w"].dtype == np.uint16 and back["e"].dtype == np.uint8, back
assert pn.save(back) == data
"""
    )


def test_copies_and_maps(folder):
    """Goal: a map outlives its reader, its name and its replacement; and is read-only."""
    old = {"w": np.arange(1000, dtype="f8"), "n": np.empty((0, 3), "i4")}
    save_file(old, "f")
    mapped = load_file("f", copy=False)
    assert isinstance(mapped["w"], np.memmap) and not mapped["w"].flags.writeable and mapped["n"].shape == (0, 3)
    with pytest.raises(ValueError):
        mapped["w"][0] = 1
    save_file({"w": mapped["w"] * 2, "kept": mapped["w"]}, "f")  # over the file that is mapped
    save_file({k: mapped[k] for k in mapped}, "f")  # the map itself
    np.testing.assert_array_equal(mapped["w"], old["w"])
    np.testing.assert_array_equal(load_file("f")["w"], old["w"])
    part = mapped["w"][10:20]
    del mapped
    gc.collect()
    os.unlink("f")
    assert part.tolist() == list(range(10, 20))


def test_unaligned_arrays_are_not_copied(golden):
    mapped = load_file(golden / "safetensors" / "files" / "misaligned-tensor.safetensors", copy=False)
    assert any(not array.flags.aligned for array in mapped.values())
    copied = load_file(golden / "safetensors" / "files" / "misaligned-tensor.safetensors")
    for name, array in mapped.items():
        assert copied[name].flags.aligned
        np.testing.assert_array_equal(array, copied[name])


def test_tied_arrays_stay_tied():
    w = np.arange(4.0)
    data = save({"b": w, "a": w, "other": w.copy()})
    back = load(data)
    assert back["a"] is back["b"] and back["other"] is not back["a"] and back.metadata is None
    assert back.dtypes == {"a": "F64", "b": "F64", "other": "F64"}
    assert save(back) == data
    assert load(data).keys() == {"a", "b", "other"}
    only = load_file_of(data, names=["b"])
    assert list(only) == ["b"]


def load_file_of(data, **more):
    with open("tmp.safetensors", "wb") as f:
        f.write(data)
    return load_file("tmp.safetensors", **more)


def test_names_allow_and_mode():
    data = save({"a": np.zeros(2, "f4"), "b": np.zeros(1, "i4")})
    assert list(load_file_of(data, names={"a"})) == ["a"] and dict(load_file_of(data, names=[])) == {}
    with pytest.raises(KeyError):
        load_file_of(data, names=["c"])
    with pytest.raises(pawl.FormatError, match="allowed are F32") as info:
        load(data, allow={"F32"})
    assert info.value.code == "dtype"
    twice = b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}}'
    twice = len(twice).to_bytes(8, "little") + twice + b"y"
    with pytest.raises(pawl.FormatError) as info:
        load(twice)
    assert info.value.code == "duplicate-key"
    assert load(twice, mode="compat")["a"].tolist() == [ord("y")] and load(twice, mode="compat").dtypes == {"a": "I8"}
    for bad in ({"mode": "lint"}, {"floats": "f4"}):
        with pytest.raises(pawl.ArgumentError):
            load(data, **bad)
    with pytest.raises(pawl.ArgumentError):
        load_file_of(data, backend="read")


def test_sharded_models_open_like_files(golden):
    folder = golden / "safetensors" / "files" / "sharded"
    whole = load_file(folder)
    index = next(folder.glob("*.index.json"))
    assert set(load_file(index)) == set(whole) and len(whole) > 1
    with pawl.safe_open(folder) as f:
        assert set(f.keys()) == set(whole)
        for name in f.keys():
            np.testing.assert_array_equal(f.get_tensor(name), whole[name])
    assert set(load_file(folder, copy=False)) == set(whole)


def test_safe_open_answers_as_the_reference():
    save_file({"b": np.arange(3), "a": np.zeros((2, 2), "f4")}, "f", {"k": "v"})
    with pawl.safe_open("f", framework="np") as f:
        assert f.keys() == ["a", "b"] and f.offset_keys() == ["b", "a"] and f.metadata() == {"k": "v"}
        assert len(f) == 2 and "a" in f and "c" not in f and list(f) == ["a", "b"]
        assert f.info("a") == ("F32", (2, 2), 24, 40) and f["b"].tolist() == [0, 1, 2]
        assert set(f.get_tensors()) == {"a", "b"}
        with pytest.raises(pawl.SafetensorError, match="'c'"):
            f.get_tensor("c")
        part = f.get_slice("b")
        again = pickle.loads(pickle.dumps(f))
        assert again.keys() == f.keys()
    with pytest.raises(pawl.ArgumentError, match="closed"):
        f.get_tensor("a")
    assert part[1:].tolist() == [1, 2]  # a slice holds the file
    with pytest.raises(pawl.ArgumentError, match="framework"):
        pawl.safe_open("f", framework="tf")


def random_index(rng: random.Random, shape: tuple[int, ...]):
    out: list[object] = []
    for n in shape[: rng.randint(0, len(shape))]:
        if rng.random() < 0.3 and n:
            out.append(rng.randrange(-n, n))
        else:
            pick = lambda: rng.choice([None, rng.randint(-n - 3, n + 3), 10**30 * rng.choice([-1, 1])])  # noqa: E731
            out.append(slice(pick(), pick(), rng.choice([None, 1, 2, 3, -1, -2, 10**18, -(10**18)])))
    if rng.random() < 0.3:
        out.insert(rng.randint(0, len(out)), ...)
    return tuple(out)


def test_slices_are_numpys(seeded):
    """Goal: any index gives what NumPy gives. Method: random shapes, dtypes and indexes; the steps 0 and too many indexes are refused."""
    for _ in range(60):
        shape = tuple(seeded.randint(0, 6) for _ in range(seeded.randint(0, 4)))
        array = (np.arange(int(np.prod(shape, dtype=int))) % 100).astype(seeded.choice(NUMPY_DTYPES)).reshape(shape)
        save_file({"w": array}, "f")
        part = pawl.safe_open("f").get_slice("w")
        assert part.get_shape() == list(shape)
        for _ in range(10):
            index = random_index(seeded, shape)
            if sum(item is not ... for item in index) < len(index) and len(index) - 1 > len(shape):
                continue
            try:
                want = array[index]
            except IndexError:
                with pytest.raises(pawl.ArgumentError):
                    part[index]
                continue
            got = part[index]
            assert got.shape == want.shape, (shape, index)
            np.testing.assert_array_equal(got, want)
    part = pawl.safe_open("f").get_slice("w")
    with pytest.raises(pawl.ArgumentError):
        part[(0,) * 9]
    with pytest.raises(pawl.ArgumentError):
        part[::0]
    with pytest.raises(TypeError):
        part["x"]
    with pytest.raises(TypeError):
        part[True]


def test_an_index_outside_is_an_error():
    save_file({"w": np.zeros((2, 3))}, "f")
    with pytest.raises(pawl.ArgumentError, match="2"):
        pawl.safe_open("f").get_slice("w")[2]


def test_errors_name_file_tensor_and_numbers(folder):
    with pytest.raises(pawl.NotFoundError) as info:
        load_file("nope")
    assert isinstance(info.value, FileNotFoundError) and info.value.errno == 2
    data = save({"w": np.zeros(4, "f4")})
    (folder / "cut").write_bytes(data[:-3])
    with pytest.raises(pawl.SafetensorError) as info:
        load_file("cut")
    assert info.value.code == "truncated" and info.value.path.name == "cut" and "3" in str(info.value) and "cut" in str(info.value)
    with pytest.raises(pawl.FormatError) as info:
        load(b'\x05\0\0\0\0\0\0\0{"a"}')
    assert info.value.code == "json" and info.value.offset is not None


def test_a_failed_save_leaves_the_old_file(folder):
    """Goal: an overflow in the middle of the file leaves the old one and no temporary."""
    save_file({"w": np.zeros(3)}, "f")
    before = (folder / "f").read_bytes()
    bad = np.zeros(3_000_000, "f4")
    bad[2_999_999] = 1e9
    with pytest.raises(pawl.ArgumentError, match="2999999"):
        save_file({"a": np.zeros(100_000), "w": bad}, "f", dtypes={"w": "F8_E4M3"})
    assert (folder / "f").read_bytes() == before and os.listdir(folder) == ["f"]


def test_progress_and_interrupts(folder):
    """Goal: progress ends with everything; what it raises, and a KeyboardInterrupt in the middle, abandon the save and go through."""
    big = {"w": np.zeros(4_000_000, "f8")}
    calls: list[tuple[int, int]] = []
    save_file(big, "f", progress=lambda done, total: calls.append((done, total)))
    assert calls[-1][0] == calls[-1][1] == os.path.getsize("f") and calls == sorted(calls)
    before = (folder / "f").read_bytes()

    def fail(done, total):
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        save_file({"w": np.ones(4_000_000, "f8")}, "f", progress=fail)
    import signal

    def interrupt(done, total):
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        save_file({"w": np.ones(4_000_000, "f8")}, "f", progress=interrupt)
    assert (folder / "f").read_bytes() == before and os.listdir(folder) == ["f"]


def test_an_unsynced_file_is_the_same_file(folder):
    save_file({"w": np.arange(3)}, "a")
    save_file({"w": np.arange(3)}, "b", durable=False)
    assert (folder / "a").read_bytes() == (folder / "b").read_bytes()
    data = save({"w": np.arange(3)}, align=4096)
    assert (8 + int.from_bytes(data[:8], "little")) % 4096 == 0
    assert load(data)["w"].tolist() == [0, 1, 2]


def test_the_gil_is_released(folder):
    """Goal: other threads run while a file is written. Method: write to a FIFO-like slow end is not to be had, so a progress callback
    proves it: it waits for a second thread, which can only run when the writing thread does not hold the GIL in between."""
    turns: list[int] = []
    go, done = threading.Event(), threading.Event()

    def other():
        while go.wait(10) and not done.is_set():
            go.clear()
            turns.append(1)

    thread = threading.Thread(target=other)
    thread.start()
    try:
        save_file({"w": np.ones(8_000_000)}, "f", progress=lambda *_: go.set())
    finally:
        done.set()
        go.set()
        thread.join()
    assert turns


def test_read_header_touches_no_data(folder):
    save_file({"w": np.ones((2, 3), "f4"), "v": np.zeros(5, "i8")}, "f", {"a": "b"})
    header = pawl.read_header("f")
    assert list(header.tensors) == ["v", "w"] and header.metadata == {"a": "b"}
    assert header.tensors["w"] == pawl.TensorInfo("F32", (2, 3), 40, 64)
    assert pickle.loads(pickle.dumps(header.tensors["w"])) == header.tensors["w"]
    with pytest.raises(pawl.FormatError):
        pawl.read_header("f", allow=["F32"])


def test_verify_knows_kinds(folder, golden):
    save_file({"w": np.array([1, np.inf], "f4")}, "f")
    assert pawl.verify("f") == []
    assert [p.code for p in pawl.verify("f", finite=True)] == ["non-finite"]
    (folder / "bad").write_bytes((folder / "f").read_bytes()[:-1])
    found = pawl.verify("bad")
    assert [p.code for p in found] == ["truncated"] and str(found[0]) == found[0].message
    with pytest.raises(pawl.NotFoundError):
        pawl.verify("nowhere")
