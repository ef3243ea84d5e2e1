"""Of none: aggregates without a key over no records are one row, in which counts are 0 and all others null."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.operators.values.expressions import evaluate, types_of
from oop_engine.query.sql.aggregates import aggregates_in, counts_none
from oop_engine.query.sql.joins.condition import conjuncts
from oop_engine.query.sql.nested.scalars import scalars_in
from oop_engine.query.sql.plans import project
from oop_engine.query.sql.scalar.expressions import key_of
from oop_engine.query.sql.stage import Item, Stage

__all__ = ["HELD", "has_row_of_none", "row_of_none", "with_having"]

HELD = "_held"
"""The column that has whether HAVING holds for a row."""


def has_row_of_none(node: Any, stage: Stage, items: list[Item]) -> bool:
    """Tell whether the result of a SELECT over no records has a row before its HAVING."""
    parts = [item.node for item in items] + [one for one in [node.args.get("having")] if one is not None]
    there = any(aggregates_in(one) for one in parts)
    others = scalars_in(parts) or stage.relation.stream.schema.change or stage.known is None
    return there and not (node.args.get("group") or others) and stage.relation.lasts is None


def row_of_none(
    node: Any, stage: Stage, items: list[Item], columns: Mapping[str, Any] | None = None
) -> pa.RecordBatch:
    """Return the row of the stage, or of ``columns`` that are computed from it."""
    having = node.args.get("having")
    parts = [item.node for item in items] + ([] if having is None else [having])
    calls = [one for part in parts for one in aggregates_in(part)]
    counted = {stage.made[key_of(one, stage.known)]: counts_none(one) for one in calls}  # type: ignore[arg-type]
    schema = stage.relation.stream.schema
    row = [pa.array([0 if counted.get(name) else None], schema.type_of(name)) for name in schema.names]
    batch = pa.RecordBatch.from_arrays(row, schema.names)
    if columns is None:
        return batch
    values = list(columns.values())
    found = evaluate("sql", values, types_of("sql", values, schema), batch)
    return pa.RecordBatch.from_arrays([*found], list(columns))


def with_having(text: str, node: Any, stage: Stage, items: list[Item]) -> Stage | None:
    """Return a stage whose column ``HELD`` has whether HAVING holds; None: it does not hold for the row of none."""
    having = node.args.get("having")
    if having is None or not has_row_of_none(node, stage, items):
        return None
    predicates = [stage.expressions(text).predicate(part) for part in conjuncts(having.this)]
    held = predicates[0]
    for other in predicates[1:]:
        held = pc.and_kleene(held, other)
    if row_of_none(node, stage, items, {HELD: held}).column(0)[0].as_py() is not True:
        return None
    relation = stage.relation
    columns = {**{name: name for name in relation.stream.schema.names}, HELD: held}
    return Stage(
        type(relation)(project(relation.stream, columns), relation.names, lasts=relation.lasts),
        stage.made,
        stage.known,
    )
