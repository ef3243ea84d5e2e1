"""Values of Postgres: from the text that the server sends to JSON, by the types of both sides.

Numbers stay as the server writes them, which is JSON but for ``NaN``, ``Infinity`` and ``-Infinity``, as other sources
have them.  Where the schema has a list, struct or map, an array is a list, and a value of ``json`` is itself; for other
columns both are texts.  A domain is of the type below it.

Source: the PostgreSQL documentation, "Array Input and Output Syntax".
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

__all__ = ["TYPES", "NoTextError", "PostgresTypes", "quoted"]

TYPES = (
    b"select coalesce(json_object_agg(oid, case when typtype = 'd' then array[typbasetype::int8, 0] else "
    b"array[0, typelem::int8] end), '{}') from pg_type where typtype = 'd' or (typcategory = 'A' and typelem <> 0)"
)
"""The types below domains, and those of the elements of arrays, in one row."""
_NUMBERS, _BOOL, _BYTEA, _JSON = {20, 21, 23, 26, 700, 701}, 16, 17, (114, 3802)
_BOOLS = {b"t": b"true", b"f": b"false"}
_TOKEN = re.compile(rb'[{},]|"(?:[^"\\]|\\.)*"|[^{},"]+', re.DOTALL)
_BOUNDS = re.compile(rb"(?:\[[-+]?\d+:[-+]?\d+\])+=")
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)


class NoTextError(ValueError):
    """A value of bytes cannot be a text of JSON."""


@dataclass
class PostgresTypes:
    """Types of the server, and those of the columns of the schema, by name, if they are known.

    ``of_server``: by number, the type below a domain and the type of an array's elements.  ``envelopes``: bytes are in
    base64.
    """

    columns: Mapping[str, pa.DataType] = field(default_factory=dict)
    of_server: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    envelopes: bool = False

    def learn(self, row: bytes) -> None:
        """Take over the types that the server has, from the row of ``TYPES``."""
        self.of_server = {int(number): (below, of) for number, (below, of) in json.loads(row).items()}

    def value(self, text: bytes, kind: int, column: str) -> bytes:
        """Return a value as JSON has it; one of another type than numbers and booleans is a text.

        Raises ``NoTextError`` for bytes that are none, where a column of bytes wants them.
        """
        try:
            return self._value(text, kind, self.columns.get(column))
        except NoTextError as error:
            msg = f"{column}: {error}"
            raise NoTextError(msg) from error

    def _value(self, text: bytes, kind: int, wanted: pa.DataType | None) -> bytes:
        while below := self.of_server.get(kind, (0, 0))[0]:
            kind = below
        if kind in _NUMBERS:
            return text
        if kind == _BOOL:
            return _BOOLS[text]
        if kind == _BYTEA:
            return self._bytes(text, wanted)
        if wanted is not None and pa.types.is_nested(wanted):
            if kind in _JSON:
                return text.replace(b"\n", b" ")  # of which there are none in texts
            if of := self.of_server.get(kind, (0, 0))[1]:
                return self._list(text, of, wanted)
        return quoted(text)

    def _bytes(self, text: bytes, wanted: pa.DataType | None) -> bytes:
        """Return bytes, which the server writes in hexadecimal, as the reader of the column takes them."""
        if self.envelopes:
            return b'"%b"' % b64encode(bytes.fromhex(text[2:].decode()))
        if wanted is None or not (pa.types.is_binary(wanted) or pa.types.is_large_binary(wanted)):
            return quoted(text)
        found = bytes.fromhex(text[2:].decode())
        try:
            return quoted(found.decode().encode())
        except UnicodeDecodeError as error:
            words = "are no text, so rows in JSON cannot have them: read them with format='debezium'"
            msg = f"bytes {text.decode()[:100]} {words}"
            raise NoTextError(msg) from error

    def _list(self, text: bytes, of: int, wanted: Any) -> bytes:
        """Return an array as a list; ``of``: the type of its elements, at any depth."""
        levels = [wanted]
        pieces = list[bytes]()
        for token in _TOKEN.findall(_BOUNDS.sub(b"", text, count=1)):
            if token == b"{":
                inner = levels[-1]
                levels.append(inner.value_type if _is_list(inner) else None)
                pieces.append(b"[")
            elif token == b"}":
                levels.pop()
                pieces.append(b"]")
            elif token == b",":
                pieces.append(b", ")
            elif token.upper() == b"NULL":
                pieces.append(b"null")
            else:
                plain = _ESCAPED.sub(rb"\1", token[1:-1]) if token[:1] == b'"' else token
                pieces.append(self._value(plain, of, levels[-1]))
        return b"".join(pieces)


def _is_list(kind: Any) -> bool:
    return kind is not None and (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def quoted(text: bytes) -> bytes:
    """Return a text as JSON has it.

    >>> quoted('Z\u00fcrich "a"'.encode()).decode(), quoted(b"\\xff")
    ('"Z\u00fcrich \\\\"a\\\\""', b'"\\xff"')
    """
    found = json.encoder.encode_basestring(text.decode(errors="surrogateescape"))
    return found.encode(errors="surrogateescape")
