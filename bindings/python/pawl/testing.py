"""For users who test that their own recovery works."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from . import _failpoints

__all__ = ["failpoints"]


@contextmanager
def failpoints(spec: str) -> Generator[None, None, None]:
    """Make saves of this process fail at named points while the block runs.

    ``spec``: ``name=[N*]action`` separated by ``;``. Names: save/after-file, save/before-manifest, save/before-rename,
    save/before-latest, save/before-prune. Actions: ``crash`` (exit at once with 137, nothing flushed, as a SIGKILL), ``error`` (an I/O error),
    ``sleep(20ms)``, ``off``. ``N*`` fires on the N-th time only.

    >>> import numpy, pawl, pawl.testing
    >>> with pawl.testing.failpoints("save/before-rename=error"):
    ...     try:
    ...         pawl.save_checkpoint("fp", 1, {"w": numpy.zeros(1)})
    ...     except OSError as error:
    ...         print(error.strerror)
    save step 1: failpoint 'save/before-rename': Input/output error
    >>> pawl.latest_checkpoint("fp") is None
    True
    """
    points = _failpoints.parse(spec)
    _failpoints.active.append(points)
    try:
        yield
    finally:
        _failpoints.active.remove(points)
