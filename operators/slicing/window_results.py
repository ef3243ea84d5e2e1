"""Window results: the output schema of window aggregation, and its pages.

    by columns | window_start | window_end | a column for each aggregate

``window_end`` (or ``window_start``, by ``stamp``) is the progressing attribute.  Both have
the type of the attribute the windows are on (integers become int64) and its unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation, Arrays, Part
from oop_engine.operators.slicing.window_limits import MOST_WINDOWS, check_overlap
from oop_engine.operators.windows import Extents, Over

__all__ = ["PAGE_ROWS", "Results", "Stamp", "checked"]

Integers = NDArray[np.int64]
Stamp = Literal["start", "end"]

PAGE_ROWS = 65_536
"""Results leave in pages of at most this many rows."""


def checked(aggregates: Mapping[str, object], by: Sequence[str], stamp: str, what: str) -> tuple[str, ...]:
    """Return ``by`` as a tuple; raise ``GraphError`` if the parameters are wrong in themselves."""
    if isinstance(by, str):
        msg = f"{what}: by must be a tuple of column names; got {by!r}: write by=({by!r},)"
        raise GraphError(msg)
    if not isinstance(aggregates, Mapping) or not aggregates:
        msg = f"{what}: needs at least one aggregate, such as {{'n': Count()}}"
        raise GraphError(msg)
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, Aggregation):
            msg = f"{what}: {name!r} must be an aggregate such as Sum('x'); got {aggregate!r}"
            raise GraphError(msg)
    if stamp not in ("start", "end"):
        msg = f"{what}: stamp must be 'start' or 'end'; got {stamp!r}"
        raise GraphError(msg)
    return tuple(by)


class Results:
    """What results look like: schema, parts, and how pages of them are made."""

    def __init__(
        self, extents: Extents, aggregates: dict[str, Aggregation], schema: Schema,
        by: tuple[str, ...], stamp: Stamp, what: str,
    ) -> None:  # fmt: skip
        if stamp == "start" and extents.landmark:
            msg = f"{what}: landmark windows all start at the origin, that is no progress; use stamp='end'"
            raise GraphError(msg)
        check_overlap(extents, what)
        self.extents = extents
        self.what = what
        self._aggregates = aggregates
        self._stamp = stamp
        self.schema = self._schema(schema, by)
        self.parts, self._of = _shared([a.parts(schema) for a in aggregates.values()])

    def _schema(self, schema: Schema, by: tuple[str, ...]) -> Schema:
        rows = self.extents.over is not Over.ATTRIBUTE
        time = pa.int64() if rows else schema.type_of(schema.progressing)
        time = time if pa.types.is_timestamp(time) else pa.int64()
        fields = [(name, schema.type_of(name)) for name in by]
        fields += [("window_start", time), ("window_end", time)]
        fields += [(name, a.result_type(schema, self.what)) for name, a in self._aggregates.items()]
        names = [name for name, _ in fields]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            msg = f"{self.what}: output columns must differ; got {', '.join(twice)} twice: rename one"
            raise GraphError(msg)
        return Schema(pa.schema(fields), f"window_{self._stamp}", "rows" if rows else schema.unit)

    def promise(self, wids: Integers | int) -> Integers:
        """Return the stamp of windows, as bounds: none of a smaller window is to come."""
        return self.extents.ends(wids) if self._stamp == "end" else self.extents.starts(wids)

    def promise_of(self, window: int) -> int:
        """Return the stamp of one window that is not landmark, as a bound."""
        end = self.extents.origin + (window + 1) * self.extents.slide
        return end if self._stamp == "end" else end - (self.extents.range or 0)

    def overflow(
        self, column: str | None, wid: int, keys: Mapping[str, pa.Array], extents: Extents | None = None
    ) -> ContractError:
        """Return the error that a sum passed 64 bits in window ``wid`` of a group (``extents``: of those)."""
        (start,), (end,) = (extents or self.extents).extent(np.array([wid]))
        group = {name: key[0].as_py() for name, key in keys.items()}
        msg = (
            f"{self.what}: Sum({column!r}) must fit 64 bits; it does not in window "
            f"[{start}, {end}) of group {group}: cast the column to float64 before"
        )
        return ContractError(msg)

    def gap(self, low: int, stop: int, keys: Mapping[str, pa.Array]) -> ContractError:
        """Return the error that windows ``low`` to ``stop`` (exclusive) of a group are too many without a tuple."""
        first, last = self.extents.extent(np.array([low, stop - 1]))[1].tolist()
        of = f" of group { {name: key[0].as_py() for name, key in keys.items()} }" if keys else ""
        msg = (
            f"{self.what}: one punctuation may complete at most {MOST_WINDOWS:,} windows without a tuple; got "
            f"{stop - low:,}{of}, which end from {first} to {last}, every {self.extents.slide} {self.schema.unit}: if "
            "one clock is wrong, put a Guard in front to turn its tuples away; else take a longer slide"
        )
        return ContractError(msg)

    def pages(self, keys: list[pa.Array], wids: Integers, states: Sequence[Arrays]) -> Iterator[Page]:
        """Yield the results of windows (n,), with their keys (n,) and states (n,)."""
        for lo in range(0, wids.size, PAGE_ROWS):
            part = slice(lo, lo + PAGE_ROWS)
            block = [tuple(a[part] for a in arrays) for arrays in states]
            yield self._page([key[part] for key in keys], wids[part], block)

    def in_a_row(self, window: int, windows: int, states: Sequence[Arrays]) -> Iterator[Page]:
        """Yield the results of ``windows`` windows from ``window`` on, without keys, with their states."""
        for lo in range(0, windows, PAGE_ROWS):
            part = slice(lo, min(lo + PAGE_ROWS, windows))
            block = [tuple(a[part] for a in arrays) for arrays in states]
            yield self._made(self._sides(window + lo, part.stop - lo), block)

    def _sides(self, window: int, windows: int) -> list[pa.Array]:
        """Return starts and ends of windows in a row, as integers; where starts are ends as well, they are shared."""
        length, slide = self.extents.range or 0, self.extents.slide
        first = self.extents.origin + (window + 1) * slide - length
        apart, rest = divmod(length, slide)
        if rest or apart > windows:
            return [
                pa.array(np.arange(start, start + slide * windows, slide))
                for start in (first, first + length)
            ]
        both = pa.array(np.arange(first, first + slide * (windows + apart), slide))
        return [both.slice(0, windows), both.slice(apart)]

    def _page(self, keys: list[pa.Array], wids: Integers, states: Sequence[Arrays]) -> Page:
        time = self.schema.fields.field("window_end").type
        sides = [pa.array(side) for side in self.extents.extent(wids)]
        return self._made(keys + [side if side.type == time else side.cast(time) for side in sides], states)

    def _made(self, columns: list[pa.Array], states: Sequence[Arrays]) -> Page:
        """Return a page of keys and extents, ``columns``, with the aggregates behind."""
        fields = self.schema.fields
        for (name, aggregate), parts in zip(self._aggregates.items(), self._of, strict=True):
            columns.append(aggregate.result([states[i] for i in parts], fields.field(name).type))
        return Page(self.schema, pa.RecordBatch.from_arrays(columns, schema=fields))


def _shared(parts: Sequence[tuple[Part, ...]]) -> tuple[list[Part], list[list[int]]]:
    """Return the parts that differ, and which of them each aggregate is made of."""
    place: dict[Part, int] = {}
    of = [[place.setdefault(part, len(place)) for part in some] for some in parts]
    return list(place), of
