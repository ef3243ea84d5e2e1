"""Scalars: subqueries with one value, which become a column of each row.

Aggregates of a subquery are made for each of its keys that equal one of the row, or for all rows, and joined to the
row; an expression of them is evaluated there.  A value is known when its stream ends, so a live source cannot have one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from oop_engine.query.data_stream import DataStream
from oop_engine.query.sql.aggregates import aggregates_in, counts_none
from oop_engine.query.sql.grouping import Grouping
from oop_engine.query.sql.joins.condition import Condition, condition_of
from oop_engine.query.sql.joins.joined import joined
from oop_engine.query.sql.joins.keys import with_keys
from oop_engine.query.sql.nested.inner import Known, Plans, has_aggregates, inner_of, is_plain, select_of
from oop_engine.query.sql.plans import OF_SUBQUERY, band_of, paired, project
from oop_engine.query.sql.reading.mistakes import unsupported
from oop_engine.query.sql.relation import Name, NamedStream, Names
from oop_engine.query.sql.scalar.expressions import Expressions, key_of
from oop_engine.query.sql.stage import Stage
from oop_engine.query.sql.stage import inner_of as unaliased

__all__ = ["OF_ROW", "beside", "scalars_in", "with_scalars"]

OF_ROW = "of_row"
"""The mark of a part of a subquery that is of the row around it, whatever names the subquery has."""


def scalars_in(nodes: list[Any]) -> list[Any]:
    """Return the subqueries of some expressions, none that is inside another."""
    return [scalar for node in nodes for scalar in _outer(node)]


def _outer(node: Any) -> list[Any]:
    if isinstance(node, exp.Subquery | exp.Exists):
        return [node]
    return [scalar for child in node.iter_expressions() for scalar in _outer(child)]


def with_scalars(text: str, stage: Stage, nodes: list[Any], planner: Plans, known: Known) -> Stage:
    """Return a stage that has the value of each subquery of ``nodes`` as a column."""
    for node in scalars_in(nodes):
        names = stage.known or stage.relation.names
        relation, name = _Scalar(text, planner, known, _of_keys(node, stage)).beside(_with_keys(stage))
        relation = replace(relation, names=stage.relation.names)
        stage = Stage(relation, {**stage.made, key_of(node, names): name}, names)
    return stage


def _with_keys(stage: Stage) -> NamedStream:
    """Return the relation of a stage whose keys of GROUP BY have their names, for conditions of subqueries."""
    made = [] if stage.known is None else stage.known.names
    own = {key_of(_column(one), stage.known or Names()): one for one in made}
    keys = [replace(one, column=stage.made[key]) for key, one in own.items() if key in stage.made]
    keys += [Name("", column, column) for column in stage.made.values() if column.startswith("_k")]
    return replace(stage.relation, names=Names((*stage.relation.names.names, *keys)))


def _of_keys(node: Any, stage: Stage) -> Any:
    """Return a subquery whose parts of the row around it are the columns of keys that are computed."""
    names = stage.known or stage.relation.names

    def column(part: Any) -> Any:
        made = stage.made.get(key_of(part.this, names), "") if part.meta.get(OF_ROW) else ""
        return exp.column(exp.to_identifier(made, quoted=True)) if made.startswith("_k") else part

    return node.copy().transform(column)


def _column(name: Name) -> Any:
    return exp.column(exp.to_identifier(name.name, quoted=True), table=name.table or None)


class _Scalar:
    """A subquery of one value; of EXISTS the value is whether there are rows."""

    def __init__(self, text: str, planner: Plans, known: Known, node: Any) -> None:
        self._text, self._planner, self._known, self._node = text, planner, known, node
        self._select = select_of(node.this if isinstance(node, exp.Exists) else node)

    def beside(self, relation: NamedStream) -> tuple[NamedStream, str]:
        """Return a relation with the value as a column, and its name."""
        select, items = self._select, getattr(self._select, "expressions", [])
        if isinstance(self._node, exp.Exists):
            if not is_plain(select) or has_aggregates(select):
                raise self._several()
            items = [exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))]
        elif len(items) == 1 and is_plain(select) and has_aggregates(select):
            items = [unaliased(items[0])]
        else:
            return self._whole(relation)
        if [
            column
            for column in items[0].find_all(exp.Column)
            if not column.find_ancestor(exp.AggFunc, exp.Filter)
        ]:
            raise self._several()
        return self._aggregated(relation, items[0])

    def _several(self) -> Exception:
        form = "(SELECT avg(b.x) FROM b WHERE b.k = a.k): one aggregate, without GROUP BY"
        return unsupported(self._text, self._node, "a subquery of several values", form)

    def _whole(self, relation: NamedStream) -> tuple[NamedStream, str]:
        """Return the value of a query of one row that is planned as it is."""
        select = self._select
        if isinstance(select, exp.Select) and (select.args.get("group") or not has_aggregates(select)):
            raise self._several()
        inner = self._planner.query(select, self._known)
        if len(inner.names.names) != 1:
            raise self._several()
        relation, [name] = beside(relation, inner, [inner.names.names[0].column])
        return relation, name

    def _aggregated(self, relation: NamedStream, item: Any) -> tuple[NamedStream, str]:
        """Return the value of one expression of aggregates over the rows that fit each row of ``relation``."""
        inner, others = inner_of(self._planner, self._select, self._known)
        condition = condition_of(self._text, exp.and_(*others) if others else None, relation, inner)
        condition, relation, inner = with_keys(self._text, condition, relation, inner)
        if condition.rest or condition.band or (others and not condition.pairs and not condition.is_bounded):
            form = "this condition between a subquery and the query around it"
            way_out = "equal keys and a band of time, WHERE b.k = a.k AND b.ts BETWEEN a.ts AND ..."
            raise unsupported(self._text, self._node, form, way_out)
        if condition.is_bounded:
            return self._of_band(relation, inner, condition, item)
        if not condition.pairs:
            constant = pc.scalar(pa.scalar(1, pa.int8()))
            relation, inner = (
                replace(side, stream=_with(side.stream, {"_one": constant})) for side in (relation, inner)
            )
            condition.pairs = [("_one", "_one")]
        left, right = ([pair[side] for pair in condition.pairs] for side in (0, 1))
        return self._joined(relation, inner, left, right, item)

    def _of_band(
        self, relation: NamedStream, inner: NamedStream, condition: Condition, item: Any
    ) -> tuple[NamedStream, str]:
        """Return the value over the rows near the time of each row: made once for equal times and keys."""
        keys = {f"_of{i}": a for i, (a, _) in enumerate(condition.pairs)}
        moments = project(relation.stream, {"_at": relation.time, **keys}).distinct()
        pairs = [(new, b) for new, (_, b) in zip(keys, condition.pairs, strict=True)]
        near = joined(
            self._text,
            self._node,
            "inner",
            replace(condition, pairs=pairs),
            NamedStream(moments, Names()),
            inner,
        )
        return self._joined(relation, near, list(keys.values()), list(keys), item, "_at")

    def _joined(
        self,
        relation: NamedStream,
        rows: NamedStream,
        left: list[str],
        right: list[str],
        item: Any,
        at: str = "",
    ) -> tuple[NamedStream, str]:
        """Return the relation with the value over ``rows``, by equal keys, and by equal times if ``at`` names these."""
        own = [*right, *([at] if at else [])]
        grouping = Grouping(self._text, _named(rows, own), None, OF_SUBQUERY)
        for i in range(len(own)):
            grouping.key(exp.column(exp.to_identifier(f"_key_{i}", quoted=True)))
        calls = {call.sql("duckdb"): call for call in aggregates_in(item)}
        for key, call in calls.items():
            grouping.aggregate(key, call)
        sums = grouping.stage()
        taken = relation.stream.schema.names
        number = sum(name.startswith("_scalar") for name in taken)
        prefix = f"_scalar{number}_"
        columns = {f"{prefix}{i}": sums.made[key] for i, key in enumerate(calls)}
        keys = {f"{prefix}k{i}": key for i, key in enumerate(grouping.by)}
        other = project(sums.relation.stream, {f"{prefix}time": sums.relation.time, **keys, **columns})
        length = 0 if at else None
        band, unbounded = band_of(length, length, relation.stream.schema.unit)
        pairs = list(zip(left, keys, strict=True))
        stream = paired(relation.stream, other, pairs, band, "left", "_right", None, unbounded)
        item = item.copy()
        for name, call in zip(columns, calls.values(), strict=True):
            item = item.transform(_put(call, name))
        names = Names(tuple(Name("", name, name) for name in columns))
        value = Expressions(self._text, names, stream.schema).value(item).expression
        whole = {name: name for name in taken if name != "_one"}
        projected = project(stream, {**whole, f"_scalar{number}": value})
        return replace(relation, stream=projected), f"_scalar{number}"


def _put(call: Any, name: str) -> Any:
    """Return the replacement of an aggregate by its column, where no rows are counted by 0."""
    column = exp.column(name)
    value = exp.Coalesce(this=column, expressions=[exp.Literal.number(0)]) if counts_none(call) else column
    return lambda node: value.copy() if node == call else node


def _named(relation: NamedStream, columns: list[str]) -> NamedStream:
    """Return a relation whose key columns have names of their own."""
    new = [Name("", f"_key_{i}", column) for i, column in enumerate(columns)]
    return replace(relation, names=Names((*relation.names.names, *new)))


def _with(stream: DataStream, columns: dict[str, Any]) -> DataStream:
    return project(stream, {**{name: name for name in stream.schema.names}, **columns})


def beside(relation: NamedStream, other: NamedStream, columns: list[str]) -> tuple[NamedStream, list[str]]:
    """Return a relation with columns of the only row of another, null without one; and their names."""
    taken = relation.stream.schema.names
    number = sum(name.startswith("_scalar") for name in taken)
    constant = pc.scalar(pa.scalar(1, pa.int8()))
    key, time = f"_key{number}", f"_time{number}"
    names = [f"_scalar{number + i}" for i in range(len(columns))]
    left = project(relation.stream, {**{name: name for name in taken}, key: constant})
    by_name = {time: other.time, key: constant, **dict(zip(names, columns, strict=True))}
    right = project(other.stream, by_name)
    band, unbounded = band_of(None, None, relation.stream.schema.unit)
    stream = paired(left, right, [(key, key)], band, "left", "_right", None, unbounded)
    shown = {name: name for name in [*taken, *names]}
    projected = project(stream, shown)
    return NamedStream(projected, relation.names, twins=relation.twins, finish=relation.finish), names
