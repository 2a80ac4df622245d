"""Safetensors files and checkpoints of PyTorch: the names and arguments of ``safetensors.torch``, and training runs.

No pickle is written or read, and ``torch.load`` is never called.

>>> import torch
>>> from pawl.torch import load_file, save_file
>>> save_file({"w": torch.ones(2, dtype=torch.bfloat16)}, "t.safetensors")
>>> load_file("t.safetensors")["w"]
tensor([1., 1.], dtype=torch.bfloat16)
"""

from __future__ import annotations

import random
import signal
import struct
import warnings
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from . import _pawl
from ._arrays import NUMPY, PACKED, RAW, Tensor, TensorDict, check_allow, check_allowed, metadata_of, tensor_of
from ._arrays import OVERFLOW as _OVERFLOW
from ._checkpoint import Checkpoint, KeepBest, Restored, Trust, mismatch, step_name
from ._checkpoint import latest_checkpoint as _latest_checkpoint
from ._checkpoint import load_checkpoint as _load_checkpoint
from ._checkpoint import save_checkpoint as _save_checkpoint
from ._errors import ArgumentError, MismatchError, Warning
from ._files import check_backend, mode_of, read_model
from ._optimizer import OptimizerState
from ._run import Run as _Run
from ._save import Save
from ._types import Mode, Overflow, Progress, StrPath, Tree

__all__ = [
    "Run", "latest_checkpoint", "load", "load_checkpoint", "load_file", "load_model", "save", "save_checkpoint", "save_file", "save_model",
]  # fmt: skip

_NAMES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "F16": "float16", "BF16": "bfloat16", "I32": "int32",
    "U32": "uint32", "F32": "float32", "C64": "complex64", "F64": "float64", "I64": "int64", "U64": "uint64",
    "F8_E5M2": "float8_e5m2", "F8_E4M3": "float8_e4m3fn", "F8_E8M0": "float8_e8m0fnu", "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
}  # fmt: skip
_DTYPES: dict[str, Any] = {name: getattr(torch, torch_name) for name, torch_name in _NAMES.items() if hasattr(torch, torch_name)}
_BY_DTYPE: dict[Any, str] = {dtype: name for name, dtype in _DTYPES.items()}
_WORDS = {1: torch.uint8, 2: torch.int16}


# ---- tensors and arrays ----


def _check(name: str, tensor: Any) -> None:
    kind = None
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"'{name}' is no torch.Tensor but {type(tensor).__name__}")
    if type(tensor).__name__ in ("DTensor", "ShardedTensor"):
        kind = f"a {type(tensor).__name__}, of which this process has a part: gather it first"
    elif tensor.is_meta:
        kind = "on the meta device and has no data"
    elif tensor.is_nested:
        kind = "nested"
    elif tensor.layout != torch.strided:
        kind = f"of the layout {tensor.layout}"
    elif tensor.dtype not in _BY_DTYPE:
        kind = f"{tensor.dtype}, which is no dtype of the format"
    if kind is not None:
        raise ArgumentError(f"tensor '{name}' is {kind}", code="argument")


def _to_numpy(name: str, tensor: Any) -> tuple[NDArray[Any], str]:
    """The words of a tensor as an array over the same memory (of a device: a copy), and its dtype on disk."""
    _check(name, tensor)
    dtype = _BY_DTYPE[tensor.dtype]
    plain = tensor.detach().resolve_conj().resolve_neg()
    if plain.device.type != "cpu":
        plain = plain.cpu()
    if dtype in NUMPY:
        array: NDArray[Any] = plain.numpy()
        return array, dtype
    words = plain.view(_WORDS[tensor.element_size()]).numpy()
    return words.view(RAW[dtype]), dtype


def _from_numpy(array: NDArray[Any], dtype: str, device: Any) -> Any:
    """The inverse: a tensor over the memory of an array, moved to the device."""
    if dtype in NUMPY:
        words = array.astype(NUMPY[dtype].newbyteorder("="), copy=False)
    else:
        words = array.view(RAW[dtype]) if array.dtype.kind == "V" else array
        if RAW[dtype].itemsize == 2:
            words = words.view(np.int16)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        tensor = torch.from_numpy(np.asarray(words))
    if dtype not in NUMPY and dtype in _DTYPES:
        tensor = tensor.view(_DTYPES[dtype])
    return tensor if str(device) == "cpu" else tensor.to(device)


