"""Far times: event times more than 1,000 years apart, or from now: a unit that is another one, or a broken clock."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from time import time

from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.core.units import TIME_UNITS

__all__ = ["FarTimes", "far_times"]

_FAR_S = 1_000 * 31_556_952
"""Seconds in 1,000 years."""


def far_times(schema: Schema, first: int, last: int) -> str | None:
    """Return in words that times from ``first`` to ``last`` are too far apart, or from now; None: they are not.

    >>> import pyarrow as pa
    >>> far_times(Schema({"ts": pa.int64()}, "ts", "s"), 1_772_355_600_000, 1_772_355_601_000)
    "times of 'ts' are more than 1,000 years from now (the last is 1,772,355,601,000 s): declare unit='ms'?"
    """
    if schema.unit not in TIME_UNITS:
        return None
    now, most = int(time()), _FAR_S * TIME_UNITS[schema.unit]
    here = now * TIME_UNITS[schema.unit]
    if last - first > most:
        reach = f"from {schema.moment(first)} to {schema.moment(last)}"
        return f"times of {schema.progressing!r} are more than 1,000 years apart ({reach}): is a clock wrong?"
    if -most <= first - here and last - here <= most:
        return None
    finer = [
        unit
        for unit, per_s in TIME_UNITS.items()
        if all(abs(at // per_s - now) <= _FAR_S for at in (first, last))
    ]
    way_out = f"declare unit={finer[0]!r}?" if finer and schema.clock == "number" else "is the clock right?"
    far = f"more than 1,000 years from now (the last is {schema.moment(last)})"
    return f"times of {schema.progressing!r} are {far}: {way_out}"


class FarTimes:
    """Logs far times of the sources of a graph, once for each; ``schemas``: by source."""

    def __init__(self, graph: str, schemas: Mapping[str, Schema]) -> None:
        self._graph = graph
        self._reach: dict[
            str, tuple[int, int, int, int]
        ] = {}  # seen, and from when to when is not far from now
        self._schemas = {name: schema for name, schema in schemas.items() if schema.unit in TIME_UNITS}

    def see(self, source: str, page: Page) -> None:
        """Look at the times of a page.  O(rows), which the next who asks for them is spared."""
        if (schema := self._schemas.get(source)) is None or not page.rows:
            return
        low, high = page.reach_of(page.times)
        first, last, low_limit, high_limit = self._reach.get(source) or self._begun(source, schema, low, high)
        if first <= low and high <= last:
            return
        first, last = min(low, first), max(high, last)
        self._reach[source] = first, last, low_limit, high_limit
        if low_limit <= first and last <= high_limit and last - first <= (high_limit - low_limit) // 2:
            return  # as mostly
        if (words := far_times(schema, first, last)) is not None:
            del self._schemas[source]
            logging.getLogger("oop_engine").warning("graph %r, source %r: %s", self._graph, source, words)

    def _begun(self, source: str, schema: Schema, low: int, high: int) -> tuple[int, int, int, int]:
        """Return no times, and those that are not far from now, for a source that has its first page."""
        here, most = int(time()) * TIME_UNITS[schema.unit], _FAR_S * TIME_UNITS[schema.unit]
        return high + 1, low - 1, here - most, here + most
