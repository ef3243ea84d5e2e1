"""JSON rows: lines become columns, at once by Arrow where every line is plain, else line by line; both mean the same.

Arrow is given only lines that it reads as we do: UTF-8, one object a line, nested at most 64 deep, numbers and
booleans as columns of that, all else as text.  Lines that it refuses are read one by one: there a value is its
text, and a line that cannot be read is refused alone, with a reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from oop_engine.core.values.arrays import converted
from oop_engine.core.values.declared_values import MisfitError, nested_column
from oop_engine.core.values.kinds import is_number, is_text
from oop_engine.system.knobs import knob
from oop_engine.traces.format import LINE, REFUSED
from oop_engine.traces.formats.alike.json_lines import json_alike
from oop_engine.traces.formats.guessing import Spoiler, guess, guess_time, guess_words
from oop_engine.traces.formats.json_keys import keys_of
from oop_engine.traces.formats.repeated_keys import of_pairs, twice

__all__ = [
    "AS_WRITTEN", "DEEPEST", "MOST_KEYS", "OtherKey", "guessed", "leaf", "line_by_line", "nested", "object_of",
    "plain_rows", "rows_of",
]  # fmt: skip

DEEPEST = 64
"""Lists and objects within each other, at most: readers of JSON call themselves, and the stack has an end."""
MOST_KEYS = 1000
"""The most different keys in the first block: each is a column, null in all other rows."""

OtherKey = Callable[[str, int], None]
"""Called with a key, and how many rows have it."""

AS_WRITTEN = "oop_engine.as_written"
"""Metadata of a column of text: numbers in it are the text that is written."""

_CELLS = knob(__name__, "_CELLS", 1 << 20)
_FLOAT, _BOOLEAN = pa.float64(), pa.bool_()
_EXACT = {
    32: (2.0**24, re.compile(rb"[0-9]{8,}[^0-9.eE]")),
    64: (2.0**53, re.compile(rb"[0-9]{16,}[^0-9.eE]")),
}
"""By the bits of a float: the largest whole number before which it has all, and a pattern of larger ones."""
_FEW = knob(__name__, "_FEW", 64)
"""Lines that are sooner read one by one than looked at as a whole."""
_SPACE = b" \t\r\n"
_BETWEEN = re.compile(rb"\}[ \t\r]*\n[ \t\r\n]*\{")
_GOES_ON = re.compile(rb"\}[ \t\r]*[^ \t\r\n,\]}]")
_NO_TEXT = re.compile(r"(?i)\s*(?:|NA|N/A|null|none|[+-]?(?:nan|inf|infinity))\s*")
"""Texts that columns of numbers may have: words for null, and numbers that JSON has no sign for."""
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|([\[{])|([\]}])')


class _Number(str):
    """A number as it was written."""

    __slots__ = ()


_DECODER = json.JSONDecoder(
    parse_int=_Number, parse_float=_Number, parse_constant=_Number, object_pairs_hook=of_pairs
)


def guessed(head: bytes, times: tuple[str, ...]) -> tuple[pa.Schema, bool, dict[str, str]]:
    """Return the columns of a block, by the types of its values, and whether there are more than ``MOST_KEYS``.

    Third is by column, or path in one, why it is text, or left out: a line for the user.
    """
    cells: dict[str, list[Any]] = {}
    crowded = False
    for line in _lines(head):
        row = object_of(line)
        for name, value in () if isinstance(row, str) else row.items():
            if name in cells or name in times or len(cells) < MOST_KEYS:
                cells.setdefault(name, []).append(value)
            else:
                crowded = True
    why: dict[str, str] = {}
    kinds = {name: _kind(values, name, why, is_time=name in times) for name, values in cells.items()}
    known = [(name, kind) for name, kind in kinds.items() if kind is not None]
    fields = [pa.field(name, kind, metadata=_mark(kind, cells[name])) for name, kind in known]
    spoilers = [(name, _spoiler(cells[name])) for name, kind in known if kind == pa.string()]
    why |= {name: spoiler.line(name) for name, spoiler in spoilers if spoiler is not None}
    return pa.schema(fields), crowded, why


def _mark(kind: pa.DataType, values: list[Any]) -> dict[str, str] | None:
    """Return the mark of a column that was guessed to be text with numbers in it: it has them as written."""
    mixed = is_text(kind) and any(value is not None and type(value) is not str for value in values)
    return {AS_WRITTEN: "true"} if mixed else None


def _kind(values: list[Any], path: str, why: dict[str, str], *, is_time: bool = False) -> pa.DataType | None:
    """Return the type of a column, or of the values at a ``path`` in one; None: none, and ``why`` has the reason."""
    plain = [value for value in values if not isinstance(value, dict | list)]
    if len(values) - len(plain) > sum(
        value is not None for value in plain
    ):  # most, or all: the others are bad rows
        return _nested_kind([value for value in values if isinstance(value, dict | list)], path, why)
    texts = pa.array([_text(value) for value in plain], pa.binary())
    words = [value for value in plain if type(value) is str]
    if len(words) == sum(value is not None for value in plain):
        kind = guess_words(texts)
    elif all(_NO_TEXT.fullmatch(word) for word in words):
        kind = guess(texts, exact=False)
    else:  # a text is no number, though it may read like one
        kind = pa.string()
    return guess_time(texts) if is_time and not pa.types.is_integer(kind) else kind


def _nested_kind(values: list[Any], path: str, why: dict[str, str]) -> pa.DataType | None:
    """Return the type of lists, or of objects: their fields are those of all of them."""
    if all(isinstance(value, list) for value in values):
        kind = _part_kind([item for value in values for item in value], f"{path}[]", why)
        return None if kind is None else pa.list_(kind)
    if not all(isinstance(value, dict) for value in values):
        return _left_out(path, "lists and objects", why)
    names = {name: None for value in values for name in value}
    if len(names) > MOST_KEYS:
        return _left_out(path, f"objects of {len(names):,} different keys", why)
    kinds = {name: _part_kind([value.get(name) for value in values], f"{path}.{name}", why) for name in names}
    fields = [(name, kind) for name, kind in kinds.items() if kind is not None]
    return pa.struct(fields) if fields else _left_out(path, "no values of a type", why)


def _part_kind(values: list[Any], path: str, why: dict[str, str]) -> pa.DataType | None:
    """Return the type of values in lists or objects, where all must be of one: a text is no number there."""
    known = [value for value in values if value is not None]
    if not known:
        return _left_out(path, "no values", why)
    if 0 < sum(isinstance(value, dict | list) for value in known) < len(known):
        return _left_out(path, "values beside lists or objects", why)
    kind = _kind(values, path, why)
    if kind is not None and _mark(kind, values) is not None:
        return _left_out(path, "texts beside other values", why)
    return kind


def _left_out(path: str, has: str, why: dict[str, str]) -> pa.DataType | None:
    """Note why there is no type at a path, and return that."""
    why[path] = f"{path}: left out, for its first values are {has}; a schema declares it"
    return None


def _spoiler(values: list[Any]) -> Spoiler | None:
    """Return why a column is text though most of its values are numbers."""
    words = [i for i, value in enumerate(values) if type(value) is str and not _NO_TEXT.fullmatch(value)]
    numbers = [value for value in values if isinstance(value, _Number)]
    if not words or len(words) >= len(numbers):
        return None
    kind = guess(pa.array([str(value) for value in numbers]), exact=False)
    return None if kind == pa.string() else Spoiler(kind, words[0] + 1, values[words[0]][:60])


def rows_of(
    lines: bytes, columns: pa.Schema, other: OtherKey | None = None, *, alike: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some whole lines; a line that cannot be read has a reason in the column ``REFUSED``.

    ``other`` is called with keys that are not among ``columns``, where there are any; it may be given others as well.
    ``alike``: lines may be written alike, so a kernel tries first; no result depends on it.
    """
    if not lines.strip(_SPACE):
        return
    as_read, has_parts = pa.schema([(f.name, _as_read(f.type)) for f in columns]), _has_parts(columns)
    table = None
    if not has_parts:
        table = json_alike(lines, as_read, other) if alike and _is_utf8(lines) else None
    if table is None and pa.null() not in as_read.types:
        table = _at_once(lines, as_read, other)
    if table is not None and has_parts:
        table = _with_parts(table, columns)
    if table is None:
        yield from line_by_line(lines, columns, other)
    else:
        yield from table.to_batches()


