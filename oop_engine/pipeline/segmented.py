"""A source as ingest wrote it: segments, Parquet files in order of arrival, cut at the same moments as other sources.

So a segment of a slow source goes with a segment of a fast one, and no source runs ahead.  A source
without a row in a segment has no file for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.system.knobs import knob
from oop_engine.traces.trace import open_trace

__all__ = ["Segmented", "segment_name"]

_PAGE_ROWS = knob(__name__, "_PAGE_ROWS", 1 << 18)


@dataclass(frozen=True)
class Segmented:
    """A source in segments (see ``oop_engine.spark.io.segments``).

    ``arrival``: the column of arrival times; None: rows arrive in their order.  ``clocks``: for each segment the
    first arrival of all sources, and the last one up to its end; None where there is no arrival column.
    """

    folder: str
    schema: Schema
    arrival: str | None
    clocks: tuple[tuple[int, int] | None, ...]

    def count(self) -> int:
        """Return the number of segments."""
        return len(self.clocks)

    def ended(self) -> bool:
        """Return True: no more segments will come."""
        return True

    def read(self, number: int) -> Iterator[Message]:
        """Yield the pages of a segment."""
        path = Path(self.folder) / segment_name(number)
        if path.exists():
            yield from open_trace(path, self.schema, arrival=self.arrival, page_rows=_PAGE_ROWS)

    def clock(self, number: int) -> tuple[int, int] | None:
        """Return the first arrival of all, and the last one up to the end of the segment."""
        return self.clocks[number]

    def pages(self, start: int, stop: int) -> Iterator[Page]:
        """Yield the pages of segments ``start`` to ``stop``."""
        for number in range(start, stop):
            for message in self.read(number):
                assert isinstance(message, Page)
                yield message


def segment_name(number: int) -> str:
    """Return the name of the file of a segment."""
    return f"{number:06d}.parquet"
