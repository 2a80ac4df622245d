"""Pawl: checkpoints that survive a crash at any instant, safetensors byte for byte, token shards with an exact cursor.

>>> import numpy, pawl
>>> weights = {"fc.weight": numpy.zeros((2, 2), "f4")}
>>> path = pawl.save_checkpoint("run/ckpt", 100, weights, keep=3)
>>> checkpoint = pawl.latest_checkpoint("run/ckpt")
>>> checkpoint.step, checkpoint.model["fc.weight"].shape
(100, (2, 2))
"""

from __future__ import annotations

import atexit
from typing import TYPE_CHECKING, Any

from . import _pawl
from ._errors import (
    ArgumentError, BusyError, CanceledError, Error, FormatError, IncompleteError, MismatchError, NoneCompleteError, NotFoundError,
    Problem, Warning,
)  # fmt: skip

__version__ = "0.1.0"

SafetensorError = FormatError


def libpawl_version() -> str:
    """The version of the library that was loaded.

    >>> import pawl
    >>> pawl.libpawl_version() == pawl.__version__
    True
    """
    return _pawl.libpawl_version()


if libpawl_version() != __version__ or _pawl.header_version != __version__:
    raise ImportError(
        f"the package pawl is {__version__}, and the libpawl that was loaded is {libpawl_version()}"
        f" (the module was built for {_pawl.header_version})"
    )

atexit.register(_pawl.leave)  # the first registered is called last: after the saves in flight were waited for

if TYPE_CHECKING:
    from ._arrays import TensorDict as TensorDict
    from ._checkpoint import (
        Checkpoint as Checkpoint,
        OptimizerState as OptimizerState,
        Skipped as Skipped,
        latest_checkpoint as latest_checkpoint,
        load_checkpoint as load_checkpoint,
        save_checkpoint as save_checkpoint,
        step_name as step_name,
        verify_step as verify_step,
    )
    from ._files import (
        Header as Header,
        Slice as Slice,
        TensorInfo as TensorInfo,
        read_header as read_header,
        safe_open as safe_open,
        verify as verify,
    )
    from ._pcg32 import PCG32 as PCG32
    from ._run import Run as Run
    from ._save import Save as Save

# Everything else is imported when it is first asked for: `import pawl` costs little more than NumPy.
_LAZY = {
    **dict.fromkeys(["TensorDict"], "_arrays"),
    **dict.fromkeys(
        ["Checkpoint", "OptimizerState", "Skipped", "latest_checkpoint", "load_checkpoint", "save_checkpoint", "step_name", "verify_step"],
        "_checkpoint",
    ),
    **dict.fromkeys(["Header", "Slice", "TensorInfo", "read_header", "safe_open", "verify"], "_files"),
    "PCG32": "_pcg32",
    "Run": "_run",
    "Save": "_save",
}
_MODULES = ("flax", "jax", "llmcp35", "numpy", "testing", "tokens", "torch")

__all__ = [
    "ArgumentError", "BusyError", "CanceledError", "Checkpoint", "Error", "FormatError", "Header", "IncompleteError", "MismatchError",
    "NoneCompleteError", "NotFoundError", "OptimizerState", "PCG32", "Problem", "Run", "SafetensorError", "Save", "Skipped", "Slice",
    "TensorDict", "TensorInfo", "Warning", "latest_checkpoint", "libpawl_version", "load_checkpoint", "read_header", "safe_open",
    "save_checkpoint", "step_name", "verify", "verify_step",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    import importlib

    if name in _LAZY:
        value = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_MODULES})
