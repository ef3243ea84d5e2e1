"""Sliced: a source as ingest wrote it: Parquet files in order of arrival, cut at the same moments as the other sources.

So a slice of a slow source goes with a slice of a fast one, and no source runs ahead.  A source
that had nothing to say in a slice has no file for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.traces.trace import open_trace

__all__ = ["Sliced", "slice_name"]

_PAGE_ROWS = 1 << 18


@dataclass(frozen=True)
class Sliced:
    """A source in slices (see ``runners.spark.slices.Slices``).

    ``arrival``: the column of arrival times; None: rows arrive in their order.  ``clocks``: for each slice the
    first arrival of all sources, and the last one up to its end; None where there is no arrival column.
    """

    folder: str
    schema: Schema
    arrival: str | None
    clocks: tuple[tuple[int, int] | None, ...]

    def count(self) -> int:
        """Return the number of slices."""
        return len(self.clocks)

    def ended(self) -> bool:
        """Return True: all that went in has been sliced."""
        return True

    def read(self, number: int) -> Iterator[Message]:
        """Yield the pages of a slice."""
        path = Path(self.folder) / slice_name(number)
        if path.exists():
            yield from open_trace(path, self.schema, arrival=self.arrival, page_rows=_PAGE_ROWS)

    def clock(self, number: int) -> tuple[int, int] | None:
        """Return the first arrival of all, and the last one up to the end of the slice."""
        return self.clocks[number]

    def pages(self, start: int, stop: int) -> Iterator[Page]:
        """Yield the pages of slices ``start`` to ``stop``."""
        for number in range(start, stop):
            for message in self.read(number):
                assert isinstance(message, Page)
                yield message


def slice_name(number: int) -> str:
    """Return the name of the file of a slice."""
    return f"{number:06d}.parquet"
