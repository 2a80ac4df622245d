"""A run: the writer that owns a checkpoint root."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from . import _failpoints, _pawl
from ._checkpoint import (
    Checkpoint, KeepBest, Model, Rng, Trust, caller_level, check_keep, check_keep_best, check_metrics, check_profile, check_step, describe,
    latest_checkpoint, load_checkpoint, step_name, verify_step,
)  # fmt: skip
from ._errors import ArgumentError, Problem, Warning, problems
from ._types import Progress, StrPath, Tree

if TYPE_CHECKING:
    from .tokens import TokenStream


class Run:
    """The one writer of a checkpoint root; holds its lock from here to ``close()``. A context manager.

    ``keep``: how many of the newest steps stay (None: all); ``keep_every`` and ``keep_best`` keep further ones (see
    ``save_checkpoint``). ``busy``: whether to wait for another writer. ``on_durable(step, path)`` is called after a save is durable and never
    before. Calls may come from any thread, one is carried out at a time; a forked child's raise RuntimeError.

    Raises BusyError, naming the holder where the system tells.

    >>> import numpy, pawl
    >>> with pawl.Run("r1", keep=2) as run:
    ...     for step in (10, 20, 30):
    ...         _ = run.save(step, {"w": numpy.full(2, step)})
    ...     run.steps()
    [20, 30]
    """

    def __init__(
        self,
        root: StrPath,
        *,
        keep: int | None = None,
        keep_every: int | None = None,
        keep_best: KeepBest | None = None,
        busy: Literal["error", "wait"] = "error",
        profile: Literal["tinyllm"] | None = None,
        max_file_bytes: int | None = None,
        on_durable: Callable[[int, Path], object] | None = None,
    ) -> None:
        if busy not in ("error", "wait"):
            raise ArgumentError(f"busy is {busy!r}, expected 'error' or 'wait'", code="argument")
        self.root = Path(os.fsdecode(root))
        self._options = (
            check_keep(keep),
            check_keep(keep_every, "keep_every"),
            check_keep_best(keep_best),
            check_profile(profile),
            check_keep(max_file_bytes, "max_file_bytes"),
            busy == "wait",
        )
        self._profile = profile
        self._on_durable = on_durable
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._run: _pawl.Run | None = self._open()

    def _open(self) -> _pawl.Run:
        said: list[tuple[str, str, str | None]] = []
        run = _pawl.open_run(self.root, *self._options, said)
        self._warn(said)
        return run

    def _warn(self, said: list[tuple[str, str, str | None]]) -> None:
        for _, message, file in said:
            warnings.warn(f"{self.root}{'' if file is None else f'/{file}'}: {message}", Warning, stacklevel=caller_level())

    def _entered(self) -> _pawl.Run:
        """The open run, in the process that opened it. Looked at before the lock, which a fork may have left held."""
        if os.getpid() != self._pid:
            raise RuntimeError(f"the run was opened by process {self._pid}: a forked child opens its own")
        if self._run is None:
            raise RuntimeError("the run is closed")
        return self._run

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a Run can't be pickled: it holds the lock of its root")

    def save(
        self,
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
        progress: Progress | None = None,
    ) -> Path:
        """Save a step; it is durable when this returns. Arguments as in ``save_checkpoint``."""
        return self._save(
            step, model, optimizer, rng=rng, state=state, stream=stream, config=config, attachments=attachments, metrics=metrics,
            progress=progress,
        )  # fmt: skip

    def _save(
        self,
        step: int,
        model: Model,
        optimizer: Any,
        *,
        metrics: Mapping[str, float] | None,
        progress: Progress | None,
        **what: Any,
    ) -> Path:
        self._entered()
        number, measured = check_step(step), check_metrics(metrics)
        return self._save_described(number, describe(model, optimizer, profile=self._profile, **what), measured, progress)

    def _save_described(self, step: int, all: dict[str, Any], metrics: dict[str, float], progress: Progress | None) -> Path:
        self._entered()
        said: list[tuple[str, str, str | None]] = []
        with self._lock:
            self._entered().save(step, all, metrics, progress, _failpoints.in_force(), said)
        self._warn(said)
        path = self.root / step_name(step)
        if self._on_durable is not None:
            try:
                self._on_durable(step, path)
            except Exception as error:
                _unraisable(error, self._on_durable)
        return path

    def load(
        self, step: int | None = None, *, trust: Trust = "full", weights_only: bool = False, copy: bool = True
    ) -> Checkpoint:
        """``load_checkpoint`` of this root."""
        return load_checkpoint(self.root, step, trust=trust, weights_only=weights_only, copy=copy)

    def steps(self) -> list[int]:
        """Numbers of the complete steps (by their sizes), ascending."""
        verdicts = _pawl.list_ckpts(self.root, True)[0][0]
        numbers = [_pawl.step_of_name(name) for name, _, is_ok, *_ in verdicts if is_ok]
        return sorted({number for number in numbers if number >= 0})

    def latest(self) -> Checkpoint | None:
        """``latest_checkpoint`` of this root."""
        return latest_checkpoint(self.root)

    def verify(self, step: int) -> list[Problem]:
        """Every reason why a step is not complete."""
        return verify_step(self.root / step_name(step))

    def prune(self, keep: int) -> list[Path]:
        """Delete old steps now, by the rules of retention; what went."""
        if check_keep(keep) == 0:
            raise ArgumentError("keep is None, expected 1 or more", code="argument")
        self._entered()
        with self._lock:
            report = self._entered().prune(keep)
        return self._names(report, "deleted")

    def repair(self) -> list[Path]:
        """Rename every broken step to step-N.bad, so that no load looks at it again; their new paths."""
        self._entered()
        with self._lock:
            report = self._entered().repair()
        return [path.with_name(f"{path.name}.bad") for path in self._names(report, "quarantined")]

    def _names(self, report: Any, which: str) -> list[Path]:
        for problem in problems(report[2]):
            warnings.warn(f"{self.root}: {problem.message}", Warning, stacklevel=caller_level())
        return [self.root / name for name in report[1][which]]

    def pin(self, step: int) -> None:
        """Keep a step from retention, until it is unpinned; it need not be there yet."""
        self._entered()
        with self._lock:
            self._entered().pin(check_step(step))

    def unpin(self, step: int) -> None:
        """Let retention have a step again."""
        self._entered()
        with self._lock:
            self._entered().unpin(check_step(step))

    def wait(self) -> None:
        """Return once no save is in flight."""
        self._entered()
        with self._lock:
            pass

    def close(self) -> None:
        """Release the lock; closing twice is fine."""
        if self._run is None:
            return
        self._entered()
        with self._lock:
            run, self._run = self._run, None
            if run is not None:
                run.close()


def _unraisable(error: BaseException, what: object) -> None:
    import types

    hook: Callable[[Any], Any] = sys.unraisablehook
    hook(types.SimpleNamespace(exc_type=type(error), exc_value=error, exc_traceback=error.__traceback__, err_msg=None, object=what))
