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

from oop_engine.core.graphs.graph import Graph, Node, Plan, Stream
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.lab.brute_aggregates import NoTruthError, asked, integers
from oop_engine.lab.scenario import COMPLETE_AT
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
        windows_each = extents.range // extents.slide
        msg = f"{table.num_rows:,} tuples in {windows_each:,} windows each are too many for brute force"
        raise NoTruthError(msg)
    wanted = [asked(a, table, schema) for a in aggregates.values()]
    keys = {f"k{i}": _key(table.column(name)) for i, name in enumerate(operator.by)}
    inputs = {f"a{i}": one.values for i, one in enumerate(wanted)}
    each = [(f"a{i}", one.how, one.options) for i, one in enumerate(wanted)]
    if COMPLETE_AT in table.column_names:
        inputs[COMPLETE_AT] = table.column(COMPLETE_AT)
        each.append((COMPLETE_AT, "max", None))
    plain = pa.table({**keys, **inputs, "end": integers(table.column(schema.progressing))})
    times = plain.column("end").to_numpy()
    parts = [
        plain.take(pa.array(rows)).set_column(plain.num_columns - 1, "end", pa.array(ends))
        for rows, ends in memberships(times, extents.range, extents.slide, extents.origin)
    ]
    found = pa.concat_tables(parts).group_by([*keys, "end"]).aggregate(each)
    ends = found.column("end")
    columns = [found.column(key) for key in keys] + [pc.subtract(ends, extents.range), ends]
    columns += [one.lower(found.column(f"a{i}_{one.how}")) for i, one in enumerate(wanted)]
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


def _key(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return keys that Arrow groups as the engine does: one NaN, one zero, and no dictionaries."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        return pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), pc.add(column, 0.0)).cast(
            column.type
        )
    return column
