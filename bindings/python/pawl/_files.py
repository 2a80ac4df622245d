"""Safetensors files: headers, readers, whole files."""

from __future__ import annotations

import operator
import os
from collections.abc import Collection, Mapping
from types import EllipsisType, TracebackType
from typing import Any, NamedTuple, TypeAlias

from numpy.typing import ArrayLike

from . import _pawl
from ._arrays import (
    Array, LazyTensors, TensorDict, check_allow, check_allowed, mapped_array, metadata_of, new_array, packed_shape, tensors_of, PACKED,
)  # fmt: skip
from ._errors import ArgumentError, FormatError, MissingTensorError, Problem, reasons_of
from ._types import Floats, Mode, Overflow, Progress, StrPath

ALIAS = "pawl.alias."
_MODES = {"strict": 0, "compat": 1}
_FRAMEWORKS = {"numpy": "numpy", "np": "numpy", "pt": "torch", "torch": "torch", "jax": "jax", "flax": "jax"}
_Index: TypeAlias = int | slice | EllipsisType
_Entry: TypeAlias = tuple[str, str, tuple[int, ...], int, int, int]


class TensorInfo(NamedTuple):
    """One entry of a header: dtype, shape, and its bytes ``[begin, end)`` in the data buffer of its file.

    >>> TensorInfo("F32", (2, 3), 0, 24).dtype
    'F32'
    """

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


class Header(NamedTuple):
    """What a header holds: ``tensors`` in file order, and ``metadata`` as it stands there (None: there is none).

    >>> Header({}, None).metadata is None
    True
    """

    tensors: dict[str, TensorInfo]
    metadata: dict[str, str] | None


def mode_of(mode: str) -> int:
    if mode not in _MODES:
        raise ArgumentError(f"mode is {mode!r}, expected 'strict' or 'compat'", code="argument")
    return _MODES[mode]


def check_floats(floats: str) -> None:
    if floats not in ("auto", "raw", "decode"):
        raise ArgumentError(f"floats is {floats!r}, expected 'auto', 'raw' or 'decode'", code="argument")


def check_backend(backend: str) -> None:
    if backend not in ("mmap", "pread"):
        raise ArgumentError(f"backend is {backend!r}, expected 'mmap' or 'pread'", code="argument")


def check_readable(name: str, dtype: str, allow: Collection[str] | None, path: StrPath | None) -> None:
    try:
        check_allowed(name, dtype, allow)
    except ArgumentError as error:
        raise FormatError(error._message, code="dtype", path=path) from None


def own_metadata(model: _pawl.Model) -> dict[str, str] | None:
    """The metadata without the records of aliases, which the writer makes anew."""
    metadata = model.metadata()
    if metadata is None:
        return None
    own = {key: value for key, value in metadata.items() if not key.startswith(ALIAS)}
    return None if metadata and not own else own


def read_tensor(model: _pawl.Model, i: int, entry: _Entry, floats: Floats) -> Array:
    array, target, is_decoded = new_array(entry[1], entry[2], floats)
    model.read(i, target, is_decoded)
    return array


def read_model(
    model: _pawl.Model,
    *,
    names: Collection[str] | None = None,
    copy: bool = True,
    floats: Floats = "auto",
    allow: Collection[str] | None = None,
    path: StrPath | None = None,
) -> TensorDict:
    """All tensors of a model, or some; aliases are the same array as their target."""
    check_floats(floats)
    check_allow(allow)
    if isinstance(names, str):
        raise ArgumentError("names is a text, expected a collection of names", code="argument")
    entries = model.tensors()
    aliases = model.aliases()
    wanted = None if names is None else set(names)
    if wanted is not None:
        known = {entry[0] for entry in entries} | set(aliases)
        for name in wanted - known:
            raise MissingTensorError(f"there is no tensor '{name}'", code="argument", path=path)
        targets = wanted | {aliases[name] for name in wanted if name in aliases}
    out = TensorDict()
    out.metadata = own_metadata(model)
    read: dict[str, Array] = {}
    dtypes = out.dtypes
    maps = model.maps() if not copy and wanted is None else None
    for i, entry in enumerate(entries):
        name, dtype, shape = entry[0], entry[1], entry[2]
        if allow is not None:
            check_readable(name, dtype, allow, path)
        if wanted is not None and name not in targets:
            continue
        if copy:
            array = read_tensor(model, i, entry, floats)
        else:
            array = mapped_array(maps[i] if maps is not None else model.map(i), dtype, shape, floats)
        read[name] = array
        if wanted is None or name in wanted:
            out[name] = array
            dtypes[name] = dtype
            if dtype in PACKED:
                out._shapes[name] = shape
    for alias, target in aliases.items():
        if wanted is None or alias in wanted:
            out[alias] = read[target]
            at = next(entry for entry in entries if entry[0] == target)
            dtypes[alias] = at[1]
            if at[1] in PACKED:
                out._shapes[alias] = at[2]
    return out


