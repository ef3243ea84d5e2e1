"""DataStream: a stream of records as a value, in the words of Polars and PySpark.

Each method returns a new stream and adds an operator, or none; nothing runs before ``run``, ``serve`` or ``graph``.
A wrong column, type or order of methods is an error at its line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Never, NoReturn

from oop_engine.core.errors import GraphError
from oop_engine.core.graphs.html import table_html
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.aggregates import Aggregation
from oop_engine.operators.with_columns import WithColumns
from oop_engine.operators.distinct import Distinct
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.meld import Meld
from oop_engine.operators.project import Project
from oop_engine.operators.filter import Filter
from oop_engine.operators.top_n import TopN
from oop_engine.operators.values.expressions import Expression
from oop_engine.operators.windows import Windows
from oop_engine.query.expression import as_expression
from oop_engine.query.finish import ALL, Finish
from oop_engine.query.joins import as_of, interval_join
from oop_engine.query.running import Runnable
from oop_engine.query.step import QueryStep, StepOutput, of_operator, steps_of
from oop_engine.query.windowed import KeyedStream, WindowedStream, names_of, window_of

__all__ = ["DataStream"]

_UNTIMED = (
    "the first records of a whole stream are known only when it ends: aggregate windows and take the first of each, "
    "or read a source that ends"
)
_OF_FRAMES = {
    **dict.fromkeys(("collect", "to_arrow"), "run().table"),
    **dict.fromkeys(("to_pandas", "toPandas"), "run().table.to_pandas()"),
    **dict.fromkeys(("show", "head", "limit"), "run(), which shows the results, or run().table[:10]"),
    **dict.fromkeys(("where", "query"), "filter('bytes > 100')"),
    **dict.fromkeys(("groupby", "groupBy", "partition_by"), "group_by('host')"),
    **dict.fromkeys(("resample", "group_by_dynamic", "tumble"), "window('1 min')"),
    **dict.fromkeys(("rolling", "hop", "slide"), "window('5 min', every='1 min')"),
    **dict.fromkeys(("withColumn", "assign", "map", "apply"), "with_columns(kb='bytes / 1024')"),
    **dict.fromkeys(("count", "sum", "mean", "max", "min", "aggregate"), "window('1 min').agg(n='count(*)')"),
    **dict.fromkeys(("sort", "sort_values", "order_by", "orderBy"), "top(10, by='-n'), or ORDER BY in sql"),
    **dict.fromkeys(("concat", "unionByName"), "union(other)"),
    "merge": "join(other, on='host')",
}
"""What one writes here for methods of pandas, Polars, PySpark and Flink's tables."""


