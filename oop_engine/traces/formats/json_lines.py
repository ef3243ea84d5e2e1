"""JSON lines: an object a line; a key that is not there is null.

A line ``{"punctuation": {...}}`` is a punctuation: ``{"below": 60}``, or
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

from oop_engine.core.errors import TraceError
from oop_engine.core.punctuation import GroupWise, Joint, Linear, Punctuation, Watermark
from oop_engine.core.values.rfc3339 import moment_texts
from oop_engine.traces.format import Marks, Record, readable, require_textual
from oop_engine.traces.formats.json_rows import OtherKey, guessed, object_of, rows_of
from oop_engine.traces.punctuation_records import punctuation_of_json

__all__ = ["JsonReader", "JsonWriter", "apart"]

_BLOCK = 1 << 20
_LONGEST = 1 << 22
_PUNCTUATION = re.compile(rb'^[ \t]*\{[ \t]*"punctuation"[ \t]*:.*$\n?', re.MULTILINE)
_ESCAPED = r'["\\\x00-\x1f]'
_MARK = b"\xef\xbb\xbf"  # some programs put it in front of UTF-8


class JsonReader:
    """Blocks of 1 MB, to the end of a line, which may have 4 MB.

    Columns may be missing from some lines; those in ``fields`` are the ones of the first
    block, without nested ones.  ``other`` is called with keys of lines that are not read, and how many lines have them.
    """

    guessed: ClassVar[bool] = True
    sparse: ClassVar[bool] = True

    def __init__(self, path: Path, times: tuple[str, ...] = ()) -> None:
        self._path = path
        self.marks = Marks()
        self.other: OtherKey | None = None
        head = _PUNCTUATION.sub(b"", next(self._blocks(), b""))
        if head.strip() and not head.lstrip().startswith(b"{"):
            got = head.lstrip()[:20]
            msg = f"{path}: must have a JSON object a line; it begins with {got!r}: is it JSON lines?"
            raise TraceError(msg)
        self.fields, self.crowded = guessed(head, times)

    def read(self, columns: pa.Schema, page_rows: int) -> Iterator[Record]:
        """Yield the rows of each block and the punctuation between them; values that do not fit their type as text."""
        with readable(self._path):
            for block in self._blocks():
                for lines, is_punctuation in apart(block):
                    if is_punctuation:
                        yield punctuation_of_json(lines, columns)
                    else:
                        yield from rows_of(lines, columns, self.other)

    def _blocks(self) -> Iterator[bytes]:
        """Yield the file in blocks of whole lines."""
        with readable(self._path), self._path.open("rb") as file:
            file.seek(len(_MARK) if file.read(len(_MARK)) == _MARK else 0)
            while block := file.read(_BLOCK):
                block += file.readline(_LONGEST)
                if not block.endswith(b"\n"):
                    self._check_last(block.rsplit(b"\n", 1)[-1])
                yield block

    def _check_last(self, line: bytes) -> None:
        if len(line) >= _LONGEST:
            msg = f"{self._path}: a line must be shorter than {_LONGEST:,} bytes; got {line[:60]!r}...: divide it"
            raise TraceError(msg)
        if line.strip() and isinstance(object_of(line), str):
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

    def punctuation(self, punctuation: Punctuation) -> None:
        """Append a punctuation."""
        line = json.dumps({"punctuation": _body(punctuation)}, ensure_ascii=False, default=str)
        self._sink.write(f"{line}\n".encode())

    def close(self) -> None:
        """Nothing more is to be written."""


def apart(block: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield whole lines cut into lines of rows and single lines of punctuation, with whether it is the latter."""
    start = 0
    for found in _PUNCTUATION.finditer(block) if b'"punctuation"' in block else ():
        yield block[start : found.start()], False
        yield found[0], True
        start = found.end()
    yield block[start:], False


def _body(punctuation: Punctuation) -> dict[str, Any]:
    match punctuation:
        case Linear(below):
            return {"below": below}
        case GroupWise(groups, bounds):
            keys = {n: groups.column(n) for n in groups.schema.names}
            texts = {n: _texts(k) if pa.types.is_temporal(k.type) else k for n, k in keys.items()}
            return {"groups": {n: k.to_pylist() for n, k in texts.items()}, "below": bounds.tolist()}
        case Joint(joint):
            return {"joint": dict(joint)}
        case Watermark(of):
            return {"watermark": _body(of)}


def _cells(column: pa.Array) -> pa.Array:
    """Return the values as JSON."""
    kind = column.type
    texts = _texts(column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts = _quoted(_escaped(texts))
    elif pa.types.is_temporal(kind) or pa.types.is_decimal(
        kind
    ):  # digits of a decimal are not rounded as text
        texts = _quoted(texts)
    elif pa.types.is_floating(kind):
        texts = pc.if_else(pc.is_finite(column), texts, _quoted(texts))
    return texts.fill_null("null")


def _texts(column: pa.Array) -> pa.Array:
    return moment_texts(column) if pa.types.is_timestamp(column.type) else column.cast(pa.string())


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
