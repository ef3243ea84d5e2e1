"""Using: a key of USING is one column of the join, that of the side which has it in each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow.compute as pc

from oop_engine.query.sql.plans import project
from oop_engine.query.sql.relation import Name, NamedStream, Names

__all__ = ["merged"]


def merged(relation: NamedStream, keys: Sequence[str], kind: str, left: int) -> NamedStream:
    """Return a join whose ``keys`` are one column each; the first ``left`` names are those of the left side."""
    if kind in ("semi", "anti"):
        return relation
    for key in keys:
        relation = _one(relation, key.lower(), left, either=kind in ("right", "full"))
    return relation


def _one(relation: NamedStream, key: str, left: int, *, either: bool) -> NamedStream:
    names = list(relation.names.names)
    at = next(i for i, name in enumerate(names) if name.name.lower() == key and not name.merged)
    other = next(
        i for i, name in enumerate(names[left:], left) if name.name.lower() == key and not name.merged
    )
    names[other] = replace(names[other], merged=True)
    if not either:
        return replace(relation, names=Names(tuple(names)))
    own, right = names[at], names[other]
    column = f"_using_{len(relation.stream.schema.names)}"
    value = pc.coalesce(pc.field(own.column), pc.field(right.column))
    stream = project(
        relation.stream, {**{name: name for name in relation.stream.schema.names}, column: value}
    )
    names[at] = Name("", own.name, column)
    return replace(relation, stream=stream, names=Names((*names, replace(own, merged=True))))
