"""Grouping: keys and arguments of a GROUP BY become columns, then a window aggregate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sqlglot import exp

from oop_engine.core.errors import GraphError
from oop_engine.operators.aggregates import Aggregation, Count
from oop_engine.operators.triggers import Emit
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Global, Sliding, Tumbling
from oop_engine.query.data_stream import DataStream
from oop_engine.query.joins import as_length
from oop_engine.query.registered import WINDOWS
from oop_engine.query.sql.arguments import Arguments
from oop_engine.query.sql.plans import GROUPED, project, then
from oop_engine.query.sql.reading.mistakes import mistake
from oop_engine.query.sql.reading.thesis import OVER
from oop_engine.query.sql.relation import Name, NamedStream, Names
from oop_engine.query.sql.scalar.expressions import key_of
from oop_engine.query.sql.stage import BOUNDS, Stage
from oop_engine.query.sql.windows.brackets import bracket_of
from oop_engine.query.sql.windows.calls import bucket, of_call, truncated

__all__ = ["Grouping"]

_RESERVED = {"window", "window_start", "window_end", "time_start", "time_end", "change"}


class Grouping:
    """Keys and aggregates of one GROUP BY, over a relation; ``unbounded``: why one without a window has no end."""

    def __init__(self, text: str, relation: NamedStream, emit: Emit | None, unbounded: str = GROUPED) -> None:
        self._unbounded = unbounded
        self._text, self._relation, self._emit = text, relation, emit
        self._columns: dict[str, Any] = {}
        self._arguments = Arguments(text, relation.names, relation.stream.schema, self._columns)
        self.by: list[str] = []
        self._made: dict[str, str] = {}
        self._aggregates: dict[str, Aggregation] = {}
        self._nodes: dict[str, Any] = {}
        self._windows = relation.windows
        self._bounds_asked = self._at_time = False

    def key(self, node: Any) -> None:
        """Take a key: the bounds of windows, a window by a function, or a column."""
        relation = self._relation
        key = key_of(node, relation.names)
        if isinstance(node, exp.Column) and node.name.lower() in BOUNDS and not relation.names.columns(node):
            if relation.windows is None:
                raise mistake(
                    self._text,
                    node,
                    f"{node.name}: FROM has no window, such as TUMBLE(s, ts, INTERVAL '1' MINUTE)",
                )
            self._bounds_asked = True
            return
        windows = self._window_of(node)
        if windows is not None and self._windows is not None and not _is_scalar(node):
            raise mistake(self._text, node, "there is a window already: one is enough")
        if windows is not None and self._windows is None:
            self._windows, self._bounds_asked = windows, True
            self._made[key] = "window_start"
            return
        if (
            isinstance(node, exp.Column)
            and relation.names.columns(node) == [relation.time]
            and self._windows is None
        ):
            self._at_time = True
            self._made[key] = "window_start"
            return
        if key in self._made:
            return
        self.by.append(self._key_column(node))
        self._made[key] = self.by[-1]

    def _key_column(self, node: Any) -> str:
        """Return a column with the value of a key: under its own name, where results have no other of that name."""
        if isinstance(node, exp.Column):
            [own] = self._relation.names.columns(node)[:1] or [""]
            if own and own not in _RESERVED and not own.startswith("_") and own not in self._columns:
                self._columns[own] = own
                return own
        return self._arguments.column(node, "_k", len(self.by))

    def _window_of(self, node: Any) -> Any:
        """Return the windows of ``tumble(...)``, ``time_bucket(...)`` and ``date_trunc(...)`` of the event time."""
        schema = self._relation.stream.schema
        if isinstance(node, exp.Anonymous) and node.name == OVER:
            return self._over(node)
        if isinstance(node, exp.Anonymous) and node.name.upper() in WINDOWS:
            return of_call(
                self._text,
                node,
                [expression for expression in node.expressions if not isinstance(expression, exp.Column)],
                schema,
            )
        if isinstance(node, exp.DateBin) and self._is_time(node.expression):
            return bucket(self._text, node, schema)
        if isinstance(node, exp.TimestampTrunc) and self._is_time(node.this):
            return truncated(node.args["unit"].name.upper(), schema)
        return None

    def _over(self, node: Any) -> Any:
        """Return the windows in brackets behind the SELECT list; keys of their own are those of the groups, too."""
        bracket = bracket_of(self._text, node, node.expressions[0].name)
        if bracket.time and not self._is_time(exp.column(bracket.time, table=bracket.table or None)):
            words = f"the event time is {self._relation.time!r}: windows are over that; got {bracket.time!r}"
            raise mistake(self._text, node, words)
        if bracket.windows is None:
            raise mistake(
                self._text, node, "a window of all records needs a SLIDE: [RANGE ALL SLIDE 1 MINUTE]"
            )
        for key in bracket.keys:
            self.key(exp.column(key))
        return bracket.windows

    def _is_time(self, node: Any) -> bool:
        return isinstance(node, exp.Column) and self._relation.names.columns(node) == [self._relation.time]

    def made_of(self, node: Any) -> Aggregation:
        """Return the aggregate of a call, its arguments as columns."""
        return self._arguments.made_of(node)

    def aggregate(self, key: str, node: Any, wanted: str = "") -> None:
        """Take an aggregate of the query, under the name ``wanted`` where results have no other of that name."""
        taken = {*self.by, *self._aggregates, *_RESERVED}
        is_free = wanted and not wanted.startswith("_") and wanted not in taken
        name = wanted if is_free else f"_r{len(self._aggregates)}"
        self._aggregates[name] = self.made_of(node)
        self._nodes[name] = node
        self._made[key] = name

    def prepared(self, keep: Sequence[str] = ()) -> DataStream:
        """Return the stream with the columns that are needed, and those to ``keep`` (none: the event time).

        Columns that are there are read where they are: those that are not needed are not read by the source.
        """
        time = self._relation.time
        there = all(isinstance(column, str) and column == name for name, column in self._columns.items())
        if there and not keep and time not in self.by:
            return self._relation.stream
        own = {name: name for name in keep} if keep else {"_time" if time in self.by else time: time}
        return project(self._relation.stream, {**own, **self._columns})

    def stage(self, group: Any = None) -> Stage:
        """Return the relation of the results; ``group`` is the parsed GROUP BY."""
        relation = self._relation
        if relation.windows is not None and not self._bounds_asked:
            is_all = group is not None and group.args.get("all")
            words = "GROUP BY ALL lacks the window: select" if is_all else "GROUP BY lacks the window: add"
            raise mistake(self._text, group or exp.Null(), f"{words} window_start, window_end")
        stamp: Literal["start", "end"] = "end"
        unbounded = None
        windows = self._windows
        if windows is None and self._at_time:
            unit = relation.stream.schema.unit
            windows, stamp = Tumbling(as_length(1, unit)), "start"
        elif self._at_time:
            raise mistake(
                self._text, exp.Null(), "GROUP BY has a window, and the event time itself: one is enough"
            )
        elif windows is None:
            windows = Global()
            unbounded = None if self._emit is not None else self._unbounded
        made = self._aggregates or {"_r": Count()}
        self._check_session_keys()
        options: dict[str, Any] = {} if stamp == "end" else {"stamp": stamp}
        operator = WindowAggregate(windows, made, self.by, emit=self._emit, **options)
        try:
            stream = then(self.prepared(), "agg", operator, unbounded)
        except GraphError as error:
            raise self._explained(error, made) from error
        bounds = [Name("", name, name) for name in BOUNDS[:2]] if self._bounds_asked else []
        whole = isinstance(windows, Tumbling | Sliding)
        twins = frozenset(BOUNDS[:2]) if whole else frozenset()
        windowed = NamedStream(stream, Names(tuple(bounds)), twins=twins, lasts=_slide_of(windows))
        return Stage(windowed, self._made, relation.names)

    def _explained(self, error: GraphError, made: Mapping[str, Aggregation]) -> Exception:
        """Return a mistake at the aggregate that an error is about, with the names of the query."""
        words = str(error).removeprefix("WindowAggregate: ")
        for name, node in self._nodes.items():
            if repr(made[name]) in words or all(
                repr(column) in words for column in made[name].columns or ("",)
            ):
                for column in made[name].columns:
                    words = words.replace(repr(column), repr(str(self._columns[column])))
                return mistake(self._text, node, words)
        return mistake(self._text, exp.Null(), words)

    def _check_session_keys(self) -> None:
        grouped = [self._columns[key] for key in self.by]
        missing = [
            name for name in self._relation.keys if not any(isinstance(c, str) and c == name for c in grouped)
        ]
        if missing:
            raise mistake(
                self._text, exp.Null(), f"the keys of SESSION must be in GROUP BY: {', '.join(missing)}"
            )


def _is_scalar(node: Any) -> bool:
    """Return whether a window may be a key beside another one: its function has a value for each record."""
    return isinstance(node, exp.DateBin | exp.TimestampTrunc)


def _slide_of(windows: Any) -> Any:
    """Return how long the results of a window are those of the last one; None: it depends on records."""
    match windows:
        case Sliding():
            return windows.slide
        case Tumbling():
            return windows.range
    return None
