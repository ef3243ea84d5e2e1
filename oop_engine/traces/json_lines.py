"""JSON lines: an object a line; a key that is not there is null.

A line ``{"punctuation": {...}}`` is a promise: ``{"below": 60}``, or
``{"groups": {"src": ["a", "b"]}, "below": [60, 120]}``, or ``{"joint": {"ts": 10, "ts_right": 7}}``;
bounds are in the unit of the progressing attribute.  NaN and infinities, for which JSON
has no numbers, are written as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from oop_engine.errors import TraceError
from oop_engine.punctuation import GroupWise, Joint, Linear, Punctuation
from oop_engine.traces.cells import guess, guess_time, read_as
from oop_engine.traces.format import Marks, Record, is_textual, readable, require_textual

__all__ = ["JsonReader", "JsonWriter"]

_BLOCK = 1 << 20
_PROMISE = re.compile(rb'^[ \t]*\{[ \t]*"punctuation"[ \t]*:.*$\n?', re.MULTILINE)
_ESCAPED = r'["\\\x00-\x1f]'


class JsonReader:
    """Blocks of 1 MB; a block that Arrow cannot read is read line by line, as text.

    Columns may be missing from some lines; those in ``fields`` are the ones of the first
    block, without nested ones.
    """

    guessed: ClassVar[bool] = True
    sparse: ClassVar[bool] = True

    def __init__(self, path: Path, times: tuple[str, ...] = ()) -> None:
        self._path = path
        self.marks = Marks()
        head = _PROMISE.sub(b"", next(self._blocks(), b""))
        if head.strip() and not head.lstrip().startswith(b"{"):
            got = head.lstrip()[:20]
            msg = f"{path}: must have a JSON object a line; it begins with {got!r}: is it JSON lines?"
            raise TraceError(msg)
        self.fields = _guessed(head, times)

    def read(self, columns: pa.Schema, page_rows: int) -> Iterator[Record]:
        """Yield the rows of each block, and the promises between them; what does not fit its type as text."""
        with readable(self._path):
            for block in self._blocks():
                start = 0
                for found in _PROMISE.finditer(block) if b'"punctuation"' in block else ():
                    yield from _rows(block[start : found.start()], columns)
                    yield _promise_of(json.loads(found[0])["punctuation"], columns)
                    start = found.end()
                yield from _rows(block[start:], columns)

    def _blocks(self) -> Iterator[bytes]:
        """Yield the file in blocks of whole lines."""
        with self._path.open("rb") as file:
            while block := file.read(_BLOCK):
                block += file.readline()
                if not block.endswith(b"\n"):
                    self._check_last(block.rsplit(b"\n", 1)[-1])
                yield block

    def _check_last(self, line: bytes) -> None:
        if line.strip() and _object(line) is None:
            msg = f"{self._path}: ends within a line ({line[:60]!r}): it was cut off; mend or delete the line"
            raise TraceError(msg)


class JsonWriter:
    """Lines are put together column by column."""

    def __init__(self, sink: pa.NativeFile, fields: pa.Schema, marks: Marks) -> None:
        require_textual(fields, "jsonl")
        if "punctuation" in fields.names:
            msg = "jsonl: a column cannot be called 'punctuation': use another format, or rename it"
            raise TraceError(msg)
        self._sink = sink
        self._keys = [f"{', ' if i else '{'}{json.dumps(name)}: " for i, name in enumerate(fields.names)]

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        cells = [_cells(column) for column in batch.columns]
        parts = [part for pair in zip(self._keys, cells, strict=True) for part in pair]
        lines = pc.binary_join_element_wise(*parts, "}\n", "")
        for line in [lines] if isinstance(lines, pa.StringArray) else lines.chunks:
            self._sink.write(_bytes_of(line))

    def promise(self, punctuation: Punctuation) -> None:
        """Append a promise."""
        line = json.dumps({"punctuation": _said(punctuation)}, ensure_ascii=False, default=str)
        self._sink.write(f"{line}\n".encode())

    def close(self) -> None:
        """Nothing more is to be written."""


def _guessed(head: bytes, times: tuple[str, ...]) -> pa.Schema:
    """Return the columns of a block, by the types of its values; by their texts where these are mixed."""
    try:
        found = pa.json.read_json(pa.py_buffer(head), _whole(head)).schema if head.strip() else pa.schema([])
        kinds = {f.name: pa.string() if pa.types.is_null(f.type) else f.type for f in found}
    except (pa.ArrowInvalid, UnicodeDecodeError):
        names = {name: None for row in map(_object, head.splitlines()) for name in row or ()}
        kinds = {name: guess(texts) for name, texts in _texts(head, list(names)).items()}
    for name in times:
        if name in kinds and not pa.types.is_integer(kinds[name]):
            kinds[name] = guess_time(_texts(head, [name])[name])
    return pa.schema([(name, kind) for name, kind in kinds.items() if is_textual(kind)])


def _rows(lines: bytes, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    if not lines.strip():
        return
    options = pa.json.ParseOptions(explicit_schema=columns, unexpected_field_behavior="ignore")
    try:
        table = pa.json.read_json(pa.py_buffer(lines), _whole(lines), options)
        yield from table.select(columns.names).to_batches()
    except (pa.ArrowInvalid, UnicodeDecodeError):
        yield pa.RecordBatch.from_pydict(_texts(lines, columns.names))


def _whole(lines: bytes) -> pa.json.ReadOptions:
    return pa.json.ReadOptions(use_threads=False, block_size=len(lines) + 1)


def _texts(lines: bytes, names: list[str]) -> dict[str, pa.Array]:
    """Return the values of some columns as text; a line that is no object is that text in all of them."""
    rows = [(_object(line), line) for line in lines.split(b"\n") if line.strip()]
    return {
        name: pa.array([line if row is None else _text(row.get(name)) for row, line in rows], pa.binary())
        for name in names
    }


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _text(value: Any) -> bytes | None:
    if value is None or isinstance(value, str):
        return value if value is None else value.encode(errors="surrogatepass")
    return json.dumps(value).encode()


def _promise_of(said: dict[str, Any], columns: pa.Schema) -> Punctuation:
    if "joint" in said:
        return Joint.of(**{name: int(below) for name, below in said["joint"].items()})
    if "groups" not in said:
        return Linear(int(said["below"]))
    keys = {name: _keys(values, columns.field(name).type) for name, values in said["groups"].items()}
    return GroupWise(pa.RecordBatch.from_pydict(keys), np.array(said["below"], np.int64))


def _keys(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_temporal(kind):
        return read_as(pa.array(values, pa.string()), kind)[0]
    return pa.array(values, kind)


def _said(punctuation: Punctuation) -> dict[str, Any]:
    match punctuation:
        case Linear(below):
            return {"below": below}
        case GroupWise(groups, bounds):
            keys = {n: groups.column(n) for n in groups.schema.names}
            texts = {n: k.cast(pa.string()) if pa.types.is_temporal(k.type) else k for n, k in keys.items()}
            return {"groups": {n: k.to_pylist() for n, k in texts.items()}, "below": bounds.tolist()}
        case Joint(joint):
            return {"joint": dict(joint)}


def _cells(column: pa.Array) -> pa.Array:
    """Return the values as JSON."""
    kind = column.type
    texts = column.cast(pa.string())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts = _quoted(_escaped(texts))
    elif pa.types.is_temporal(kind):
        texts = _quoted(texts)
    elif pa.types.is_floating(kind):
        texts = pc.if_else(pc.is_finite(column), texts, _quoted(texts))
    return texts.fill_null("null")


def _escaped(texts: pa.Array) -> pa.Array:
    if not pc.any(pc.match_substring_regex(texts, _ESCAPED)).as_py():
        return texts
    distinct = texts.unique()
    escaped = [None if v is None else json.dumps(v, ensure_ascii=False)[1:-1] for v in distinct.to_pylist()]
    return pa.array(escaped, pa.string()).take(pc.index_in(texts, value_set=distinct))


def _quoted(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _bytes_of(texts: pa.StringArray) -> pa.Buffer:
    """Return all the texts, one after the other."""
    ends = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return texts.buffers()[2].slice(int(ends[0]), int(ends[-1] - ends[0]))
