"""The PCG32 generator."""

from __future__ import annotations

import operator
from collections.abc import MutableSequence
from typing import Any, ClassVar, SupportsIndex

from . import _pawl
from ._errors import ArgumentError

_WORD = (1 << 64) - 1


class PCG32(_pawl.PCG32):
    """PCG-XSH-RR (O'Neill 2014): 64 bits of state, 32 of output. The same numbers on every machine, and in C.

    ``seed`` and ``seq`` are 0 ... 2^64-1. The whole state is ``state()`` and ``spare``; a generator can be pickled and compared.

    >>> rng = PCG32(42)
    >>> [hex(rng.next_u32()) for _ in range(3)]
    ['0xa15c02b7', '0x7b47f409', '0xba1d3330']
    >>> rng.below(10), PCG32(7).stream(1).below(1000)
    (5, 211)
    """

    __slots__ = ()

    def stream(self, purpose: int) -> PCG32:
        """The sub-stream of this generator's seed for a purpose: 1 init, 2 dropout, 3 shuffle, 4 sample, 5 mutation.

        It depends on the seed alone, not on what was drawn.

        >>> PCG32(42).stream(3).state() == PCG32(42).stream(3).state() != PCG32(42).stream(4).state()
        True
        """
        if not 0 <= purpose <= _WORD:
            raise ArgumentError(f"purpose is {purpose}, expected 0 ... 2^64-1", code="argument")
        other = PCG32()
        other._stream(self._seed, purpose)
        return other

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Put the items into a random order, in place (Fisher-Yates from the end).

        >>> items = list(range(6))
        >>> PCG32(42).shuffle(items)
        >>> sorted(items)
        [0, 1, 2, 3, 4, 5]
        """
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]

    def set_state(self, state: tuple[SupportsIndex, SupportsIndex]) -> None:
        """Go to a state that ``state()`` gave. A pending normal is dropped. ArgumentError for an even increment.

        >>> rng = PCG32(1); at = rng.state(); first = rng.next_u32()
        >>> rng.set_state(at); rng.next_u32() == first
        True
        """
        word, inc = (operator.index(value) for value in state)
        if not (0 <= word <= _WORD and 0 <= inc <= _WORD):
            raise ArgumentError("the words of a generator are 0 ... 2^64-1", code="argument")
        if inc % 2 == 0:
            raise ArgumentError(f"the increment {inc:#x} is even: that is no PCG stream", code="argument")
        self._set(word, inc)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_remake, (self._seed, self.state(), self.spare))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PCG32):
            return NotImplemented
        return self.state() == other.state() and self.spare == other.spare

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        state, inc = self.state()
        return f"<pawl.PCG32 state {state:016x} inc {inc:016x}>"


def _remake(seed: int, state: tuple[int, int], spare: float | None) -> PCG32:
    rng = PCG32(seed)
    rng.set_state(state)
    rng.spare = spare
    return rng
