"""JSON messages, by lines or by payloads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from oop_engine.connectors.formats.few_json_rows import FewJsonRows
from oop_engine.connectors.message_format import MessageFormat, register_message_format
from oop_engine.connectors.payload import Metadata
from oop_engine.connectors.source import Unreadable
from oop_engine.core.errors import TraceError
from oop_engine.core.operator import Message
from oop_engine.core.schema import Schema
from oop_engine.traces.format import readable
from oop_engine.traces.formats.alike.block import Seen
from oop_engine.traces.formats.alike.json_lines import load
from oop_engine.traces.formats.json_lines import apart
from oop_engine.traces.formats.json_rows import AS_WRITTEN, rows_of
from oop_engine.traces.punctuation_records import fit_punctuation, punctuation_of_json
from oop_engine.traces.validation import check_texts

__all__ = ["JsonMessages"]

_SPACE = b" \t\r\n"
_MARK = b"\xef\xbb\xbf"  # some programs put it in front of UTF-8


@register_message_format("jsonl")
class JsonMessages(MessageFormat):
    """A JSON object a line, or a payload; ``{"punctuation": ...}`` is punctuation, as in a trace of JSON lines."""

    row_a_line = True

    def __init__(
        self, schema: Schema, place: str, unreadable: Unreadable, metadata: Metadata | None = None
    ) -> None:
        super().__init__(schema, place, unreadable, metadata)
        check_texts(Path(place), self.columns, nested=True)
        self._few, self._seen = FewJsonRows(schema), Seen(load)
        self._fields = self.columns
        for name in self.metadata:  # a row that has one is refused
            self._fields = self._fields.append(pa.field(name, pa.string(), metadata={AS_WRITTEN: "true"}))

    def is_row(self, payload: bytes) -> bool:
        """Return whether a payload is one row, not punctuation."""
        return bool(payload.strip(_SPACE)) and b'"punctuation"' not in payload

    def joined(self, pieces: list[Any]) -> Any | None:
        """Return whole lines as one text, lists of payloads as one list."""
        if all(isinstance(piece, bytes) and piece.endswith(b"\n") for piece in pieces):
            return b"".join(pieces)
        return list(chain.from_iterable(pieces)) if all(isinstance(piece, list) for piece in pieces) else None

    def messages(self, data: Any) -> Iterator[Message]:
        """Yield pages, and punctuation where it stands."""
        if isinstance(data, bytes):
            data = data.removeprefix(_MARK)
        if not self.metadata and (page := self._few.page(data)) is not None:
            yield page
            return
        for lines, no_row in apart(_lines(data), self.schema.names):
            if not no_row:
                alike = self._seen.enough(lines)
                yield from self._pages(rows_of(lines, self._fields, self.unknown.add, alike=alike))
                continue
            try:
                with readable(Path(self.place), "see docs/traces.md"):
                    punctuation = fit_punctuation(
                        punctuation_of_json(lines, self.schema.fields), self.schema.fields
                    )
            except TraceError as error:
                self._refuse(error, lines)
            else:
                yield punctuation


def _lines(data: bytes | list[bytes]) -> bytes:
    """Return payloads as whole lines: a line feed is space in JSON."""
    if isinstance(data, bytes):
        return data
    return b"".join(payload.replace(b"\n", b" ") + b"\n" for payload in data)
