"""Saves in the background: the handle, and the thread that follows one.

The library's own thread writes the step and never calls into Python. A thread of Python's, one for each save, waits for it without the GIL: it
tells the end, runs the callbacks, and keeps the run, the borrowed arrays and the interpreter until then, as it is no daemon.
"""

from __future__ import annotations

import atexit
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from . import _pawl
from ._errors import CanceledError, Warning
from ._types import Progress

if TYPE_CHECKING:
    from ._run import Run

Stage: TypeAlias = Literal["accepted", "released", "written", "durable", "failed", "canceled"]

_STAGES: dict[int, Stage] = {1: "accepted", 2: "released", 3: "written", 4: "durable", 5: "failed", 6: "canceled"}
_DURABLE, _FAILED = 4, 5
_PROGRESS_MS = 100

_alive: dict[int, weakref.ref[Save]] = {}
_watching = threading.local()  # .save, .run: whose callbacks this thread runs
_is_leaving = threading.Event()


class Save:
    """A save in the background, as ``Run.save_async`` returns it. Its methods may be called from any thread; a forked child's raise RuntimeError.

    ``step`` and ``path`` say what it will be. It passes accepted, released (the arrays may change), written, and durable; or it ends as failed or
    canceled. ``await save`` is ``save.wait()`` without blocking the loop; cancelling the awaiting task leaves the save alone.

    Callbacks (``add_done_callback``, and the run's ``on_durable`` and ``progress``) come from a thread that follows this save, one after
    the other and outside of the run's lock. They may call anything but what would wait for this save: that is a RuntimeError. What
    one raises goes to ``sys.unraisablehook``, and the save stands.

    >>> import numpy, pawl
    >>> weights = {"w": numpy.zeros(4)}
    >>> with pawl.Run("sv") as run:
    ...     save = run.save_async(7, weights)
    ...     weights["w"] += 1  # the step holds zeros
    ...     save.wait().name, save.stage(), pawl.load_checkpoint("sv").model["w"].tolist()
    ('step-000007', 'durable', [0.0, 0.0, 0.0, 0.0])
    """

    step: int
    path: Path

    def __init__(self, step: int, path: Path, inner: _pawl.Save | None) -> None:
        self.step, self.path = step, path
        self._inner = inner  # None: there was nothing to write
        self._pid = os.getpid()
        self._released, self._over, self._finished = threading.Event(), threading.Event(), threading.Event()
        self._error: BaseException | None = None
        self._is_told = False
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[Save], object]] | None = []  # None: they have been called
        if inner is None:
            self._callbacks = None
            for event in (self._released, self._over, self._finished):
                event.set()
        elif inner.wait_released(0):  # it has its copy
            self._released.set()
        _alive[id(self)] = weakref.ref(self)

    def __del__(self) -> None:
        if _alive.pop(id(self), None) is not None:
            self._report_untold()

    def __repr__(self) -> str:
        stage = self.stage() if os.getpid() == self._pid else "of another process"
        return f"<pawl.Save step {self.step} at {self.path}: {stage}>"

    def __reduce__(self) -> Any:
        raise TypeError("a Save can't be pickled: it belongs to the process that began it")

    def _own(self) -> None:
        """Asked before any lock, which a fork may have left held."""
        if os.getpid() != self._pid:
            raise RuntimeError(f"the save was begun by process {self._pid}: a forked child can't ask for it")

    def _wait_for(self, event: threading.Event, timeout: float | None) -> bool:
        self._own()
        if not event.is_set() and getattr(_watching, "save", None) is self:
            raise RuntimeError(f"called from a callback of the save of step {self.step}, which it would wait for")
        return event.wait(timeout)

    def stage(self) -> Stage:
        """How far it has come. Only "durable" may be logged as saved."""
        self._own()
        if self._inner is None:
            return "durable"
        number = self._inner.stage()
        if number >= _DURABLE and not self._over.is_set():  # an end counts when it can be asked for
            return "written" if number == _DURABLE else "released"
        return _STAGES[number]

    def released(self, timeout: float | None = None) -> bool:
        """Wait until the arrays may change, at most so many seconds; whether they may. At once with ``snapshot="copy"``."""
        return self._wait_for(self._released, timeout)

    def progress(self) -> tuple[int, int]:
        """Bytes written, and bytes in all."""
        self._own()
        return (0, 0) if self._inner is None else self._inner.progress()

    def done(self) -> bool:
        """Whether it is durable, failed or canceled."""
        self._own()
        return self._over.is_set()

    def wait(self, timeout: float | None = None) -> Path:
        """Wait until it is durable, at most so many seconds, and return its directory. Raises what the save raised; CanceledError; TimeoutError.

        KeyboardInterrupt ends the wait, not the save.
        """
        error = self.exception(timeout)
        if error is None:
            return self.path
        try:
            raise error.with_traceback(None)
        finally:
            del error  # which holds this frame

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait as ``wait`` does, and return what it would raise; None when the step is durable. Raises TimeoutError only."""
        if not self._wait_for(self._over, timeout):
            raise TimeoutError(f"the save of step {self.step} is not over after {timeout} s")
        self._is_told = True
        return self._error

    def __await__(self) -> Generator[Any, None, Path]:
        import asyncio

        loop = asyncio.get_running_loop()
        over = loop.create_future()

        def end() -> None:
            if not over.done():  # cancelled, by who waited
                over.set_result(None)

        def wake(_: Save) -> None:
            try:
                loop.call_soon_threadsafe(end)
            except RuntimeError:
                pass  # the loop was closed, and nobody waits

        self.add_done_callback(wake)
        yield from over
        return self.wait(0)

    def cancel(self) -> bool:
        """Give it up; whether that came before it was published. It then ends as canceled, and the checkpoint before it is what a load gives."""
        self._own()
        return self._inner is not None and self._inner.cancel()

    def add_done_callback(self, fn: Callable[[Save], object]) -> None:
        """Call ``fn(save)`` once it is over: from the thread that follows the save, or from this one when its callbacks have been called."""
        self._own()
        with self._lock:
            if self._callbacks is not None:
                self._callbacks.append(fn)
                return
        _call(fn, self)

    # ---- for the thread that follows it, and the run ----

    def _follow(self, progress: Progress | None) -> BaseException | None:
        """Return once it is over: with what made it fail."""
        inner = self._inner
        assert inner is not None
        raised: BaseException | None = None
        try:
            for wait, then in ((inner.wait_released, self._released.set), (inner.wait, None)):
                while not wait(-1 if progress is None or raised is not None else _PROGRESS_MS):
                    try:
                        if progress is not None:
                            progress(*inner.progress())
                    except BaseException as error:
                        raised = error
                        inner.cancel()
                if then is not None:
                    then()
        except BaseException as error:
            if inner.stage() < _FAILED:
                raise  # a signal handler's, where the caller's own thread waits
            return raised if raised is not None and isinstance(error, CanceledError) else error
        if raised is not None:
            _pawl.unraisable(raised, progress)  # it came too late to abandon the save
        elif progress is not None:
            _call(progress, *inner.progress())
        return None

    def _tell(self, error: BaseException | None) -> None:
        self._error = error
        self._over.set()

    def _run_callbacks(self) -> None:
        while True:
            with self._lock:
                fns = self._callbacks
                self._callbacks = [] if fns else None
            if not fns:
                return
            for fn in fns:
                _call(fn, self)

    def _take_untold(self) -> BaseException | None:
        """The error, when it is one and nobody has asked for it."""
        if self._is_told or not self._over.is_set() or self._error is None or isinstance(self._error, CanceledError):
            return None
        self._is_told = True
        self._error.add_note(f"it is the error of the save of step {self.step} in the background, which nobody had asked about")
        return self._error

    def _report_untold(self) -> None:
        error = self._take_untold() if os.getpid() == self._pid else None
        if error is not None:
            _pawl.unraisable(error, self)


def _call(fn: Callable[..., object], *args: Any) -> None:
    try:
        fn(*args)
    except BaseException as error:
        _pawl.unraisable(error, fn)


def is_callback_of(run: Run) -> bool:
    """Whether this thread runs the callbacks of a save of that run."""
    return getattr(_watching, "run", None) is run


def can_watch() -> bool:
    return not _is_leaving.is_set()


def watch(
    run: Run, core: _pawl.Run, save: Save, progress: Progress | None, on_durable: Callable[[int, Path], object] | None, place: tuple[str, int]
) -> None:
    """Follow a save to its end: tell it, call back, say its warnings. In a thread of its own; in the caller's where there can be none."""
    before = getattr(_watching, "save", None), getattr(_watching, "run", None)
    _watching.save, _watching.run = save, run
    interrupt: BaseException | None = None
    try:
        while True:
            try:
                error = save._follow(progress)
                break
            except BaseException as caught:
                interrupt = caught  # it ends this wait, not the save, and goes through when all is told
        save._tell(error)
        if error is None and on_durable is not None:
            _call(on_durable, save.step, save.path)
        save._run_callbacks()
        core.settle()  # old steps go after
        _call(_warn, run.root, core, place)
    finally:
        save._finished.set()
        _watching.save, _watching.run = before
    if interrupt is not None:
        raise interrupt


def _warn(root: Path, core: _pawl.Run, place: tuple[str, int]) -> None:
    for _, message, file in core.over():
        text = f"{root}{'' if file is None else f'/{file}'}: {message}"
        _call(warnings.warn_explicit, text, Warning, *place)


@atexit.register
def _finish() -> None:
    """At exit: wait for the saves in flight, and report the errors that nobody asked for."""
    saves = [save for save in (ref() for ref in list(_alive.values())) if save is not None and save._pid == os.getpid()]
    try:
        for save in saves:
            save._finished.wait()
    finally:
        _is_leaving.set()
        _pawl.leave()
        for save in saves:
            save._report_untold()
