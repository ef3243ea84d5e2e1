"""One JSON row: a message that has the numbers of one row and nothing else, read without Arrow.

Arrow and the checks behind it take two hundred microseconds, of which a row alone pays all.  A line of plain numbers,
one for each column and in their order, is read the same way by all rules there are; any other line is left to them.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

from oop_engine.core.late.late_page import packed_row
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema

__all__ = ["OneJsonRow"]

_WHOLE = rb"(0|-?[1-9][0-9]{0,17})"
"""Of at most 18 digits, which fit 64 bits and are no time that is too far."""
_FRACTION = rb"(-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,20})?)"
_KINDS: dict[int, tuple[bytes, type]] = {
    pa.int32().id: (_WHOLE, int),
    pa.int64().id: (_WHOLE, int),
    pa.float64().id: (_FRACTION, float),
}


class OneJsonRow:
    """Reads rows of ``schema``; of one with other columns than numbers, none.

    >>> reads = OneJsonRow(Schema({"ts": pa.int64(), "v": pa.float64()}, "ts", "s"))
    >>> reads.page(b'{"ts": 3, "v": 0.5}').to_pylist(), reads.page(b'{"v": 0.5, "ts": 3}'), reads.page(b'{"ts": 3}')
    ([{'ts': 3, 'v': 0.5}], None, None)
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
        self._pattern = re.compile(
            rb"[ \t]*\{[ \t]*" + rb"[ \t]*,[ \t]*".join(pairs) + rb"[ \t]*\}[ \t\r]*\n?"
        )
        self._all = len(pairs) == len(kinds)

    def page(self, data: Any) -> Page | None:
        """Return the page of a row; None: the message has to be read by all rules."""
        if data.__class__ is list and len(data) == 1:
            data = data[0]
        if not (self._all and data.__class__ is bytes and (found := self._pattern.fullmatch(data))):
            return None
        return packed_row(self._schema, [of(text) for of, text in zip(self._of, found.groups(), strict=True)])
