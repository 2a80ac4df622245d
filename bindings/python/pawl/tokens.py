"""Token shards, and a stream of windows from them with an exact cursor.

>>> import pawl.tokens
>>> writer = pawl.tokens.Writer("ids", 256)
>>> writer.add(range(100))
>>> shards = writer.close()
>>> stream = pawl.tokens.TokenStream(shards, seq_len=4, batch=2, rng=7)
>>> inputs, targets = stream.next_batch()
>>> inputs.shape, bool((inputs[:, 1:] == targets[:, :-1]).all())
((2, 4), True)
"""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import _pawl
from ._errors import ArgumentError, FormatError, MismatchError
from ._pcg32 import PCG32
from ._types import StrPath

if TYPE_CHECKING:
    from ._checkpoint import Checkpoint

__all__ = ["Generator", "ShardHeader", "TokenStream", "Writer", "open", "read_header"]

Batch: TypeAlias = "tuple[NDArray[Any], NDArray[Any]]"
_MAX = 2**64 - 1


class ShardHeader(NamedTuple):
    """Version (1: 16-bit ids, 2: 32-bit), how many ids, and the vocabulary (0: not stated)."""

    version: int
    n_tokens: int
    vocab_size: int


class Generator(Protocol):
    """A generator of the caller's: ``below(n)`` gives an integer of [0, n); ``state()`` anything that ``set_state`` takes back."""

    def below(self, n: int, /) -> int:
        """A uniform integer of [0, n)."""
        ...

    def state(self) -> Any:
        """Where it stands; any value."""
        ...

    def set_state(self, state: Any, /) -> None:
        """Go where ``state()`` said."""
        ...


def _vocabulary(vocab_size: int | None) -> int:
    if vocab_size is None:
        return 0
    if not 1 <= operator.index(vocab_size) <= _MAX:
        raise ArgumentError(f"vocab_size is {vocab_size}, expected 1 or more", code="argument")
    return operator.index(vocab_size)


def read_header(path: StrPath) -> ShardHeader:
    """Read and check a shard's header, and the size of the file.

    Raises FormatError with the code ("magic", "truncated", ...) and the numbers.

    >>> import pawl.tokens
    >>> writer = pawl.tokens.Writer("rh", 50); writer.add([1, 2, 3])
    >>> pawl.tokens.read_header(writer.close()[0])
    ShardHeader(version=1, n_tokens=3, vocab_size=50)
    """
    version, ids, _, vocabulary = _pawl.open_shard(path, 0, True).info()
    return ShardHeader(version, ids, vocabulary)


def open(path: StrPath, *, vocab_size: int | None = None, check_ids: bool = True) -> np.memmap[Any, Any]:
    """The ids of a shard: a read-only array over a map of the file, ``<u2`` or ``<u4``, of shape ``(n,)``; empty for n = 0.

    With ``check_ids`` the ids are compared once with the vocabulary that the shard or ``vocab_size`` states.

    >>> import pawl.tokens
    >>> writer = pawl.tokens.Writer("op", 50); writer.add([1, 2, 3])
    >>> pawl.tokens.open(writer.close()[0])
    memmap([1, 2, 3], dtype=uint16)
    """
    shard = _pawl.open_shard(path, _vocabulary(vocab_size), not check_ids)
    _, ids, width, _ = shard.info()
    array: np.memmap[Any, Any] = np.ndarray.__new__(np.memmap, (ids,), f"<u{width}", shard)  # type: ignore[arg-type]
    return array


