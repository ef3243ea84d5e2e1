"""Fields: ``ctx.user`` and ``ctx['user']`` read a field of a struct, where ``ctx`` is such a column and no table.

They become calls of ``struct_extract`` before a query is planned, for then they are expressions wherever one stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa
from sqlglot import exp

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.schema import Schema
from oop_engine.query.sql.reading.mistakes import mistake
from oop_engine.query.sql.relation import Names

__all__ = ["with_fields"]

Side: TypeAlias = tuple[Names, Schema]


def with_fields(text: str, root: Any, *sides: Side) -> None:
    """Let ``root``, without the queries inside it, call ``struct_extract`` where it names fields of columns.

    ``sides``: the names and columns that it may read, of one relation or of both of a join.  Raises ``UsageError`` with
    the place for a field that is not there.
    """
    if not any(pa.types.is_struct(field.type) for _, schema in sides for field in schema.fields):
        return
    own = root.walk(prune=lambda node: node is not root and isinstance(node, exp.Query))
    for node in [node for node in own if isinstance(node, exp.Column | exp.Dot | exp.Bracket)]:
        if isinstance(node.parent, exp.Dot | exp.Bracket) and node.arg_key == "this":
            continue  # the end of a path has all of it
        if (path := _path(node)) is None or (found := _extracted(text, node, path, sides)) is None:
            continue
        in_list = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
        node.replace(exp.alias_(found, path[-1], quoted=True, copy=False) if in_list else found)


def _path(node: Any) -> list[str] | None:
    """Return the names of a path, from the first on; None: it is another expression."""
    match node:
        case exp.Column(this=exp.Identifier()):
            return [part.name for part in node.parts]
        case exp.Dot(this=of, expression=exp.Identifier() as last):
            before = _path(of)
        case exp.Bracket(this=of, expressions=[exp.Literal(is_string=True) as last]):
            before = _path(of)
        case exp.Paren(this=of):
            return _path(of)
        case _:
            return None
    return None if before is None else [*before, last.name]


def _extracted(text: str, node: Any, path: list[str], sides: Sequence[Side]) -> Any:
    """Return the call that reads a path; None: it is no path into a column, but a column, or names none."""
    of_table = exp.column(path[1], table=path[0]) if len(path) > 1 else None
    if of_table is not None and any(names.columns(of_table) for names, _ in sides):
        start, fields = of_table, path[2:]
    else:
        start, fields = exp.column(path[0]), path[1:]
    columns = [(schema, column) for names, schema in sides for column in names.columns(start)]
    if not fields or len(columns) != 1:
        return None
    [(schema, column)] = columns
    found, kind = start, schema.type_of(column)
    for at, field in enumerate(fields, len(path) - len(fields)):
        name = _field(text, node, ".".join(path[:at]), kind, field)
        found, kind = (
            exp.StructExtract(this=found, expression=exp.Literal.string(name)),
            kind.field(name).type,
        )
    return found


def _field(text: str, node: Any, of: str, kind: pa.DataType, field: str) -> str:
    """Return the name of a field as its type has it."""
    known = [each.name for each in kind] if pa.types.is_struct(kind) else []
    alike = [field] if field in known else [each for each in known if each.lower() == field.lower()]
    if len(alike) != 1:
        there = f"there are {', '.join(known)}{did_you_mean(field, known)}" if known else f"it is {kind}"
        raise mistake(text, node, f"no field {field!r} in {of!r}; {there}")
    return alike[0]