def _key(tensor: Any) -> tuple[Any, ...]:
    return (tensor.device, tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()))


def _warn_of_overlaps(tensors: Mapping[str, Any]) -> None:
    """Tensors that share some memory and are not the same are written twice; that is said."""
    spans = []
    for name, t in tensors.items():
        if t.numel():
            low = t.data_ptr()
            high = low + (sum((n - 1) * abs(s) for n, s in zip(t.shape, t.stride(), strict=True)) + 1) * t.element_size()
            spans.append((str(t.device), low, high, name, _key(t)))
    spans.sort(key=lambda span: span[:3])
    for before, after in zip(spans, spans[1:], strict=False):
        if before[0] == after[0] and after[1] < before[2] and before[4] != after[4]:
            warnings.warn(f"tensors '{before[3]}' and '{after[3]}' overlap in memory: both are written whole", Warning, stacklevel=4)


def _tensors_of(
    tensors: Mapping[str, Any], dtypes: Mapping[str, str] | None, allow: Collection[str] | None, overflow: Overflow | None
) -> list[Tensor]:
    if overflow not in _OVERFLOW:
        raise ArgumentError(f"overflow is {overflow!r}, expected None, 'error', 'saturate' or 'inf'", code="argument")
    check_allow(allow)
    asked = dict(dtypes or {})
    seen: dict[tuple[Any, ...], tuple[NDArray[Any], str]] = {}
    out: list[Tensor] = []
    for name, tensor in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"the names of tensors are str, not {type(name).__name__}")
        _check(name, tensor)
        key = _key(tensor)
        if key not in seen or not tensor.numel():
            seen[key] = _to_numpy(name, tensor)  # one copy from a device, however many names it has
        array, dtype = seen[key]
        wanted = asked.pop(name, None)
        if wanted is not None and wanted != dtype and dtype != "F32":
            raise ArgumentError(f"tensor '{name}': {dtype} can't be written as {wanted}: cast it first", code="argument")
        made = tensor_of(name, array, wanted or (None if dtype in NUMPY else dtype), _OVERFLOW[overflow])
        check_allowed(name, made[6] or made[1], allow)
        out.append(made)
    if asked:
        raise ArgumentError(f"dtypes names '{next(iter(asked))}', which is no tensor", code="argument")
    _warn_of_overlaps(tensors)
    return out


# ---- safetensors.torch ----