class Writer:
    """Writes a tokenised data set into a new or empty directory; it is published, durably, by ``close()``.

    ``vocab_size``: ids lie below it (None: not known). ``doc_sep_id``: written before each document. ``split``: the files'
    prefix. ``shard_tokens``: ids in one file at most; a document is kept whole. ``replace``: a set that is there goes. A context manager:
    an exception abandons it.

    >>> with Writer("wr", 300, doc_sep_id=256) as writer:
    ...     writer.add(b"ab")
    ...     writer.add([7, 8])
    >>> [path.name for path in writer.paths], open(writer.paths[0]).tolist()
    (['train-00001.bin'], [256, 97, 98, 256, 7, 8])
    """

    def __init__(
        self,
        directory: StrPath,
        vocab_size: int | None,
        *,
        doc_sep_id: int | None = None,
        split: str = "train",
        shard_tokens: int = 100_000_000,
        width: int | None = None,
        replace: bool = False,
        tokenizer_id: str = "",
        dataset: str = "",
        version: str = "",
    ) -> None:
        if width not in (None, 2, 4):
            raise ArgumentError(f"width is {width!r}, expected None, 2 or 4", code="argument")
        if shard_tokens < 1:
            raise ArgumentError(f"shard_tokens is {shard_tokens}, expected 1 or more", code="argument")
        if doc_sep_id is not None and not 0 <= doc_sep_id < 2**32:
            raise ArgumentError(f"doc_sep_id is {doc_sep_id}, expected 0 ... 2^32-1", code="argument")
        self._directory = Path(os.fsdecode(directory))
        self._writer = _pawl.open_writer(
            directory, _vocabulary(vocab_size), -1 if doc_sep_id is None else doc_sep_id, width or 0, shard_tokens, split, replace,
            tokenizer_id, dataset, version,
        )  # fmt: skip
        self.paths: list[Path] = []

    def add(self, ids: Iterable[int] | bytes | NDArray[Any]) -> None:
        """One document: ids, an array of integers, or bytes. ArgumentError for an id that vocabulary or width lack."""
        if isinstance(ids, bytes | bytearray | memoryview):
            array = np.frombuffer(ids, np.uint8).astype("<u4")
        else:
            given = ids if isinstance(ids, np.ndarray) else np.asarray(list(ids) or np.empty(0, "<u4"))
            if given.dtype.kind not in "iu" or given.ndim != 1:
                raise ArgumentError(f"ids are one row of integers, not {given.dtype} of shape {given.shape}", code="argument")
            if given.size and not (0 <= int(given.min()) and int(given.max()) < 2**32):
                raise ArgumentError("an id is outside 0 ... 2^32-1", code="out-of-range")
            array = np.ascontiguousarray(given, "<u4")
        self._writer.document(array)

    def close(self) -> list[Path]:
        """Publish the files and the manifest; the paths of the shards, in order."""
        self.paths = [self._directory / name for name, _, _ in self._writer.finish()]
        return self.paths

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.close()
        else:
            self._writer.abandon()


