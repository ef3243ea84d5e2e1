"""Library sketches: those of Apache DataSketches, whose bytes other systems read; the extra ``sketches`` has them.

Unlike all others (``sketches.py`` has two of our own) their answers depend on the order in which tuples come and states
are merged, within their error: the same stream in another order gives other digits.  A state is a sketch, an
object of its own, so they suit few groups.

Source: Karnin, Lang, Liberty, KLL, FOCS 2016; Dunning, Ertl, t-digest, 2019; Anderson et al., frequent items, IMC 2017.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError, not_installed
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates.base import Arrays, OfColumn, Part
from oop_engine.operators.aggregates.ragged import Ragged
from oop_engine.operators.aggregates.sort_keys import plain

__all__ = ["FrequentItems", "Kll", "TDigest", "empty_sketch", "sketch_of"]

_CLASSES = {"kll": "kll_doubles_sketch", "tdigest": "tdigest_double", "frequent": "frequent_strings_sketch"}


def empty_sketch(kind: str, size: int) -> Any:
    """Return a sketch of no values."""
    import datasketches

    return getattr(datasketches, _CLASSES[kind])(size)


def sketch_of(kind: str, data: bytes) -> Any:
    """Return the sketch that was written as ``data``; raises ``ValueError`` if it is none."""
    import datasketches

    try:
        return getattr(datasketches, _CLASSES[kind]).deserialize(data)
    except (IndexError, RuntimeError, MemoryError) as error:
        msg = f"no sketch of the kind {kind}: {error}"
        raise ValueError(msg) from error


@dataclass(frozen=True)
class _OfLibrary(OfColumn):
    """An aggregate of a sketch of the library."""

    kind: ClassVar[str]
    depends_on_order = True

    def result_type(self, schema: Schema, operator: str) -> pa.DataType:
        if find_spec("datasketches") is None:
            place = f"{operator}: {type(self).__name__}"
            raise not_installed(place, "datasketches", "sketches")
        return super().result_type(schema, operator)

    @property
    def _size(self) -> int:
        """The parameter of the sketch."""
        raise NotImplementedError

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        return (Part(self.kind, self.column, types=(pa.binary(),), parameter=self._size),)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        column = cast(Ragged, states[0][0]).compact()
        values = (self._of(sketch_of(self.kind, data)) for data in column.flat[0].to_pylist())
        return pa.array([next(values) if many else None for many in column.lengths.tolist()], kind)

    def _of(self, sketch: Any) -> Any:
        raise NotImplementedError


@checked_arguments
@dataclass(frozen=True)
class Kll(_OfLibrary):
    """The value below which a share ``q`` of the values lies, float64, by a KLL sketch; null for no values.

    It is one of the values, at most 1.33 % of the ranks off with ``k=200`` (in 99 of 100 cases), half of that with
    twice the ``k``, which is from 8 to 65,535; exact for at most ``k`` values.  5 kB a state of a million values.  It
    draws at random, so two runs may differ.  NaN is skipped.  Raises ``SetupError`` where the library is not installed.
    """

    q: float
    k: int = 200

    kind = "kll"

    def __post_init__(self) -> None:
        _check_share("Kll", "q", self.q, least=0)
        _check_size("Kll", "k", self.k, 8, 65_535)

    @property
    def _size(self) -> int:
        return self.k

    def _of(self, sketch: Any) -> Any:
        return None if sketch.is_empty() else sketch.get_quantile(float(self.q), True)


@checked_arguments
@dataclass(frozen=True)
class TDigest(_OfLibrary):
    """A quantile ``q`` by a t-digest, float64, between values; null for no values.

    Nearest to the truth where ``q`` is near 0 or 1; in the middle within about 2 % of the ranks.  ``k``: how many
    centroids, about, from 10 to 10,000; 2.5 kB a state with 100.  NaN is skipped.

    Raises ``SetupError`` where the library is not installed.
    """

    q: float
    k: int = 100

    kind = "tdigest"

    def __post_init__(self) -> None:
        _check_share("TDigest", "q", self.q, least=0)
        _check_size("TDigest", "k", self.k, 10, 10_000)

    @property
    def _size(self) -> int:
        return self.k

    def _of(self, sketch: Any) -> Any:
        return None if sketch.is_empty() else sketch.get_quantile(float(self.q))


@checked_arguments
@dataclass(frozen=True)
class FrequentItems(_OfLibrary):
    """The texts that at least ``share`` of all are, and none left out: a list as that of ``TopK``; null for no values.

    A ``count`` is never below the true one, and at most ``3.5 / size`` of all texts above it; so a text that is that
    much too rare may be there.  ``size``: a power of two from 8 to 1,048,576; exact for at most 3/4 as many different
    texts.  Raises ``SetupError`` where the library is not installed.
    """

    share: float
    size: int = 1024

    kind = "frequent"
    wanted = "texts, or a dictionary of texts"

    def __post_init__(self) -> None:
        _check_share("FrequentItems", "share", self.share, least=1e-9)
        _check_size("FrequentItems", "size", self.size, 8, 1 << 20)
        if self.size & (self.size - 1):
            msg = f"FrequentItems: size must be a power of two; got {self.size}"
            raise GraphError(msg)

    @property
    def _size(self) -> int:
        return self.size.bit_length() - 1

    def _takes(self, kind: pa.DataType) -> bool:
        return bool(pa.types.is_string(plain(kind)) or pa.types.is_large_string(plain(kind)))

    def _type(self, kind: pa.DataType) -> pa.DataType:
        return pa.list_(pa.struct([("value", plain(kind)), ("count", pa.int64())]))

    def _of(self, sketch: Any) -> Any:
        from datasketches import frequent_items_error_type as errors

        needed = int(np.ceil(self.share * sketch.total_weight))
        frequent = [
            (text, upper) for text, _, _, upper in sketch.get_frequent_items(errors.NO_FALSE_NEGATIVES, 0)
        ]
        frequent = sorted(
            (pair for pair in frequent if pair[1] >= needed), key=lambda pair: (-pair[1], pair[0])
        )
        return [{"value": text, "count": count} for text, count in frequent]


def _check_share(owner: str, name: str, value: object, least: float) -> None:
    if not isinstance(value, int | float) or not least <= value <= 1:
        msg = f"{owner}: {name} must be {'from 0' if least == 0 else 'above 0 and'} to 1; got {value!r}"
        raise GraphError(msg)


def _check_size(owner: str, name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or not least <= value <= most:
        msg = f"{owner}: {name} must be from {least} to {most:,}; got {value!r}"
        raise GraphError(msg)
