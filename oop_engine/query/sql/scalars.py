"""Scalars: subqueries with one value, which become a column of each row.

A subquery with one row is joined to all rows by a key that is equal everywhere.  Its value is known when its stream
ends, so a live source cannot have one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from oop_engine.query.sql.plans import band_of, paired, project
from oop_engine.query.sql.reading.mistakes import unsupported
from oop_engine.query.sql.relation import NamedStream
from oop_engine.query.sql.scalar.expressions import key_of
from oop_engine.query.sql.stage import Stage

__all__ = ["Plans", "beside", "scalars_in", "with_scalars"]


class Plans(Protocol):
    """A planner of the queries inside a query."""

    def query(self, node: Any, around: Mapping[str, NamedStream]) -> NamedStream:
        """Return a SELECT."""

    def read(self, node: Any, known: Mapping[str, NamedStream]) -> NamedStream:
        """Return the stream that FROM names."""


def scalars_in(nodes: list[Any]) -> list[Any]:
    """Return the subqueries of some expressions."""
    return [one for node in nodes for one in node.find_all(exp.Subquery)]


def with_scalars(
    text: str, stage: Stage, nodes: list[Any], planner: Plans, known: Mapping[str, NamedStream]
) -> Stage:
    """Return a stage that has the value of each subquery of ``nodes`` as a column."""
    for node in scalars_in(nodes):
        select = node.this
        grouped = isinstance(select, exp.Select) and (
            select.args.get("group") or not select.find(exp.AggFunc)
        )
        found = planner.query(select, known)
        if grouped or len(found.names.names) != 1:
            form = "(SELECT avg(x) FROM s): one aggregate, without GROUP BY"
            raise unsupported(text, node, "a subquery of several values", form)
        relation, [name] = beside(stage.relation, found, [found.names.names[0].column])
        known_names = stage.known or stage.relation.names
        made = {**stage.made, key_of(node, known_names): name}
        stage = Stage(relation, made, known_names)
    return stage


def beside(relation: NamedStream, other: NamedStream, columns: list[str]) -> tuple[NamedStream, list[str]]:
    """Return a relation with columns of the only row of another, null without one; and their names."""
    taken = relation.stream.schema.names
    number = sum(name.startswith("_scalar") for name in taken)
    one = pc.scalar(pa.scalar(1, pa.int8()))
    key, time = f"_key{number}", f"_time{number}"
    names = [f"_scalar{number + i}" for i in range(len(columns))]
    left = project(relation.stream, {**{name: name for name in taken}, key: one})
    of = {time: other.time, key: one, **dict(zip(names, columns, strict=True))}
    right = project(other.stream, of)
    band, unbounded = band_of(None, None, relation.stream.schema.unit)
    stream = paired(left, right, [(key, key)], band, "left", "_right", None, unbounded)
    kept = {name: name for name in [*taken, *names]}
    found = project(stream, kept)
    return NamedStream(found, relation.names, twins=relation.twins, finish=relation.finish), names
