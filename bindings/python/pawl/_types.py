"""Names of types that the signatures share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

StrPath: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes]"
Floats: TypeAlias = Literal["auto", "raw", "decode"]
Overflow: TypeAlias = Literal["error", "saturate", "inf"]
Mode: TypeAlias = Literal["strict", "compat"]
Progress: TypeAlias = Callable[[int, int], object]
Tree: TypeAlias = Any
"""Nested dict, list, tuple, str, int, float, bool, None and arrays."""
