"""Arrays and dtypes: what NumPy holds as what the file holds, both ways, without a copy where there need be none."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _pawl
from ._errors import ArgumentError, FormatError
from ._types import Floats, Overflow

Array: TypeAlias = "NDArray[Any]"
# (name, dtype, shape, strides, buffer, is_big_endian, stored, overflow): what the extension module takes
Tensor: TypeAlias = tuple[str, str, tuple[int, ...], tuple[int, ...] | None, Any, bool, str | None, int]

BITS: dict[str, int] = {name: bits for name, bits, _ in _pawl.dtypes()}
FLOATS: frozenset[str] = frozenset(name for name, _, is_float in _pawl.dtypes() if is_float)

NUMPY: dict[str, np.dtype[Any]] = {
    name: np.dtype(code)
    for name, code in {
        "BOOL": "?", "U8": "u1", "I8": "i1", "I16": "<i2", "U16": "<u2", "F16": "<f2", "I32": "<i4", "U32": "<u4",
        "F32": "<f4", "C64": "<c8", "F64": "<f8", "I64": "<i8", "U64": "<u8",
    }.items()
}  # fmt: skip
RAW: dict[str, np.dtype[Any]] = {
    **NUMPY,
    "BF16": np.dtype("<u2"),
    **{name: np.dtype("u1") for name in BITS if name.startswith(("F8_", "F6_", "F4"))},
}
PACKED = frozenset(["F4", "F6_E2M3", "F6_E3M2"])
ML_DTYPES = {
    "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
}  # fmt: skip
_BY_CODE: dict[str, str] = {dtype.str[1:]: name for name, dtype in NUMPY.items()}
_BY_ML_NAME = {ml: name for name, ml in ML_DTYPES.items()}
_UNPACKED_ML = {"float4_e2m1fn": "F4", "float6_e2m3fn": "F6_E2M3", "float6_e3m2fn": "F6_E3M2"}
OVERFLOW: dict[str | None, int] = {None: 0, "error": 1, "saturate": 2, "inf": 3}

_ml_cache: dict[str, np.dtype[Any] | None] = {}


def ml_dtype(name: str) -> np.dtype[Any] | None:
    """The ml_dtypes type of a dtype, None when that package can't be imported."""
    if name not in _ml_cache:
        try:
            import ml_dtypes

            _ml_cache[name] = np.dtype(getattr(ml_dtypes, ML_DTYPES[name]))
        except (ImportError, AttributeError):
            _ml_cache[name] = None
    return _ml_cache[name]