def save_file(
    tensors: Mapping[str, Any],
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
    """Write tensors to a safetensors file, durably; arguments as ``pawl.numpy.save_file``.

    Tensors with the same address, dtype, shape and strides are written once, and ``load_file`` gives them back as one. A view
    writes its own elements. Meta, sparse and nested tensors are an ArgumentError.

    >>> import torch
    >>> w = torch.arange(6.0).reshape(2, 3)
    >>> save_file({"w": w, "tied": w, "turned": w.T.clone().T}, "sf.safetensors")
    >>> back = load_file("sf.safetensors")
    >>> back["w"] is back["tied"], bool((back["turned"] == w).all())
    (True, True)
    """
    from ._files import _align

    made = _tensors_of(tensors, dtypes, allow, overflow)
    _pawl.write(filename, made, metadata_of(metadata), _align(align), durable, progress)


def save(
    tensors: Mapping[str, Any],
    metadata: Mapping[str, str] | None = None,
    *,
    dtypes: Mapping[str, str] | None = None,
    allow: Collection[str] | None = None,
    overflow: Overflow | None = None,
    align: int = 8,
) -> bytes:
    """The bytes that ``save_file`` would write.

    >>> import torch
    >>> load(save({"n": torch.tensor(7)}))
    {'n': tensor(7)}
    """
    from ._files import _align

    return _pawl.write_bytes(_tensors_of(tensors, dtypes, allow, overflow), metadata_of(metadata), _align(align))


def _to_device(arrays: TensorDict, device: Any) -> TensorDict:
    """The same dict with tensors for arrays; names of one array get one tensor."""
    seen: dict[int, Any] = {}
    held = list(arrays.values())
    for name in arrays:
        array = arrays[name]
        if id(array) not in seen:
            seen[id(array)] = _from_numpy(array, arrays.dtypes[name], device)
        arrays[name] = seen[id(array)]
    del held
    return arrays


def load_file(
    filename: StrPath,
    device: Any = "cpu",
    *,
    names: Collection[str] | None = None,
    copy: bool = True,
    allow: Collection[str] | None = None,
    mode: Mode = "strict",
    backend: str = "mmap",
) -> dict[str, Any]:
    """Read a safetensors file, an index with its shards, or a directory of either, as tensors on a device.

    For a CUDA device the bytes are read to pinned memory and copied asynchronously. ``copy=False`` on the CPU gives tensors
    over the map of the file: they must not be written to, which PyTorch can't refuse.

    >>> import torch
    >>> save_file({"a": torch.zeros(2), "b": torch.ones(1)}, "lf.safetensors")
    >>> load_file("lf.safetensors", names=["b"])
    {'b': tensor([1.])}
    """
    check_backend(backend)
    model = _pawl.open_model(filename, mode_of(mode), 0)
    if torch.device(device).type == "cuda":
        return _load_cuda(model, device, names, allow, filename)
    arrays = read_model(model, names=names, copy=copy or backend == "pread", floats="raw", allow=allow, path=filename)
    return _to_device(arrays, device)


def _load_cuda(model: _pawl.Model, device: Any, names: Collection[str] | None, allow: Collection[str] | None, path: StrPath) -> TensorDict:
    out = read_model(model, names=[] if names is not None else None, copy=False, floats="raw", allow=allow, path=path)
    if names is not None:
        out = read_model(model, names=names, copy=False, floats="raw", allow=allow, path=path)
    entries = {entry[0]: (i, entry) for i, entry in enumerate(model.tensors())}
    aliases = model.aliases()
    staged: list[Any] = []
    done: dict[str, Any] = {}
    for name in list(out):
        target = aliases.get(name, name)
        if target not in done:
            i, entry = entries[target]
            pinned = torch.empty(entry[4] - entry[3], dtype=torch.uint8, pin_memory=True)
            model.read(i, pinned.numpy(), False)
            shape = out[name].shape
            dtype = _DTYPES.get(entry[1], torch.uint8) if entry[1] not in PACKED else torch.uint8
            done[target] = pinned.view(dtype).reshape(shape).to(device, non_blocking=True)
            staged.append(pinned)
        out[name] = done[target]
    torch.cuda.synchronize(device)  # the pinned memory may go now
    return out


def load(data: bytes, *, allow: Collection[str] | None = None, mode: Mode = "strict") -> dict[str, Any]:
    """Read a whole safetensors file that is in memory.

    >>> import torch
    >>> load(save({"w": torch.zeros(2)}))["w"].dtype
    torch.float32
    """
    return _to_device(read_model(_pawl.open_memory(data, mode_of(mode), 0), floats="raw", allow=allow), "cpu")


def _inner(model: Any) -> Any:
    """The module inside the wrappers of DistributedDataParallel and torch.compile."""
    while True:
        if hasattr(model, "_orig_mod"):
            model = model._orig_mod
        elif type(model).__name__ in ("DistributedDataParallel", "DataParallel"):
            model = model.module
        else:
            return model


def _state_of(model: Any) -> dict[str, Any]:
    if isinstance(model, Mapping):
        return dict(model)
    inner = _inner(model)
    if type(inner).__name__ in ("FullyShardedDataParallel", "FSDPModule"):
        raise ArgumentError(f"the model is wrapped by {type(inner).__name__}: its shards are not the whole", code="argument")
    state: dict[str, Any] = inner.state_dict(keep_vars=True)
    for name, value in state.items():
        if not isinstance(value, torch.Tensor):
            raise ArgumentError(f"the model's '{name}' is no tensor but {type(value).__name__}: keep it with extra=", code="argument")
    return state


def save_model(model: Any, filename: StrPath, metadata: Mapping[str, str] | None = None, force_contiguous: bool = True) -> None:
    """Write a module's state, shared tensors once; as ``safetensors.torch.save_model``.

    >>> import torch
    >>> save_model(torch.nn.Linear(2, 3), "sm.safetensors")
    >>> sorted(load_file("sm.safetensors"))
    ['bias', 'weight']
    """
    del force_contiguous  # tensors are packed as they are written, whatever their strides
    save_file(_state_of(model), filename, {"format": "pt", **(metadata or {})})


def load_model(model: Any, filename: StrPath, strict: bool = True, device: Any = "cpu") -> tuple[list[str], list[str]]:
    """Fill a module from a file; the names that are missing and unexpected. As ``safetensors.torch.load_model``.

    Raises MismatchError (``strict``) with all of them. A name whose storage another name of the file fills is not missing.

    >>> import torch
    >>> one, two = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    >>> save_model(one, "lm.safetensors"); load_model(two, "lm.safetensors")
    ([], [])
    >>> bool((one.weight == two.weight).all())
    True
    """
    held = load_file(filename, device)
    asked = _state_of(model)
    filled = {_key(asked[name]) for name in held if name in asked}
    missing = [name for name, tensor in asked.items() if name not in held and _key(tensor) not in filled]
    unexpected = [name for name in held if name not in asked]
    fits, bad = _fits(asked, held, "")
    if bad or (strict and (missing or unexpected)):
        raise mismatch(missing, unexpected, bad, filename)
    _fill(fits)
    return missing, unexpected


def _fits(asked: Mapping[str, Any], held: Mapping[str, Any], prefix: str) -> tuple[list[tuple[Any, Any]], list[str]]:
    fits, bad = [], []
    for name, target in asked.items():
        if name not in held:
            continue
        tensor = held[name]
        if tuple(target.shape) != tuple(tensor.shape) or target.dtype != tensor.dtype:
            bad.append(f"{prefix}{name}: {tensor.dtype} {list(tensor.shape)} on disk, {target.dtype} {list(target.shape)} asked")
        else:
            fits.append((target, tensor))
    return fits, bad


def _fill(fits: list[tuple[Any, Any]]) -> None:
    with torch.no_grad():
        for target, tensor in fits:
            target.copy_(tensor)


# ---- generators ----


def _rng_states() -> dict[str, tuple[str, bytes]]:
    states = {"torch.cpu": ("torch.Generator", bytes(torch.get_rng_state().numpy()))}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        for i, state in enumerate(torch.cuda.get_rng_state_all()):
            states[f"torch.cuda.{i}"] = ("torch.Generator", bytes(state.numpy()))
    _, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)
    states["numpy"] = ("numpy.MT19937", np.asarray(keys, "<u4").tobytes() + struct.pack("<iid", position, has_gauss, gauss))
    version, words, pending = random.getstate()
    flag = pending is not None
    states["python"] = ("python.random", struct.pack(f"<i{len(words)}Iid", version, *words, flag, pending if flag else 0.0))
    return states


