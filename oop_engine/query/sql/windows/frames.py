"""Frames: aggregates over the time before each row, ``OVER (... RANGE BETWEEN INTERVAL ... PRECEDING ...)``."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow.compute as pc
from sqlglot import exp

from oop_engine.operators.aggregates import Aggregation, Count
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import PartitionedTupleBased, SlideByTuple, TupleBased
from oop_engine.query.joins import as_length
from oop_engine.query.sql.grouping import Grouping
from oop_engine.query.sql.plans import then
from oop_engine.query.sql.ranks import RANKS
from oop_engine.query.sql.reading.mistakes import mistake, unsupported
from oop_engine.query.sql.relation import NamedStream, Names
from oop_engine.query.sql.scalar.expressions import key_of
from oop_engine.query.sql.scalar.literals import interval_us
from oop_engine.query.sql.stage import Item, Stage

__all__ = ["with_frames"]

_OTHER = (
    "write the value of the nearest row within a bound, "
    "(SELECT {}(b.x, b.ts) FROM s b WHERE b.k = a.k AND b.ts BETWEEN {})"
)
_BESIDE = {
    exp.Lag: _OTHER.format("arg_max", "a.ts - INTERVAL '1' HOUR AND a.ts - INTERVAL '1' MICROSECOND"),
    exp.Lead: _OTHER.format("arg_min", "a.ts + INTERVAL '1' MICROSECOND AND a.ts + INTERVAL '1' HOUR"),
}
"""The way out for the row before and the row after."""


def with_frames(text: str, stage: Stage, items: list[Item]) -> Stage:
    """Return the rows with aggregates over the time before each as columns."""
    calls = [one for item in items for one in item.node.find_all(exp.Window) if type(one.this) not in RANKS]
    if not calls:
        return stage
    relation = stage.relation
    made: dict[str, Aggregation] = {}
    texts: dict[str, str] = dict(stage.made)
    frames = {_frame(text, one, relation) for one in calls}
    if len(frames) > 1:
        raise unsupported(
            text, calls[0], "several OVER of different keys or frames", "take each apart in WITH"
        )
    [(keys, kind, size)] = frames
    grouping = Grouping(text, relation, None)
    for call in calls:
        name = f"_w{len(made)}"
        made[name] = grouping.made_of(call.this)
        texts[key_of(call, relation.names)] = name
    known = stage.known or relation.names
    if kind == "ROWS":
        return Stage(_by_rows(relation, grouping, made, keys, size), texts, known)
    prepared = grouping.prepared(relation.stream.schema.names)
    carry = [name for name in relation.stream.schema.names if name not in keys]
    operator = WindowAggregate(SlideByTuple(as_length(size, prepared.schema.unit), carry=carry), made, keys)
    return Stage(replace(relation, stream=then(prepared, "over", operator)), texts, known)


def _by_rows(
    relation: NamedStream, grouping: Grouping, made: dict[str, Aggregation], keys: tuple[str, ...], size: int
) -> NamedStream:
    """Return the aggregates of the last ``size`` rows of each key at each row, with the keys alone."""
    prepared = grouping.prepared(list(dict.fromkeys([*keys, relation.time])))
    windows = PartitionedTupleBased(size, 1, "time") if keys else TupleBased(size, 1, "time")
    operator = WindowAggregate(windows, {**made, "_rows": Count()}, keys)
    end, start = pc.field("window_end"), pc.field("window_start")
    begun = pc.max_element_wise(start, pc.scalar(0))  # windows behind the last row of a key have fewer
    stream = then(prepared, "over", operator).filter(pc.equal(pc.field("_rows"), pc.subtract(end, begun)))
    return NamedStream(stream, Names(tuple(one for one in relation.names.names if one.column in keys)))


def _frame(text: str, node: Any, relation: NamedStream) -> tuple[tuple[str, ...], str, int]:
    """Return the keys of ``OVER (...)``, whether it is over RANGE or ROWS, and its length with the current row."""
    spec, order = node.args.get("spec"), node.args.get("order")
    form = "OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW)"
    kind = "" if spec is None else str(spec.args.get("kind")).upper()
    if isinstance(node.this, exp.Lag | exp.Lead):
        raise unsupported(text, node, f"{node.this.key}(x) OVER (...)", _BESIDE[type(node.this)])
    if order is None or kind not in ("RANGE", "ROWS"):
        raise unsupported(text, node, "this OVER", f"write {form}")
    start, rows = spec.args.get("start"), kind == "ROWS"
    is_known = isinstance(start, exp.Literal if rows else exp.Expression)
    is_known = is_known and spec.args.get("start_side") == "PRECEDING"
    if not is_known or str(spec.args.get("end")).upper() != "CURRENT ROW":
        raise unsupported(text, node, "this frame", f"write {form}")
    columns = [relation.names.column(text, one.this) for one in order.expressions]
    if columns != [relation.time] or any(one.args.get("desc") for one in order.expressions):
        raise mistake(text, order, f"the order must be that of the event time, ORDER BY {relation.time}")
    keys = tuple(relation.names.column(text, one) for one in node.args.get("partition_by") or [])
    if rows:
        return keys, kind, int(start.this) + 1
    length = timedelta(microseconds=interval_us(text, start))
    return keys, kind, relation.stream.schema.length(length, "OVER") + 1
