"""JSON lines with the same keys in the same order, and the same spaces: read in one pass (``alike``)."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from oop_engine.core.values.kinds import is_text
from oop_engine.traces.formats.alike.block import Alike, Cell, kind_of
from oop_engine.traces.formats.alike.kernel import FLOAT, TEXT

__all__ = ["json_alike", "load"]

_OPEN = re.compile(rb"[ \t]*\{")
_PAIR = re.compile(
    rb'[ \t]*"(?P<key>[^"\\\x00-\x1f]*)"[ \t]*:[ \t]*'
    rb'(?:"(?P<text>[^"\\\x00-\x1f]*)"|(?P<number>-?[0-9]+(?:\.[0-9]+)?))[ \t]*(?P<next>[,}])'
)
_STOPS = np.zeros((1, 256), np.bool_)  # bytes that end a text, or need another reader
_STOPS[0, [*range(32), ord('"'), ord("\\")]] = True
_STOPS.flags.writeable = False


def json_alike(lines: bytes, columns: pa.Schema, other: Callable[[str, int], None] | None) -> pa.Table | None:
    """Return the ``columns`` of lines of UTF-8; None: their rows are not written alike, or not as the types need.

    ``columns`` are integers, floats, booleans and texts.  ``other`` is called with keys that are not among them.
    """
    if not lines.endswith(b"\n"):
        return None
    line = lines[: lines.index(b"\n") + 1]
    cells: list[Cell] = []
    keys: set[str] = set()
    at, literal = (opening.end() if (opening := _OPEN.match(line)) else len(line)), 0
    while (pair := _PAIR.match(line, at)) is not None:
        key = pair["key"].decode()
        begin, end = pair.span("number" if pair["text"] is None else "text")
        cell = _cell(line[literal:begin], key, columns, is_number=pair["text"] is None)
        if cell is None or key in keys:
            return None
        keys.add(key)
        cells.append(cell)
        at, literal = pair.end(), end
        if pair["next"] == b"}":
            break
    if not cells or line[at - 1 : at] != b"}" or line[at:].strip(b" \t\r\n"):
        return None
    read = Alike(cells, line[literal:], _STOPS).read(lines)
    if read is None:
        return None
    values, rows = read
    if other is not None:
        for key in keys - {*columns.names}:
            other(key, rows)
    missing = {field.name: pa.nulls(rows, field.type) for field in columns if field.name not in keys}
    arrays = [(missing | values)[field.name].cast(field.type) for field in columns]
    return pa.table(arrays, schema=pa.schema([(field.name, field.type) for field in columns]))


def load() -> None:
    """Load the kernel, or compile it."""
    json_alike(b'{"ts": 1}\n', pa.schema([("ts", pa.int64())]), None)


def _cell(literal: bytes, key: str, columns: pa.Schema, *, is_number: bool) -> Cell | None:
    """Return the cell of a key; None: its type has no such values."""
    place = columns.get_field_index(key)
    if place < 0:
        return Cell(literal, FLOAT if is_number else TEXT, None, None)
    kind = columns.types[place]
    if is_number is is_text(kind) or not (is_text(kind) or kind_of(kind) != TEXT):
        return None
    return Cell(literal, kind_of(kind), key, kind)
