"""Slice results: the output schema of windows of many definitions, and its pages.

    by columns | window | window_start | window_end | a column for each aggregate

``window`` is the definition's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import GraphError
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation
from oop_engine.operators.slicing.slice_windows import Found
from oop_engine.operators.slicing.window_limits import check_overlap
from oop_engine.operators.slicing.window_results import PAGE_ROWS, Results, Stamp
from oop_engine.operators.windows import Extents

__all__ = ["WINDOW", "SliceResults"]

Integers = NDArray[np.int64]

WINDOW = "window"
_FEW = 64  # rows
_INSTANTS = Extents(1, 1, 0)


class SliceResults(Results):
    """What results look like; to the groups, windows are instants, so that a cut is a bound."""

    def __init__(
        self, definitions: Mapping[str, Extents], aggregates: dict[str, Aggregation], schema: Schema,
        by: tuple[str, ...], stamp: Stamp, what: str,
    ) -> None:  # fmt: skip
        super().__init__(_INSTANTS, aggregates, schema, by, stamp, what)
        self.definitions = list(definitions.values())
        for name, extents in definitions.items():
            check_overlap(extents, f"{what}: {name!r}")
        self._texts = list(definitions)
        self._names = pa.array(self._texts, pa.string())
        shape = [(e.range or 0, e.slide, e.origin) for e in self.definitions]
        self._range, self._slide, self._origin = np.array(shape).T
        self._from = (
            self._origin + self._slide - (self._range if stamp == "start" else 0)
        )  # the stamp of window 0

    def _schema(self, schema: Schema, by: tuple[str, ...]) -> Schema:
        plain = super()._schema(schema, by)
        if WINDOW in plain.names:
            msg = f"{self.what}: the column {WINDOW!r} is the definition's name; got another one: rename it"
            raise GraphError(msg)
        return Schema(
            plain.fields.insert(len(by), pa.field(WINDOW, pa.string())), plain.progressing, plain.unit
        )

    def promise(self, wids: Integers | int) -> Integers:
        """Return the least stamp of a window of any definition that ends behind bounds on the tuples."""
        if isinstance(wids, int) and not NEVER < wids < FOREVER:
            return np.asarray(wids)
        if isinstance(wids, int) and abs(wids) < 2**61:
            stamps = (wids - self._origin) // self._slide * self._slide + self._from
            return np.asarray(stamps.min())
        promises = []
        for extents in self.definitions:
            cuts = extents.closed_by(wids)
            promises.append(extents.ends(cuts) if self._stamp == "end" else extents.starts(cuts))
        least: Integers = np.minimum.reduce(promises)
        return least

    def _named(self, number: Integers) -> pa.Array:
        if number.size > _FEW:
            return self._names.take(pa.array(number))
        return pa.array(
            [self._texts[i] for i in number.tolist()], pa.string()
        )  # a call into Arrow takes longer

    def found_pages(self, keys: list[pa.Array], found: Found) -> Iterator[Page]:
        """Yield the results of windows, with their keys (n,)."""
        time = self.schema.fields.field("window_end").type
        for lo in range(0, found.ends.size, PAGE_ROWS):
            part = slice(lo, lo + PAGE_ROWS)
            number, end = found.number[part], found.ends[part]
            sides = [pa.array(side) for side in (end - self._range[number], end)]
            columns: list[Any] = [*(key[part] for key in keys), self._named(number)]
            columns += [side if side.type == time else side.view(time) for side in sides]
            yield self._made(columns, [tuple(column[part] for column in state) for state in found.states])
