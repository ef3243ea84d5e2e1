"""JSON lines: an object a line; a key that is not there is null.

A line ``{"punctuation": {...}}`` is a punctuation: ``{"below": 60}``, or
``{"groups": {"src": ["a", "b"]}, "below": [60, 120]}``, or ``{"joint": {"ts": 10, "ts_right": 7}}``;
bounds are in the unit of the progressing attribute.  NaN and infinities, for which JSON
has no numbers, are written as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.core.errors import TraceError
from oop_engine.core.punctuation import GroupWise, Joint, Linear, Punctuation, Watermark
from oop_engine.core.values.rfc3339 import moment_texts
from oop_engine.system.knobs import knob
from oop_engine.traces.compressed import opened, share_read
from oop_engine.traces.format import LINE, REFUSED, Marks, Record, readable, require_textual
from oop_engine.traces.formats.alike.block import Seen
from oop_engine.traces.formats.encodings import refuse_wide
from oop_engine.traces.formats.json_names import named
from oop_engine.traces.formats.json_rows import OtherKey, guessed, object_of, rows_of
from oop_engine.traces.punctuation_records import is_punctuation, punctuation_of_json

__all__ = ["JsonReader", "JsonWriter", "apart"]

_BLOCK = knob(__name__, "_BLOCK", 1 << 20)
_LONGEST = 1 << 22
_SHOWN = 1000
_PUNCTUATION = re.compile(rb'^[ \t]*\{[ \t]*"punctuation"[ \t]*:.*$\n?', re.MULTILINE)
_ESCAPED = r'["\\\x00-\x1f]'
_MARK = b"\xef\xbb\xbf"  # some programs put it in front of UTF-8


class JsonReader:
    """Blocks of 1 MB, to the end of a line, which may have 4 MB.

    Columns may be missing from some lines; those in ``fields`` are the ones of the first
    block.  ``typed``: their types are not asked for, so none is guessed where that costs time.
    ``other`` is called with keys of lines that are not read, and how many lines have them.
    """

    guessed: ClassVar[bool] = True
    nested: ClassVar[bool] = True  # it has lists and objects
    sparse: ClassVar[bool] = True

    def __init__(self, path: Path, times: tuple[str, ...] = (), *, typed: bool = False) -> None:
        self._path = path
        self.share: float | None = None
        self.marks = Marks()
        self.other: OtherKey | None = None
        head = b"".join(lines for lines, no_row in apart(self._head(), times) if not no_row)
        if head.strip() and not head.lstrip().startswith(b"{"):
            got = head.lstrip()[:20]
            msg = f"{path}: must have a JSON object a line; it begins with {got!r}: is it JSON lines?"
            raise TraceError(msg)
        fields = named(head) if typed else None
        self.fields, self.crowded, self.spoiled = (
            guessed(head, times) if fields is None else (fields, False, {})
        )

    def read(self, columns: pa.Schema, page_rows: int) -> Iterator[Record]:
        """Yield the rows of each block and the punctuation between them; values that do not fit their type as text."""
        seen = Seen()
        with readable(self._path):
            for block in self._blocks(columns.names):
                if isinstance(block, pa.RecordBatch):
                    yield block
                    continue
                for lines, no_row in apart(block, columns.names):
                    if no_row:
                        yield punctuation_of_json(lines, columns)
                    else:
                        yield from rows_of(lines, columns, self.other, alike=seen.enough(lines))

    def _head(self) -> bytes:
        return next((block for block in self._blocks() if isinstance(block, bytes) and block), b"")

    def _blocks(self, names: Sequence[str] = ()) -> Iterator[Any]:
        """Yield the file in blocks of whole lines, and a refused row for each line that is too long."""
        with readable(self._path), opened(self._path) as file:
            first = file.read(_BLOCK).removeprefix(_MARK)
            refuse_wide(self._path, first)
            while block := first or file.read(_BLOCK):
                first, self.share = b"", share_read(self._path, file)
                if not block.endswith(b"\n"):
                    start = block.rfind(b"\n") + 1
                    block += file.readline(_LONGEST)
                    if len(block) - start >= _LONGEST:
                        yield block[:start]
                        yield _too_long(block[start : start + _SHOWN], names)
                        while not block.endswith(b"\n") and (block := file.readline(_LONGEST)):
                            pass
                        continue
                    if not block.endswith(b"\n"):
                        self._check_last(block[start:])
                yield block

    def _check_last(self, line: bytes) -> None:
        if line.strip() and isinstance(object_of(line), str):
            msg = f"{self._path}: ends within a line ({line[:60]!r}): it was cut off; mend or delete the line"
            raise TraceError(msg)


class JsonWriter:
    """Lines are put together column by column."""

    def __init__(self, sink: pa.NativeFile, fields: pa.Schema, marks: Marks) -> None:
        require_textual(fields, "jsonl")
        self._sink = sink
        self._keys = [f"{', ' if i else '{'}{json.dumps(name)}: " for i, name in enumerate(fields.names)]

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        cells = [_cells(column) for column in batch.columns]
        parts = [part for pair in zip(self._keys, cells, strict=True) for part in pair]
        lines = pc.binary_join_element_wise(*parts, "}\n", "")
        if len(lines) and pc.max(pc.binary_length(lines)).as_py() >= _LONGEST:
            msg = f"jsonl: a line must be shorter than {_LONGEST:,} bytes: use arrow, parquet or msgpack"
            raise TraceError(msg)
        for line in [lines] if isinstance(lines, pa.StringArray) else lines.chunks:
            self._sink.write(_bytes_of(line))

    def punctuation(self, punctuation: Punctuation) -> None:
        """Append a punctuation."""
        body = _body(punctuation)
        if punctuation.arrival is not None:
            body["arrival"] = punctuation.arrival
        line = json.dumps({"punctuation": body}, ensure_ascii=False, default=str)
        self._sink.write(f"{line}\n".encode())

    def close(self) -> None:
        """Nothing more is to be written."""


def apart(block: bytes, names: Sequence[str]) -> Iterator[tuple[bytes, bool]]:
    """Yield whole lines cut into lines of rows and single lines of punctuation, with whether it is the latter.

    ``names``: of the columns.  A line is punctuation by ``is_punctuation``: the order of keys has no meaning.
    """
    start = 0
    for match in _PUNCTUATION.finditer(block) if b'"punctuation"' in block else ():
        if not isinstance(line := object_of(match[0]), str) and not is_punctuation(line, names):
            continue  # a row that has such a key, too
        yield block[start : match.start()], False
        yield match[0], True
        start = match.end()
    yield block[start:], False


def _too_long(line: bytes, names: Sequence[str]) -> pa.RecordBatch:
    """Return a row that is refused."""
    marks = {
        REFUSED: pa.array([f"a line must be shorter than {_LONGEST:,} bytes"]),
        LINE: pa.array([line], pa.binary()),
    }
    return pa.RecordBatch.from_pydict({name: pa.nulls(1, pa.binary()) for name in names} | marks)


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
        case Watermark(soft):
            return {"watermark": _body(soft)}


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
    if pa.types.is_timestamp(column.type):
        return moment_texts(column)
    wide = column.cast(pa.float64()) if pa.types.is_float32(column.type) else column  # with all digits
    return wide.cast(pa.string())


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
