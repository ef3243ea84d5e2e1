"""Brute force: the answer of a graph, from the definitions of its operators and over the whole trace at once.

No operator runs here and punctuation is ignored: a stream is a table, a union a concatenation, and every tuple
is put into every window that contains it.  So the result can be compared with that of operators.  A node without
a definition as short as that has no truth (``NoTruthError`` names it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.errors import EngineError
from oop_engine.core.graphs.graph import Graph, Node, Plan, Stream
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.lab.scenario import COMPLETE_AT
from oop_engine.operators.aggregates import Avg, Count, First, Last, Max, Min, Stddev, Sum, Var
from oop_engine.operators.apply import Apply
from oop_engine.operators.describe import Describe
from oop_engine.operators.in_order.buffering_aggregate import BufferingAggregate
from oop_engine.operators.in_order.merge import Merge
from oop_engine.operators.in_order.sort import Sort
from oop_engine.operators.meld import Meld
from oop_engine.operators.project import Project
from oop_engine.operators.punctuate import Punctuate
from oop_engine.operators.select import Select
from oop_engine.operators.values.expressions import evaluate, filled
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Sliding, Tumbling
from oop_engine.runners.door import messages

__all__ = ["NoTruthError", "memberships", "true_answer"]

Integers = NDArray[np.int64]
_MOST = 50_000_000  # pairs of a tuple and a window: some GB, and a minute


class NoTruthError(EngineError):
    """A graph whose answer brute force cannot give; the message has the reason."""


def true_answer(graph: Graph, feeds: Mapping[str, Iterable[Message]]) -> pa.Table:
    """Return all results of the graph's sink, in no order, and with ``COMPLETE_AT`` where all pages have arrivals.

    Punctuate, Sort, Describe, Meld, Merge, Select, Project, Apply, and aggregates of Sliding and Tumbling
    windows over an attribute; no tuple is late.  O(tuples x windows a tuple), with all of it in memory.
    Raises ``NoTruthError`` for anything else.
    """
    plan = graph.plan()
    try:
        return _Definitions(plan, feeds).rows(plan.of_kind("sink")[0].inputs[0])
    except pa.ArrowException as error:
        msg = f"brute force over {graph.name!r}: Arrow cannot compute it: {error}"
        raise NoTruthError(msg) from error


def memberships(
    times: Integers, range_: int, slide: int, origin: int = 0
) -> Iterator[tuple[Integers, Integers]]:
    """Yield (rows, window ends): all pairs in which the window ``[end - range_, end)`` contains the row's time."""
    first_end = ((times - origin) // slide + 1) * slide + origin  # the first end behind the time
    for k in range(-(-range_ // slide)):
        ends = first_end + k * slide
        inside = np.flatnonzero((ends - range_ <= times) & (times < ends))
        yield inside, ends[inside]


class _Definitions:
    """The streams of a plan as tables; the column ``COMPLETE_AT`` is when a row could be known."""

    def __init__(self, plan: Plan, feeds: Mapping[str, Iterable[Message]]) -> None:
        self._plan, self._feeds = plan, feeds
        self._nodes = {node.name: node for node in plan.nodes}
        self._known: dict[str, pa.Table] = {}

    def rows(self, stream: Stream) -> pa.Table:
        node = self._nodes[stream.node]
        if node.name not in self._known:
            self._known[node.name] = self._of(node)
        if stream.port not in ("", node.ports[0]):
            msg = f"node {node.name!r}: which tuples leave by {stream.port!r} is no matter of definition"
            raise NoTruthError(msg)
        return self._known[node.name]

    def _of(self, node: Node) -> pa.Table:
        if node.schema is not None:
            return _collected(node.schema, self._feeds[node.name])
        define = _DEFINITIONS.get(type(node.operator))
        if define is None:
            msg = f"node {node.name!r} ({type(node.operator).__name__}) is not evaluated by brute force"
            raise NoTruthError(msg)
        tables = [self.rows(stream) for stream in node.inputs]
        schema = self._plan.schema(node.inputs[0])
        return define(node.operator, tables, schema, self._plan.schema(Stream(node.name)))


def _collected(schema: Schema, feed: Iterable[Message]) -> pa.Table:
    pages = [message for message in messages(schema, feed) if isinstance(message, Page) and len(message)]
    table = pa.Table.from_batches([page.batch for page in pages], schema=schema.fields)
    if any(page.arrival is None for page in pages):
        return table
    arrivals = [page.arrival for page in pages if page.arrival is not None]
    return table.append_column(COMPLETE_AT, pa.array(np.concatenate([np.empty(0, np.int64), *arrivals])))


def _as_it_is(operator: Any, tables: list[pa.Table], schema: Schema, out: Schema) -> pa.Table:
    return tables[0]


def _all(operator: Any, tables: list[pa.Table], schema: Schema, out: Schema) -> pa.Table:
    shared = [name for name in tables[0].column_names if all(name in t.column_names for t in tables)]
    return pa.concat_tables([table.select(shared) for table in tables])


def _selected(operator: Select, tables: list[pa.Table], schema: Schema, out: Schema) -> pa.Table:
    batches = [
        batch.filter(filled(evaluate("Select", [operator.predicate], [pa.bool_()], batch)[0]))
        for batch in tables[0].to_batches()
    ]
    return pa.Table.from_batches(batches, schema=tables[0].schema)


def _computed(operator: Project | Apply, tables: list[pa.Table], schema: Schema, out: Schema) -> pa.Table:
    kept = {} if isinstance(operator, Project) else {name: name for name in schema.names}
    columns = {**kept, **operator.columns}
    columns = {name: columns[name] for name in out.names}
    fields = [*out.fields]
    if COMPLETE_AT in tables[0].column_names:
        columns[COMPLETE_AT] = COMPLETE_AT
        fields.append(pa.field(COMPLETE_AT, pa.int64()))
    kinds = [field.type for field in fields]
    whole = pa.schema(fields)
    batches = [
        pa.RecordBatch.from_arrays(evaluate("", list(columns.values()), kinds, batch), schema=whole)
        for batch in tables[0].to_batches()
    ]
    return pa.Table.from_batches(batches, schema=whole)


def _aggregated(
    operator: WindowAggregate | BufferingAggregate, tables: list[pa.Table], schema: Schema, out: Schema
) -> pa.Table:
    windows, aggregates = operator.windows, operator.aggregates
    if not isinstance(windows, Sliding | Tumbling) or operator.empty or len(tables) > 1:
        msg = f"{operator.describe()} is not evaluated by brute force: only Sliding and Tumbling windows with tuples"
        raise NoTruthError(msg)
    extents, [table] = windows.bound(schema), tables
    assert extents.range is not None
    if table.num_rows * -(-extents.range // extents.slide) > _MOST:
        each = extents.range // extents.slide
        msg = f"{table.num_rows:,} tuples in {each:,} windows each are too many for brute force"
        raise NoTruthError(msg)
    asked = [_WAYS.get(type(a), _no_way)(table, schema, a) for a in aggregates.values()]
    keys = {f"k{i}": _key(table.column(name)) for i, name in enumerate(operator.by)}
    inputs = {f"a{i}": values for i, (values, *_) in enumerate(asked)}
    wanted = [(f"a{i}", how, options) for i, (_, how, options, _) in enumerate(asked)]
    if COMPLETE_AT in table.column_names:
        inputs[COMPLETE_AT] = table.column(COMPLETE_AT)
        wanted.append((COMPLETE_AT, "max", None))
    plain = pa.table({**keys, **inputs, "end": _integers(table.column(schema.progressing))})
    times = plain.column("end").to_numpy()
    parts = [
        plain.take(pa.array(rows)).set_column(plain.num_columns - 1, "end", pa.array(ends))
        for rows, ends in memberships(times, extents.range, extents.slide, extents.origin)
    ]
    found = pa.concat_tables(parts).group_by([*keys, "end"]).aggregate(wanted)
    ends = found.column("end")
    columns = [found.column(key) for key in keys] + [pc.subtract(ends, extents.range), ends]
    columns += [lower(found.column(f"a{i}_{how}")) for i, (_, how, _, lower) in enumerate(asked)]
    columns = [column.cast(field.type) for column, field in zip(columns, out.fields, strict=True)]
    answer = pa.table(columns, schema=out.fields)
    if COMPLETE_AT in inputs:
        answer = answer.append_column(COMPLETE_AT, found.column(f"{COMPLETE_AT}_max"))
    return answer


_DEFINITIONS: dict[type, Callable[[Any, list[pa.Table], Schema, Schema], pa.Table]] = {
    Punctuate: _as_it_is,
    Sort: _as_it_is,
    Describe: _as_it_is,
    Meld: _all,
    Merge: _all,
    Select: _selected,
    Project: _computed,
    Apply: _computed,
    WindowAggregate: _aggregated,
    BufferingAggregate: _aggregated,
}

_Asked = tuple[pa.ChunkedArray, str, Any, Callable[[pa.ChunkedArray], pa.ChunkedArray]]
"""An aggregate for Arrow: its values, its name, its options, and a function of its result."""


def _count(table: pa.Table, schema: Schema, aggregate: Count) -> _Asked:
    values = table.column(aggregate.column or schema.progressing)
    return values, "count", pc.CountOptions(mode="only_valid"), _same


def _sum(table: pa.Table, schema: Schema, aggregate: Sum) -> _Asked:
    values = table.column(aggregate.column)
    wide = pa.float64() if pa.types.is_floating(values.type) else pa.int64()
    return values.cast(wide), "sum", pc.ScalarAggregateOptions(skip_nulls=True, min_count=1), _same


def _mean(table: pa.Table, schema: Schema, aggregate: Avg) -> _Asked:
    return table.column(aggregate.column).cast(pa.float64(), safe=False), "mean", None, _same


def _variance(table: pa.Table, schema: Schema, aggregate: Var) -> _Asked:
    values = table.column(aggregate.column).cast(pa.float64(), safe=False)
    return (
        values,
        "stddev" if isinstance(aggregate, Stddev) else "variance",
        pc.VarianceOptions(ddof=aggregate.ddof),
        _same,
    )


def _chosen(table: pa.Table, schema: Schema, aggregate: Min | Max | First | Last) -> _Asked:
    """The value that comes first when all are sorted; NaN sorts behind the numbers, and null is no value."""
    values = table.column(aggregate.column)
    way = "ascending" if isinstance(aggregate, Min | First) else "descending"
    by = [("time", way), ("value", way)] if isinstance(aggregate, First | Last) else [("value", way)]
    time = _integers(table.column(schema.progressing))
    sortable = pa.table({"time": time, "value": _sortable(values)})
    order = pc.sort_indices(sortable, sort_keys=by)
    places = np.empty(len(values), np.int64)
    places[order.to_numpy()] = np.arange(len(values))
    places = pa.array(places, mask=values.is_null().to_numpy())
    return pa.chunked_array([places]), "min", None, lambda first: values.take(order.take(first))


_WAYS: dict[type, Callable[[pa.Table, Schema, Any], _Asked]] = {
    Count: _count,
    Sum: _sum,
    Avg: _mean,
    Var: _variance,
    Stddev: _variance,
    **dict.fromkeys((Min, Max, First, Last), _chosen),
}


def _no_way(table: pa.Table, schema: Schema, aggregate: Any) -> _Asked:
    msg = f"{type(aggregate).__name__} is not evaluated by brute force"
    raise NoTruthError(msg)


def _same(found: pa.ChunkedArray) -> pa.ChunkedArray:
    return found


def _integers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.int64())


def _sortable(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values


def _key(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return keys that Arrow groups as the engine does: one NaN, one zero, and no dictionaries."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        return pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), pc.add(column, 0.0)).cast(
            column.type
        )
    return column