class TensorDict(dict[str, "NDArray[Any]"]):
    """Arrays by name, with what the file says of them: ``dtypes`` by name, and ``metadata`` (None: the file has none).

    Saving one writes the dtypes that it carries: bfloat16 words that were loaded as ``uint16`` are BF16 again.

    >>> import numpy, pawl.numpy
    >>> tensors = pawl.numpy.load(pawl.numpy.save({"w": numpy.ones(2, "f4")}, {"note": "x"}, dtypes={"w": "BF16"}))
    >>> tensors.dtypes, tensors.metadata
    ({'w': 'BF16'}, {'note': 'x'})
    >>> pawl.numpy.load(pawl.numpy.save(tensors)).dtypes
    {'w': 'BF16'}
    """

    dtypes: dict[str, str]
    metadata: dict[str, str] | None
    _shapes: dict[str, tuple[int, ...]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.dtypes = {}
        self.metadata = None
        self._shapes = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return (_tensor_dict, (dict(self), self.dtypes, self.metadata, self._shapes))


# Held for moments, while an array takes its place in a LazyTensors. One for all of them, so that a fork can take it: in a child, one that another
# thread held would stay locked.
_filling = threading.RLock()
os.register_at_fork(before=_filling.acquire, after_in_parent=_filling.release, after_in_child=_filling.release)


class LazyTensors(TensorDict):
    """A TensorDict that knows all its names, and reads and verifies an array when it is first asked for.

    Until then the dict below holds None for it. Whoever goes by Python's protocols never sees that: `dict(d)`, `{**d}` and
    `f(**d)` use keys() and `[]` of a subclass that has its own `__iter__`. What is asked for everything fills everything first.
    """

    def __init__(self, places: Mapping[str, int], read: Callable[[int], Array]) -> None:
        super().__init__(dict.fromkeys(places))
        self._read = read
        self._pending = dict(places)  # name to the tensor's place; an alias has its target's
        self._shared: dict[int, Array] = {}
        self._aliased = {place for place, names in Counter(places.values()).items() if names > 1}

    def _fill(self, *names: str) -> None:
        for name in names:
            place = self._pending.get(name)
            if place is None:
                continue
            array = self._shared.get(place)
            if array is None:
                array = self._read(place)  # without the lock: several threads read at once
            with _filling:
                if place in self._aliased:
                    array = self._shared.setdefault(place, array)
                if self._pending.get(name) is not None:  # else another thread was first, and its array is the one
                    super().__setitem__(name, array)
                    del self._pending[name]
                if not self._pending:
                    self._shared.clear()

    def _fill_all(self) -> None:
        self._fill(*self._pending)

    def _forget(self, name: str) -> None:
        with _filling:
            self._pending.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return super().__iter__()

    def __getitem__(self, name: str) -> Array:
        self._fill(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._fill(name)
        return super().get(name, default)

    def setdefault(self, name: str, default: Any = None) -> Any:
        self._fill(name)
        return super().setdefault(name, default)

    def pop(self, name: str, *default: Any) -> Any:
        self._fill(name)
        return super().pop(name, *default)

    def popitem(self) -> tuple[str, Array]:
        if self:
            self._fill(next(reversed(self)))
        return super().popitem()

    def items(self) -> Any:
        self._fill_all()
        return super().items()

    def values(self) -> Any:
        self._fill_all()
        return super().values()

    def copy(self) -> dict[str, Array]:
        self._fill_all()
        return super().copy()

    def __setitem__(self, name: str, array: Array) -> None:
        self._forget(name)
        super().__setitem__(name, array)

    def __delitem__(self, name: str) -> None:
        self._forget(name)
        super().__delitem__(name)

    def clear(self) -> None:
        with _filling:
            self._pending.clear()
        super().clear()

    def update(self, *args: Any, **kwargs: Any) -> None:
        for name, array in dict(*args, **kwargs).items():
            self[name] = array

    def __or__(self, other: Any) -> Any:
        self._fill_all()
        return super().__or__(other)

    def __ror__(self, other: Any) -> Any:
        self._fill_all()
        return super().__ror__(other)

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __eq__(self, other: object) -> bool:
        self._fill_all()
        if isinstance(other, LazyTensors):
            other._fill_all()
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} tensors, {len(self._pending)} of them not read yet>"


def _tensor_dict(
    items: dict[str, Any], dtypes: dict[str, str], metadata: dict[str, str] | None, shapes: dict[str, tuple[int, ...]]
) -> TensorDict:
    tensors = TensorDict(items)
    tensors.dtypes, tensors.metadata, tensors._shapes = dtypes, metadata, shapes
    return tensors


# ---- reading ----


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    try:
        return np.empty(shape, dtype)
    except ValueError as error:  # a valid file of no bytes can have dimensions that NumPy has not
        raise FormatError(f"NumPy has no array of the shape {list(shape)}: {error}", code="unsupported") from None


def packed_shape(dtype: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the bytes of packed elements: F4 with its last axis halved, everything else flat."""
    if dtype == "F4" and shape and shape[-1] % 2 == 0:
        return (*shape[:-1], shape[-1] // 2)
    count = 1
    for n in shape:
        count *= n
    return (count * BITS[dtype] // 8,)


def new_array(dtype: str, shape: tuple[int, ...], floats: Floats) -> tuple[Array, Array, bool]:
    """(what to hand to the user, what to read into, whether it is to be decoded)."""
    if dtype in NUMPY:
        array = empty(shape, NUMPY[dtype])
        return array, array, False
    if floats == "decode":
        array = empty(shape, np.dtype(np.float32))
        return array, array, True
    words = empty(packed_shape(dtype, shape) if dtype in PACKED else shape, RAW[dtype])
    ml = ml_dtype(dtype) if floats == "auto" and dtype in ML_DTYPES else None
    return (words if ml is None else words.view(ml)), words, False


def mapped_array(buffer: Any, dtype: str, shape: tuple[int, ...], floats: Floats) -> Array:
    """A read-only memmap over the bytes of a tensor; decoding can't be done in place."""
    numpy_dtype = NUMPY.get(dtype)
    if numpy_dtype is None:
        if floats == "decode":
            array = empty(shape, np.dtype(np.float32))
            if array.size:
                _pawl.decode(dtype, buffer, array.size, array)
            return array
        ml = ml_dtype(dtype) if floats == "auto" and dtype in ML_DTYPES else None
        numpy_dtype = RAW[dtype] if ml is None else ml
        if dtype in PACKED:
            shape = packed_shape(dtype, shape)
    return np.ndarray.__new__(np.memmap, shape, numpy_dtype, buffer)


# ---- writing ----


def as_array(name: str, value: Any) -> Array:
    """Anything with the buffer protocol, a CPU __dlpack__, or __array__, as an array; without a copy where that can be."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return np.asarray(memoryview(value))
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        try:
            array: Array = np.from_dlpack(value)
        except (BufferError, RuntimeError) as error:
            raise ArgumentError(f"tensor '{name}': {error}", code="argument") from error
        return array
    return np.asarray(value)


def dtype_of(name: str, array: Array) -> str:
    """The dtype that an array has on disk when nothing else is said."""
    code = array.dtype.str[1:]
    found = _BY_CODE.get(code) if array.dtype.kind != "V" else None
    if found is None:
        ml = array.dtype.name
        found = _BY_ML_NAME.get(ml) or _UNPACKED_ML.get(ml)
    if found is None:
        raise ArgumentError(f"tensor '{name}': NumPy's {array.dtype} is no dtype of the format", code="argument")
    return found


def tensor_of(name: str, array: Array, wanted: str | None, overflow: int, shape: tuple[int, ...] | None = None) -> Tensor:
    """One tensor for the extension module. ``shape``: of packed elements that are handed over as bytes."""
    dtype = dtype_of(name, array)
    if array.dtype.name in _UNPACKED_ML:  # one to a byte there, packed in the file; exact
        if wanted is None:
            wanted = dtype
        array, dtype = array.astype(np.float32), "F32"
    stored: str | None = None
    if wanted is not None and wanted != dtype:
        if wanted not in BITS:
            raise ArgumentError(f"tensor '{name}': there is no dtype '{wanted}'", code="argument")
        words = RAW[wanted].str[1:] == array.dtype.str[1:] and wanted not in NUMPY
        if words and (wanted not in PACKED or shape is not None):
            dtype = wanted
        elif words and wanted == "F4" and array.ndim:
            dtype, shape = wanted, (*array.shape[:-1], 2 * array.shape[-1])
        elif dtype == "F32" and wanted in FLOATS and BITS[wanted] < 32:
            stored = wanted
        elif dtype in FLOATS and wanted in FLOATS:
            raise ArgumentError(
                f"tensor '{name}': {dtype} values are not narrowed to {wanted} by a save: cast them first", code="argument"
            )
        else:
            raise ArgumentError(f"tensor '{name}': an array of {dtype} can't be written as {wanted}", code="argument")
    is_big = not array.dtype.isnative and array.dtype.itemsize > 1
    if array.dtype.kind == "V":
        array = array.view(RAW[dtype])
    strides: tuple[int, ...] | None = None
    if not array.flags.c_contiguous:
        size = array.dtype.itemsize
        if any(stride % size for stride in array.strides):
            array = np.ascontiguousarray(array)
        else:
            strides = tuple(stride // size for stride in array.strides)
    return (name, dtype, shape if shape is not None else array.shape, strides, array, is_big, stored, overflow)


def check_allowed(name: str, dtype: str, allow: Collection[str] | None) -> None:
    if allow is not None and dtype not in allow:
        raise ArgumentError(
            f"tensor '{name}' is {dtype}, allowed are {', '.join(sorted(allow)) or 'none'}", code="dtype"
        )


def check_allow(allow: Collection[str] | None) -> None:
    if isinstance(allow, str):
        raise ArgumentError("allow is a text, expected a collection of dtypes", code="argument")
    for dtype in allow or ():
        if dtype not in BITS:
            raise ArgumentError(f"allow: there is no dtype '{dtype}'", code="argument")


def tensors_of(
    tensors: Mapping[str, ArrayLike],
    dtypes: Mapping[str, str] | None = None,
    allow: Collection[str] | None = None,
    overflow: Overflow | None = None,
) -> list[Tensor]:
    """What save and save_file hand to the extension module; ArgumentError for what can't be."""
    if overflow not in OVERFLOW:
        raise ArgumentError(f"overflow is {overflow!r}, expected None, 'error', 'saturate' or 'inf'", code="argument")
    check_allow(allow)
    asked = dict(dtypes or {})
    carried: Mapping[str, str] = tensors.dtypes if isinstance(tensors, TensorDict) else {}
    shapes: Mapping[str, tuple[int, ...]] = tensors._shapes if isinstance(tensors, TensorDict) else {}
    out: list[Tensor] = []
    for name, value in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"the names of tensors are str, not {type(name).__name__}")
        array = as_array(name, value)
        wanted = asked.pop(name, None)
        shape = None
        if wanted is None and name in carried and can_carry(array, carried[name]):
            wanted = carried[name]
            shape = shapes.get(name)
            if shape is not None and packed_shape(wanted, shape) != array.shape:
                shape = None
        tensor = tensor_of(name, array, wanted, OVERFLOW[overflow], shape)
        check_allowed(name, tensor[6] or tensor[1], allow)
        out.append(tensor)
    if asked:
        raise ArgumentError(f"dtypes names '{next(iter(asked))}', which is no tensor", code="argument")
    return out


def can_carry(array: Array, dtype: str) -> bool:
    """Whether the dtype that a TensorDict carries still says something of this array, which may have been replaced."""
    if dtype in NUMPY:
        return False  # the array's own decides
    return array.dtype.str[1:] == RAW[dtype].str[1:] or array.dtype == np.float32


def metadata_of(metadata: Mapping[str, str] | None) -> dict[str, str] | None:
    if metadata is None:
        return None
    checked = dict(metadata)
    for key, value in checked.items():
        for text in (key, value):
            if not isinstance(text, str):
                raise ArgumentError(f"metadata {key!r}: {value!r}: keys and values are str", code="argument")
    return checked


def walk(model: _pawl.Model) -> Iterator[tuple[int, tuple[str, str, tuple[int, ...], int, int, int]]]:
    return enumerate(model.tensors())
