"""``sql``: a text becomes a query over streams that are given by name, or over files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from oop_engine.core.errors import UsageError
from oop_engine.query.data_stream import DataStream
from oop_engine.query.sql.reading.texts import statements_in

if TYPE_CHECKING:
    from oop_engine.query.sql.file_options import FileOptions

__all__ = ["last_of", "results_of", "sql"]


def sql(text: str, /, **streams: Any) -> DataStream:
    """Return the query of a text: its last SELECT.

    ``streams``: its tables by name: streams of ``stream`` or ``scan``, paths, data frames, lists of rows.  A
    table may also be a path in quotes, ``FROM 'access.csv'``; its event time is the column that a window or WATERMARK
    names, or the only column of moments.  Results are final by default; ``EMIT CHANGES`` gives a revision stream.
    ``docs/sql.md`` has all forms.  Raises ``UsageError`` with line, column and a caret for a mistake, and for
    a form that is not known; ``SetupError`` without sqlglot (``pip install 'oop-engine[sql]'``).

    >>> log = [{"ts": 1, "host": "a"}, {"ts": 12, "host": "a"}, {"ts": 8, "host": "a"}]
    >>> from oop_engine import scan
    >>> log = scan(log, "log").event_time("ts", "5 s", unit="s")
    >>> n = sql("SELECT window_end, count(*) AS n FROM TUMBLE(log, ts, INTERVAL '10' SECOND) GROUP BY ALL", log=log)
    >>> n.run().table.to_pylist()
    [{'window_end': 10, 'n': 2}, {'window_end': 20, 'n': 1}]
    """
    return last_of(text, streams)


def last_of(text: str, streams: Mapping[str, Any], files: FileOptions | None = None) -> DataStream:
    """Return the query of the last SELECT; ``files``: how tables of files and rows are read."""
    results = results_of(text, streams, files)
    if not results:
        msg = "sql: the text has no SELECT: end it with one"
        raise UsageError(msg)
    return list(results.values())[-1]


def results_of(
    text: str, streams: Mapping[str, Any], files: FileOptions | None = None
) -> dict[str, DataStream]:
    """Return the results of a text of several statements: of INSERT by its target, of a SELECT as ``"result"``."""
    statements = statements_in(text)
    from oop_engine.query.sql.file_options import FileOptions
    from oop_engine.query.sql.planner import Planner

    planner = Planner(text, streams, files or FileOptions())
    for statement in statements:
        planner.take(statement)
    return planner.results
