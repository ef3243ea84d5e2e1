"""Of none: aggregates without a key over no records are one row, in which counts are 0 and all others null."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from oop_engine.operators.if_none import IfNone
from oop_engine.query.sql.aggregates import counts_none
from oop_engine.query.sql.plans import then
from oop_engine.query.sql.stage import Stage

__all__ = ["with_row_of_none"]


def with_row_of_none(stage: Stage, aggregates: Mapping[str, Any]) -> Stage:
    """Return the aggregates of a SELECT without GROUP BY, with a row of no records; a revision stream has none."""
    relation = stage.relation
    if relation.stream.schema.change is not None or relation.lasts is not None:
        return stage
    counts = {stage.made[key]: 0 for key, node in aggregates.items() if counts_none(node)}
    return replace(stage, relation=replace(relation, stream=then(relation.stream, "if-none", IfNone(counts))))
