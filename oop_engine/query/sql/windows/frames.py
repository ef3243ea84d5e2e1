"""Frames: aggregates over the records around each one, ``OVER (...)``, lag and lead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow.compute as pc
from sqlglot import exp

from oop_engine.operators.aggregates import Aggregation, Count
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import RowsBetween, SlideByTuple, Windows
from oop_engine.query.joins import as_length
from oop_engine.query.sql.arguments import Arguments
from oop_engine.query.sql.plans import project, then
from oop_engine.query.sql.ranks import RANKS
from oop_engine.query.sql.reading.mistakes import unsupported
from oop_engine.query.sql.relation import NamedStream
from oop_engine.query.sql.scalar.expressions import Expressions, key_of
from oop_engine.query.sql.scalar.types import cast
from oop_engine.query.sql.stage import BOUNDS, Listed, Stage
from oop_engine.query.sql.windows.over import Frame, frame_of

__all__ = ["with_frames"]

_UNBOUNDED = (
    "a frame without a bound, as OVER has it without ROWS or RANGE, keeps all records of a key: "
    "write ROWS BETWEEN 9 PRECEDING AND CURRENT ROW, RANGE BETWEEN INTERVAL '10' MINUTE PRECEDING AND CURRENT ROW, "
    "or read a source that ends"
)
_NOT_EACH = {
    exp.First: "write arg_min(x, ts) OVER (...), or lag(x, 9) OVER (...)",
    exp.FirstValue: "write arg_min(x, ts) OVER (...), or lag(x, 9) OVER (...)",
    exp.Last: "write arg_max(x, ts) OVER (...), or x where the frame ends with the current row",
    exp.LastValue: "write arg_max(x, ts) OVER (...), or x where the frame ends with the current row",
    exp.NthValue: "write lag(x, 9) OVER (...)",
    exp.Ntile: "write quantile_cont(x, 0.25) in a GROUP BY",
    exp.PercentRank: "divide RANK() OVER (...) by a count",
    exp.CumeDist: "divide RANK() OVER (...) by a count",
    exp.IgnoreNulls: "leave IGNORE NULLS out, with WHERE x IS NOT NULL in a subquery",
    exp.RespectNulls: "leave RESPECT NULLS out: nulls are values",
}
"""Functions of a window that are no aggregates of ours, and the way out."""


def with_frames(text: str, stage: Stage, nodes: list[Any]) -> Stage:
    """Return the rows with aggregates over the records around each as columns: an operator for each frame."""
    calls = [
        window for node in nodes for window in node.find_all(exp.Window) if type(window.this) not in RANKS
    ]
    if not calls:
        return stage
    listed = Listed(text, stage)
    for name in stage.relation.stream.columns:
        listed.keep(name)
    known, texts = stage.known or stage.relation.names, dict(stage.made)
    framed: dict[Frame, dict[str, Any]] = {}
    for call in calls:
        _check(text, call)
        name = texts.setdefault(key_of(call, known), f"_w{len(texts)}")
        frame = frame_of(text, call, stage.relation, lambda node: listed.add(node, "_part")[0])
        framed.setdefault(frame, {})[name] = call
    relation = replace(stage.relation, stream=project(stage.relation.stream, listed.columns))
    for frame, calls_of_frame in framed.items():
        relation = _over(text, replace(stage, relation=relation), frame, calls_of_frame)
    return Stage(relation, texts, known)


def _check(text: str, call: Any) -> None:
    instead = _NOT_EACH.get(type(call.this))
    if instead is not None:
        raise unsupported(text, call, f"{call.this.sql('duckdb').lower()[:40]} OVER (...)", instead)


def _over(text: str, stage: Stage, frame: Frame, calls: Mapping[str, Any]) -> NamedStream:
    """Return the relation with the calls over one frame, by the names of their columns."""
    relation = stage.relation
    schema, time = relation.stream.schema, relation.time
    columns = schema.plain().names
    new = {
        name: f"_{name}" if name in BOUNDS else name for name in columns
    }  # results have extents of their own
    given = {own: name for name, own in new.items()}
    arguments: dict[str, Any] = {}
    maker = Arguments(text, relation.names, schema, arguments, stage.expressions(text))
    made = {name: _made_of(maker, call) for name, call in calls.items()}
    if any(_default_of(call) is not None for call in calls.values()):
        made["_rows"] = Count()
    prepared = project(relation.stream, {**given, **arguments})
    keys, tie = tuple(new[key] for key in frame.keys), tuple(new[tie_column] for tie_column in frame.tie)
    carry = [own for own, name in given.items() if name not in (*frame.keys, time)]
    windows: Windows = RowsBetween(frame.first, frame.last, carry, tie)
    if frame.time:
        windows = SlideByTuple(as_length(frame.first, schema.unit), carry=carry, own=True)
    operator = WindowAggregate(windows, made, keys, stamp="start")
    stream = then(prepared, "over", operator, None if frame.bounded else _UNBOUNDED)
    shown = {**new, time: "window_start", **{name: name for name in made}}
    counted = replace(relation, stream=project(stream, shown))
    filled = {
        name: _filled(replace(stage, relation=counted).expressions(text), counted, name, value)
        for name, call in calls.items()
        if (value := _default_of(call)) is not None
    }
    shown = {name: name for name in counted.stream.columns if name != "_rows"}
    return replace(counted, stream=project(counted.stream, {**shown, **filled}))


def _made_of(maker: Arguments, call: Any) -> Aggregation:
    """Return the aggregate of a call; the value of lag and lead is that of the one record of their frame."""
    is_shifted = isinstance(call.this, exp.Lag | exp.Lead)
    return maker.made_of(exp.First(this=call.this.this) if is_shifted else call.this)


def _default_of(call: Any) -> Any:
    """Return the value of lag and lead where there is no such record, parsed; None: it is null."""
    return call.this.args.get("default") if isinstance(call.this, exp.Lag | exp.Lead) else None


def _filled(expressions: Expressions, relation: NamedStream, name: str, default: Any) -> Any:
    """Return the column ``name``, with ``default`` where the frame has no record."""
    value = cast(expressions.of(default), relation.stream.schema.type_of(name))
    return pc.if_else(pc.equal(pc.field("_rows"), pc.scalar(0)), value.expression, pc.field(name))
