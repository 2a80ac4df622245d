"""Safetensors files and checkpoints of JAX: the names of ``safetensors.flax``, with trees of arrays.

>>> import jax.numpy as jnp
>>> from pawl.jax import load_file, save_file
>>> save_file({"dense": {"kernel": jnp.ones((2, 2))}}, "j.safetensors")
>>> load_file("j.safetensors")["dense.kernel"].shape
(2, 2)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
from numpy.typing import NDArray

from . import _pawl
from ._arrays import ML_DTYPES, NUMPY, TensorDict, dtype_of, ml_dtype
from ._checkpoint import Checkpoint, KeepBest, Trust, mismatch
from ._checkpoint import load_checkpoint as _load_checkpoint
from ._checkpoint import save_checkpoint as _save_checkpoint
from ._errors import ArgumentError, MismatchError
from ._files import mode_of, read_model
from ._files import save as _save
from ._files import save_file as _save_file
from ._optimizer import OptimizerState
from ._types import Mode, Overflow, Progress, StrPath, Tree

__all__ = ["load", "load_checkpoint", "load_file", "save", "save_checkpoint", "save_file"]

_KEY = "__prng__"  # a leaf that was a typed PRNG key: "<name>.__prng__<implementation>"


def _from_numpy(array: NDArray[Any], dtype: str) -> Any:
    """A JAX array; words of 16 and 8 bits as the types that JAX has for them."""
    if dtype not in NUMPY and dtype in ML_DTYPES:
        ml = ml_dtype(dtype)
        if ml is not None and array.dtype != ml:
            array = array.view(ml)
    return jax.numpy.asarray(array)


def _part(key: Any) -> str:
    for attribute in ("key", "idx", "name"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


def _leaves(tree: Any, what: str = "") -> dict[str, Any]:
    """Leaves by key path, joined with dots."""
    out: dict[str, Any] = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        name = ".".join(_part(key) for key in path)
        if _is_key(leaf):
            name = f"{name}.{_KEY}{jax.random.key_impl(leaf)}"
            leaf = jax.random.key_data(leaf)
        if name in out:
            raise ArgumentError(f"{what}two leaves have the path '{name}'", code="argument")
        if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
            raise ArgumentError(f"{what}'{name}': this process can't address the whole array", code="argument")
        out[name] = leaf
    return out


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _to_host(leaves: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """All copies are begun before the first is waited for."""
    for leaf in leaves.values():
        if isinstance(leaf, jax.Array):
            leaf.copy_to_host_async()
    return {name: np.asarray(leaf) for name, leaf in leaves.items()}


def _unflatten(like: Any, held: Mapping[str, Any], path: StrPath | None) -> Any:
    """A tree as `like` from leaves by name; MismatchError with every name that does not fit."""
    flat, structure = jax.tree_util.tree_flatten_with_path(like)
    leaves, missing, bad = [], [], []
    used = set()
    for keys, leaf in flat:
        name = ".".join(_part(key) for key in keys)
        typed = next((other for other in held if other.startswith(f"{name}.{_KEY}")), None)
        found = held.get(name) if typed is None else held[typed]
        used.add(typed or name)
        if found is None:
            missing.append(name)
            continue
        if typed is not None:
            leaves.append(jax.random.wrap_key_data(found, impl=typed.rpartition(_KEY)[2]))
            continue
        shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
        if shape is not None and (tuple(shape) != found.shape or dtype != found.dtype):
            bad.append(f"{name}: {found.dtype} {list(found.shape)} on disk, {dtype} {list(shape)} asked")
        leaves.append(found)
    unexpected = [name for name in held if name not in used]
    if missing or bad or unexpected:
        raise mismatch(missing, unexpected, bad, path)
    return jax.tree_util.tree_unflatten(structure, leaves)


def save_file(
    tensors: Any,
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
    """Write a tree of arrays, its leaves named by their key paths joined with dots; arguments as ``pawl.numpy.save_file``.

    >>> import jax.numpy as jnp
    >>> save_file({"a": [jnp.zeros(1), jnp.ones(2)]}, "js.safetensors")
    >>> sorted(load_file("js.safetensors"))
    ['a.0', 'a.1']
    """
    _save_file(
        _to_host(_leaves(tensors)), filename, metadata, dtypes=dtypes, allow=allow, overflow=overflow, align=align, durable=durable,
        progress=progress,
    )  # fmt: skip


def save(
    tensors: Any,
    metadata: Mapping[str, str] | None = None,
    *,
    dtypes: Mapping[str, str] | None = None,
    allow: Collection[str] | None = None,
    overflow: Overflow | None = None,
    align: int = 8,
) -> bytes:
    """The bytes that ``save_file`` would write.

    >>> import jax.numpy as jnp
    >>> load(save({"n": jnp.arange(2.0)}))["n"].shape
    (2,)
    """
    return _save(_to_host(_leaves(tensors)), metadata, dtypes=dtypes, allow=allow, overflow=overflow, align=align)


def _arrays(held: TensorDict) -> dict[str, Any]:
    seen: dict[int, Any] = {}
    keep = list(held.values())
    for name in held:
        array = held[name]
        if id(array) not in seen:
            seen[id(array)] = _from_numpy(array, held.dtypes[name])
        held[name] = seen[id(array)]
    del keep
    return held


def load_file(
    filename: StrPath, *, like: Any = None, names: Collection[str] | None = None, allow: Collection[str] | None = None, mode: Mode = "strict"
) -> Any:
    """Read a file: with ``like`` as a tree of that structure (MismatchError when it does not fit), else as a flat dict.

    >>> import jax.numpy as jnp
    >>> tree = {"w": (jnp.zeros(2), jnp.ones(1))}
    >>> save_file(tree, "jl.safetensors")
    >>> load_file("jl.safetensors", like=tree)["w"][1].shape
    (1,)
    """
    model = _pawl.open_model(filename, mode_of(mode), 0)
    held = _arrays(read_model(model, names=names, floats="auto", allow=allow, path=filename))
    return held if like is None else _unflatten(like, held, filename)


def load(data: bytes, *, like: Any = None, allow: Collection[str] | None = None, mode: Mode = "strict") -> Any:
    """Read a whole safetensors file that is in memory.

    >>> import jax.numpy as jnp
    >>> load(save({"w": jnp.zeros(2)}))["w"].dtype
    dtype('float32')
    """
    held = _arrays(read_model(_pawl.open_memory(data, mode_of(mode), 0), floats="auto", allow=allow))
    return held if like is None else _unflatten(like, held, None)


def save_checkpoint(
    root: StrPath,
    step: int,
    *,
    params: Any,
    opt_state: Any = None,
    optimizer_name: str = "optax",
    rng: Any = None,
    state: Mapping[str, Any] | None = None,
    config: bytes | str | Mapping[str, Any] | None = None,
    attachments: Mapping[str, bytes | Tree] | None = None,
    metrics: Mapping[str, float] | None = None,
    keep: int | None = None,
    keep_every: int | None = None,
    keep_best: KeepBest | None = None,
    max_file_bytes: int | None = None,
    sums: bool = False,
    busy: Literal["error", "wait"] = "error",
    progress: Progress | None = None,
) -> Path:
    """Save a step, durably: a tree of parameters, one of the optimizer's state, and a PRNG key (typed keys with their implementation).

    What is not named here is as in ``pawl.save_checkpoint``.

    >>> import jax, jax.numpy as jnp
    >>> save_checkpoint("jc", 3, params={"w": jnp.zeros(2)}, rng=jax.random.key(0)).name
    'step-000003'
    """
    arrays = _to_host(_leaves(params, "params: "))
    held = None
    if opt_state is not None:
        # A checkpoint's optimizer tensors are "<parameter>.<state key>": a leaf without a dot goes under "state".
        tensors = {f"state.{name}": leaf for name, leaf in _to_host(_leaves(opt_state, "opt_state: ")).items()}
        held = OptimizerState(optimizer_name, tensors, {"layout": {"kind": "tree"}}, [])
    trees = dict(attachments or {})
    if rng is not None:
        if "rng" in trees:
            raise ArgumentError("attachments: the name 'rng' is taken", code="argument")
        trees["rng"] = {
            "impl": str(jax.random.key_impl(rng)) if _is_key(rng) else None,
            "data": np.asarray(jax.random.key_data(rng) if _is_key(rng) else rng),
        }
    return _save_checkpoint(
        root, step, arrays, held, state=state, config=config, attachments=trees, metrics=metrics, keep=keep, keep_every=keep_every,
        keep_best=keep_best, max_file_bytes=max_file_bytes, sums=sums, busy=busy, progress=progress,
    )  # fmt: skip


def load_checkpoint(
    root: StrPath,
    step: int | None = None,
    *,
    like: Mapping[str, Any] | None = None,
    trust: Trust = "full",
    weights_only: bool = False,
) -> tuple[dict[str, Any], Checkpoint]:
    """Load a step, or the newest that verifies: ``({"params": ..., "opt_state": ..., "rng": ...}, checkpoint)``.

    ``like``: a mapping with ``params`` and, when it is wanted, ``opt_state``: trees of the structure that they shall have. Without it
    both are flat dicts. ``opt_state`` and ``rng`` are None when the checkpoint has none. Raises as ``pawl.load_checkpoint``, and MismatchError.

    >>> import jax, jax.numpy as jnp
    >>> _ = save_checkpoint("jk", 1, params={"w": jnp.arange(2.0)}, rng=jax.random.key(7))
    >>> tree, checkpoint = load_checkpoint("jk", like={"params": {"w": jnp.zeros(2)}})
    >>> tree["params"]["w"].tolist(), checkpoint.step, bool(tree["rng"] == jax.random.key(7))
    ([0.0, 1.0], 1, True)
    """
    checkpoint = _load_checkpoint(root, step, trust=trust, weights_only=weights_only)
    params: Any = _arrays(checkpoint.model)
    held = checkpoint.optimizer
    opt_state: Any = None
    if held is not None:
        known = held.tensors.dtypes if isinstance(held.tensors, TensorDict) else {}
        opt_state = {
            name.removeprefix("state."): _from_numpy(array, known.get(name) or dtype_of(name, array)) for name, array in held.tensors.items()
        }
    if like is not None:
        params = _unflatten(like["params"], params, checkpoint.path)
        if like.get("opt_state") is not None:
            if opt_state is None:
                raise MismatchError("the checkpoint has no optimizer", code="mismatch", path=checkpoint.path)
            opt_state = _unflatten(like["opt_state"], opt_state, checkpoint.path)
    rng: Any = None
    if "rng" in checkpoint.attachments:
        kept = checkpoint.attachments["rng"]
        rng = jax.numpy.asarray(kept["data"])
        if kept["impl"] is not None:
            rng = jax.random.wrap_key_data(rng, impl=kept["impl"])
    return {"params": params, "opt_state": opt_state, "rng": rng}, checkpoint
