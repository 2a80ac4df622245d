"""A run: the writer that owns a checkpoint root."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from . import _failpoints, _pawl, _save
from ._checkpoint import (
    Checkpoint, KeepBest, Model, Rng, Trust, caller_level, caller_place, check_keep, check_keep_best, check_metrics, check_profile, check_step, describe,
    latest_checkpoint, load_checkpoint, step_name, verify_step,
)  # fmt: skip
from ._errors import ArgumentError, NotFoundError, Problem, Warning, problems
from ._save import Save
from ._types import Progress, StrPath, Tree

if TYPE_CHECKING:
    from .tokens import TokenStream


class Run:
    """The one writer of a checkpoint root; holds its lock from here to ``close()``. A context manager.

    ``keep``: how many of the newest steps stay (None: all); ``keep_every`` and ``keep_best`` keep further ones (see
    ``save_checkpoint``). ``busy``: whether to wait for another writer. ``on_durable(step, path)`` is called after a save is durable and never
    before. ``snapshot``: how ``save_async`` gets at the arrays as they are: "copy" copies them before it returns, into memory that the run keeps;
    "borrow" copies nothing, and they must not change until the save is released. ``sums``: write ``pawl.sums`` into each step (see
    ``save_checkpoint``).

    Calls may come from any thread, one is carried out at a time, and each waits for a save in flight and its callbacks. A callback that
    makes such a call gets a RuntimeError, and so does a forked child. A run that nobody holds closes itself after its save in flight.

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
        snapshot: Literal["copy", "borrow"] = "copy",
        busy: Literal["error", "wait"] = "error",
        profile: Literal["tinyllm"] | None = None,
        max_file_bytes: int | None = None,
        sums: bool = False,
        on_durable: Callable[[int, Path], object] | None = None,
    ) -> None:
        if busy not in ("error", "wait"):
            raise ArgumentError(f"busy is {busy!r}, expected 'error' or 'wait'", code="argument")
        if snapshot not in ("copy", "borrow"):
            raise ArgumentError(f"snapshot is {snapshot!r}, expected 'copy' or 'borrow'", code="argument")
        self.root: Path = Path(os.fsdecode(root))
        self._options = (
            check_keep(keep),
            check_keep(keep_every, "keep_every"),
            check_keep_best(keep_best),
            check_profile(profile),
            check_keep(max_file_bytes, "max_file_bytes"),
            busy == "wait",
            snapshot == "borrow",
            bool(sums),
        )
        self._profile = profile
        self._on_durable = on_durable
        self._lock = threading.Lock()
        self._caller: int | None = None  # the thread that has the lock
        self._pid = os.getpid()
        self._flight: Save | None = None  # in flight, or over and not looked at since
        self._failed: Save | None = None  # the last one that ended so, until its error is raised
        self._is_closed = False
        self._is_writer = self._writes()
        self._run: _pawl.Run | None = self._open() if self._is_writer else None

    def _writes(self) -> bool:
        """Is it this process that writes? Of several that train one model only one does; the others hold no lock."""
        return True

    def _open(self) -> _pawl.Run:
        said: list[tuple[str, str, str | None]] = []
        run = _pawl.open_run(self.root, *self._options, said)
        self._warn(said)
        return run

    def _warn(self, said: list[tuple[str, str, str | None]]) -> None:
        for _, message, file in said:
            warnings.warn(f"{self.root}{'' if file is None else f'/{file}'}: {message}", Warning, stacklevel=caller_level())

    def _check_open(self) -> None:
        """Asked before the lock, which a fork may have left held."""
        if os.getpid() != self._pid:
            raise RuntimeError(f"the run was opened by process {self._pid}: a forked child opens its own")
        if self._is_closed:
            raise RuntimeError("the run is closed")

    def _entered(self) -> _pawl.Run:
        """The open run, in the process that opened it, where that writes."""
        self._check_open()
        if self._run is None:
            raise RuntimeError("this process does not write to the run and holds no lock of it: only rank 0 saves, prunes, repairs and pins")
        return self._run

    @contextmanager
    def _call(self) -> Generator[None, None, None]:
        """One call of the run: nothing else goes on, and no save is in flight."""
        self._check_open()
        me = threading.get_ident()
        if self._caller == me:
            raise RuntimeError("called from a callback or a signal handler in the middle of another call of this run")
        if _save.is_callback_of(self):
            raise RuntimeError("called from a callback of a save of this run, which it would wait for")
        with self._lock:
            try:
                self._caller = me
                self._wait_for_flight()
                yield
            finally:
                self._caller = None

    def _wait_for_flight(self) -> None:
        if self._flight is not None:
            self._flight._finished.wait()
            self._failed, self._flight = self._flight, None

    def _raise_untold(self) -> None:
        failed, self._failed = self._failed, None
        error = None if failed is None else failed._take_untold()
        if error is not None:
            try:
                raise error.with_traceback(None)
            finally:
                del error, failed  # which hold this frame

    def __enter__(self) -> Self:
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
        """Save a step; it is durable when this returns. Arguments as in ``save_checkpoint``.

        An error of a save in the background that nobody has asked for is raised instead, and nothing is saved.
        """
        number, measured = self._checked(step, metrics)
        all = self._described(
            model, optimizer, rng=rng, state=state, stream=stream, config=config, attachments=attachments,
        )  # fmt: skip
        return self._save_described(number, all, measured, progress)

    def save_async(
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
    ) -> Save:
        """Begin a save and return as soon as the caller may go on: the step is written in the background. Arguments as in ``save``.

        With ``snapshot="copy"`` the arrays are copied before this returns. With "borrow" they must not change until ``Save.released()``; the save
        keeps them alive. Everything that is no array is copied in both, and tensors of a device are copied to the host.

        One save is in flight at a time: this waits for the one before. What the arguments forbid is raised here, what the disk refuses
        by ``Save.wait``; an error that nobody asks for is raised by the next ``save``, ``save_async``, ``wait`` or ``close``, which then
        does nothing else, and at exit through ``sys.unraisablehook``. The interpreter waits at its exit for a save in flight.

        >>> import numpy, pawl
        >>> with pawl.Run("ra", on_durable=lambda step, path: print("durable:", path.name)) as run:
        ...     weights = {"w": numpy.zeros(2)}
        ...     for step in (1, 2):
        ...         weights["w"] += 1
        ...         save = run.save_async(step, weights)
        durable: step-000001
        durable: step-000002
        """
        number, measured = self._checked(step, metrics)
        all = self._described(
            model, optimizer, rng=rng, state=state, stream=stream, config=config, attachments=attachments,
        )  # fmt: skip
        return self._save_in_background(number, all, measured, progress)

    def _checked(self, step: int, metrics: Mapping[str, float] | None) -> tuple[int, dict[str, float]]:
        self._check_open()
        return check_step(step), check_metrics(metrics)

    def _described(self, model: Model, optimizer: Any, **what: Any) -> dict[str, Any]:
        return describe(model, optimizer, profile=self._profile, **what)

    def _save_described(self, step: int, all: dict[str, Any], metrics: dict[str, float], progress: Progress | None) -> Path:
        said: list[tuple[str, str, str | None]] = []
        with self._call():
            self._raise_untold()
            self._entered().save(step, all, metrics, progress, _failpoints.in_force(), said)
        self._warn(said)
        path = self.root / step_name(step)
        if self._on_durable is not None:
            try:
                self._on_durable(step, path)
            except Exception as error:
                _pawl.unraisable(error, self._on_durable)
        return path

    def _save_in_background(self, step: int, all: dict[str, Any], metrics: dict[str, float], progress: Progress | None) -> Save:
        place = caller_place()
        with self._call():
            self._raise_untold()
            core = self._entered()
            save = Save(step, self.root / step_name(step), core.save_async(step, all, metrics, _failpoints.in_force()))
            follow = (self, core, save, progress, self._on_durable, place)
            is_watched = _save.can_watch()
            if is_watched:
                try:
                    threading.Thread(target=_save.watch, args=follow, name=f"pawl save {step}").start()
                    self._flight = save
                except RuntimeError:  # no thread can be had
                    is_watched = False
        if not is_watched:
            _save.watch(*follow)
            self._failed = save
        return save

    def load(
        self, step: int | None = None, *, trust: Trust = "full", weights_only: bool = False, copy: bool = True
    ) -> Checkpoint:
        """``load_checkpoint`` of this root."""
        return load_checkpoint(self.root, step, trust=trust, weights_only=weights_only, copy=copy)

    def steps(self) -> list[int]:
        """Numbers of the complete steps (by their sizes), ascending."""
        try:
            verdicts = _pawl.list_ckpts(self.root, True)[0][0]
        except NotFoundError:  # another process writes, and has not made it yet
            return []
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
        with self._call():
            report = self._entered().prune(keep)
        return self._names(report, "deleted")

    def repair(self) -> list[Path]:
        """Rename every broken step to step-N.bad, so that no load looks at it again; their new paths."""
        with self._call():
            report = self._entered().repair()
        return [path.with_name(f"{path.name}.bad") for path in self._names(report, "quarantined")]

    def _names(self, report: Any, which: str) -> list[Path]:
        for problem in problems(report[2]):
            warnings.warn(f"{self.root}: {problem.message}", Warning, stacklevel=caller_level())
        return [self.root / name for name in report[1][which]]

    def pin(self, step: int) -> None:
        """Keep a step from retention, until it is unpinned; it need not be there yet."""
        with self._call():
            self._entered().pin(check_step(step))

    def unpin(self, step: int) -> None:
        """Let retention have a step again."""
        with self._call():
            self._entered().unpin(check_step(step))

    def wait(self) -> None:
        """Return once no save is in flight, its callbacks included. Raises an error of one that nobody has asked for."""
        with self._call():
            self._raise_untold()

    def close(self) -> None:
        """Wait for a save in flight and release the lock; closing twice is fine.

        Raises an error of a save in the background that nobody has asked for; the run is closed all the same.
        """
        if self._is_closed:
            return
        with self._call():
            self._is_closed = True
            run, self._run = self._run, None
            if run is not None:
                run.close()
            self._raise_untold()