def lazy_model(model: _pawl.Model, *, copy: bool = True) -> LazyTensors:
    """All tensors of a model of a lazy checkpoint, each read when it is first asked for."""
    entries = model.tensors()
    places = {entry[0]: i for i, entry in enumerate(entries)}
    places |= {alias: places[target] for alias, target in model.aliases().items()}

    def read(i: int) -> Array:
        if copy:
            return read_tensor(model, i, entries[i], "auto")
        return mapped_array(model.map(i), entries[i][1], entries[i][2], "auto")

    out = LazyTensors(places, read)
    out.metadata = own_metadata(model)
    out.dtypes = {name: entries[i][1] for name, i in places.items()}
    out._shapes = {name: entries[i][2] for name, i in places.items() if entries[i][1] in PACKED}
    return out


# ---- what pawl.numpy exports ----


def save_file(
    tensor_dict: Mapping[str, ArrayLike],
    filename: StrPath,
    metadata: Mapping[str, str] | None = None,
    *,
    dtypes: Mapping[str, str] | None = None,
    allow: Collection[str] | None = None,
    overflow: Overflow | None = None,
    align: int = 8,
    durable: bool = True,
    progress: Progress | None = None,
) -> None:
    """Write a safetensors file, byte for byte as the reference library does, and publish it durably.

    Arrays are borrowed for the length of the call; contiguous ones are not copied, others are packed on their way out. A reader of
    the old file goes on seeing it. After any failure the old file is whole.

    ``metadata``: None writes none, ``{}`` an empty one. ``dtypes``: names whose array is to be written as another dtype:
    ``float32`` values as a narrower float (rounded once, ties to even; ``overflow`` says what becomes of values beyond the
    range), or ``uint16`` and ``uint8`` words as what they are. ``allow``: the only dtypes that may be written.
    ``align``: where the data begin: 8, 64, 256 or 4096 bytes. ``progress`` is called with bytes done and in all.

    Raises ArgumentError before anything is written; OSError for what the system refuses.

    >>> import numpy, pawl.numpy
    >>> pawl.numpy.save_file({"w": numpy.ones((2, 3), "f4")}, "w.safetensors", {"step": "7"})
    >>> pawl.numpy.load_file("w.safetensors")["w"].shape
    (2, 3)
    """
    tensors = tensors_of(tensor_dict, dtypes, allow, overflow)
    _pawl.write(filename, tensors, metadata_of(metadata), _align(align), durable, progress)


def save(
    tensor_dict: Mapping[str, ArrayLike],
    metadata: Mapping[str, str] | None = None,
    *,
    dtypes: Mapping[str, str] | None = None,
    allow: Collection[str] | None = None,
    overflow: Overflow | None = None,
    align: int = 8,
) -> bytes:
    """The bytes that ``save_file`` would write.

    >>> import numpy, pawl.numpy
    >>> len(pawl.numpy.save({"w": numpy.zeros(4, "f4")}))
    80
    """
    return _pawl.write_bytes(tensors_of(tensor_dict, dtypes, allow, overflow), metadata_of(metadata), _align(align))


def _align(align: int) -> int:
    if align not in (8, 64, 256, 4096):
        raise ArgumentError(f"align is {align!r}, expected 8, 64, 256 or 4096", code="argument")
    return align


def load_file(
    filename: StrPath,
    *,
    names: Collection[str] | None = None,
    copy: bool = True,
    floats: Floats = "auto",
    allow: Collection[str] | None = None,
    mode: Mode = "strict",
    backend: str = "mmap",
) -> TensorDict:
    """Read a safetensors file, an index with its shards, or a directory of either.

    ``copy=True`` gives fresh, writable, C-contiguous arrays. ``copy=False`` reads nothing: the arrays are read-only and
    lie in a private map of the file, which lives as long as any of them. ``backend="pread"`` never maps.

    BF16 and F8 come as the types of ml_dtypes when that can be imported, else as words; ``floats="raw"`` always as words,
    ``floats="decode"`` as float32, exactly. ``names``: only these. ``allow``: another dtype in the file is a FormatError.
    ``mode="compat"`` gives exactly the reference library's verdict.

    Raises FormatError with ``code`` and ``offset``; NotFoundError; OSError.

    >>> import numpy, pawl.numpy
    >>> pawl.numpy.save_file({"a": numpy.arange(3), "b": numpy.zeros(2)}, "ab.safetensors")
    >>> pawl.numpy.load_file("ab.safetensors", names=["a"])
    {'a': array([0, 1, 2])}
    >>> pawl.numpy.load_file("ab.safetensors", copy=False)["a"].flags.writeable
    False
    """
    check_backend(backend)
    model = _pawl.open_model(filename, mode_of(mode), 0)
    return read_model(model, names=names, copy=copy or backend == "pread", floats=floats, allow=allow, path=filename)