def _set_rng_states(states: Mapping[str, tuple[str, bytes]]) -> None:
    for name, (_, data) in states.items():
        if name == "torch.cpu":
            torch.set_rng_state(torch.from_numpy(np.frombuffer(data, np.uint8).copy()))
        elif name.startswith("torch.cuda.") and int(name.rpartition(".")[2]) < torch.cuda.device_count():
            torch.cuda.set_rng_state(torch.from_numpy(np.frombuffer(data, np.uint8).copy()), int(name.rpartition(".")[2]))
        elif name == "numpy":
            position, has_gauss, gauss = struct.unpack("<iid", data[-16:])
            np.random.set_state(("MT19937", np.frombuffer(data[:-16], "<u4"), position, has_gauss, gauss))
        elif name == "python":
            numbers = struct.unpack(f"<i{(len(data) - 16) // 4}Iid", data)
            random.setstate((numbers[0], numbers[1:-2], numbers[-1] if numbers[-2] else None))


# ---- optimizers ----


def _flat_params(optimizer: Any) -> list[Any]:
    return [param for group in optimizer.param_groups for param in group["params"]]


def _param_names(optimizer: Any, model: Any) -> list[str]:
    """Names of the optimizer's parameters, in its order; by identity."""
    inner = _inner(model)
    if isinstance(inner, Mapping):
        names = {id(tensor): name for name, tensor in reversed(list(inner.items()))}
    else:
        names = {id(param): name for name, param in inner.named_parameters()}
    out = []
    for i, param in enumerate(_flat_params(optimizer)):
        if id(param) not in names:
            raise ArgumentError(f"parameter {i} of the optimizer, of shape {list(param.shape)}, is not the model's", code="argument")
        out.append(names[id(param)])
    return out


