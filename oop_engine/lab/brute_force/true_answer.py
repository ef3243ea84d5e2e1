"""Brute force: the answer of a graph, from the definitions of its operators and over the whole trace at once.

No operator runs here and punctuation is ignored: a stream is a table, a union a concatenation, and every tuple
is put into every window that contains it.  So the result can be compared with that of operators.  A node without
a definition as short as that has no truth (``NoTruthError`` names it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.graphs.graph import Graph, Node, Plan, Stream
from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.lab.brute_force.aggregates import NoTruthError, array_of, integers
from oop_engine.lab.brute_force.folded import GroupedTuples
from oop_engine.lab.brute_force.values import asked
from oop_engine.lab.brute_force.windows import members, memberships
from oop_engine.lab.scenario import COMPLETE_AT
from oop_engine.operators.with_columns import WithColumns
from oop_engine.operators.edge.prune_punctuation import PrunePunctuation
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.in_order.buffering_aggregate import BufferingAggregate
from oop_engine.operators.in_order.merge import Merge
from oop_engine.operators.in_order.sort import Sort
from oop_engine.operators.meld import Meld
from oop_engine.operators.project import Project
from oop_engine.operators.filter import Filter
from oop_engine.operators.values.expressions import evaluate, filled
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.runners.feeds.forms import Intake

__all__ = ["NoTruthError", "memberships", "true_answer"]

Integers = NDArray[np.int64]


def true_answer(graph: Graph, feeds: Mapping[str, Iterable[Message]]) -> pa.Table:
    """Return all results of the graph's sink, in no order, and with ``COMPLETE_AT`` where all pages have arrivals.

    Punctuate, Sort, PrunePunctuation, Meld, Merge, Filter, Project, WithColumns, and aggregates of all kinds of
    windows, one or several by name, but for those that leave in lulls; no tuple is late.  Where arrival matters
    (windows by arrival, equal times without a tie) there is one source before them, and no union.
    O(tuples x windows a tuple), with all of it in memory.
    Raises ``NoTruthError`` for anything else.
    """
    plan = graph.plan()
    try:
        return _Definitions(plan, feeds).rows(plan.of_kind("sink")[0].inputs[0])
    except pa.ArrowException as error:
        msg = f"brute force over {graph.name!r}: Arrow cannot compute it: {error}"
        raise NoTruthError(msg) from error


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
            return _collected(f"source {node.name!r}", node.schema, self._feeds[node.name])
        define = _DEFINITIONS.get(type(node.operator))
        if define is None:
            msg = f"node {node.name!r} ({type(node.operator).__name__}) is not evaluated by brute force"
            raise NoTruthError(msg)
        tables = [self.rows(stream) for stream in node.inputs]
        schema, out = self._plan.schema(node.inputs[0]), self._plan.schema(Stream(node.name))
        if define is _aggregated:
            return _aggregated(node.operator, tables, schema, out, arrived=self._arrived(node.inputs[0]))
        return define(node.operator, tables, schema, out)

    def _arrived(self, stream: Stream) -> bool:
        """Return whether the rows of a stream are in the order in which they come."""
        node = self._nodes[stream.node]
        return node.schema is not None or (type(node.operator) in _IN_LINE and self._arrived(node.inputs[0]))


def _collected(place: str, schema: Schema, feed: Iterable[Message]) -> pa.Table:
    pages = [
        message
        for message in Intake(place, schema).messages(feed)
        if isinstance(message, Page) and len(message)
    ]
    table = pa.Table.from_batches([page.batch for page in pages], schema=schema.fields)
    if any(page.arrival is None for page in pages):
        return table
    arrivals = [page.arrival for page in pages if page.arrival is not None]
    return table.append_column(COMPLETE_AT, pa.array(np.concatenate([np.empty(0, np.int64), *arrivals])))


def _as_it_is(operator: Any, tables: list[pa.Table], schema: Schema, out: Schema) -> pa.Table:
    return tables[0]


def _sorted(operator: Any, tables: list[pa.Table], schema: Schema, out: Schema) -> pa.Table:
    times = integers(tables[0].column(schema.progressing)).to_numpy()
    return tables[0].take(pa.array(np.argsort(times, kind="stable")))


def _all(operator: Any, tables: list[pa.Table], schema: Schema, out: Schema) -> pa.Table:
    shared = [name for name in tables[0].column_names if all(name in t.column_names for t in tables)]
    return pa.concat_tables([table.select(shared) for table in tables])


def _selected(operator: Filter, tables: list[pa.Table], schema: Schema, out: Schema) -> pa.Table:
    batches = [
        batch.filter(filled(evaluate("Filter", [operator.predicate], [pa.bool_()], batch)[0]))
        for batch in tables[0].to_batches()
    ]
    return pa.Table.from_batches(batches, schema=tables[0].schema)


def _computed(
    operator: Project | WithColumns, tables: list[pa.Table], schema: Schema, out: Schema
) -> pa.Table:
    carried = {} if isinstance(operator, Project) else {name: name for name in schema.names}
    columns = {**carried, **operator.columns}
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
    operator: Any, tables: list[pa.Table], schema: Schema, out: Schema, *, arrived: bool = False
) -> pa.Table:
    windows = operator.windows
    if operator.empty or len(tables) > 1:
        msg = (
            f"{operator.describe()} is not evaluated by brute force: only windows with tuples, in one stream"
        )
        raise NoTruthError(msg)
    if not isinstance(windows, Mapping):
        return _of_definition(operator, windows, tables[0], schema, out, [], arrived=arrived)
    return pa.concat_tables(
        _of_definition(operator, definition, tables[0], schema, out, [name], arrived=arrived)
        for name, definition in windows.items()
    )


def _of_definition(
    operator: WindowAggregate | BufferingAggregate, windows: Any, table: pa.Table, schema: Schema, out: Schema,
    names: list[str], *, arrived: bool,
) -> pa.Table:  # fmt: skip
    """Return the results of a definition; ``names``: its own, if it has one."""
    keys = [_key(table.column(name)) for name in operator.by]
    times = integers(table.column(schema.progressing)).to_numpy()
    index = GroupIndex([key.type for key in keys])
    groups = index.encode([array_of(key) for key in keys], table.num_rows)
    pairs = members(windows, GroupedTuples(table, schema, times, groups, arrived))
    wanted = [asked(a, table, schema) for a in operator.aggregates.values()]
    inputs = {f"a{i}": column.values for i, column in enumerate(wanted)}
    each = [(f"a{i}", column.how, column.options) for i, column in enumerate(wanted)]
    if COMPLETE_AT in table.column_names:
        inputs[COMPLETE_AT] = table.column(COMPLETE_AT)
        each.append((COMPLETE_AT, "max", None))
    plain = pa.table({"group": groups, "row": np.arange(times.size), **inputs}).take(pa.array(pairs.rows))
    plain = plain.append_column("start", pa.array(pairs.starts)).append_column("end", pa.array(pairs.ends))
    apart = ["group", "start", "end"]
    if pairs.numbers is not None:
        plain, apart = plain.append_column("number", pa.array(pairs.numbers)), [*apart, "number"]
    grouped = plain.group_by(apart).aggregate([*each, ("row", "min", None)])
    columns = [key.take(grouped.column("row_min")) for key in keys]
    columns += [pa.repeat(name, grouped.num_rows) for name in names]
    columns += [column.take(grouped.column("number")) for column in pairs.more]
    columns += [grouped.column("start"), grouped.column("end")]
    columns += [column.lower(grouped.column(f"a{i}_{column.how}")) for i, column in enumerate(wanted)]
    columns = [column.cast(field.type) for column, field in zip(columns, out.fields, strict=True)]
    answer = pa.table(columns, schema=out.fields)
    if COMPLETE_AT in inputs:
        answer = answer.append_column(COMPLETE_AT, grouped.column(f"{COMPLETE_AT}_max"))
    return answer


_DEFINITIONS: dict[type, Callable[[Any, list[pa.Table], Schema, Schema], pa.Table]] = {
    Punctuate: _as_it_is,
    Sort: _sorted,
    PrunePunctuation: _as_it_is,
    Meld: _all,
    Merge: _all,
    Filter: _selected,
    Project: _computed,
    WithColumns: _computed,
    WindowAggregate: _aggregated,
    BufferingAggregate: _aggregated,
}

_IN_LINE = (Punctuate, Sort, PrunePunctuation, Filter, Project, WithColumns)


def _key(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return keys that Arrow groups as the engine does: one NaN, one zero, and no dictionaries."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        return pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), pc.add(column, 0.0)).cast(
            column.type
        )
    return column
