"""Windows: which extents a stream is cut into, and which of them a tuple belongs to.

A window definition is a value with lengths as users write them.  ``bound`` turns it into
``Extents``, plain integers in the unit of the progressing attribute, with the three
functions of the thesis: which windows a tuple is in (``wids``), what a window covers
(``extent``), and which windows a promise closes (``closed_by``).

Window ``w`` of a sliding window covers ``[origin + (w+1)*slide - range, origin + (w+1)*slide)``.
``range`` need not be a multiple of ``slide``; where ``slide`` is larger there are gaps, and
a tuple in a gap is in no window.  ``wids`` is derived from that extent: the ceilings of
equation 5.3 are one too high wherever ``time - origin`` is no multiple of ``slide``.

Source: thesis 5.1 (semantics), equations 5.1 to 5.12; ``origin`` stands for its min(T),
which nobody knows while a disordered stream runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length, to_units

__all__ = [
    "Extents",
    "Landmark",
    "Over",
    "PartitionedTupleBased",
    "Sliding",
    "Tumbling",
    "TupleBased",
    "Windows",
    "divisible_by",
]

Integers = NDArray[np.int64]
_LONGEST = 2**60  # leaves room for sums of three lengths in int64


class Over(Enum):
    """What the positions of tuples are: an attribute, or numbers given as they arrive."""

    ATTRIBUTE = "attribute"
    ROWS = "rows of the stream"
    GROUP_ROWS = "rows of the group"


@runtime_checkable
class Windows(Protocol):
    """A window definition, as it is written in a query."""

    def bound(self, schema: Schema, what: str = "windows") -> Extents:
        """Return the definition in whole units of ``schema``'s progressing attribute.

        Raises ``GraphError`` in the name of ``what`` if a length is not positive or does
        not fit the unit.
        """
        ...


@dataclass(frozen=True)
class Extents:
    """A window definition in whole units; ``range`` None: everything since ``origin``.

    All functions take and return int64 arrays and cost O(their length).
    """

    range: int | None
    slide: int
    origin: int
    over: Over = Over.ATTRIBUTE

    @property
    def landmark(self) -> bool:
        """Tell whether a window also takes all that came before."""
        return self.range is None

    @property
    def overlap(self) -> int:
        """How many windows a tuple is in at most; of landmark windows, in how many it is kept."""
        return 1 if self.range is None else -(-self.range // self.slide)

    def wids(self, times: Integers) -> tuple[Integers, Integers]:
        """Return the first and the last window each tuple is in; last < first: in none.

        A landmark window takes all that came since the origin, so there the last one is
        ``FOREVER``.  Raises ``ContractError`` if an extent would not fit 64 bits.
        """
        if times.size:
            self.check(int(times.min()), int(times.max()))
        offset = times - self.origin
        first = offset // self.slide
        if self.range is None:
            return first, np.where(offset >= 0, FOREVER, first - 1)
        return first, (offset + self.range) // self.slide - 1

    def extent(self, wids: Integers) -> tuple[Integers, Integers]:
        """Return the start (inclusive) and the end (exclusive) of windows."""
        end = wids * self.slide
        end += self.origin + self.slide
        return (np.full_like(end, self.origin) if self.range is None else end - self.range), end

    def closed_by(self, bounds: Integers | int) -> Integers:
        """Return the first window still open when no later position is below ``bounds``.

        All smaller ones are closed: those with ``end <= bound``.  ``NEVER`` and
        ``FOREVER`` stay what they are.
        """
        given = np.asarray(bounds, np.int64)
        low, high = self._safe()
        cuts = (np.clip(given, low, high) - self.origin) // self.slide
        return np.where((given == NEVER) | (given == FOREVER), given, cuts)

    def boundary(self, bounds: Integers | int) -> Integers:
        """Return bounds rounded down to the end of the last window they close."""
        cuts = self.closed_by(bounds)
        sentinel = (cuts == NEVER) | (cuts == FOREVER)
        return np.where(sentinel, cuts, self.origin + np.where(sentinel, 0, cuts) * self.slide)

    def starts(self, wids: Integers | int) -> Integers:
        """Return the starts of windows, as promises: ``NEVER`` and ``FOREVER`` stay."""
        return self._promised(np.asarray(wids, np.int64), 0)

    def ends(self, wids: Integers | int) -> Integers:
        """Return the ends of windows, as promises: ``NEVER`` and ``FOREVER`` stay."""
        return self._promised(np.asarray(wids, np.int64), 1)

    def _promised(self, wids: Integers, side: int) -> Integers:
        sentinel = (wids == NEVER) | (wids == FOREVER)
        return np.where(sentinel, wids, self.extent(np.where(sentinel, 0, wids))[side])

    def _safe(self) -> tuple[int, int]:
        margin = (self.range or 0) + 2 * self.slide + abs(self.origin)
        return NEVER + 1 + margin, FOREVER - 1 - margin

    def check(self, least: int, most: int) -> None:
        """Raise ``ContractError`` if the extents of positions from ``least`` to ``most`` would not fit 64 bits."""
        low, high = self._safe()
        if least < low or most > high:
            value = least if least < low else most
            msg = f"windows: positions must lie in [{low}, {high}] for extents to fit 64 bits; got {value}"
            raise ContractError(msg)


@dataclass(frozen=True)
class Sliding:
    """Every ``slide``, the last ``range`` of the progressing attribute (RANGE, SLIDE).

    >>> from oop_engine import Schema
    >>> import numpy as np, pyarrow as pa
    >>> minutes = Sliding("10 min", "1 min").bound(Schema({"ts": pa.int64()}, "ts", "s"))
    >>> [ids.tolist() for ids in minutes.wids(np.array([5]))], int(minutes.closed_by(119))
    ([[0], [9]], 1)
    """

    range: Length
    slide: Length
    origin: Length = 0

    def bound(self, schema: Schema, what: str = "Sliding") -> Extents:
        return Extents(
            _positive(self.range, "range", schema, what),
            _positive(self.slide, "slide", schema, what),
            _length(self.origin, "origin", schema, what),
        )


@dataclass(frozen=True)
class Tumbling:
    """Windows side by side, each ``range`` long: sliding by its own range."""

    range: Length
    origin: Length = 0

    def bound(self, schema: Schema, what: str = "Tumbling") -> Extents:
        range = _positive(self.range, "range", schema, what)
        return Extents(range, range, _length(self.origin, "origin", schema, what))


@dataclass(frozen=True)
class Landmark:
    """Every ``slide``, all since ``origin``: window ``w`` covers ``[origin, origin + (w+1)*slide)``.

    Tuples before ``origin`` are in no window.  A stream has windows up to that of its
    largest position; a group is in all of them from its first tuple's on, for what came
    before counts as well.
    """

    slide: Length
    origin: Length = 0

    def bound(self, schema: Schema, what: str = "Landmark") -> Extents:
        slide = _positive(self.slide, "slide", schema, what)
        return Extents(None, slide, _length(self.origin, "origin", schema, what))


@dataclass(frozen=True)
class TupleBased:
    """Every ``slide`` tuples, the last ``range`` tuples, in order of arrival (ROWS).

    The first tuple of the stream has number 0; window ``w`` takes the numbers
    ``[(w+1)*slide - range, (w+1)*slide)``.
    """

    range: Length
    slide: Length

    def bound(self, schema: Schema, what: str = "TupleBased") -> Extents:
        return _rows(self.range, self.slide, Over.ROWS, what)


@dataclass(frozen=True)
class PartitionedTupleBased:
    """As ``TupleBased``, but tuples are numbered within their group (thesis 5.1.3)."""

    range: Length
    slide: Length

    def bound(self, schema: Schema, what: str = "PartitionedTupleBased") -> Extents:
        return _rows(self.range, self.slide, Over.GROUP_ROWS, what)


def divisible_by(windows: Windows, by: Sequence[str], schema: Schema) -> list[tuple[str, ...]]:
    """Return the columns by which an aggregate of these windows may be divided, each by itself.

    All of its groups: but landmark windows run to the last tuple of the whole stream, and
    tuple-based ones count all of its tuples.
    """
    extents = windows.bound(schema)
    whole = extents.landmark or extents.over is Over.ROWS
    return [] if whole else [(name,) for name in by]


def _rows(range: Length, slide: Length, over: Over, what: str) -> Extents:
    lengths = {"range": range, "slide": slide}
    found = {name: to_units(value, "rows", f"{what}: {name}") for name, value in lengths.items()}
    for name, value in found.items():
        if not 0 < value <= _LONGEST:
            msg = f"{what}: {name} must be > 0 and in rows; got {name}={value}"
            raise GraphError(msg)
    return Extents(found["range"], found["slide"], 0, over)


def _positive(length: Length, name: str, schema: Schema, what: str) -> int:
    value = _length(length, name, schema, what)
    if value <= 0:
        msg = (
            f"{what}: {name} must be > 0 and in the unit of {schema.progressing!r} "
            f"({schema.unit}); got {name}={value}"
        )
        raise GraphError(msg)
    return value


def _length(length: Length, name: str, schema: Schema, what: str) -> int:
    value = schema.length(length, f"{what}: {name}")
    if abs(value) > _LONGEST:
        msg = f"{what}: {name} must be at most 2**60 {schema.unit}; got {name}={value}"
        raise GraphError(msg)
    return value
