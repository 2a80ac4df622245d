"""Checkpoints: saving one, finding and loading them."""

from __future__ import annotations

import json
import math
import operator
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from . import _pawl
from ._arrays import NUMPY, RAW, Array, TensorDict, as_array, tensor_of
from ._errors import ArgumentError, FormatError, MismatchError, NotFoundError, Problem, Warning, problems, reasons_of
from ._files import lazy_model, read_model
from ._optimizer import OptimizerState as OptimizerState
from ._optimizer import from_json, optimizer_of, to_json
from ._tree import MARK, Encoder, decode
from ._types import Progress, StrPath, Tree

if TYPE_CHECKING:
    from ._pcg32 import PCG32
    from .tokens import TokenStream

Model: TypeAlias = "Mapping[str, Any] | Any"
Rng: TypeAlias = "tuple[int, int] | Mapping[str, str] | Any"
KeepBest: TypeAlias = "tuple[str, Literal['min', 'max'], int]"
Trust: TypeAlias = Literal["full", "size-only", "lazy"]

_COUNT_MAX = 2**63 - 1
_STATE_KEYS = ("tokens_seen", "data_cursor", "lr", "config_sha256", "git_sha", "loss_scale")
_VERBATIM = ("config.json", "tokenizer.json", "generation_config.json")
_RESERVED = ("MANIFEST.json", "model.safetensors", "optimizer.safetensors", "trainer_state.json", "model.safetensors.index.json",
             "optimizer.safetensors.index.json")  # fmt: skip
_TRUSTS = {"full": 0, "size-only": 1, "lazy": 2}
_PROFILES = {None: 0, "tinyllm": 1, "course": 2}


def step_name(step: int) -> str:
    """The name of a step's directory; ArgumentError outside 0 ... 2^63-1.

    >>> step_name(42)
    'step-000042'
    """
    return _pawl.step_name(step)


# ---- what a save is given ----


def check_step(step: int) -> int:
    number = operator.index(step)
    if not 0 <= number <= _COUNT_MAX:
        raise ArgumentError(f"the step is {number}, expected 0 ... 2^63-1", code="argument")
    return number


def check_keep(keep: int | None, what: str = "keep") -> int:
    if keep is None:
        return 0
    number = operator.index(keep)
    if number < 1:
        raise ArgumentError(f"{what} is {keep}, expected 1 or more", code="argument")
    return number


def check_keep_best(best: KeepBest | None) -> list[tuple[str, bool, int]]:
    if best is None:
        return []
    metric, direction, count = best
    if direction not in ("min", "max"):
        raise ArgumentError(f"keep_best: {direction!r}, expected 'min' or 'max'", code="argument")
    return [(metric, direction == "max", check_keep(count, "keep_best"))]


def check_profile(profile: str | None) -> int:
    if profile not in ("tinyllm", None):
        raise ArgumentError(f"profile is {profile!r}, expected None or 'tinyllm'", code="argument")
    return _PROFILES[profile]


def check_metrics(metrics: Mapping[str, float] | None) -> dict[str, float]:
    out: dict[str, float] = {}
    for name, value in (metrics or {}).items():
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"metrics: {name!r} is no name", code="argument")
        number = float(value)
        if not math.isfinite(number):
            raise ArgumentError(f"metrics: '{name}' is {number}, expected a finite number", code="argument")
        out[name] = number
    return out


def model_tensors(model: Model) -> list[Any]:
    """The tensors of a model: a mapping, or what its state_dict() gives."""
    mapping = model if isinstance(model, Mapping) else None
    if mapping is None:
        if not hasattr(model, "state_dict"):
            raise TypeError(f"a model is a mapping of names to arrays or has state_dict(), not {type(model).__name__}")
        mapping = model.state_dict()
    return tensors_of_state(mapping)


