"""Few JSON rows: messages that have the numbers of some rows and nothing else, read without Arrow.

Arrow and the checks behind it take two hundred microseconds, of which few rows pay all.  A line of plain numbers, one
for each column and in their order, takes two and is read the same way by all rules there are; where any line is another
one all are left to them.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

from oop_engine.core.late.late_page import FEW, packed_rows
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema

__all__ = ["FewJsonRows"]

_WHOLE = rb"(0|-?[1-9][0-9]{0,17})"
"""Of at most 18 digits, which fit 64 bits and are no time that is too far."""
_FRACTION = rb"(-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,20})?)"
"""Of at most 15 digits before the point, which a float has without rounding."""
_KINDS: dict[int, tuple[bytes, type]] = {
    pa.int32().id: (_WHOLE, int),
    pa.int64().id: (_WHOLE, int),
    pa.float64().id: (_FRACTION, float),
}


class FewJsonRows:
    """Reads rows of ``schema``; of one with other columns than numbers, none.

    >>> reads = FewJsonRows(Schema({"ts": pa.int64(), "v": pa.float64()}, "ts", "s"))
    >>> reads.page(b'{"ts": 3, "v": 0.5}').to_pylist(), reads.page(b'{"v": 0.5, "ts": 3}'), reads.page(b'{"ts": 3}')
    ([{'ts': 3, 'v': 0.5}], None, None)
    >>> len(reads.page(b'{"ts": 3, "v": 0.5}\\n{"ts": 4, "v": 1}\\n'))
    2
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        kinds = [_KINDS.get(kind.id) for kind in schema.fields.types]
        self._of = [kind[1] for kind in kinds if kind is not None]
        pairs = [
            re.escape(json.dumps(name).encode()) + rb"[ \t]*:[ \t]*" + kind[0]
            for name, kind in zip(schema.names, kinds, strict=True)
            if kind is not None
        ]
        row = rb"[ \t]*\{[ \t]*" + rb"[ \t]*,[ \t]*".join(pairs) + rb"[ \t]*\}[ \t\r]*"
        self._row = re.compile(row + rb"(?:\n|\Z)")
        self._all = len(pairs) == len(kinds)

    def page(self, data: Any) -> Page | None:
        """Return the page of some rows: lines, or a list of payloads; None: they have to be read by all rules."""
        if not self._all:
            return None
        if data.__class__ is bytes:
            rows = self._of_lines(data) if data.count(b"\n", 0, -1) < FEW else None
        else:
            rows = self._of_payloads(data) if len(data) <= FEW else None
        return None if rows is None else packed_rows(self._schema, rows)

    def _of_lines(self, data: bytes) -> list[list[Any]] | None:
        rows, row, at = list[list[Any]](), self._row, 0
        while at < len(data):
            if (match := row.match(data, at)) is None:
                return None
            rows.append(self._values(match))
            at = match.end()
        return rows

    def _of_payloads(self, payloads: list[Any]) -> list[list[Any]] | None:
        """Return their rows; each has one, for a line feed is no more than space there."""
        rows = list[list[Any]]()
        for data in payloads:
            if data.__class__ is not bytes or not (match := self._row.fullmatch(data)):
                return None
            rows.append(self._values(match))
        return rows

    def _values(self, match: re.Match[bytes]) -> list[Any]:
        return [read(text) for read, text in zip(self._of, match.groups(), strict=True)]
