"""Versioned: the schema of versions of results, and which windows and aggregates can have them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from oop_engine.core.errors import GraphError
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Count, Sum
from oop_engine.operators.slicing.accumulators import is_ragged
from oop_engine.operators.slicing.output import Output
from oop_engine.operators.triggers import Emit
from oop_engine.operators.windows import Extents, Gap, Over

__all__ = ["versioned_schema"]


def versioned_schema(output: Output, emit: Emit, aggregates: Sequence[object], place: str) -> Schema:
    """Return the schema of versions; raise ``GraphError`` if windows or aggregates cannot have them."""
    schema, names = output.schema, output.schema.names
    for name, one in zip(output.names, output.definitions, strict=True):
        if not (isinstance(one, Gap) or (isinstance(one, Extents) and not one.landmark)):
            msg = f"{place}: emit needs windows on a grid, or sessions; got {name!r}: leave emit out"
            raise GraphError(msg)
        if one.over is not Over.ATTRIBUTE or is_ragged(output.parts):
            some = ", ".join(map(str, aggregates))
            msg = f"{place}: emit is for windows of time and states of fixed size; got {name!r}, {some}: leave emit out"
            raise GraphError(msg)
        if isinstance(one, Gap) and emit.mode != "retracting":
            msg = f"{place}: sessions merge, so versions are taken back; got mode={emit.mode!r}: use 'retracting'"
            raise GraphError(msg)
    whole = all(isinstance(one, Count) or (isinstance(one, Sum) and _is_whole(schema, name))
                for name, one in zip(names[len(names) - len(aggregates) :], aggregates, strict=True))  # fmt: skip
    if emit.mode == "discarding" and not whole:
        msg = f"{place}: versions add up, mode='discarding', of Count and Sum of integers alone: use 'retracting'"
        raise GraphError(msg)
    for trigger in (emit.early, emit.late):
        if trigger is not None:
            trigger.check(names, place)
    more = [("version", pa.int32()), ("timing", pa.dictionary(pa.int8(), pa.string()))] if emit.info else []
    change = "change" if emit.mode == "retracting" else None
    more += [] if change is None else [(change, pa.int8())]
    if clash := [name for name, _ in more if name in names]:
        msg = f"{place}: emit adds the columns {', '.join(name for name, _ in more)}; there is {clash[0]!r}: rename it"
        raise GraphError(msg)
    fields = pa.schema([*schema.fields, *(pa.field(name, kind) for name, kind in more)])
    return Schema(fields, schema.progressing, schema.unit, change)


def _is_whole(schema: Schema, name: str) -> bool:
    return bool(pa.types.is_integer(schema.type_of(name)))