def _take_optimizer(optimizer: Any, model: Any) -> OptimizerState:
    if not isinstance(optimizer, Mapping):
        name = type(optimizer).__name__.lower()
        return OptimizerState.from_state_dict(optimizer.state_dict(), _param_names(optimizer, model), name)
    whole = OptimizerState("several", {}, {"layout": {"kind": "several"}, "optimizers": {}}, [])
    for key, one in optimizer.items():
        part = _take_optimizer(one, model)
        whole.tensors.update({f"{key}:{name}": tensor for name, tensor in part.tensors.items()})
        whole.scalars["optimizers"][key] = {"name": part.name, "scalars": part.scalars, "params": part.params}
    return whole


def _part(whole: OptimizerState, key: str) -> OptimizerState:
    kept = whole.scalars["optimizers"][key]
    tensors = {name[len(key) + 1 :]: tensor for name, tensor in whole.tensors.items() if name.startswith(f"{key}:")}
    return OptimizerState(kept["name"], tensors, kept["scalars"], kept["params"])


def _plan_optimizer(optimizer: Any, model: Any, held: OptimizerState | None, path: Path) -> list[Callable[[], None]]:
    """What to do to put the state back, once everything has been checked."""
    if held is None:
        raise MismatchError("the checkpoint has no optimizer", code="mismatch", path=path)
    is_several = held.scalars.get("layout", {}).get("kind") == "several"
    if isinstance(optimizer, Mapping):
        if not is_several or set(held.scalars["optimizers"]) != set(optimizer):
            raise MismatchError(f"the checkpoint's optimizers are not {', '.join(sorted(optimizer))}", code="mismatch", path=path)
        return [act for key, one in optimizer.items() for act in _plan_optimizer(one, model, _part(held, key), path)]
    name = type(optimizer).__name__.lower()
    if held.name != name or is_several:
        raise MismatchError(f"the optimizer on disk is '{held.name}', asked is '{name}'", code="mismatch", path=path)
    saved = held.state_dict()
    if not isinstance(saved.get("state"), Mapping):
        raise MismatchError("the optimizer on disk is not PyTorch's", code="mismatch", path=path)
    names = _param_names(optimizer, model)
    missing = sorted(set(names) - set(held.params))
    unexpected = sorted(set(held.params) - set(names))
    if missing or unexpected:
        raise mismatch([f"optimizer: {n}" for n in missing], [f"optimizer: {n}" for n in unexpected], [], path)
    by_name = {held.params[index]: values for index, values in saved["state"].items()}
    groups = {frozenset(held.params[i] for i in group["params"]): group for group in saved["param_groups"]}
    acts: list[Callable[[], None]] = []
    at = iter(names)
    for i, group in enumerate(optimizer.param_groups):
        members = {next(at): param for param in group["params"]}
        options = groups.get(frozenset(members))
        if options is None:
            bad = [f"optimizer: group {i} holds other parameters on disk"]
            raise mismatch([], [], bad, path)
        acts.append(lambda g=group, o=options: _set_group(g, o))  # type: ignore[misc]
        for name, param in members.items():
            acts.append(lambda p=param, v=by_name.get(name), o=options: _set_state(optimizer, p, v, o))  # type: ignore[misc]
    return acts


def _set_group(group: dict[str, Any], options: Mapping[str, Any]) -> None:
    for key, value in options.items():
        if key == "params":
            continue
        if isinstance(group.get(key), torch.Tensor) and isinstance(value, torch.Tensor):
            group[key].copy_(value)
        else:
            group[key] = value.clone() if isinstance(value, torch.Tensor) else value


def _set_state(optimizer: Any, param: Any, values: Mapping[str, Any] | None, options: Mapping[str, Any]) -> None:
    """One parameter's state. load_state_dict would cast it to the parameter's dtype."""
    if values is None:
        optimizer.state.pop(param, None)
        return
    state = optimizer.state[param]
    for key in [key for key in state if key not in values]:
        del state[key]
    for key, value in values.items():
        if not isinstance(value, torch.Tensor):
            state[key] = value
            continue
        now = state.get(key)
        if isinstance(now, torch.Tensor) and now.shape == value.shape and now.dtype == value.dtype:
            now.copy_(value)
            continue
        on_device = key != "step" or options.get("capturable") or options.get("fused")
        state[key] = value.to(param.device if on_device else "cpu", copy=True)


# ---- checkpoints ----

_Stateful = tuple[tuple[str, Any], ...]


