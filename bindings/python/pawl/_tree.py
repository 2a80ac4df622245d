"""Trees (nested dict, list, tuple, str, numbers, bool, None, arrays) as JSON beside a safetensors file; never a pickle.

What JSON has is written as it is. Anything else is an object with the key "$": tuples, dicts whose keys are not all texts,
floats that are not finite, integers beyond 64 bits, NumPy scalars, and arrays (their place in the safetensors file).
"""

from __future__ import annotations

import collections
import json
import math
import struct
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._arrays import dtype_of
from ._errors import ArgumentError, FormatError

MARK = '{"pawl.tree":1,'
DEPTH_MAX = 100  # JSON of this depth is read by every reader that follows the format's limit of 127


class Encoder:
    """Collects the arrays of a tree while it is turned into what JSON has."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.arrays: dict[str, Any] = {}
        self.dtypes: dict[str, str] = {}
        self._above: set[int] = set()

    def encode(self, tree: Any) -> bytes:
        text = json.dumps(self._node(tree, self.name, 0), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        try:
            return f'{MARK}"root":{text}}}\n'.encode()
        except UnicodeEncodeError:
            raise ArgumentError(f"{self.name}: a text has a lone surrogate: it is not Unicode", code="argument") from None

    def plain(self, tree: Any) -> Any:
        """The same without the text; arrays are refused."""
        node = self._node(tree, self.name, 0)
        if self.arrays:
            raise ArgumentError(f"{self.name}: an array among the scalars", code="argument")
        return node

    def _array(self, kind: str, array: Any, path: str, dtype: str | None = None) -> dict[str, Any]:
        key = str(len(self.arrays))
        try:
            self.dtypes[key] = dtype if dtype is not None else dtype_of(path, array)
        except ArgumentError:
            raise ArgumentError(f"{path}: array of {array.dtype}", code="argument") from None
        self.arrays[key] = array
        return {"$": kind, "v": key}

    def _node(self, value: Any, path: str, depth: int) -> Any:
        if value is None or value is True or value is False or type(value) is str:
            return value
        if type(value) is int:
            return value if -(2**63) <= value < 2**63 else {"$": "int", "v": hex(value)}
        if type(value) is float:
            return value if math.isfinite(value) else {"$": "float", "v": struct.pack(">d", value).hex()}
        if isinstance(value, np.generic):
            return self._array("scalar", np.asarray(value), path)
        if type(value) is np.ndarray or isinstance(value, np.memmap):
            return self._array("array", value, path)
        if type(value) in (dict, list, tuple, collections.OrderedDict, collections.Counter):
            if depth >= DEPTH_MAX:
                raise ArgumentError(f"{path}: deeper than {DEPTH_MAX} levels", code="argument")
            if id(value) in self._above:
                raise ArgumentError(f"{path}: the tree contains itself", code="argument")
            self._above.add(id(value))
            try:
                return self._container(value, path, depth + 1)
            finally:
                self._above.discard(id(value))
        framework = type(value).__module__.partition(".")[0]
        if framework == "torch" and "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor):
            from . import torch

            array, dtype = torch._to_numpy(path, value)
            return self._array("tensor", array, path, dtype)
        if framework in ("jax", "jaxlib") and hasattr(value, "__array__"):
            return self._array("jax", np.asarray(value), path)
        kind = getattr(value, "__name__", None) and "function" if callable(value) else None
        raise ArgumentError(f"{path}: {kind or type(value).__name__}", code="argument")

    def _container(self, value: Any, path: str, depth: int) -> Any:
        if isinstance(value, list):
            return [self._node(item, f"{path}[{i}]", depth) for i, item in enumerate(value)]
        if isinstance(value, tuple):
            return {"$": "tuple", "v": [self._node(item, f"{path}[{i}]", depth) for i, item in enumerate(value)]}
        is_plain = type(value) is dict and all(type(key) is str for key in value) and "$" not in value
        if is_plain:
            return {key: self._node(item, f"{path}[{key!r}]", depth) for key, item in value.items()}
        kind = {"dict": "dict", "OrderedDict": "odict", "Counter": "counter"}[type(value).__name__]
        pairs = [
            [self._node(key, f"{path} key {key!r}", depth), self._node(item, f"{path}[{key!r}]", depth)]
            for key, item in value.items()
        ]
        return {"$": kind, "v": pairs}


def decode(text: bytes, arrays: Mapping[str, Any], dtypes: Mapping[str, str], name: str) -> Any:
    """The inverse of Encoder.encode; FormatError for what no encoder writes."""
    try:
        document = json.loads(text, parse_constant=_refuse)
        return decode_plain(document["root"], arrays, dtypes)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, struct.error) as error:
        raise FormatError(f"{name}.json is no tree: {error}", code="content") from error


def _refuse(token: str) -> Any:
    raise ValueError(f"{token} is no JSON")


def decode_plain(node: Any, arrays: Mapping[str, Any] | None = None, dtypes: Mapping[str, str] | None = None) -> Any:
    if isinstance(node, list):
        return [decode_plain(item, arrays, dtypes) for item in node]
    if not isinstance(node, dict):
        return node
    if "$" not in node:
        return {key: decode_plain(item, arrays, dtypes) for key, item in node.items()}
    kind, value = node["$"], node["v"]
    if kind == "int":
        return int(value, 16)
    if kind == "float":
        return struct.unpack(">d", bytes.fromhex(value))[0]
    if kind == "tuple":
        return tuple(decode_plain(item, arrays, dtypes) for item in value)
    if kind in ("dict", "odict", "counter"):
        pairs = [(decode_plain(key, arrays, dtypes), decode_plain(item, arrays, dtypes)) for key, item in value]
        types: dict[str, Any] = {"dict": dict, "odict": collections.OrderedDict}
        return collections.Counter(dict(pairs)) if kind == "counter" else types[kind](pairs)
    array = (arrays or {})[value]
    if kind == "array":
        return array
    if kind == "scalar":
        return array[()]
    if kind == "tensor":
        from . import torch

        return torch._from_numpy(array, (dtypes or {})[value], "cpu")
    if kind == "jax":
        from . import jax

        return jax._from_numpy(array, (dtypes or {})[value])
    raise ValueError(f"{kind!r} is no kind of node")
