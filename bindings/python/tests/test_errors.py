"""Every error class, from a real call: its attributes, its other base, and that it can be pickled."""

from __future__ import annotations

import copy
import errno
import os
import pickle

import numpy as np
import pytest

import pawl
import pawl.numpy


def argument():
    pawl.step_name(-1)


def format_error():
    pawl.numpy.load(b"\x03\0\0\0\0\0\0\0{]}")


def incomplete():
    path = pawl.save_checkpoint("r", 1, {"w": np.zeros(9)})
    (path / "model.safetensors").write_bytes(b"x")
    pawl.load_checkpoint("r", 1)


def not_found():
    pawl.load_checkpoint("nothing")


def none_complete():
    for step in (1, 2):
        path = pawl.save_checkpoint("n", step, {"w": np.zeros(9)})
        (path / "MANIFEST.json").unlink()
    pawl.load_checkpoint("n")


def mismatch():
    pawl.save_checkpoint("r", 1, {"a": np.zeros(1), "b": np.zeros(1), "d": np.zeros(2)})
    pawl.load_checkpoint("r").restore({"a": np.zeros(1), "c": np.zeros(1), "d": np.zeros(3)})


def busy():
    with pawl.Run("r"):
        pawl.Run("r")


def missing_tensor():
    pawl.numpy.save_file({}, "f")
    pawl.safe_open("f").get_tensor("w")


CASES = [
    (argument, pawl.ArgumentError, ValueError, "argument"),
    (format_error, pawl.FormatError, ValueError, "json"),
    (incomplete, pawl.IncompleteError, ValueError, None),
    (not_found, pawl.NotFoundError, FileNotFoundError, None),
    (none_complete, pawl.NoneCompleteError, pawl.NotFoundError, None),
    (mismatch, pawl.MismatchError, ValueError, "mismatch"),
    (busy, pawl.BusyError, BlockingIOError, "busy"),
    (missing_tensor, pawl.SafetensorError, KeyError, "argument"),
]


@pytest.mark.parametrize("call, cls, base, code", CASES)
def test_classes(call, cls, base, code):
    with pytest.raises(cls) as info:
        call()
    error = info.value
    assert isinstance(error, base) and isinstance(error, pawl.Error) and str(error)
    assert error.code == code or code is None and error.code
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is type(error) and str(other) == str(error)
        assert {k: v for k, v in vars(other).items()} == {k: v for k, v in vars(error).items()}
        if isinstance(error, OSError):
            assert (other.errno, other.filename) == (error.errno, error.filename) and other.errno


def test_reasons_name_everything():
    with pytest.raises(pawl.NoneCompleteError) as info:
        none_complete()
    assert [(r.code, r.file) for r in info.value.reasons] == [
        ("missing-file", "step-000002/MANIFEST.json"),
        ("missing-file", "step-000001/MANIFEST.json"),
    ]
    with pytest.raises(pawl.MismatchError) as mismatched:
        mismatch()
    error = mismatched.value
    assert error.missing == ["c"] and error.unexpected == ["b"] and len(error.mismatched) == 1 and "'" not in error.mismatched[0]


def test_canceled_and_the_names():
    error = pickle.loads(pickle.dumps(pawl.CanceledError("gone", code="canceled", path="p", offset=3)))
    assert (error.code, str(error.path), error.offset, error.reasons) == ("canceled", "p", 3, []) and str(error) == "p: gone"
    assert pawl.SafetensorError is pawl.FormatError and issubclass(pawl.Warning, UserWarning)


def test_failures_of_the_system_are_oserrors(folder):
    """A plain OSError with errno, filename and the operation; the class that Python has for it."""
    (folder / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError) as info:
        pawl.numpy.save_file({}, "file/x")
    assert info.value.errno == errno.ENOTDIR and not isinstance(info.value, pawl.Error)
    if os.getuid() != 0:
        os.mkdir("closed", 0o500)
        with pytest.raises(PermissionError):
            pawl.numpy.save_file({}, "closed/x")


def test_a_full_disk_says_how_much():
    """Goal: ENOSPC names what was needed and what was there. Method: an array of one byte, repeated."""
    import shutil

    if shutil.disk_usage(".").free > 1 << 40:
        pytest.skip("this disk has a TiB free")
    huge = np.broadcast_to(np.zeros(1, "u1"), (1 << 40,))
    with pytest.raises(OSError) as info:
        pawl.numpy.save_file({"w": huge}, "f")
    assert info.value.errno == errno.ENOSPC and "1099511627" in str(info.value)
    assert os.listdir() == []


def test_hints_are_notes():
    with open("f", "wb") as f:
        f.write(b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 5\n")
    with pytest.raises(pawl.FormatError) as info:
        pawl.numpy.load_file("f")
    assert info.value.code == "not-safetensors"
    assert all(note.startswith("hint: ") for note in getattr(info.value, "__notes__", []))
