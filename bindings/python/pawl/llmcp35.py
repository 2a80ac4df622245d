"""LLMCP35 version 1: one file with a tokenizer, a small decoder language model, its AdamW state and a sampling generator.

>>> import numpy as np, pawl.llmcp35
>>> config = pawl.llmcp35.Config(vocabulary=2, width=2, heads=1, feed_forward=2, layers=0, positions=4)
>>> weights = {name: np.ones(shape) for name, shape in pawl.llmcp35.shapes(config).items()}
>>> tokenizer = pawl.llmcp35.Tokenizer(pieces=(b"a", b"b"))
>>> first = pawl.llmcp35.new(config, pawl.llmcp35.AdamW(), weights, tokenizer)
>>> pawl.llmcp35.save("run.llmcp35", first)
>>> again = pawl.llmcp35.load("run.llmcp35")
>>> again.step, again.parameters["final_norm.gain"], again.checksum == first.checksum
(0, array([1., 1.]), True)
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _pawl
from ._errors import ArgumentError
from ._types import StrPath

__all__ = ["AdamW", "Checkpoint", "Config", "Tokenizer", "load", "new", "save", "shapes"]

Arrays: TypeAlias = "Mapping[str, NDArray[np.float64]]"


class Config(NamedTuple):
    """The form of the model. Heads divide the width into even parts."""

    vocabulary: int
    width: int
    heads: int
    feed_forward: int
    layers: int
    positions: int
    rope_base: float = 10000.0
    rms_epsilon: float = 1e-5


class AdamW(NamedTuple):
    """The optimizer's numbers. ``groups``: names of the parameters with weight decay and of those without, all of them together;
    None: it applies to every parameter."""

    learning_rate: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.01
    groups: tuple[tuple[str, ...], tuple[str, ...]] | None = None


class Tokenizer(NamedTuple):
    """Literal pieces (id i is spelt ``pieces[i]``), or byte-level BPE: ``merges`` of ids of training, where 0 to 255 are bytes and
    256 + r is merge r. A loaded byte-BPE tokenizer has the bytes of every id in ``pieces`` too; ids 0 and 1 are controls without any."""

    pieces: tuple[bytes, ...] = ()
    merges: tuple[tuple[int, int], ...] | None = None


def shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """The name and shape of every parameter of such a model, in model order.

    >>> shapes(Config(vocabulary=3, width=2, heads=1, feed_forward=4, layers=0, positions=8))
    {'token_embedding.weight': (3, 2), 'final_norm.gain': (2,)}
    """
    d, f = config.width, config.feed_forward
    found: dict[str, tuple[int, ...]] = {"token_embedding.weight": (config.vocabulary, d)}
    for layer in range(config.layers):
        block = f"blocks.{layer}."
        found[block + "attention_norm.gain"] = (d,)
        for name in ("query", "key", "value", "output"):
            found[f"{block}attention.{name}.weight"] = (d, d)
        found[block + "ffn_norm.gain"] = (d,)
        found[block + "ffn.gate.weight"] = found[block + "ffn.up.weight"] = (d, f)
        found[block + "ffn.down.weight"] = (f, d)
    found["final_norm.gain"] = (d,)
    return found


class Checkpoint:
    """A checkpoint; it never changes. ``load``, ``new`` and ``Checkpoint.after`` make one.

    ``parameters``, ``first_moments`` and ``second_moments`` map names, in model order, to read-only float64 arrays over the
    checkpoint's own memory; the moments are empty at step 0. ``rng_state`` is the sampling generator's, before its next draw.
    ``header_bytes``, ``payload_bytes`` and ``checksum`` are the file's.

    >>> config = Config(vocabulary=1, width=2, heads=1, feed_forward=2, layers=0, positions=4)
    >>> checkpoint = new(config, AdamW(), {name: np.zeros(shape) for name, shape in shapes(config).items()}, Tokenizer((b"x",)), rng_state=7)
    >>> checkpoint.config.width, checkpoint.rng_state, dict(checkpoint.first_moments), checkpoint.tokenizer.pieces
    (2, 7, {}, (b'x',))
    """

    __slots__ = (
        "_own", "adamw", "beta1_power", "beta2_power", "checksum", "config", "first_moments", "header_bytes", "parameters",
        "payload_bytes", "rng_state", "second_moments", "step", "tokenizer",
    )  # fmt: skip

    config: Config
    adamw: AdamW
    step: int
    beta1_power: float
    beta2_power: float
    rng_state: int
    tokenizer: Tokenizer
    parameters: Arrays
    first_moments: Arrays
    second_moments: Arrays
    header_bytes: int
    payload_bytes: int
    checksum: str

    def __init__(self) -> None:
        raise TypeError("pawl.llmcp35.load, new or Checkpoint.after make a checkpoint")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a checkpoint never changes: {name!r} can't be set")

    def __repr__(self) -> str:
        return f"<LLMCP35 checkpoint of step {self.step}, {len(self.parameters)} parameters, {self.checksum}>"

    def after(
        self,
        parameters: Mapping[str, ArrayLike],
        first_moments: Mapping[str, ArrayLike],
        second_moments: Mapping[str, ArrayLike],
        *,
        beta1_power: float,
        beta2_power: float,
        rng_state: int | None = None,
    ) -> Checkpoint:
        """The checkpoint one step later: all new numbers at once, copied. ``rng_state`` None: nothing was drawn.

        ArgumentError when a name or a shape differs, or a number can't stand in a file.

        >>> config = Config(vocabulary=1, width=2, heads=1, feed_forward=2, layers=0, positions=4)
        >>> zeros = {name: np.zeros(shape) for name, shape in shapes(config).items()}
        >>> later = new(config, AdamW(), zeros, Tokenizer((b"x",))).after(zeros, zeros, zeros, beta1_power=0.9, beta2_power=0.999)
        >>> later.step, later.second_moments["final_norm.gain"]
        (1, array([0., 0.]))
        """
        expected = shapes(self.config)
        values = _rows(parameters, expected, "parameter")
        first = _rows(first_moments, expected, "first moment")
        second = _rows(second_moments, expected, "second moment")
        state = self.rng_state if rng_state is None else _word(rng_state)
        return _wrapped(self._handle().step(values, first, second, float(beta1_power), float(beta2_power), state))

    def _handle(self) -> _pawl.Llmcp35:
        own: _pawl.Llmcp35 = object.__getattribute__(self, "_own")
        return own


def _array(own: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return np.ndarray(shape, "<f8", own)


def _wrapped(own: _pawl.Llmcp35) -> Checkpoint:
    config, adamw, groups, (step, beta1, beta2, rng), (header, payload, checksum) = own.facts()
    is_literal, pieces, merges = own.tokenizer()
    found = own.parameters()
    arrays: list[dict[str, NDArray[np.float64]]] = [
        {row[0]: _array(row[which], row[1]) for row in found if row[which] is not None} for which in (2, 3, 4)
    ]
    checkpoint = object.__new__(Checkpoint)
    fields = {
        "_own": own, "config": Config(*config), "adamw": AdamW(*adamw, groups), "step": step, "beta1_power": beta1,
        "beta2_power": beta2, "rng_state": rng, "tokenizer": Tokenizer(tuple(pieces), None if is_literal else tuple(merges)),
        "parameters": MappingProxyType(arrays[0]), "first_moments": MappingProxyType(arrays[1]),
        "second_moments": MappingProxyType(arrays[2]), "header_bytes": header, "payload_bytes": payload,
        "checksum": f"fnv1a64:{checksum:016x}",
    }  # fmt: skip
    for name, value in fields.items():
        object.__setattr__(checkpoint, name, value)
    return checkpoint


def _word(number: int, what: str = "rng_state", most: int = 2**64 - 1) -> int:
    number = operator.index(number)
    if not 0 <= number <= most:
        raise ArgumentError(f"{what} is {number}, expected 0 ... {most}", code="argument")
    return number


def _rows(given: Mapping[str, ArrayLike], expected: dict[str, tuple[int, ...]], what: str) -> list[NDArray[np.float64]]:
    for name in given:
        if name not in expected:
            raise ArgumentError(f"the model has no {what} '{name}'", code="argument")
    rows = []
    for name, shape in expected.items():
        if name not in given:
            raise ArgumentError(f"the {what} '{name}' is missing", code="argument")
        array = np.asarray(given[name])
        if array.shape != shape or array.dtype.kind not in "fiu":
            raise ArgumentError(f"the {what} '{name}' is {array.dtype} {array.shape}, expected float64 {shape}", code="argument")
        rows.append(np.ascontiguousarray(array, "<f8"))
    return rows


def load(path: StrPath) -> Checkpoint:
    """Read a file whole and check all of it: only the bytes that ``save`` writes are taken.

    FormatError with the code "category" or "category/cause" of the format's page ("layout/byte_length"); MemoryError where a file asks for
    more than there is.

    >>> import pathlib, pawl
    >>> _ = pathlib.Path("bad.llmcp35").write_bytes(b"LLMCP34")
    >>> try:
    ...     load("bad.llmcp35")
    ... except pawl.FormatError as error:
    ...     print(error.code)
    truncated
    """
    return _wrapped(_pawl.load_llmcp35(path))


def save(path: StrPath, ckpt: Checkpoint) -> None:
    """Write the checkpoint's file durably onto ``path``, whatever is there. The same checkpoint always gives the same bytes.

    >>> config = Config(vocabulary=1, width=2, heads=1, feed_forward=2, layers=0, positions=4)
    >>> checkpoint = new(config, AdamW(), {name: np.zeros(shape) for name, shape in shapes(config).items()}, Tokenizer((b"x",)))
    >>> save("one.llmcp35", checkpoint)
    >>> save("two.llmcp35", load("one.llmcp35"))
    >>> import filecmp
    >>> filecmp.cmp("one.llmcp35", "two.llmcp35", shallow=False)
    True
    """
    if not isinstance(ckpt, Checkpoint):
        raise TypeError(f"expected a Checkpoint, not {type(ckpt).__name__}")
    ckpt._handle().save(path)


def new(config: Config, adamw: AdamW, parameters: Mapping[str, ArrayLike], tokenizer: Tokenizer, *, rng_state: int = 0) -> Checkpoint:
    """A checkpoint of step 0. The parameters are copied; their names and shapes are those of ``shapes(config)``.

    ArgumentError or FormatError for what no file can say, with the code that a file which said it would have.

    >>> import pawl
    >>> config = Config(vocabulary=1, width=3, heads=1, feed_forward=2, layers=0, positions=4)
    >>> try:
    ...     new(config, AdamW(), {name: np.zeros(shape) for name, shape in shapes(config).items()}, Tokenizer((b"x",)))
    ... except pawl.Error as error:
    ...     print(error.code)
    model/odd_head_width
    """
    numbers = [_word(number, f"config.{name}") for name, number in zip(Config._fields[:6], config[:6], strict=True)]
    if numbers[4] > len(parameters):
        raise ArgumentError(f"config.layers is {numbers[4]}, and there are {len(parameters)} parameters", code="argument")
    is_literal = tokenizer.merges is None
    if tokenizer.merges is None:
        tokens: list[Any] = list(tokenizer.pieces)
    else:
        tokens = [tuple(_word(half, "an id of a merge", 2**32 - 1) for half in pair) for pair in tokenizer.merges]
    decay, no_decay = adamw.groups or ((), ())
    return _wrapped(
        _pawl.new_llmcp35(
            (*numbers, float(config.rope_base), float(config.rms_epsilon)), tuple(float(number) for number in adamw[:5]),
            adamw.groups is not None, list(decay), list(no_decay), _rows(parameters, shapes(config), "parameter"), is_literal, tokens,
            _word(rng_state),
        )
    )  # fmt: skip
