"""Tables: all that FROM may name: streams that are given, tables that are declared, views, and files."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlglot import exp

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import EngineError, TraceError
from oop_engine.query.data_stream import DataStream
from oop_engine.query.sources import Columns, scan
from oop_engine.query.sql.file_options import FileOptions
from oop_engine.query.sql.reading.hints import is_path, missing_file
from oop_engine.query.sql.reading.mistakes import mistake
from oop_engine.query.sql.reading.texts import Statement, statements_in
from oop_engine.query.sql.relation import NamedStream, columns_of
from oop_engine.query.sql.scalar.literals import interval_us
from oop_engine.query.sql.scalar.types import declared

__all__ = ["Tables"]


class Tables:
    """Tables by name; one that is read for the first time becomes a stream with an event time."""

    def __init__(self, text: str, given: Mapping[str, Any], files: FileOptions) -> None:
        self._text, self._files = text, files
        self._given: dict[str, Any] = dict(given)

    @property
    def names(self) -> list[str]:
        """The names of all tables."""
        return list(self._given)

    def declare(self, name: str, relation: NamedStream) -> None:
        """Declare a view."""
        self._given[name] = relation

    def create(self, tree: Any, statement: Statement) -> None:
        """Declare the table of CREATE TABLE: a source of its columns, with its watermark."""
        name, kinds = tree.this.this.name, {}
        for column in tree.this.expressions:
            if isinstance(column, exp.ColumnDef):
                if (kind := declared(column.args["kind"])) is None:
                    raise mistake(self._text, column, f"no type {column.args['kind'].sql('duckdb')!r} here")
                kinds[column.name] = kind
        given = self._given.get(name)
        feed = None if isinstance(given, DataStream | Columns | NamedStream) else given
        columns = Columns.of(name, kinds, feed)
        self._given[name] = columns
        if statement.watermarks:
            mark = statement.watermarks[0]
            if not pa.types.is_timestamp(kinds.get(mark.column, pa.timestamp("us"))):
                words = (
                    f"the event time {mark.column!r} must be a TIMESTAMP; give a stream for one of integers"
                )
                raise mistake(self._text, tree.this.this, words)
            disorder = (
                "upstream" if statement.upstream else self._disorder(mark.text, mark.column, tree.this.this)
            )
            try:
                self._given[name] = columns.event_time(
                    mark.column, disorder, per=mark.per, idle=statement.idle
                )
            except EngineError as error:
                raise mistake(self._text, tree.this.this, str(error)) from error

    def relation(self, node: Any, time: str = "") -> NamedStream:
        """Return the table that ``node`` names; ``time`` is its event time, where that is open."""
        name = node.name
        by_small = {key.lower(): key for key in self._given}
        if name.lower() in by_small:
            key = by_small[name.lower()]
            given = self._given[key]
        elif Path(name).suffix or "/" in name:
            key, given = name, self._scanned(node)
        else:
            if is_path(path := node.sql("duckdb")):
                raise mistake(self._text, node, f"a path stands in single quotes, '{path}'")
            there = ", ".join(self._given) or "none"
            words = f"no table {name!r}; there are {there}{did_you_mean(name, self._given)}"
            raise mistake(self._text, node, f"{words}: give {name}=, or a path in quotes")
        if isinstance(given, NamedStream):
            return given
        if isinstance(given, DataStream):
            return NamedStream(
                given, columns_of(given.schema, hidden=given.finish.hidden), finish=given.finish
            )
        columns = given if isinstance(given, Columns) else scan(given, key, csv=self._files.csv_of(given))
        try:
            stream = self._with_time(node, columns, time or self._time_of(node, columns))
        except TraceError as error:
            raise mistake(self._text, node, str(error)) from error
        self._given[key] = NamedStream(stream, columns_of(stream.schema))
        return self.relation(node)

    def _with_time(self, node: Any, columns: Columns, time: str) -> DataStream:
        if not columns.is_integer(time):
            return columns.event_time(time)
        if not self._files.unit and not columns.knows_unit():
            words = f"the event time {time!r} is an integer: give its unit, --unit s, or event_time({time!r}, unit='s')"
            raise mistake(self._text, node, words)
        return columns.event_time(time, unit=self._files.unit)

    def _scanned(self, node: Any) -> Columns:
        if (missing := missing_file(node.name)) is not None:
            raise mistake(self._text, node, missing)
        try:
            return scan(node.name, csv=self._files.csv_of(node.name))
        except (EngineError, OSError) as error:
            raise mistake(self._text, node, str(error)) from error

    def _time_of(self, node: Any, columns: Columns) -> str:
        """Return the column that is asked for, or the only one that may be the event time."""
        if self._files.time in columns.fields.names:
            return self._files.time
        times = columns.times()
        if len(times) == 1:
            return times[0]
        which = f"one of {', '.join(times)}" if times else "none looks like a time"
        way_out = "name it, TUMBLE(s, ts, ...), or --time ts, or event_time('ts')"
        words = f"which column is the event time? {which}: {way_out}"
        raise mistake(self._text, node, words)

    def _disorder(self, text: str, column: str, place: Any) -> Any:
        """Return how late records may be by ``ts - INTERVAL '90' SECOND``."""
        [statement] = statements_in(text)
        node = statement.tree
        if isinstance(node, exp.Column) and node.name == column:
            return "ordered"
        if isinstance(node, exp.Sub) and isinstance(node.this, exp.Column) and node.this.name == column:
            if isinstance(node.expression, exp.Literal) and not node.expression.is_string:
                return int(node.expression.this)
            return timedelta(microseconds=interval_us(text, node.expression))
        raise mistake(self._text, place, f"a watermark reads {column} - INTERVAL '90' SECOND; got {text}")