class TokenStream:
    """Windows of ``seq_len + 1`` ids from token shards, for ever; its cursor is the whole position.

    ``shards``: files, or directories with a manifest, in order. ``rng``: a seed, a ``PCG32`` as it is before the first draw (copied), or a
    generator of the caller's (``below``, ``state``, ``set_state``). ``dtype``: of the batches. A stream belongs to one thread
    at a time; iterating gives batches without end.

    Raises FormatError for a bad shard ("too-few-ids" for one of fewer than ``seq_len + 1`` ids), ArgumentError.

    >>> writer = Writer("ts", 100); writer.add(range(50)); paths = writer.close()
    >>> stream = TokenStream(paths, 4, 2, 1)
    >>> _ = stream.next_batch(); at = stream.cursor(); inputs, targets = stream.next_batch()
    >>> again = TokenStream(paths, 4, 2, 1)
    >>> again.restore(at)
    >>> bool((again.next_batch()[0] == inputs).all())
    True
    """

    def __init__(
        self,
        shards: Sequence[StrPath],
        seq_len: int,
        batch: int,
        rng: int | PCG32 | Generator = 0,
        *,
        vocab_size: int | None = None,
        check_ids: bool = True,
        dtype: DTypeLike = "int64",
    ) -> None:
        if isinstance(shards, str | bytes | os.PathLike):
            raise ArgumentError("shards is one path, expected a list of paths", code="argument")
        self._seq_len, self._batch = operator.index(seq_len), operator.index(batch)
        if self._seq_len < 1 or self._batch < 1:
            raise ArgumentError(f"seq_len is {seq_len} and batch {batch}, expected 1 or more", code="argument")
        self._dtype = np.dtype(dtype)
        if self._dtype.kind not in "iu":
            raise ArgumentError(f"dtype is {self._dtype}, expected integers", code="argument")
        self._paths = [os.path.abspath(os.fsdecode(path)) for path in shards]
        self._vocab_size, self._check_ids = vocab_size, check_ids
        self._rng = rng
        self._seed: int | None = None
        self._stream: _pawl.Stream | None = None
        self._foreign: _Foreign | None = None
        vocabulary = _vocabulary(vocab_size)
        if isinstance(rng, PCG32):
            self._rng = _copied(rng)
            self._stream = _pawl.open_stream(self._paths, self._seq_len, self._batch, 0, rng, vocabulary, not check_ids)
        elif isinstance(rng, SupportsIndex):
            self._seed = operator.index(rng)
            if not 0 <= self._seed <= _MAX:
                raise ArgumentError(f"the seed is {rng}, expected 0 ... 2^64-1", code="argument")
            self._stream = _pawl.open_stream(self._paths, self._seq_len, self._batch, self._seed, None, vocabulary, not check_ids)
        elif all(hasattr(rng, name) for name in ("below", "state", "set_state")):
            self._foreign = _Foreign(self._paths, self._seq_len, self._batch, rng, vocab_size, check_ids)
        else:
            raise TypeError(f"rng is a seed, a PCG32 or has below, state and set_state, not {type(rng).__name__}")

    @property
    def seq_len(self) -> int:
        """Ids of a row."""
        return self._seq_len

    @property
    def batch(self) -> int:
        """Rows of a batch."""
        return self._batch

    def next_batch(self) -> Batch:
        """Inputs and targets, ``[batch, seq_len]``: fresh arrays; the targets are the inputs moved by one."""
        shape = (self._batch, self._seq_len)
        width = 8 if self._dtype.itemsize == 8 else 4
        inputs, targets = (np.empty(shape, f"u{width}") for _ in range(2))
        if self._foreign is not None:
            self._foreign.next(inputs, targets)
        else:
            assert self._stream is not None
            self._stream.next(inputs, targets)
        if self._dtype.itemsize == width and self._dtype.isnative:
            return inputs.view(self._dtype), targets.view(self._dtype)
        largest = max(int(inputs.max()), int(targets.max()))
        if largest > np.iinfo(self._dtype).max:
            raise ArgumentError(f"the id {largest} does not fit {self._dtype}", code="out-of-range")
        return inputs.astype(self._dtype), targets.astype(self._dtype)

    def __iter__(self) -> Iterator[Batch]:
        while True:
            yield self.next_batch()

    def cursor(self) -> dict[str, Any]:
        """``{"shard", "offset", "rng"}``: the whole position. ``rng`` is the generator's state."""
        if self._foreign is not None:
            return self._foreign.cursor()
        assert self._stream is not None
        shard, offset, state, inc = self._stream.cursor()
        return {"shard": shard, "offset": offset, "rng": (state, inc)}

    def restore(self, cursor: Mapping[str, Any]) -> None:
        """Go to a position. ArgumentError outside the shards or for an even increment; the stream is then as before."""
        shard, offset = (_place(cursor[key], key) for key in ("shard", "offset"))
        if self._foreign is not None:
            self._foreign.restore(shard, offset, cursor["rng"])
            return
        assert self._stream is not None
        state, inc = (operator.index(word) for word in cursor["rng"])
        if not (0 <= state <= _MAX and 0 <= inc <= _MAX):
            raise ArgumentError("the words of a generator are 0 ... 2^64-1", code="argument")
        self._stream.restore(shard, offset, state, inc)

    def _restore_from(self, checkpoint: Checkpoint) -> None:
        if self._stream is not None:
            checkpoint._ckpt.restore_stream(self._stream)
            return
        if checkpoint.rng is None:
            raise MismatchError("the checkpoint has no generator", code="mismatch", path=checkpoint.path)
        self.restore({**checkpoint.state["data_cursor"], "rng": checkpoint.rng})

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self._paths, self._seq_len, self._batch, self._rng, self._vocab_size, self._check_ids, self._dtype.str)
        return (_remake, (arguments, self.cursor()))