def tensors_of_state(mapping: Mapping[str, Any]) -> list[Any]:
    carried = mapping.dtypes if isinstance(mapping, TensorDict) else {}
    shapes = mapping._shapes if isinstance(mapping, TensorDict) else {}
    out = []
    for name, value in mapping.items():
        if not isinstance(name, str):
            raise TypeError(f"the names of tensors are str, not {type(name).__name__}")
        if type(value).__module__.partition(".")[0] == "torch":
            from . import torch

            array, dtype = torch._to_numpy(name, value)
            out.append(tensor_of(name, array, dtype, 0))
            continue
        array = as_array(name, value)
        wanted = carried.get(name)
        if wanted is not None and (wanted in NUMPY or array.dtype.str[1:] != RAW[wanted].str[1:]):
            wanted = None  # the array was replaced: its own dtype decides
        out.append(tensor_of(name, array, wanted, 0, shapes.get(name) if wanted is not None else None))
    return out


def _count(value: Any, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentError(f"{what} is {value!r}, expected an integer", code="argument")
    number: int = operator.index(value)
    if not 0 <= number <= _COUNT_MAX:
        raise ArgumentError(f"{what} is {number}, expected 0 ... 2^63-1", code="argument")
    return number


def _real(value: Any, what: str) -> float:
    if isinstance(value, bool | str):
        raise ArgumentError(f"{what} is {value!r}, expected a number", code="argument")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"{what} is {value!r}, expected a number", code="argument") from None
    if not math.isfinite(number):
        raise ArgumentError(f"{what} is {number}, expected a finite number", code="argument")
    return number


def _describe_state(state: Mapping[str, Any] | None, optimizer: OptimizerState | None, has_stream: bool) -> tuple[dict[str, Any], dict[str, str]]:
    numbers: dict[str, Any] = {}
    texts: dict[str, str] = {}
    for key, value in (state or {}).items():
        if key not in _STATE_KEYS:
            raise ArgumentError(f"state: '{key}' is none of {', '.join(_STATE_KEYS)}", code="argument")
        if key == "data_cursor":
            if has_stream:
                raise ArgumentError("state: the data_cursor is the stream's", code="argument")
            if not isinstance(value, Mapping) or set(value) != {"shard", "offset"}:
                raise ArgumentError(f"state: data_cursor is {value!r}, expected the keys shard and offset", code="argument")
            for part in ("shard", "offset"):
                numbers[f"data_cursor.{part}"] = _count(value[part], f"state: data_cursor.{part}")
        elif key == "tokens_seen":
            numbers[key] = _count(value, "state: tokens_seen")
        elif key in ("lr", "loss_scale"):
            if value is not None:
                numbers[key] = _real(value, f"state: {key}")
        elif not isinstance(value, str):
            raise ArgumentError(f"state: {key} is {value!r}, expected a text", code="argument")
        else:
            texts[key] = value
    if "lr" not in numbers and optimizer is not None:
        lr = optimizer.lr()
        if lr is not None and math.isfinite(lr):
            numbers["lr"] = lr
    return numbers, texts


def _describe_rng(rng: Rng | None) -> list[tuple[str | None, int, int, float | None]]:
    if rng is None:
        return []
    given: Any = rng
    if isinstance(given, Mapping):
        out: list[tuple[str | None, int, int, float | None]] = []
        names = [key[: -len("_state")] for key in given if key.endswith("_state")]
        if {f"{name}_{part}" for name in names for part in ("state", "inc")} != set(given):
            raise ArgumentError(f"rng: the keys {sorted(given)} are no pairs NAME_state, NAME_inc", code="argument")
        for name in names:
            words = []
            for part in ("state", "inc"):
                text = given[f"{name}_{part}"]
                if not isinstance(text, str) or len(text) != 16 or set(text) - set("0123456789abcdef"):
                    raise ArgumentError(f"rng: {name}_{part} is {text!r}, expected 16 hex digits", code="argument")
                words.append(int(text, 16))
            out.append((None if name == "pcg" else name, words[0], words[1], None))
    else:
        words_of = given.state() if hasattr(given, "state") else given
        if not isinstance(words_of, tuple | list) or len(words_of) != 2:
            raise ArgumentError(f"rng: the state is {words_of!r}, expected (state, inc)", code="argument")
        out = [(None, operator.index(words_of[0]), operator.index(words_of[1]), getattr(given, "spare", None))]
    for name, state, inc, _ in out:
        if not (0 <= state < 2**64 and 0 <= inc < 2**64):
            raise ArgumentError("rng: the words of a generator are 0 ... 2^64-1", code="argument")
        if inc % 2 == 0:
            raise ArgumentError(f"rng: the increment of '{name or 'pcg'}' is even: that is no PCG stream", code="argument")
    return out


