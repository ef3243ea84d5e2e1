"""Where a query begins: ``stream``, whose columns are declared, and ``scan``, which reads them from the data."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, overload

import pyarrow as pa

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import GraphError, UsageError
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.core.values.type_names import type_named
from oop_engine.query.data_stream import DataStream
from oop_engine.query.event_time import Disorder, EventTime
from oop_engine.query.feeds import CsvFiles, files_in
from oop_engine.query.guessed_fields import guessed_fields
from oop_engine.query.step import of_operator, of_source
from oop_engine.traces.csv_format import CsvFormat
from oop_engine.traces.format_registry import FORMATS, format_of_file
from oop_engine.traces.trace import fields_of, open_trace

__all__ = ["Columns", "scan", "stream"]

_TIMES = ("ts", "time", "timestamp", "event_time", "date_time", "datetime", "at")
_LOG = logging.getLogger("oop_engine")
Types: TypeAlias = Mapping[str, pa.DataType | str] | pa.Schema


class Columns:
    """Columns without event time yet: only ``event_time`` can follow."""

    def __init__(
        self, name: str, fields: pa.Schema, feed: Any = None, types: Types | None = None,
        csv: CsvFormat | None = None,
    ) -> None:  # fmt: skip
        self._name, self._fields, self._types, self._csv = name, fields, types, csv
        self._feed = feed if csv is None else CsvFiles(feed, csv)
        self._first = files_in(feed)[0] if isinstance(feed, str | Path) else None

    @classmethod
    def of(cls, name: str, types: Types, feed: Any = None) -> Columns:
        """Return declared columns, read from ``feed``."""
        return cls(name, pa.schema(list((_types(types) or {}).items())), feed)

    @property
    def fields(self) -> pa.Schema:
        """The columns and their types."""
        return self._fields

    def times(self) -> list[str]:
        """Return the columns that may be the event time: moments, or else those of a telling name, or else dates.

        Of several moments the only one of a telling name, such as ``ts`` or ``time``.
        """
        telling = [name for name in self._fields.names if name.lower() in _TIMES]
        moments = [field.name for field in self._fields if pa.types.is_timestamp(field.type)]
        both = [name for name in moments if name in telling]
        dates = [field.name for field in self._fields if pa.types.is_date(field.type)]
        return both if len(both) == 1 else moments or telling or dates

    def event_time(
        self,
        column: str,
        disorder: Disorder | None = None,
        *,
        per: str | tuple[str, ...] | list[str] = (),
        idle: Length | None = None,
        watermark: Disorder | None = None,
        unit: str = "",
    ) -> DataStream:
        """Return the stream whose event time is ``column``: a timestamp, a date, an integer in ``unit``, or ISO text.

        Parameters
        ----------
        disorder
            How far a record may come behind the latest one: a length (``"90 s"``), ``"ordered"``, ``"upstream"``
            (punctuation comes in the feed), or a policy.  Records behind that are late: dropped and counted, or read
            from ``late``.  None: measured on a feed at rest, so that no record is late; a live source needs it.
        per
            Key columns in each of which this holds by itself: punctuation per key.
        idle
            How long a source may be silent before its bound follows the clock, so that it holds nothing back.
        watermark
            A disorder that most records keep: early results come by it (``emit``).

        Raises ``GraphError`` if a column is not there or is of a type that is no time.

        >>> log = stream("log", {"ts": "timestamp[us, UTC]", "host": "string"}).event_time("ts", "90 s")
        >>> log.columns
        ['ts', 'host']
        """
        if column not in self._fields.names:
            hint = did_you_mean(column, self._fields.names)
            msg = f"{self._name}: no column {column!r}; there are {', '.join(self._fields.names)}{hint}"
            raise GraphError(msg)
        schema = self._timed(column, unit)
        keys = (per,) if isinstance(per, str) else tuple(per)
        event_time = EventTime(disorder, keys, idle, watermark)
        source = of_source(self._name, schema, self._feed)
        operator = event_time.punctuate("ordered") if disorder is None else event_time.punctuate()
        measure = event_time if disorder is None else None
        return DataStream(of_operator("event-time", operator, source, measure=measure))

    def is_integer(self, column: str) -> bool:
        """Return whether a column is of integers, so that it is an event time by a unit alone."""
        return column in self._fields.names and pa.types.is_integer(self._fields.field(column).type)

    def knows_unit(self) -> bool:
        """Return whether the data are a file that has the unit of its times."""
        if self._first is None or self._csv is not None:
            return False
        return bool(FORMATS[format_of_file(self._first)].reader(self._first, ()).marks.unit)

    def _timed(self, column: str, unit: str) -> Schema:
        """Return the columns with ``column`` as event time; of a file whose types are guessed, a text may be a time."""
        if self._first is not None:
            trace = open_trace(
                self._first, time=column, unit=unit or None, types=_types(self._types), csv=self._csv
            )
            for note in trace.notes:
                _LOG.info("source %r: %s", self._name, note)
            return trace.schema
        kind = self._fields.field(column).type
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if not is_text and not pa.types.is_date(kind):
            return Schema(self._fields, column, unit)
        moments = pa.timestamp("us", "UTC" if is_text else None)
        _LOG.info(
            "source %r: %r is %s, and read as %s", self._name, column, "text" if is_text else kind, moments
        )
        at = self._fields.get_field_index(column)
        return Schema(self._fields.set(at, pa.field(column, moments)), column, unit)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or not hasattr(DataStream, name):
            raise AttributeError(name)
        way_out = f"write {self._name}.event_time('...', disorder='90 s')"
        msg = f"{self._name}.{name}: which column is the event time? First {way_out}"
        raise UsageError(msg)

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name}: {field.type}" for field in self._fields)
        return f"{self._name}({columns}), without event time: call event_time(column)"


@overload
def stream(name: str, schema: Schema) -> DataStream: ...


@overload
def stream(name: str, schema: Types) -> Columns: ...


def stream(name: str, schema: Types | Schema) -> Columns | DataStream:
    """Return a source of declared columns: ``Columns``, or of a ``Schema`` the stream, with punctuation from its feed.

    Types are those of Arrow, or their names: ``"int64"``, ``"string"``, ``"timestamp[us, UTC]"``.

    >>> log = stream("log", {"ts": "int64", "host": "string"}).event_time("ts", "ordered", unit="s")
    >>> log.columns
    ['ts', 'host']
    """
    if isinstance(schema, Schema):
        return DataStream(of_source(name, schema))
    return Columns.of(name, schema)


def scan(
    data: Any, name: str | None = None, *, types: Types | None = None, csv: CsvFormat | None = None
) -> Columns:
    """Return a source that reads ``data``: a trace, a folder or a pattern of traces, a data frame, columns, rows.

    The columns are those of the data, of a text format guessed (``types`` for some of them).  ``csv``: how files of CSV
    are written, where that is not sniffed.  ``name`` is that of the source; default: of a file its stem, else
    ``"rows"``.  Raises as ``open_trace`` does.

    >>> rows = [{"at": 3, "host": "a"}, {"at": 1, "host": "b"}]
    >>> scan(rows).event_time("at", "2 s", unit="s").columns
    ['at', 'host']
    """
    if isinstance(data, str | Path):
        first = files_in(data)[0]
        own = name or re.sub(r"[^\w-]+", "-", first.name.split(".")[0]).strip("-") or "rows"
        return Columns(own, fields_of(first, csv), data, types, csv)
    return Columns(name or "rows", guessed_fields(data), data)


def _types(given: Types | None) -> dict[str, pa.DataType] | None:
    """Return types by the names of columns."""
    if given is None:
        return None
    items = zip(given.names, given.types, strict=True) if isinstance(given, pa.Schema) else given.items()
    return {column: type_named(kind) if isinstance(kind, str) else kind for column, kind in items}