def _getter(name: str, thing: Any) -> Any:
    if hasattr(thing, "state_dict"):
        return thing.state_dict()
    if isinstance(thing, tuple) and len(thing) == 2 and callable(thing[0]) and callable(thing[1]):
        return thing[0]()
    raise TypeError(f"'{name}' has no state_dict() and is no pair of callables, but {type(thing).__name__}")


def _setter(thing: Any) -> Callable[[Any], object]:
    setter: Callable[[Any], object] = thing.load_state_dict if hasattr(thing, "load_state_dict") else thing[1]
    return setter


def _things(scheduler: Any, scaler: Any, dataloader: Any, extra: Mapping[str, Any] | None) -> dict[str, Any]:
    named = {"scheduler": scheduler, "scaler": scaler, "dataloader": dataloader}
    return {**{k: v for k, v in named.items() if v is not None}, **{f"extra.{k}": v for k, v in (extra or {}).items()}}


def _whole(
    model: Any, optimizer: Any, things: Mapping[str, Any], rng: bool, attachments: Mapping[str, Any] | None
) -> tuple[dict[str, Any], OptimizerState | None, dict[str, Any], dict[str, tuple[str, bytes]]]:
    state = _state_of(model)
    for name, tensor in state.items():
        _check(name, tensor)
    taken = None if optimizer is None else _take_optimizer(optimizer, model)
    trees = {name: _getter(name, thing) for name, thing in things.items()}
    for name in trees:
        if name in (attachments or {}):
            raise ArgumentError(f"attachments: the name '{name}' is taken", code="argument")
    return state, taken, {**trees, **(attachments or {})}, _rng_states() if rng else {}


def _is_writer() -> bool:
    """Of a replicated model only rank 0 writes."""
    distributed = torch.distributed
    return not (distributed.is_available() and distributed.is_initialized() and distributed.get_rank() != 0)


