"""FileOptions: what a query in SQL cannot say of the files and rows that it reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from oop_engine.query.feeds import files_in
from oop_engine.traces.csv_format import CsvFormat
from oop_engine.traces.format_registry import format_of, is_format

__all__ = ["FileOptions"]


class FileOptions(NamedTuple):
    """How tables that are files or rows are read.

    ``unit``: that of event times that are integers.  ``time``: the event time of tables that have a column of this
    name, and several that may be it.  ``csv``: how files of CSV are written, and of suffixes that no format has.
    """

    unit: str = ""
    time: str = ""
    csv: CsvFormat | None = None

    def csv_of(self, table: Any) -> CsvFormat | None:
        """Return how a table is written; None: sniffed, or in no file of CSV."""
        if self.csv is None or not isinstance(table, str | Path):
            return None
        first = files_in(table)[0]
        return self.csv if not is_format(first) or format_of(first) == "csv" else None