def _copied(rng: PCG32) -> PCG32:
    other = PCG32()
    other.set_state(rng.state())
    return other


def _remake(arguments: tuple[Any, ...], cursor: dict[str, Any]) -> TokenStream:
    paths, seq_len, batch, rng, vocab_size, check_ids, dtype = arguments
    stream = TokenStream(paths, seq_len, batch, rng, vocab_size=vocab_size, check_ids=check_ids, dtype=dtype)
    stream.restore(cursor)
    return stream


def _place(value: Any, what: str) -> int:
    number: int = operator.index(value)
    if not 0 <= number <= _MAX:
        raise ArgumentError(f"the cursor's {what} is {number}, expected 0 or more", code="argument")
    return number


class _Foreign:
    """The base stream over a generator of the caller's, whose methods only Python can call. What it raises goes through and
    leaves the stream where it was."""

    def __init__(
        self, paths: list[str], seq_len: int, batch: int, rng: Generator, vocab_size: int | None, check_ids: bool
    ) -> None:
        files = _pawl.token_files(list(paths), "train")
        if not files:
            raise ArgumentError("there are no shards", code="argument")
        self._shards = [open(path, vocab_size=vocab_size, check_ids=check_ids) for path in files]
        for path, ids in zip(files, self._shards, strict=True):
            if ids.size < seq_len + 1:
                raise FormatError(
                    f"the shard has {ids.size} ids, a window takes {seq_len + 1}", code="too-few-ids", path=path
                )
        self._seq_len, self._batch, self._rng = seq_len, batch, rng
        self._lock = threading.Lock()
        self._shard, self._offset = 0, self._phase(0)

    def _phase(self, shard: int) -> int:
        limit = min(self._seq_len, self._shards[shard].size - self._seq_len)
        phase = self._rng.below(limit).__index__()
        if not 0 <= phase < limit:
            raise ArgumentError(f"the generator's below({limit}) gave {phase}", code="argument")
        return phase

    def next(self, inputs: NDArray[Any], targets: NDArray[Any]) -> None:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("the stream is in use by another thread: it belongs to one at a time")
        before = (self._shard, self._offset, self._rng.state())
        try:
            for row in range(self._batch):
                if self._offset + self._seq_len + 1 > self._shards[self._shard].size:
                    shard = (self._shard + 1) % len(self._shards)
                    self._shard, self._offset = shard, self._phase(shard)
                window = self._shards[self._shard][self._offset : self._offset + self._seq_len + 1]
                inputs[row], targets[row] = window[:-1], window[1:]
                self._offset += self._seq_len
        except BaseException:
            self._shard, self._offset = before[:2]
            self._rng.set_state(before[2])
            raise
        finally:
            self._lock.release()

    def cursor(self) -> dict[str, Any]:
        return {"shard": self._shard, "offset": self._offset, "rng": self._rng.state()}

    def restore(self, shard: int, offset: int, state: Any) -> None:
        if shard >= len(self._shards):
            raise ArgumentError(f"the cursor's shard is {shard}, there are {len(self._shards)}", code="argument")
        if offset > self._shards[shard].size:
            raise ArgumentError(f"the cursor's offset is {offset}, the shard has {self._shards[shard].size} ids", code="argument")
        self._rng.set_state(state)
        self._shard, self._offset = shard, offset