def line_by_line(lines: bytes, columns: pa.Schema, other: OtherKey | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the same rows as ``rows_of``, every value as its text."""
    there = list(_lines(lines))
    step = max(_CELLS // max(len(columns), 1), 1)
    for start in range(0, len(there), step):
        yield _texts(there[start : start + step], columns, other)


def object_of(line: bytes) -> dict[str, Any] | str:
    """Return the object in a line, numbers as their texts, or the reason why there is none."""
    if line.count(b"[") + line.count(b"{") > DEEPEST and _depth(line) > DEEPEST:
        return f"the line is nested deeper than {DEEPEST} levels"
    try:
        content = _DECODER.decode(line.decode("utf-8-sig"))  # files with a mark may have been put together
    except UnicodeDecodeError:
        return "the line is no UTF-8"
    except ValueError:
        return "the line is no JSON object"
    return content if isinstance(content, dict) else "the line is no JSON object"


def _at_once(lines: bytes, as_read: pa.Schema, other: OtherKey | None) -> pa.Table | None:
    rows = plain_rows(lines.strip(_SPACE))
    if rows is None:
        return None
    if other is not None and (table := _by_arrow(lines, as_read, rows, others="error")) is not None:
        return table  # there are no others, so looking for them costs nothing
    if other is not None and _has_parts(as_read):
        return None  # keys inside of others are counted, too
    if (table := _by_arrow(lines, as_read, rows, others="ignore")) is not None and other is not None:
        for name, count in _keys_one_by_one(lines) if rows <= _FEW else keys_of(lines):
            other(name, count)
    return table


def _with_parts(table: pa.Table, columns: pa.Schema) -> pa.Table | None:
    """Return a table with its lists and objects in their types; None: a value in one has another."""
    for at, field in enumerate(columns):
        if pa.types.is_nested(field.type):
            chunks = [converted(chunk, field.type) for chunk in table.column(at).chunks]
            if any(lost is not None and lost.true_count for _, lost in chunks):
                return None
            table = table.set_column(
                at, field.name, pa.chunked_array([made for made, _ in chunks], field.type)
            )
    return table


def _has_parts(columns: pa.Schema) -> bool:
    return any(map(pa.types.is_nested, columns.types))


def _keys_one_by_one(lines: bytes) -> Iterator[tuple[str, int]]:
    return ((name, 1) for row in map(object_of, _lines(lines)) if isinstance(row, dict) for name in row)


def _by_arrow(lines: bytes, as_read: pa.Schema, rows: int, others: str) -> pa.Table | None:
    options = pa.json.ParseOptions(explicit_schema=as_read, unexpected_field_behavior=others)
    whole = pa.json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    try:
        table = pa.json.read_json(pa.py_buffer(lines), whole, options)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    if table.num_rows != rows or _rounded(lines, table):
        return None
    return table.select(as_read.names)


def _rounded(lines: bytes, table: pa.Table) -> bool:
    """Return whether Arrow may have rounded a whole number to a float, or made one infinite."""
    for column in _leaves(table.columns):
        if not pa.types.is_floating(column.type):
            continue
        exact, digits = _EXACT[column.type.bit_width]
        ends = pc.min_max(column).as_py()
        most = max(abs(ends["min"] or 0), abs(ends["max"] or 0))
        if most == float("inf") or (most >= exact and digits.search(lines)):
            return True
    return False


def _leaves(columns: Sequence[pa.ChunkedArray]) -> Iterator[pa.ChunkedArray]:
    """Yield columns, and in place of lists and objects those of the values in them."""
    for column in columns:
        if pa.types.is_struct(column.type):
            yield from _leaves(column.flatten())
        elif pa.types.is_list(column.type):
            yield from _leaves(
                [pa.chunked_array([c.flatten() for c in column.chunks], column.type.value_type)]
            )
        else:
            yield column


def plain_rows(text: bytes) -> int | None:
    """Return the number of lines if each is one object as far as brackets tell, and Arrow may see it; else None.

    A line begins with ``{`` and ends with ``}``, and in it nothing but ``,``, ``]`` or ``}`` follows on a ``}``:
    so no line goes on in the next one, and no line has two.
    """
    if not (text.startswith(b"{") and text.endswith(b"}") and _is_utf8(text)):
        return None
    counts = np.bincount(np.frombuffer(text, np.uint8), minlength=256)
    rows = int(counts[ord("\n")]) + 1
    if text.count(b"}\n{") + 1 != rows:
        rows = sum(1 for _ in _lines(text))
        if len(_BETWEEN.findall(text)) + 1 != rows:
            return None
    if counts[ord("}")] != rows and _GOES_ON.search(text):
        return None
    openers = int(counts[ord("{")] + counts[ord("[")])
    return rows if openers - rows < DEEPEST or _most_openers(text) <= DEEPEST else None


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _most_openers(text: bytes) -> int:
    """Return the most brackets that a line opens: it is nested no deeper."""
    letters = np.frombuffer(text, np.uint8)
    opened = np.cumsum((letters == ord("[")) | (letters == ord("{")))
    ends = np.append(np.flatnonzero(letters == ord("\n")), len(letters) - 1)
    return int(np.diff(opened[ends], prepend=0).max())


def _depth(line: bytes) -> int:
    depth = deepest = 0
    for token in _BRACKETS.finditer(line):
        depth += (token[1] is not None) - (token[2] is not None)
        deepest = max(deepest, depth)
    return deepest


def _as_read(kind: pa.DataType) -> pa.DataType:
    """Return the type in which Arrow reads values of ``kind``; null: it cannot, within lists or objects."""
    if pa.types.is_list(kind):
        inner = _as_read(kind.value_type)
        return pa.null() if pa.types.is_null(inner) else pa.list_(inner)
    if pa.types.is_struct(kind):
        parts = [(field.name, _as_read(field.type)) for field in kind]
        return (
            pa.struct(parts) if parts and not any(pa.types.is_null(each) for _, each in parts) else pa.null()
        )
    if pa.types.is_nested(kind):
        return pa.null()
    return kind if _is_json(kind) else pa.string()


def _is_json(kind: pa.DataType) -> bool:
    """Return whether JSON has such values, so that Arrow reads them as their texts are read."""
    number = pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind)
    return bool(number or pa.types.is_boolean(kind) or kind in (pa.string(), pa.large_string()))


def _lines(text: bytes) -> Iterator[bytes]:
    return (line for line in text.split(b"\n") if line.strip(_SPACE))


def _texts(lines: list[bytes], fields: pa.Schema, other: OtherKey | None) -> pa.RecordBatch:
    """Return the values of some columns as text; ``REFUSED`` and ``LINE`` are set for lines that have none."""
    rows: list[dict[str, Any]] = []
    reasons: list[str | None] = []
    names = [field.name for field in fields if not pa.types.is_nested(field.type)]
    wanted = {field.name: field.type for field in fields if AS_WRITTEN.encode() not in (field.metadata or {})}
    for line in lines:
        row = object_of(line)
        rows.append({} if isinstance(row, str) else row)
        reasons.append(row if isinstance(row, str) else _misfit(row, fields.names, names, wanted))
        if other is not None:
            for name in rows[-1]:
                other(name, 1)
    columns = {name: pa.array([_text(row.get(name)) for row in rows], pa.binary()) for name in names}
    note = _quiet if other is None else lambda path: other(path, 1)
    for field in fields:
        if field.name not in columns:
            columns[field.name] = nested_column(
                [row.get(field.name) for row in rows], field, note, leaf, reasons
            )
    if any(reasons):
        raw = [None if reason is None else line for line, reason in zip(lines, reasons, strict=True)]
        columns |= {REFUSED: pa.array(reasons, pa.string()), LINE: pa.array(raw, pa.binary())}
    return pa.RecordBatch.from_pydict(columns)


def nested(row: dict[str, Any], names: list[str]) -> str | None:
    """Return the reason to refuse a row if a value of one of these columns is a list or an object."""
    if not any(isinstance(value, dict | list) for value in row.values()):
        return None
    nested_column = next((name for name in names if isinstance(row.get(name), dict | list)), None)
    return None if nested_column is None else f"{nested_column} is a list or an object"


def _misfit(
    row: dict[str, Any], all_names: list[str], names: list[str], wanted: dict[str, pa.DataType]
) -> str | None:
    """Return the reason to refuse a row: a column twice, a nested value, a number or a boolean where none belongs."""
    if (reason := twice(row, all_names) or nested(row, names)) is not None:
        return reason
    for name, value in row.items():
        kind = type(value)
        if (kind is _Number and not is_number(wanted.get(name, _FLOAT))) or (
            kind is bool and not pa.types.is_boolean(wanted.get(name, _BOOLEAN))
        ):
            return f"{name}: cannot read {json.dumps(value) if kind is bool else value} as {wanted[name]}"
    return None


def leaf(value: Any, kind: pa.DataType, path: str) -> Any:
    """Return a value within a list or an object: a number is none of another type, and the other way round."""
    cls = type(value)
    numeric, boolean = is_number(kind), pa.types.is_boolean(kind)
    if cls is dict or cls is list or (cls is _Number and not numeric) or (cls is bool and not boolean):
        raise MisfitError(path, str(value) if cls is _Number else value, kind)
    return str(value) if cls is _Number else value


def _quiet(path: str) -> None:
    """Count nothing."""


def _text(value: Any) -> bytes | None:
    if isinstance(value, str):
        return value.encode(errors="surrogatepass")
    return {True: b"true", False: b"false"}.get(value) if isinstance(value, bool) else None