def load(
    data: bytes | bytearray | memoryview,
    *,
    floats: Floats = "auto",
    allow: Collection[str] | None = None,
    mode: Mode = "strict",
) -> TensorDict:
    """Read a whole safetensors file that is in memory; the arrays are copies.

    >>> import numpy, pawl.numpy
    >>> pawl.numpy.load(pawl.numpy.save({"n": numpy.array(7)}))
    {'n': array(7)}
    """
    return read_model(_pawl.open_memory(data, mode_of(mode), 0), floats=floats, allow=allow)


# ---- what pawl exports ----


def read_header(filename: StrPath, *, allow: Collection[str] | None = None, mode: Mode = "strict") -> Header:
    """Read and check a header and the size of the file; no tensor data are touched.

    >>> import numpy, pawl, pawl.numpy
    >>> pawl.numpy.save_file({"w": numpy.ones((2, 3), "f4")}, "h.safetensors")
    >>> pawl.read_header("h.safetensors").tensors
    {'w': TensorInfo(dtype='F32', shape=(2, 3), begin=0, end=24)}
    """
    check_allow(allow)
    model = _pawl.open_model(filename, mode_of(mode), 0)
    tensors: dict[str, TensorInfo] = {}
    for name, dtype, shape, begin, end, _ in model.tensors():
        check_readable(name, dtype, allow, filename)
        tensors[name] = TensorInfo(dtype, shape, begin, end)
    return Header(tensors, model.metadata())


def verify(path: StrPath, *, finite: bool = False) -> list[Problem]:
    """Examine whatever is at a path: a file, a model in shards, a checkpoint, a run, token shards. Every fault; writes nothing.

    Of a run each step is examined. ``finite``: every NaN or infinity in a tensor is a fault too.

    >>> import numpy, pawl, pawl.numpy
    >>> pawl.numpy.save_file({"w": numpy.array([1.0, numpy.nan], "f4")}, "nan.safetensors")
    >>> pawl.verify("nan.safetensors")
    []
    >>> [problem.code for problem in pawl.verify("nan.safetensors", finite=True)]
    ['non-finite']
    """
    return reasons_of(_pawl.verify(path, 0, 0, False, finite, 0)[0])


