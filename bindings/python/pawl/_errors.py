"""Errors as classes: what libpawl answers, with code, path, offset and reasons."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

_Found = tuple[list[tuple[str, str, bool, list[Any], list[Any], int, int]], dict[str, list[str]], list[Any]]


class Warning(UserWarning):
    """What was done instead of the usual, or passed over: a damaged step, a directory that could not be deleted.

    >>> issubclass(Warning, UserWarning)
    True
    """


class Problem(NamedTuple):
    """One fault that an examination found; ``str()`` is the message.

    ``offset`` is in bytes from the beginning of ``file``.

    >>> print(Problem("hash", "sha256 is 3d0c, the manifest says 8a41", "model.safetensors", None, None))
    sha256 is 3d0c, the manifest says 8a41
    """

    code: str
    message: str
    file: str | None
    tensor: str | None
    offset: int | None

    def __str__(self) -> str:
        return self.message


class Error(Exception):
    """Every error of Pawl.

    ``code`` is a lowercase word that programs branch on ("hash", "truncated", "no-space" ...), ``path`` the file or directory
    concerned, ``offset`` the place in it in bytes, ``reasons`` every fault that was found. All of it survives pickling.

    >>> import pawl
    >>> try:
    ...     pawl.step_name(-1)
    ... except pawl.Error as error:
    ...     print(error.code, "-", error)
    argument - the step is -1, expected 0 or more
    """

    code: str
    path: Path | None
    offset: int | None
    reasons: list[Problem]

    def __init__(
        self,
        message: str = "",
        *,
        code: str = "",
        path: str | bytes | os.PathLike[Any] | None = None,
        offset: int | None = None,
        reasons: Iterable[Problem] = (),
    ) -> None:
        from pathlib import Path

        place = None if path is None else Path(os.fsdecode(path))
        if isinstance(self, OSError):
            errno = getattr(self, "_errno", 0)
            OSError.__init__(self, errno, message, *([] if place is None else [str(place)]))
        else:
            Exception.__init__(self, message)
        self._message = message
        self.code = code
        self.path = place
        self.offset = offset
        self.reasons = list(reasons)

    def __str__(self) -> str:
        if self.path is None or str(self.path) in self._message:
            return self._message
        return f"{self.path}: {self._message}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self._message, dict(self.__dict__)))


def _rebuild(cls: type[Error], message: str, attributes: dict[str, Any]) -> Error:
    error = cls(message, path=attributes.get("path"))
    error.__dict__.update(attributes)
    return error


class ArgumentError(Error, ValueError):
    """What the caller passed can't be; raised before anything is written.

    >>> import numpy, pawl.numpy
    >>> try:
    ...     pawl.numpy.save({"w": numpy.zeros(2)}, dtypes={"w": "BF16"})
    ... except pawl.ArgumentError as error:
    ...     print(error)
    tensor 'w': F64 values are not narrowed to BF16 by a save: cast them first
    """


class FormatError(Error, ValueError):
    """Bytes that break their format; also named ``SafetensorError``.

    >>> import pawl.numpy
    >>> try:
    ...     pawl.numpy.load(b"no file")
    ... except pawl.SafetensorError as error:
    ...     print(error.code)
    too-short
    """


class MissingTensorError(ArgumentError, FormatError, KeyError):
    """There is no tensor of that name: a ``SafetensorError`` as in the reference library, and a ``KeyError``."""


class IncompleteError(Error, ValueError):
    """The step that was asked for is there and not complete; ``reasons`` has every reason."""


class NotFoundError(Error, FileNotFoundError):
    """No such file; or no checkpoint at all, which is a fresh start."""

    _errno = 2


class NoneCompleteError(NotFoundError):
    """There are checkpoints and none verifies; ``reasons`` names each candidate and why. A trainer must stop here."""


class MismatchError(Error, ValueError):
    """A strict restore over other names, shapes or dtypes, or a cursor of another data set.

    ``missing`` was asked for and is not there, ``unexpected`` is there and was not asked for, ``mismatched`` says both sides.
    """

    missing: list[str]
    unexpected: list[str]
    mismatched: list[str]

    def __init__(
        self,
        message: str = "",
        *,
        missing: Sequence[str] = (),
        unexpected: Sequence[str] = (),
        mismatched: Sequence[str] = (),
        **more: Any,
    ) -> None:
        super().__init__(message, **more)
        self.missing, self.unexpected, self.mismatched = list(missing), list(unexpected), list(mismatched)


class BusyError(Error, BlockingIOError):
    """Another writer owns the root."""

    _errno = 11


class CanceledError(Error):
    """A save that was cancelled."""


def problems(found: Sequence[Any]) -> list[Problem]:
    return [Problem(*item) for item in found]


def reasons_of(verdicts: Sequence[Any]) -> list[Problem]:
    """Every problem of a report; of several verdicts each is named."""
    if len(verdicts) == 1:
        return problems(verdicts[0][3])
    return [
        Problem(code, f"{name}: {message}", name if file is None else f"{name}/{file}", tensor, offset)
        for name, _, _, listed, _, _, _ in verdicts
        for code, message, file, tensor, offset in listed
    ]


_CLASSES: dict[str, type[Error]] = {
    "argument": ArgumentError,
    "out-of-range": ArgumentError,
    "not-found": NotFoundError,
    "no-file": NotFoundError,
    "none-complete": NoneCompleteError,
    "incomplete": IncompleteError,
    "corrupt": FormatError,
    "truncated": FormatError,
    "limit": FormatError,
    "mismatch": MismatchError,
    "busy": BusyError,
    "canceled": CanceledError,
}
_ERRNOS = {
    "no-space": "ENOSPC",
    "permission": "EACCES",
    "no-descriptors": "EMFILE",
    "time-out": "ETIMEDOUT",
    "interrupted": "EINTR",
    "exists": "EEXIST",
    "stale": "ESTALE",
    "unsupported": "ENOTSUP",
}


def make(
    status: str,
    code: str,
    message: str,
    path: str,
    offset: int | None,
    errno: int,
    tensor: str,
    hint: str,
    found: _Found | str,
) -> BaseException:
    """The exception for a failed call; called by the extension module."""
    error: BaseException
    if status == "no-memory":
        error = MemoryError(message)
    elif status == "wrong-process":
        error = RuntimeError(message)
    elif status in _CLASSES and not (status == "no-file" and errno not in (0, 2)):
        cls = _CLASSES[status]
        reasons = reasons_of(found[0]) if isinstance(found, tuple) else []
        more: dict[str, Any] = {}
        if cls is MismatchError and isinstance(found, tuple):
            more = {key: found[1][key] for key in ("missing", "unexpected", "mismatched")}
        error = cls(message, code=code, path=path or None, offset=offset, reasons=reasons, **more)
    else:
        import errno as numbers

        errno = errno or getattr(numbers, _ERRNOS.get(status, "EIO"))
        error = OSError(errno, message, path) if path else OSError(errno, message)
    if hint:
        error.add_note(f"hint: {hint}")
    return error
