"""Using: a key of USING is one column of the join, that of the side which has it in each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow.compute as pc

from oop_engine.query.sql.plans import project
from oop_engine.query.sql.relation import Name, NamedStream, Names

__all__ = ["merged"]


def merged(found: NamedStream, keys: Sequence[str], kind: str, left: int) -> NamedStream:
    """Return a join whose ``keys`` are one column each; the first ``left`` names are those of the left side."""
    if kind in ("semi", "anti"):
        return found
    for key in keys:
        found = _one(found, key.lower(), left, either=kind in ("right", "full"))
    return found


def _one(found: NamedStream, key: str, left: int, *, either: bool) -> NamedStream:
    names = list(found.names.names)
    at = next(i for i, one in enumerate(names) if one.name.lower() == key and not one.merged)
    other = next(i for i, one in enumerate(names[left:], left) if one.name.lower() == key and not one.merged)
    names[other] = replace(names[other], merged=True)
    if not either:
        return replace(found, names=Names(tuple(names)))
    own, right = names[at], names[other]
    column = f"_using_{len(found.stream.schema.names)}"
    value = pc.coalesce(pc.field(own.column), pc.field(right.column))
    stream = project(found.stream, {**{one: one for one in found.stream.schema.names}, column: value})
    names[at] = Name("", own.name, column)
    return replace(found, stream=stream, names=Names((*names, replace(own, merged=True))))
