"""Against the safetensors package: the same bytes, the same answers, the same verdicts. Runs where it is installed."""

from __future__ import annotations

import numpy as np
import pytest

import pawl
import pawl.numpy

reference = pytest.importorskip("safetensors.numpy")
import safetensors  # noqa: E402


def random_tensors(rng) -> dict[str, np.ndarray]:
    out = {}
    for i in range(rng.randint(0, 12)):
        shape = tuple(rng.randint(0, 4) for _ in range(rng.randint(0, 3)))
        code = rng.choice(["?", "u1", "i1", "<i2", "<u2", "<f2", "<i4", "<u4", "<f4", "<c8", "<f8", "<i8", "<u8"])
        out[rng.choice(["w", "é", 'q"\\', "a.b"]) + str(i)] = (np.arange(int(np.prod(shape, dtype=int))) % 2).astype(code).reshape(shape)
    return out


def test_the_same_bytes_and_the_same_arrays(seeded):
    for _ in range(100):
        tensors = random_tensors(seeded)
        metadata = seeded.choice([None, {"k": "v\n"}] if tensors else [None])
        ours, theirs = pawl.numpy.save(tensors, metadata), reference.save(tensors, metadata)
        assert ours == theirs
        back, want = pawl.numpy.load(theirs), reference.load(ours)
        assert set(back) == set(want)
        for name in want:
            assert back[name].dtype == want[name].dtype and back[name].shape == want[name].shape and back[name].tobytes() == want[name].tobytes()


def test_the_same_files_and_readers(seeded, folder):
    tensors = {**random_tensors(seeded), "w": np.arange(24.0).reshape(4, 6)}
    pawl.numpy.save_file(tensors, "ours", {"a": "b"})
    reference.save_file(tensors, "theirs", {"a": "b"})
    assert (folder / "ours").read_bytes() == (folder / "theirs").read_bytes()
    with pawl.safe_open("theirs", framework="np") as a, safetensors.safe_open("ours", framework="np") as b:
        assert a.keys() == list(b.keys()) and a.metadata() == b.metadata()
        places = [a.info(name).begin for name in b.offset_keys()]  # tensors of no bytes share a place: any order of them
        assert places == sorted(places) and set(a.offset_keys()) == set(b.offset_keys())
        part, other = a.get_slice("w"), b.get_slice("w")
        assert list(part.get_shape()) == list(other.get_shape()) and part.get_dtype() == other.get_dtype()
        for index in (slice(1, 3), (slice(None), slice(2, None)), (..., slice(0, 2)), 1):
            np.testing.assert_array_equal(part[index], other[index])


def test_mutated_files_get_the_same_verdict(seeded):
    data = pawl.numpy.save({"a": np.zeros((2, 3), "f4"), "b": np.ones(5, "u1")}, {"k": "v"})
    for _ in range(400):
        bad = bytearray(data)
        for _ in range(seeded.randint(1, 2)):
            bad[seeded.randrange(len(bad) - 29)] = seeded.choice(b'0123456789,:"[]{} \\x')
        verdicts = []
        for load in (lambda d: pawl.numpy.load(d, mode="compat"), reference.load):
            try:
                verdicts.append(sorted((k, v.tobytes()) for k, v in load(bytes(bad)).items()))
            except (pawl.SafetensorError, safetensors.SafetensorError, KeyError, ValueError):
                verdicts.append(None)
        if verdicts[0] != verdicts[1]:
            # The reference's NumPy layer knows fewer dtypes than its core.
            assert verdicts[1] is None, bytes(bad)
