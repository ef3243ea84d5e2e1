"""Versioned: the schema of versions of results, and which windows and aggregates can have them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from oop_engine.core.errors import GraphError
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Count, Sum
from oop_engine.operators.slicing.accumulators import is_ragged
from oop_engine.operators.slicing.output import Output
from oop_engine.operators.slicing.strategy import Query
from oop_engine.operators.triggers import Emit
from oop_engine.operators.windows import Extents, Gap, Over

__all__ = ["explained_versions", "versioned_schema"]


def versioned_schema(
    output: Output, emit: Emit, aggregates: Sequence[object], tuples: Schema, place: str
) -> Schema:
    """Return the schema of versions; raise ``GraphError`` if windows or aggregates cannot have them."""
    schema, names = output.schema, output.schema.names
    for name, one in zip(output.names, output.definitions, strict=True):
        if one.over is not Over.ATTRIBUTE:
            msg = (
                f"{place}: emit is for windows that a late tuple may change; those of {name!r} count tuples as they "
                "arrive, and are final once they are full: leave emit out, or count by time (order='time')"
            )
            raise GraphError(msg)
        if not isinstance(one, Extents) and emit.mode != "retracting":
            msg = (
                f"{place}: extents of {name!r} follow from tuples, so versions are taken back; got "
                f"mode={emit.mode!r}: use 'retracting'"
            )
            raise GraphError(msg)
    whole = all(isinstance(one, Count) or (isinstance(one, Sum) and _is_whole(schema, name))
                for name, one in zip(names[len(names) - len(aggregates) :], aggregates, strict=True))  # fmt: skip
    if emit.mode == "discarding" and not whole:
        msg = f"{place}: versions add up, mode='discarding', of Count and Sum of integers alone: use 'retracting'"
        raise GraphError(msg)
    for trigger in (emit.early, emit.late):
        if trigger is not None:
            trigger.check(names, tuples, place)
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


def explained_versions(query: Query, tuples: Schema) -> str:
    """Return how windows are kept and read."""
    if tuples.change is not None:
        return "rows that may be taken back wait for punctuation; versions are those of a copy that closes with them"
    ragged = is_ragged(query.parts)
    copied = [
        name
        for name, one in zip(query.names, query.output.definitions, strict=True)
        if not isinstance(one, Gap | Extents) or (isinstance(one, Extents) and (one.landmark or ragged))
    ]
    words = "panes, partial aggregates of windows, or runs of sessions: versions read them as they are"
    if not copied:
        return words
    return f"{', '.join(map(repr, copied))}: versions are those of a copy of the state that closes" + (
        f"; else {words}" if len(copied) < len(query.names) else ""
    )