def save_checkpoint(
    root: StrPath,
    step: int,
    *,
    model: Any,
    optimizer: Any = None,
    scheduler: Any = None,
    scaler: Any = None,
    dataloader: Any = None,
    rng: bool = True,
    extra: Mapping[str, Any] | None = None,
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
    """Save a training run's state as a step, durably; what is not named here is as in ``pawl.save_checkpoint``.

    ``model``: a module (wrapped or not) or a dict of tensors. ``optimizer``: one, or a dict of them; its parameters are found
    among the model's by identity. ``scheduler``, ``scaler``, ``dataloader``: anything with ``state_dict()``. ``extra``: names to such things, or to
    pairs of callables that get and set a tree. ``rng``: the generators of PyTorch (CPU and CUDA), NumPy and Python. Draws from none.

    >>> import torch
    >>> net = torch.nn.Linear(2, 1); adam = torch.optim.AdamW(net.parameters())
    >>> net(torch.ones(2)).backward(); adam.step()
    >>> save_checkpoint("tc", 1, model=net, optimizer=adam).name
    'step-000001'
    """
    whole, taken, trees, opaques = _whole(model, optimizer, _things(scheduler, scaler, dataloader, extra), rng, attachments)
    if not _is_writer():
        import os

        return Path(os.fsdecode(root)) / step_name(step)
    return _save_checkpoint(
        root, step, whole, taken, state=state, config=config, attachments=trees, metrics=metrics, keep=keep, keep_every=keep_every,
        keep_best=keep_best, max_file_bytes=max_file_bytes, sums=sums, busy=busy, progress=progress, _opaques=opaques,
    )  # fmt: skip


def _as_tensors(checkpoint: Checkpoint, map_location: Any) -> Checkpoint:
    """Tensors in the place of arrays."""
    _to_device(checkpoint.model, map_location)
    held = checkpoint.optimizer
    if held is not None and isinstance(held.tensors, TensorDict):
        _to_device(held.tensors, "cpu")
    return checkpoint


def _restore(
    checkpoint: Checkpoint, *, model: Any, optimizer: Any, things: Mapping[str, Any], rng: bool, strict: bool
) -> Restored:
    """Everything is checked before the first thing is changed; generators come last."""
    missing: list[str] = []
    unexpected: list[str] = []
    bad: list[str] = []
    fits: list[tuple[Any, Any]] = []
    acts: list[Callable[[], None]] = []
    if model is not None:
        asked = _state_of(model)
        missing = [name for name in asked if name not in checkpoint.model]
        unexpected = [name for name in checkpoint.model if name not in asked]
        fits, bad = _fits(asked, checkpoint.model, "")
        if strict and (missing or unexpected or bad):
            raise mismatch(missing, unexpected, bad, checkpoint.path)
    if optimizer is not None:
        if model is None:
            raise ArgumentError("an optimizer is restored beside its model, which names the parameters", code="argument")
        acts = _plan_optimizer(optimizer, model, checkpoint.optimizer, checkpoint.path)
    absent = [name for name in things if name not in checkpoint.attachments]
    if absent:
        raise MismatchError(f"the checkpoint has no {', '.join(absent)}", code="mismatch", path=checkpoint.path, missing=absent)
    trees = {name: checkpoint.attachments[name] for name in things}
    _fill(fits)
    with torch.no_grad():
        for act in acts:
            act()
    for name, thing in things.items():
        _setter(thing)(trees[name])
    if rng:
        _set_rng_states(checkpoint._info["opaques"])
    return Restored(missing, unexpected, bad)


def load_checkpoint(
    root: StrPath,
    step: int | None = None,
    *,
    model: Any = None,
    optimizer: Any = None,
    scheduler: Any = None,
    scaler: Any = None,
    dataloader: Any = None,
    rng: bool = True,
    extra: Mapping[str, Any] | None = None,
    strict: bool = True,
    map_location: Any = "cpu",
    trust: Trust = "full",
    weights_only: bool = False,
    copy: bool = True,
) -> Checkpoint:
    """Load a step, or the newest that verifies, and restore what is handed over: all, or on a mismatch nothing.

    Parameters and buffers are filled in place, ties and ``requires_grad`` untouched; nothing is cast. An optimizer's state finds its
    parameters by name, whatever their order now. Generators come last. Raises as ``pawl.load_checkpoint``, and MismatchError.

    >>> import torch
    >>> net = torch.nn.Linear(2, 1); _ = save_checkpoint("tl", 5, model=net)
    >>> other = torch.nn.Linear(2, 1)
    >>> load_checkpoint("tl", model=other).step, bool((net.weight == other.weight).all())
    (5, True)
    """
    checkpoint = _load_checkpoint(root, step, trust=trust, weights_only=weights_only, copy=copy)
    _as_tensors(checkpoint, map_location)
    things = _things(scheduler, scaler, dataloader, extra)
    _restore(checkpoint, model=model, optimizer=optimizer, things=things, rng=rng, strict=strict)
    return checkpoint


def latest_checkpoint(
    root: StrPath, *, map_location: Any = "cpu", trust: Trust = "full", weights_only: bool = False, copy: bool = True
) -> Checkpoint | None:
    """``pawl.latest_checkpoint`` with tensors: None only when there is no checkpoint at all.

    >>> latest_checkpoint("no/such/root") is None
    True
    """
    found = _latest_checkpoint(root, trust=trust, weights_only=weights_only, copy=copy)
    return None if found is None else _as_tensors(found, map_location)


class Run(_Run):
    """A training run: what must not be lost is named once, and saving and restoring use the same names.

    ``stopping`` becomes true on a signal of ``stop_on``; ``restored`` is the checkpoint that ``restore`` took.

    Every rank of a replicated model may run the same loop: only rank 0 holds the lock and writes. On the others ``save`` and ``save_async`` check what
    they are given and write nothing, ``restore`` and what reads work, and ``prune``, ``repair``, ``pin`` and ``unpin`` raise RuntimeError. The rank
    counts as it is when the run is opened, so ``init_process_group`` comes before: a save from another rank than that is a RuntimeError.

    >>> import torch
    >>> net = torch.nn.Linear(2, 1); sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    >>> with Run("tr", model=net, optimizer=sgd, keep=2) as run:
    ...     step = run.restore()
    ...     while step < 3 and not run.stopping:
    ...         sgd.zero_grad(); net(torch.ones(2)).sum().backward(); sgd.step(); step += 1
    ...         path = run.save(step)
    >>> path.name
    'step-000003'
    """

    def __init__(
        self,
        root: StrPath,
        *,
        model: Any,
        optimizer: Any = None,
        scheduler: Any = None,
        scaler: Any = None,
        dataloader: Any = None,
        rng: bool = True,
        extra: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(root, **options)
        self._model, self._optimizer, self._with_rng = model, optimizer, rng
        self._things = _things(scheduler, scaler, dataloader, extra)
        self.restored: Checkpoint | None = None
        self.stopping = False
        self._handlers: dict[int, Any] = {}

    def restore(self, step: int | None = None) -> int:
        """Restore the newest step that verifies, or that one; the step it stands at, 0 when there is no checkpoint at all.

        Raises NoneCompleteError when there are checkpoints and none verifies: stop then. MismatchError with nothing changed.
        """
        with self._call():  # what a save in flight borrows must not be filled
            pass
        if step is None:
            self.restored = latest_checkpoint(self.root)
        else:
            self.restored = _as_tensors(_load_checkpoint(self.root, step), "cpu")
        if self.restored is None:
            return 0
        _restore(
            self.restored, model=self._model, optimizer=self._optimizer, things=self._things, rng=self._with_rng, strict=True
        )
        return self.restored.step

    def save(  # type: ignore[override]
        self,
        step: int,
        *,
        metrics: Mapping[str, float] | None = None,
        state: Mapping[str, Any] | None = None,
        attachments: Mapping[str, bytes | Tree] | None = None,
        config: bytes | str | Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> Path:
        """Save a step; it is durable when this returns."""
        number, measured = self._checked(step, metrics)
        all = self._all(state, attachments, config)
        if all is None:
            return self.root / step_name(number)
        return self._save_described(number, all, measured, progress)

    def save_async(  # type: ignore[override]
        self,
        step: int,
        *,
        metrics: Mapping[str, float] | None = None,
        state: Mapping[str, Any] | None = None,
        attachments: Mapping[str, bytes | Tree] | None = None,
        config: bytes | str | Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> Save:
        """Begin a save and return as soon as training may go on; as ``pawl.Run.save_async``.

        With ``snapshot="borrow"`` the optimizer must not step before ``released()``. Tensors of a device are copied to the host before this
        returns, in both. On a rank that writes nothing the save is over at once.

        >>> import torch
        >>> net = torch.nn.Linear(2, 1)
        >>> with Run("ta", model=net, rng=False) as run:
        ...     save = run.save_async(1)
        ...     with torch.no_grad(): _ = net.weight.zero_()  # the step has the weights before
        >>> save.stage(), bool(load_checkpoint("ta").model["weight"].any())
        ('durable', True)
        """
        number, measured = self._checked(step, metrics)
        all = self._all(state, attachments, config)
        if all is None:
            return Save(number, self.root / step_name(number), None)
        return self._save_in_background(number, all, measured, progress)

    def _writes(self) -> bool:
        return _is_writer()

    def _all(
        self, state: Mapping[str, Any] | None, attachments: Mapping[str, bytes | Tree] | None, config: bytes | str | Mapping[str, Any] | None
    ) -> dict[str, Any] | None:
        """Everything of a save; None where another rank writes it."""
        if _is_writer() != self._is_writer:  # two would write, or none
            was, now = ("rank 0, which writes", "another rank") if self._is_writer else ("a rank that does not write", "rank 0")
            raise RuntimeError(f"the run was opened by {was}, and is now saved by {now}: open it after init_process_group, close it before the group's end")
        whole, taken, trees, opaques = _whole(self._model, self._optimizer, self._things, self._with_rng, attachments)
        if not self._is_writer:
            return None
        return self._described(whole, taken, state=state, config=config, attachments=trees, opaques=opaques)

    def stop_on(self, *signals: int) -> None:
        """Set ``stopping`` on these signals (SIGTERM when none is named); the loop saves and leaves. Only in the main thread.

        A Python handler that was there is called too, and is put back by ``close()``.
        """
        for number in signals or (signal.SIGTERM,):
            before = signal.getsignal(number)
            if number in self._handlers:
                continue
            self._handlers[number] = before

            def handle(got: int, frame: Any, before: Any = before) -> None:
                self.stopping = True
                if callable(before) and before is not signal.default_int_handler:
                    before(got, frame)

            signal.signal(number, handle)

    def close(self) -> None:
        """Wait for a save in flight, release the lock, and put the handlers of signals back."""
        try:
            super().close()
        finally:
            while self._handlers:
                number, before = self._handlers.popitem()
                signal.signal(number, signal.SIG_DFL if before is None else before)