class safe_open:
    """A reader of a safetensors file, an index with its shards, or a directory of either; a context manager.

    ``framework``: "numpy" or "np", "pt" or "torch", "jax" or "flax": what tensors come as. One reader may be used by many threads, and
    can be pickled (by its path). Tensors outlive it.

    >>> import numpy, pawl, pawl.numpy
    >>> pawl.numpy.save_file({"w": numpy.arange(12.0).reshape(3, 4)}, "s.safetensors", {"by": "me"})
    >>> with pawl.safe_open("s.safetensors", "numpy") as f:
    ...     print(f.keys(), f.metadata(), f.get_slice("w")[1:, ::2])
    ['w'] {'by': 'me'} [[ 4.  6.]
     [ 8. 10.]]
    """

    def __init__(
        self, filename: StrPath, framework: str = "numpy", device: Any = "cpu", *, backend: str = "mmap", mode: Mode = "strict"
    ) -> None:
        check_backend(backend)
        if framework not in _FRAMEWORKS:
            raise ArgumentError(f"framework is {framework!r}, expected one of {', '.join(_FRAMEWORKS)}", code="argument")
        self._framework = _FRAMEWORKS[framework]
        self._arguments = (framework, device, backend, mode)
        self._path = os.path.abspath(os.fsdecode(filename))
        self._device = device
        self._model: _pawl.Model | None = _pawl.open_model(filename, mode_of(mode), 0)
        self._entries = self._model.tensors()
        self._at = {entry[0]: i for i, entry in enumerate(self._entries)}
        for alias, target in self._model.aliases().items():
            self._at[alias] = self._at[target]

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._model = None

    def __reduce__(self) -> tuple[Any, ...]:
        return (_reopen, (self._path, *self._arguments))

    def _find(self, name: str) -> tuple[_pawl.Model, int, _Entry]:
        model = self._model
        if model is None:
            raise ArgumentError("the reader is closed", code="argument", path=self._path)
        at = self._at.get(name)
        if at is None:
            raise MissingTensorError(f"there is no tensor '{name}'", code="argument", path=self._path)
        return model, at, self._entries[at]

    def _give(self, array: Array, dtype: str) -> Any:
        if self._framework == "torch":
            from . import torch

            return torch._from_numpy(array, dtype, self._device)
        if self._framework == "jax":
            from . import jax

            return jax._from_numpy(array, dtype)
        return array

    def keys(self) -> list[str]:
        """Names of all tensors, aliases too, ascending."""
        return sorted(self._at)

    def offset_keys(self) -> list[str]:
        """Names of all tensors in the order of the file, then the aliases."""
        return list(self._at)

    def metadata(self) -> dict[str, str] | None:
        """The metadata as they stand in the (first) file; None when there are none."""
        if self._model is None:
            raise ArgumentError("the reader is closed", code="argument", path=self._path)
        return self._model.metadata()

    def info(self, name: str) -> TensorInfo:
        """Dtype, shape and place of a tensor."""
        return TensorInfo(*self._find(name)[2][1:5])

    def get_tensor(self, name: str) -> Any:
        """A tensor of its own, in the framework's kind."""
        model, i, entry = self._find(name)
        floats: Floats = "auto" if self._framework == "numpy" else "raw"
        return self._give(read_tensor(model, i, entry, floats), entry[1])

    def get_tensors(self) -> dict[str, Any]:
        """All tensors; aliases are the same object as their target."""
        seen: dict[int, Any] = {}
        for name, at in self._at.items():
            if at not in seen:
                seen[at] = self.get_tensor(name)
        return {name: seen[at] for name, at in self._at.items()}

    def get_slice(self, name: str) -> Slice:
        """A tensor of which parts are read: ``f.get_slice("w")[..., ::2, -3:]``."""
        return Slice(self, *self._find(name))

    def __getitem__(self, name: str) -> Any:
        return self.get_tensor(name)

    def __len__(self) -> int:
        return len(self._at)

    def __contains__(self, name: object) -> bool:
        return name in self._at

    def __iter__(self) -> Any:
        return iter(self.keys())


def _reopen(path: str, framework: str, device: Any, backend: str, mode: Mode) -> safe_open:
    return safe_open(path, framework, device, backend=backend, mode=mode)


class Slice:
    """A tensor of which parts can be read; what ``safe_open.get_slice`` gives. Indexing follows NumPy's rules.

    >>> import numpy, pawl, pawl.numpy
    >>> pawl.numpy.save_file({"w": numpy.arange(6).reshape(2, 3)}, "g.safetensors")
    >>> part = pawl.safe_open("g.safetensors").get_slice("w")
    >>> part.get_shape(), part.get_dtype(), part[-1, :2]
    ([2, 3], 'I64', array([3, 4]))
    """

    def __init__(self, reader: safe_open, model: _pawl.Model, i: int, entry: _Entry) -> None:
        self._reader, self._model, self._i, self._entry = reader, model, i, entry

    def get_shape(self) -> list[int]:
        """The shape of the whole tensor."""
        return list(self._entry[2])

    def get_dtype(self) -> str:
        """The dtype on disk."""
        return self._entry[1]

    def __getitem__(self, index: _Index | tuple[_Index, ...]) -> Any:
        axes = tuple(_axis(item) for item in (index if isinstance(index, tuple) else (index,)))
        dtype = self._entry[1]
        shape = self._model.slice_shape(self._i, axes)
        array, target, is_decoded = new_array(dtype, shape, "auto" if self._reader._framework == "numpy" else "raw")
        self._model.read_slice(self._i, axes, target, is_decoded)
        return self._reader._give(array, dtype)


def _axis(item: Any) -> Any:
    if item is Ellipsis:
        return None
    if isinstance(item, slice):
        step = 1 if item.step is None else operator.index(item.step)
        if step == 0:
            raise ArgumentError("the step of a slice is 0", code="argument")
        return (_bound(item.start), _bound(item.stop), step)
    if isinstance(item, bool) or not hasattr(item, "__index__"):
        raise TypeError(f"a slice is made of integers, ranges and '...', not {type(item).__name__}")
    return _bound(item)


def _bound(value: Any) -> int | None:
    """An index within 64 bits: what lies beyond is beyond every axis all the same."""
    if value is None:
        return None
    n: int = operator.index(value)
    return max(-(2**62), min(2**62, n))


__all__ = [
    "Header", "Slice", "TensorInfo", "load", "load_file", "packed_shape", "read_header", "safe_open", "save", "save_file", "verify",
]  # fmt: skip