def _describe_files(config: Any, attachments: Mapping[str, Any] | None) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    if config is not None:
        if isinstance(config, Mapping):
            try:
                config = json.dumps(config, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
            except (TypeError, ValueError) as error:
                raise ArgumentError(f"config: {error}", code="argument") from None
        files["config.json"] = config.encode() if isinstance(config, str) else bytes(config)
    for name, value in (attachments or {}).items():
        if not isinstance(name, str):
            raise ArgumentError(f"attachments: {name!r} is no name", code="argument")
        if isinstance(value, bytes | bytearray | memoryview):
            _add_file(files, name, bytes(value), name == "config.json")
            continue
        encoder = Encoder(name)
        _add_file(files, f"{name}.json", encoder.encode(value), f"{name}.json" in _VERBATIM)
        if encoder.arrays:
            tensors = [tensor_of(key, array, encoder.dtypes[key], 0) for key, array in encoder.arrays.items()]
            _add_file(files, f"{name}.safetensors", _pawl.write_bytes(tensors, None, 8), False)
    return files


def _add_file(files: dict[str, bytes], name: str, data: bytes, is_taken: bool) -> None:
    if is_taken or name in _RESERVED or name.startswith("pawl."):
        raise ArgumentError(f"attachments: the name '{name}' is reserved", code="argument")
    if name in files:
        raise ArgumentError(f"attachments: two make the file '{name}'", code="argument")
    files[name] = data


def describe(
    model: Model,
    optimizer: Any,
    *,
    rng: Rng | None = None,
    state: Mapping[str, Any] | None = None,
    stream: TokenStream | None = None,
    config: bytes | str | Mapping[str, Any] | None = None,
    attachments: Mapping[str, bytes | Tree] | None = None,
    opaques: Mapping[str, tuple[str, bytes]] | None = None,
    profile: str | None = None,
) -> dict[str, Any]:
    """Everything of a save, checked, for the extension module."""
    taken = optimizer_of(optimizer, model)
    if stream is not None and rng is not None:
        raise ArgumentError("rng: the generator is the stream's", code="argument")
    numbers, texts = _describe_state(state, taken, stream is not None)
    inner: Any = None
    if stream is not None:
        inner = getattr(stream, "_stream", None)
        if inner is None:  # a generator of the caller's
            cursor = stream.cursor()
            rng = cursor["rng"]
            numbers["data_cursor.shard"], numbers["data_cursor.offset"] = cursor["shard"], cursor["offset"]
    all: dict[str, Any] = {
        "model": model_tensors(model),
        "optimizer": [] if taken is None else tensors_of_state(taken.tensors),
        "optimizer_name": None if taken is None else taken.name,
        "optimizer_json": None if taken is None else to_json(taken),
        "numbers": numbers,
        "rngs": _describe_rng(rng),
        "stream": inner,
        "texts": texts,
        "metadata": {"format": "tinyllm"} if profile == "tinyllm" else {},
        "files": _describe_files(config, attachments),
        "opaques": dict(opaques or {}),
    }
    if profile == "tinyllm":
        for tensor in all["model"] + all["optimizer"]:
            if tensor[1] != "F32":
                raise ArgumentError(f"tensor '{tensor[0]}' is {tensor[1]}, the profile tinyllm has F32 only", code="argument")
        if taken is not None and taken.name not in ("adamw", "sgd", "muon", "none"):
            raise ArgumentError(f"the optimizer '{taken.name}' is none of the profile tinyllm's: adamw, sgd, muon", code="argument")
    _pawl.check_save(all)
    return all


# ---- saving ----


def save_checkpoint(
    root: StrPath,
    step: int,
    model: Model,
    optimizer: Any = None,
    *,
    rng: Rng | None = None,
    state: Mapping[str, Any] | None = None,
    stream: TokenStream | None = None,
    config: bytes | str | Mapping[str, Any] | None = None,
    attachments: Mapping[str, bytes | Tree] | None = None,
    metrics: Mapping[str, float] | None = None,
    keep: int | None = None,
    keep_every: int | None = None,
    keep_best: KeepBest | None = None,
    profile: Literal["tinyllm"] | None = None,
    max_file_bytes: int | None = None,
    sums: bool = False,
    busy: Literal["error", "wait"] = "error",
    progress: Progress | None = None,
    _opaques: Mapping[str, tuple[str, bytes]] | None = None,
) -> Path:
    """Save a step durably under a root and return its directory. A crash at any instant leaves the old checkpoints or these and the new one.

    ``model``: names to arrays, or an object with ``state_dict()``; every dtype is kept to the bit. ``optimizer``: an
    ``OptimizerState``, or an object with ``state_dict()`` beside a model with ``named_parameters()``. ``rng``: a ``PCG32``, a pair ``(state, inc)``, or a
    mapping as ``Checkpoint.rngs``. ``stream``: its cursor and generator are kept. ``state``: any of tokens_seen, data_cursor,
    lr, config_sha256, git_sha, loss_scale. ``config``: written as config.json. ``attachments``: bytes, or trees of
    dicts, lists, tuples, texts, numbers, None and arrays, which come back equal. ``metrics``: finite numbers, for ``keep_best`` and readers.

    Retention, after the save is durable: ``keep`` the newest, with them the multiples of ``keep_every`` and the best by ``keep_best``
    (a metric, "min" or "max", how many). ``max_file_bytes``: tensors beyond it go into further files. ``sums``: write ``pawl.sums`` too, a fast checksum for every MiB of the
    tensor files. ``busy="wait"`` waits for another writer.

    Raises ArgumentError with the root untouched; BusyError; OSError (a full disk says what was needed), with the previous
    checkpoint intact.

    >>> import numpy, pawl
    >>> path = pawl.save_checkpoint("c1", 10, {"w": numpy.ones(3, "f4")}, rng=pawl.PCG32(1), state={"lr": 0.5}, metrics={"loss": 2.0})
    >>> path.name, pawl.verify_step(path)
    ('step-000010', [])
    """
    from ._run import Run

    number = check_step(step)
    check_keep(keep)
    measured = check_metrics(metrics)
    all = describe(
        model, optimizer, rng=rng, state=state, stream=stream, config=config, attachments=attachments, profile=profile,
        opaques=_opaques,
    )  # fmt: skip
    created = _missing_folders(root)
    try:
        with Run(
            root, keep=keep, keep_every=keep_every, keep_best=keep_best, profile=profile, busy=busy, max_file_bytes=max_file_bytes,
            sums=sums,
        ) as run:
            return run._save_described(number, all, measured, progress)
    except ArgumentError:
        for folder in created:  # refused later than it should have been: the root is as it was all the same
            try:
                folder.rmdir()
            except OSError:
                break
        raise


def _missing_folders(root: StrPath) -> list[Path]:
    folder = Path(os.fsdecode(root))
    missing = []
    while not folder.exists() and folder != folder.parent:
        missing.append(folder)
        folder = folder.parent
    return missing


# ---- loading ----


class Skipped(NamedTuple):
    """A step directory that a load passed over, and every reason."""

    path: Path
    reasons: list[Problem]


class Restored(NamedTuple):
    """What did not fit in a restore that was not strict."""

    missing: list[str]
    unexpected: list[str]
    mismatched: list[str]


class Attachments(Mapping[str, Any]):
    """Attachments by name, read and checked when they are asked for."""

    def __init__(self, ckpt: _pawl.Ckpt, files: list[str]) -> None:
        self._ckpt = ckpt
        self._files = [name for name in files if name != "config.json"]
        self._known: dict[str, bytes | None] | None = None  # bytes: the text of a tree

    def _names(self) -> dict[str, bytes | None]:
        if self._known is None:
            known: dict[str, bytes | None] = {}
            for name in self._files:
                text = self._ckpt.file(name) if name.endswith(".json") and name not in _VERBATIM else b""
                if text.startswith(MARK.encode()):
                    known[name[: -len(".json")]] = text
                else:
                    known[name] = None
            for name in [name for name, text in known.items() if text is not None]:
                known.pop(f"{name}.safetensors", None)
            self._known = known
        return self._known

    def __getitem__(self, name: str) -> Any:
        text = self._names()[name]
        if text is None:
            return self._ckpt.file(name)
        arrays: Mapping[str, Array] = {}
        dtypes: Mapping[str, str] = {}
        if f"{name}.safetensors" in self._files:
            tensors = read_model(_pawl.open_memory(self._ckpt.file(f"{name}.safetensors"), 0, 0))
            arrays, dtypes = tensors, tensors.dtypes
        return decode(text, arrays, dtypes, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __repr__(self) -> str:
        return f"<attachments {', '.join(self._names())}>"


class Checkpoint:
    """A checkpoint that was loaded: every file that it was made from had the size and the sha256 of its manifest.

    With ``trust="lazy"`` that holds for a tensor from the moment that it is first asked for.

    ``step``, ``path``; ``model`` and ``optimizer`` (None: there is none); ``rng`` and ``rngs``: the run's generator as
    ``(state, inc)``, and every generator as hex digits; ``state``: tokens_seen, data_cursor, lr, config_sha256, git_sha,
    loss_scale; ``metrics``; ``config`` and ``config_bytes``; ``attachments``; ``skipped``: newer steps that were passed over, and
    why; ``complete``: False only with ``weights_only``.

    >>> import numpy, pawl
    >>> _ = pawl.save_checkpoint("c2", 7, {"w": numpy.ones(2)}, config={"d": 2}, attachments={"note": {"at": (1, 2)}})
    >>> c = pawl.load_checkpoint("c2")
    >>> c.step, c.config, c.attachments["note"], c.optimizer, c.rng
    (7, {'d': 2}, {'at': (1, 2)}, None, None)
    """

    def __init__(self, ckpt: _pawl.Ckpt, report: Any, *, trust: Trust, weights_only: bool, copy: bool) -> None:
        info = ckpt.info()
        read = lazy_model if trust == "lazy" else read_model
        self._trust = trust
        self._ckpt = ckpt
        self._info = info
        self.step: int = info["step"]
        self.path: Path = Path(info["path"])
        self.complete: bool = info["complete"]
        self.model: TensorDict = read(ckpt.model(), copy=copy)
        self.optimizer: OptimizerState | None = None
        tensors = None if weights_only else ckpt.optimizer()
        if tensors is not None and info["optimizer_name"] != "none":
            self.optimizer = from_json(info["optimizer_name"], info["optimizer_state"], read(tensors, copy=copy))
        self.rngs: dict[str, str] = info["rngs"]
        self.metrics: dict[str, float] = info["metrics"]
        self.rng: tuple[int, int] | None = None
        self.state: dict[str, Any] = {}
        if info["trainer"] is not None:
            _, seen, shard, offset, lr, scale, rng, config_sha256, git_sha = info["trainer"]
            self.rng = rng
            self.state = {
                "tokens_seen": seen,
                "data_cursor": {"shard": shard, "offset": offset},
                "lr": lr,
                "config_sha256": config_sha256,
                "git_sha": git_sha,
                "loss_scale": scale,
            }
        self.config_bytes: bytes | None = ckpt.file("config.json") if "config.json" in info["files"] else None
        self.attachments: Attachments = Attachments(ckpt, info["files"])
        self.skipped: list[Skipped] = [
            Skipped(self.path.parent / name, problems(listed)) for name, _, is_ok, listed, _, _, _ in report[0] if not is_ok and name != self.path.name
        ]
        self._own = [problem for name, _, _, listed, _, _, _ in report[0] if name == self.path.name for problem in problems(listed)]
        self.ignored: list[Path] = [self.path.parent / name for name in report[1]["ignored"]]

    @property
    def config(self) -> Any | None:
        """config.json, parsed; FormatError when it is no JSON (``config_bytes`` are there all the same)."""
        if self.config_bytes is None:
            return None
        try:
            return json.loads(self.config_bytes)
        except ValueError as error:
            raise FormatError(f"config.json: {error}", code="json", path=self.path / "config.json") from None

    def generator(self, name: str = "pcg") -> PCG32:
        """A generator of the checkpoint, a pending normal with it; MismatchError when there is none of that name."""
        from ._pcg32 import PCG32

        words = (self.rngs.get(f"{name}_state"), self.rngs.get(f"{name}_inc"))
        if words[0] is None or words[1] is None or (name == "pcg" and self.rng is None):
            raise MismatchError(f"the checkpoint has no generator '{name}'", code="mismatch", path=self.path)
        rng = PCG32()
        rng.set_state((int(words[0], 16), int(words[1], 16)))
        rng.spare = self._info["numbers"].get(f"{name}_spare")
        return rng

    def verify(self) -> list[Problem]:
        """What of the checkpoint is damaged; ``[]`` when nothing is.

        A lazy one: all tensors that were not asked for yet, by all processors, by ``pawl.sums`` where the step has it, else by their
        files' sha256. One that was loaded by its sizes: the whole step, as ``verify_step`` does. Any other was verified when it was
        loaded, and nothing is read.

        >>> import numpy, pawl
        >>> _ = pawl.save_checkpoint("c6", 1, {"w": numpy.ones(2)})
        >>> pawl.load_checkpoint("c6", trust="lazy").verify()
        []
        """
        if self._trust == "size-only":
            return verify_step(self.path)
        return reasons_of(self._ckpt.verify()[0])

    def restore(
        self,
        model: Model | None = None,
        optimizer: Any = None,
        stream: TokenStream | None = None,
        strict: bool = True,
    ) -> Restored:
        """Put the checkpoint back into what is handed over: all, or on a mismatch nothing.

        ``model``: names to writable arrays, which are overwritten in place; or an object with ``load_state_dict()``. ``optimizer``: an
        ``OptimizerState``, whose arrays are overwritten and whose scalars replaced; or an object with ``load_state_dict()``.
        ``strict=False`` takes what fits and returns the rest.

        Raises MismatchError with every missing, unexpected and mismatched name; also for a slot that the checkpoint lacks.

        >>> import numpy, pawl
        >>> _ = pawl.save_checkpoint("c3", 1, {"w": numpy.arange(3)})
        >>> w = numpy.zeros(3, int)
        >>> pawl.load_checkpoint("c3").restore({"w": w}); w
        Restored(missing=[], unexpected=[], mismatched=[])
        array([0, 1, 2])
        """
        lists: tuple[list[str], list[str], list[str]] = ([], [], [])
        copies: list[tuple[Any, Any]] = []
        loads: list[tuple[Any, Any]] = []
        if model is not None:
            self._match(model, self.model, "", lists, copies, loads, strict)
        if optimizer is not None:
            held = self.optimizer
            if held is None:
                raise MismatchError("the checkpoint has no optimizer", code="mismatch", path=self.path)
            if isinstance(optimizer, OptimizerState):
                if optimizer.name != held.name:
                    raise MismatchError(
                        f"the optimizer on disk is '{held.name}', asked is '{optimizer.name}'", code="mismatch", path=self.path
                    )
                self._match(optimizer.tensors, held.tensors, "optimizer: ", lists, copies, loads, strict)
            elif hasattr(optimizer, "load_state_dict"):
                loads.append((optimizer, held.state_dict()))
            else:
                raise TypeError(f"an optimizer is an OptimizerState or has load_state_dict(), not {type(optimizer).__name__}")
        if strict and any(lists):
            raise mismatch(*lists, self.path)
        if stream is not None:
            stream._restore_from(self)
        for target, array in copies:
            target[...] = array
        for target, value in loads:
            target.load_state_dict(value)
        if isinstance(optimizer, OptimizerState) and self.optimizer is not None:
            optimizer.scalars, optimizer.params = self.optimizer.scalars, list(self.optimizer.params)
        return Restored(*lists)

    def _match(
        self,
        model: Any,
        held: Mapping[str, Any],
        prefix: str,
        lists: tuple[list[str], list[str], list[str]],
        copies: list[tuple[Any, Any]],
        loads: list[tuple[Any, Any]],
        strict: bool,
    ) -> None:
        asked: Mapping[str, Any] = model if isinstance(model, Mapping) else model.state_dict()
        missing, unexpected, mismatched = lists
        fits: dict[str, Any] = {}
        for name, target in asked.items():
            if name not in held:
                missing.append(prefix + name)
                continue
            array = held[name]
            if tuple(target.shape) != array.shape or (isinstance(target, np.ndarray) and target.dtype != array.dtype):
                mismatched.append(
                    f"{prefix}{name}: {array.dtype} {list(array.shape)} on disk, {target.dtype} {list(target.shape)} asked"
                )
                continue
            fits[name] = array
        unexpected += [prefix + name for name in held if name not in asked]
        if not isinstance(model, Mapping):
            loads.append((model, fits if strict else {**asked, **fits}))
            return
        for name, array in fits.items():
            if not isinstance(asked[name], np.ndarray):
                raise TypeError(f"'{name}': a NumPy array is restored in place, not {type(asked[name]).__name__}")
            if not asked[name].flags.writeable:
                raise ArgumentError(f"'{prefix}{name}': the array is read-only", code="argument")
            copies.append((asked[name], array))

    def __repr__(self) -> str:
        return f"<pawl.Checkpoint step {self.step} at {self.path}>"


def mismatch(missing: list[str], unexpected: list[str], mismatched: list[str], path: StrPath | None) -> MismatchError:
    parts = []
    for what, names in (("missing", missing), ("unexpected", unexpected), ("mismatched", mismatched)):
        if names:
            shown = "; ".join(names[:3]) + (f"; and {len(names) - 3} more" if len(names) > 3 else "")
            parts.append(f"{len(names)} {what}: {shown}")
    return MismatchError(
        ". ".join(parts), code="mismatch", path=path, missing=missing, unexpected=unexpected, mismatched=mismatched
    )


def load_checkpoint(
    root: StrPath, step: int | None = None, *, trust: Trust = "full", weights_only: bool = False, copy: bool = True
) -> Checkpoint:
    """Load a step, or the newest that verifies.

    Every listed file is hashed once. A damaged step is passed over with a ``pawl.Warning`` and stands in ``Checkpoint.skipped``.
    ``trust="size-only"`` compares sizes only, for a filesystem that checks by itself. ``trust="lazy"`` reads no tensor: each is
    verified when it is first asked for, and is FormatError with its name when it is damaged, then and whenever it is asked for
    again; ``Checkpoint.verify`` looks at the rest. With ``pawl.sums`` (``sums=True`` of the save) that reads the tensor's bytes,
    without it the tensor's whole file. A lazy load can't fall back to an older step over a damaged tensor. ``weights_only``: the optimizer's files
    may be damaged, and are not read. ``copy=False``: arrays lie in maps of the files.

    Raises NotFoundError when there is no checkpoint at all, NoneCompleteError when there are and none verifies, IncompleteError
    for a step that was asked for and is damaged. To begin a trainer use ``latest_checkpoint``.

    >>> import numpy, pawl
    >>> for step in (1, 2):
    ...     _ = pawl.save_checkpoint("c4", step, {"w": numpy.full(2, step)})
    >>> pawl.load_checkpoint("c4").step, pawl.load_checkpoint("c4", 1).model["w"]
    (2, array([1, 1]))
    """
    if trust not in _TRUSTS:
        raise ArgumentError(f"trust is {trust!r}, expected 'full', 'size-only' or 'lazy'", code="argument")
    number = None if step is None else check_step(step)
    ckpt, report = _pawl.open_ckpt(root, number, _TRUSTS[trust], weights_only)
    checkpoint = Checkpoint(ckpt, report, trust=trust, weights_only=weights_only, copy=copy)
    said = [f"{path} was skipped: {_why(reasons)}" for path, reasons in checkpoint.skipped]
    if checkpoint._own:
        said.append(f"{checkpoint.path} is not complete: {_why(checkpoint._own)}")
    said += [f"{path} is newer than LATEST and was ignored: it was never declared done" for path in checkpoint.ignored]
    for problem in problems(report[2]):
        if problem.code == "skipped":  # of another step
            said.append(f"{checkpoint.path.parent / (problem.file or '')}: {problem.message}")
        elif problem.code != "ignored":
            said.append(f"{checkpoint.path}: {problem.message}")
    for text in said:
        warnings.warn(text, Warning, stacklevel=caller_level())
    return checkpoint


def _why(reasons: list[Problem]) -> str:
    return "; ".join(f"{reason.file}: {reason.code}" if reason.file else reason.message for reason in reasons)


def caller_level() -> int:
    """The stacklevel at which a warning names the user's line: the first frame outside the package."""
    import sys

    level, frame = 1, sys._getframe(1)
    folder = os.path.dirname(__file__)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == folder:
        frame, level = frame.f_back, level + 1
    return level


def caller_place() -> tuple[str, int]:
    """The user's line, for a warning that comes later from another thread."""
    import sys

    frame = sys._getframe(caller_level() - 1)
    return frame.f_code.co_filename, frame.f_lineno


def latest_checkpoint(
    root: StrPath, *, trust: Trust = "full", weights_only: bool = False, copy: bool = True
) -> Checkpoint | None:
    """The newest checkpoint that verifies; None only when there is none at all: the way to begin a trainer.

    Raises NoneCompleteError when there are checkpoints and none verifies: beginning afresh over them would lose them.

    >>> import pawl
    >>> pawl.latest_checkpoint("nothing/here") is None
    True
    """
    from ._errors import NoneCompleteError

    try:
        return load_checkpoint(root, trust=trust, weights_only=weights_only, copy=copy)
    except NoneCompleteError:
        raise
    except NotFoundError:
        return None


def verify_step(path: StrPath, *, profile: str | None = None) -> list[Problem]:
    """Every reason why a step directory is not complete; ``[]`` when it is. Reads only.

    >>> import numpy, pawl
    >>> path = pawl.save_checkpoint("c5", 3, {"w": numpy.zeros(4)})
    >>> _ = (path / "stray").write_text("x")
    >>> [(problem.code, problem.file) for problem in pawl.verify_step(path)]
    [('unlisted-file', 'stray')]
    """
    if profile not in _PROFILES:
        raise ArgumentError(f"profile is {profile!r}, expected None or 'tinyllm'", code="argument")
    return reasons_of(_pawl.verify(path, 0, _PROFILES[profile], False, False, 0)[0])
