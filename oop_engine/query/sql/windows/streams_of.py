"""Streams of relations, as CQL has them: ``ISTREAM``, ``DSTREAM`` and ``RSTREAM``.

A window makes a relation of a stream, which has rows at each moment.  ``ISTREAM`` has the rows that are new at a
moment, ``DSTREAM`` those that are no longer there, ``RSTREAM`` all.  A row of a window without a slide is there from
its event time on for as long as the window, results of windows from the window's end until the next one's; so a row is
new where no equal row is older by just so much, and is gone where no equal row comes just so much later: an anti join
of the rows with themselves.  Equal rows of one moment differ by their number.

Source: A. Arasu, S. Babu, J. Widom, "The CQL continuous query language" (2006), 4.3 and 6.3.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from oop_engine.core.units import Length
from oop_engine.operators.joining.bands import Band
from oop_engine.operators.top_n import TopN
from oop_engine.operators.windows import SlideByTuple, Tumbling
from oop_engine.query.data_stream import DataStream
from oop_engine.query.joins import as_length
from oop_engine.query.sql.plans import paired, project, then
from oop_engine.query.sql.reading.mistakes import mistake, unsupported
from oop_engine.query.sql.reading.thesis import OVER, STREAMS
from oop_engine.query.sql.relation import Name, NamedStream, Names
from oop_engine.query.sql.stage import Stage

__all__ = ["is_over", "lasting", "stream_asked", "stream_of"]

_NOW = 1


def is_over(node: Any) -> bool:
    """Return whether a key is the window behind the SELECT list."""
    return isinstance(node, exp.Anonymous) and node.name == OVER


def stream_asked(text: str, node: Any) -> str | None:
    """Return the stream that the list of a SELECT asks for, and take the function off it; None: the relation."""
    calls = [
        expression
        for expression in node.expressions
        if isinstance(expression, exp.Anonymous) and expression.name.upper() in STREAMS
    ]
    if not calls:
        return None
    if len(node.expressions) > 1:
        raise unsupported(
            text, calls[0], f"{calls[0].name} of a part of the list", "ISTREAM(a, b) of all of it"
        )
    node.set("expressions", calls[0].expressions)
    return str(calls[0].name).upper()


def lasting(stage: Stage) -> Stage:
    """Return the rows of a window that are not aggregated, and how long they are in it."""
    windows = stage.relation.windows
    lasts = getattr(windows, "range", None) if isinstance(windows, SlideByTuple | Tumbling) else None
    return Stage(replace(stage.relation, lasts=lasts))


def stream_of(text: str, node: Any, kind: str, relation: NamedStream, windows: Any) -> NamedStream:
    """Return the stream of ``relation`` over ``windows``; raises ``UsageError`` where it has no moments."""
    grouped = _is_grouped(node)
    sliding = isinstance(windows, SlideByTuple)
    if not grouped and windows is not None and not sliding and windows != Tumbling(_NOW):
        form = f"{kind} of a window with SLIDE, ROWS or a session that is not aggregated"
        raise unsupported(text, node, form, "leave SLIDE out, [RANGE 5 MINUTES], or aggregate")
    if not grouped and kind == "RSTREAM" and sliding:
        raise unsupported(text, node, "RSTREAM of rows at each moment", "[NOW], or aggregate with a SLIDE")
    if kind == "RSTREAM" or (kind == "ISTREAM" and windows is None and not grouped):
        return relation
    if relation.lasts is None:
        form = f"{kind} of a relation whose rows stay, or of windows that end with records"
        raise unsupported(text, node, form, "give a length and a SLIDE, [RANGE 5 MINUTES SLIDE 1 MINUTE]")
    return _Difference(text, node, kind, relation, relation.lasts).relation()


def _is_grouped(node: Any) -> bool:
    return node.args.get("group") is not None or any(
        expression.find(exp.AggFunc) for expression in node.expressions
    )


class _Difference:
    """The rows of each moment that are not there at the moment before, or after."""

    def __init__(self, text: str, node: Any, kind: str, relation: NamedStream, lasts: Length) -> None:
        if relation.stream.schema.change is not None:
            raise mistake(text, node, f"{kind} is of final results: write it without EMIT")
        self._found, self._is_new = relation, kind == "ISTREAM"
        schema = relation.stream.schema
        self._lag = schema.length(lasts, kind)
        self._shown = list(dict.fromkeys(name.column for name in relation.names.names))
        self._unit, self._time = schema.unit, schema.progressing

    def relation(self) -> NamedStream:
        rows = self._numbered()
        lag = self._lag if self._is_new else -self._lag
        band = Band(as_length(lag, self._unit), as_length(-lag, self._unit))
        keys = [(name, name) for name in rows.schema.names if name.startswith(("_null", "_value", "_number"))]
        differing = paired(rows, rows, keys, band, "anti", "_right")
        moment = self._moment()
        shown = {name: name for name in self._shown}
        hidden = {} if self._time in shown else {self._time: self._time}
        name = "stream_time"
        while name in shown or name in hidden:
            name += "_"
        stream = project(differing, {**shown, **hidden, name: moment})
        names = Names((*self._found.names.names, Name("", name, name)))
        finish = replace(self._found.finish, hidden=self._found.finish.hidden | frozenset(hidden))
        return NamedStream(stream, names, finish=finish)

    def _numbered(self) -> DataStream:
        """Return the rows with columns by which equal ones are found, nulls too, and a number among the equal ones."""
        schema = self._found.stream.schema
        columns: dict[str, Any] = {name: name for name in schema.names}
        for i, name in enumerate(self._shown):
            columns[f"_null{i}"] = pc.is_null(pc.field(name))
            columns[f"_value{i}"] = pc.coalesce(pc.field(name), _any_of(schema.type_of(name)))
        keys = [name for name in columns if name.startswith(("_null", "_value"))]
        rows = project(self._found.stream, columns)
        return then(rows, "number", TopN(None, [self._time], keys, rank="_number"))

    def _moment(self) -> Any:
        """Return the moment at which a row is new, or is gone."""
        kind = self._found.stream.schema.type_of(self._time)
        time = pc.field(self._time)
        return time if self._is_new else pc.add(time.cast(pa.int64()), pc.scalar(self._lag)).cast(kind)


def _any_of(kind: pa.DataType) -> Any:
    """Return some value of a type, in the place of null."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind):
        return pc.scalar(pa.scalar("", pa.string()))
    return pc.scalar(pa.scalar(0, pa.int64()).cast(pa.bool_() if pa.types.is_boolean(kind) else kind))