class DataStream(Runnable):
    """A stream of records with an event time; made by ``stream``, ``scan`` and ``sql``.

    >>> from oop_engine import stream
    >>> from oop_engine.operators import Count, Tumbling
    >>> log = stream("log", {"ts": "int64", "host": "string"}).event_time("ts", "5 s", unit="s")
    >>> n = log.group_by("host").window(Tumbling("10 s")).agg(n=Count())
    >>> rows = [{"ts": 1, "host": "a"}, {"ts": 12, "host": "a"}, {"ts": 8, "host": "a"}]
    >>> [(row["window_end"], row["n"]) for row in n.run(rows).rows("result")]
    [(10, 2), (20, 1)]
    """

    def __init__(self, output: StepOutput, finish: Finish = ALL) -> None:
        self._output, self._finish = output, finish

    @property
    def schema(self) -> Schema:
        """The columns, and which of them is the event time."""
        return self._output.schema

    @property
    def columns(self) -> list[str]:
        """The names of the columns; those that the engine alone needs are not among them."""
        return self._finish.shown(self.schema.names)

    @property
    def output(self) -> StepOutput:
        """The step that the stream is of, for those who plan queries of their own."""
        return self._output

    @property
    def finish(self) -> Finish:
        """The last step, once all results have come: an order, a limit, hidden columns."""
        return self._finish

    @property
    def late(self) -> DataStream:
        """The records that came behind the bound of ``event_time``: a stream of its own, right behind that."""
        step = self._output.step
        if not isinstance(step.operator, Punctuate):
            msg = f"late: late records are read right behind event_time; this stream is that of {step.hint!r}"
            raise GraphError(msg)
        return DataStream(StepOutput(step, 1))

    def named(self, name: str) -> DataStream:
        """Return the same stream whose node is called ``name``; checkpoints and results go by it."""
        return DataStream(StepOutput(self._output.step.named(name), self._output.port))

    def filter(self, predicate: Expression) -> DataStream:
        """Return the records for which ``predicate`` is true: an expression, a function, or a text in SQL."""
        return self._then("filter", Filter(as_expression(predicate, self.schema, "filter")))

    def select(self, *columns: str, **computed: Expression) -> DataStream:
        """Return some columns, and computed ones; the event time stays without being named."""
        wanted: dict[str, Expression] = {}
        for column in columns:
            self.schema.require([column], "select")
            wanted[column] = column
        for name, given in computed.items():
            wanted[name] = as_expression(given, self.schema, "select")
        if not any(isinstance(value, str) and value == self.schema.progressing for value in wanted.values()):
            wanted = {self.schema.progressing: self.schema.progressing, **wanted}
        return self._then("select", Project(wanted))

    def with_columns(self, **computed: Expression) -> DataStream:
        """Return all columns and computed ones, which may replace others."""
        expressions = {
            name: as_expression(expression, self.schema, "with_columns")
            for name, expression in computed.items()
        }
        return self._then("with-columns", WithColumns(expressions))

    def rename(self, names: Mapping[str, str]) -> DataStream:
        """Return the columns under other names: ``{"old": "new"}``."""
        self.schema.require(names, "rename")
        return self._then("rename", Project({names.get(column, column): column for column in self.columns}))

    def agg(self, *unnamed: Never, **aggregates: Aggregation | str) -> DataStream:
        """Return the aggregates of the whole stream, when it ends; ``group_by`` and ``window`` give those of parts."""
        return self.group_by().agg(*unnamed, **aggregates)

    def group_by(self, *keys: str | Sequence[str]) -> KeyedStream:
        """Return the stream with a key, for ``window`` and ``agg``."""
        return KeyedStream(self._output, names_of(keys, self.schema, "group_by"), DataStream)

    def window(
        self, windows: Windows | Mapping[str, Windows] | Length, every: Length | None = None
    ) -> WindowedStream:
        """Return the stream in windows: a definition, several by name, or a length, with ``every`` sliding."""
        return WindowedStream(self._output, (), window_of(windows, every), DataStream)

    def join(
        self, other: DataStream, on: str | Sequence[str | tuple[str, str]] = (),
        within: Length | tuple[Length, Length] | None = None,
        how: Literal["inner", "left", "right", "full", "semi", "anti"] = "inner",
        where: Expression | None = None, suffix: str = "_right",
    ) -> DataStream:  # fmt: skip
        """Return pairs with this stream's records, of equal ``on`` and event times that are near each other.

        ``within``: a length, so far apart at most either way; or the least and the most of ``other``'s time minus this
        one's, ``("0 s", "10 min")``: up to ten minutes later.  None: any; then all records stay in the state.
        ``where``: a predicate on pairs.  Equal keys of one name are one column; other names that are taken get the
        suffix.
        """
        return DataStream(
            interval_join(self._output, _output_of(other, "join"), on, within, how, where, suffix)
        )

    def join_asof(
        self, other: DataStream, on: str | Sequence[str | tuple[str, str]] = (),
        within: Length | None = None, how: Literal["inner", "left"] = "inner", suffix: str = "_right",
    ) -> DataStream:  # fmt: skip
        """Return each record with the latest of ``other`` of equal ``on`` that is not after it."""
        return DataStream(as_of(self._output, _output_of(other, "join_asof"), on, within, how, suffix))

    def union(self, *others: DataStream) -> DataStream:
        """Return the records of all streams; columns are matched by name."""
        inputs = [self._output]
        for other in others:
            given = _output_of(other, "union")
            if given.schema != self.schema and set(given.schema.names) == set(self.columns):
                given = of_operator("select", Project(self.columns), given)
            inputs.append(given)
        return DataStream(of_operator("union", Meld(len(inputs)), *inputs))

    def distinct(self, *columns: str | Sequence[str]) -> DataStream:
        """Return each combination of ``columns`` (default: all) and event time once."""
        by = names_of(columns, self.schema, "distinct") or None
        return self._then("distinct", Distinct(by))

    def top(
        self, n: int, by: str | Sequence[str], per: str | Sequence[str] = (), rank: str | None = None,
        ties: Literal["row_number", "rank", "dense_rank"] = "row_number", timed: bool = True,
    ) -> DataStream:  # fmt: skip
        """Return the first ``n`` records of each event time by an order: of results of windows, those of each window.

        Not ``timed``: of the whole stream, when it ends; a live source has no such end.

        ``by``: columns, the largest first with a ``-`` before the name; ``per``: of each value of these columns by
        itself; ``rank``: a new column with the place, from 1.  Raises ``GraphError`` as ``TopN`` does.

        >>> from oop_engine import stream
        >>> from oop_engine.operators import Count
        >>> log = stream("log", {"ts": "int64", "host": "string"}).event_time("ts", "5 s", unit="s")
        >>> busiest = log.group_by("host").window("10 s").agg(n=Count()).top(1, by="-n")
        >>> rows = [{"ts": 1, "host": "a"}, {"ts": 2, "host": "b"}, {"ts": 3, "host": "b"}]
        >>> busiest.run(rows).table["host"].to_pylist()
        ['b']
        """
        order = [by] if isinstance(by, str) else list(by)
        names = names_of([by.removeprefix("-") for by in order], self.schema, "top: by")
        keys = names_of([per], self.schema, "top: per")
        signed = [
            f"-{name}" if ordered.startswith("-") else name
            for name, ordered in zip(names, order, strict=True)
        ]
        operator = TopN(n, signed, keys, timed=timed, rank=rank, ties=ties)
        unbounded = None if timed else _UNTIMED
        return DataStream(of_operator("top", operator, self._output, unbounded=unbounded))

    def _then(self, hint: str, operator: Any) -> DataStream:
        return DataStream(of_operator(hint, operator, self._output))

    if not TYPE_CHECKING:  # which finds such names by itself

        def __getattr__(self, name: str) -> NoReturn:
            way_out = f": write {_OF_FRAMES[name]}" if name in _OF_FRAMES else ""
            msg = f"DataStream has no {name!r}{way_out}"
            raise AttributeError(msg, name=name, obj=self)

    def __repr__(self) -> str:
        return f"DataStream{self.schema}"

    def _repr_html_(self) -> str:
        schema, shown = self.schema, self.columns
        rows = [
            {"column": field.name, "type": str(field.type)} for field in schema.fields if field.name in shown
        ]
        columns = table_html(f"DataStream, event time {schema.progressing!r}", ["column", "type"], rows)
        return columns + table_html("Plan", ["step", "operator", "reads"], self._plan_rows())

    def _plan_rows(self) -> list[dict[str, str]]:
        """Return the steps in the order of their work; no feed is read for it."""
        steps = list({id(step): step for step, _ in steps_of(self._output)}.values())
        return [
            {
                "step": _shown(step),
                "operator": _words(step),
                "reads": ", ".join(_shown(stream.step) for stream in step.inputs),
            }
            for step in reversed(steps)
        ]


def _shown(step: QueryStep) -> str:
    return step.name or step.hint


def _words(step: QueryStep) -> str:
    if step.operator is None:
        return "source"
    return step.operator.describe() if step.measure is None else "Punctuate, by the disorder of the feed"


def _output_of(given: object, place: str) -> StepOutput:
    if not isinstance(given, DataStream):
        msg = f"{place} takes a stream with an event time; got {given!r:.80}"
        raise GraphError(msg)
    return given._output
