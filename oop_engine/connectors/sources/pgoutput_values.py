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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

__all__ = ["TYPES", "NoTextError", "PostgresTypes", "Reader", "quoted"]

Reader: TypeAlias = Callable[[bytes], bytes]
"""From the text of a value to JSON."""

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
        self.of_server = {
            int(number): (below, element) for number, (below, element) in json.loads(row).items()
        }

    def reader(self, kind: int, column: str) -> Reader:
        """Return the function that makes JSON of a column's values; of most types they are texts.

        For bytes that are none it raises ``NoTextError``, where a column of bytes wants them.
        """
        wanted = self.columns.get(column)
        read = self._reader(kind, wanted)
        if wanted is None or self.envelopes or not _is_bytes(wanted):
            return read

        def named(text: bytes) -> bytes:
            try:
                return read(text)
            except NoTextError as error:
                msg = f"{column}: {error}"
                raise NoTextError(msg) from error

        return named

    def _reader(self, kind: int, wanted: pa.DataType | None) -> Reader:
        while below := self.of_server.get(kind, (0, 0))[0]:
            kind = below
        if kind in _NUMBERS:
            return _as_it_is
        if kind == _BOOL:
            return _BOOLS.__getitem__
        if kind == _BYTEA:
            return partial(self._bytes, wanted)
        if wanted is not None and pa.types.is_nested(wanted):
            if kind in _JSON:
                return _in_a_line
            if element := self.of_server.get(kind, (0, 0))[1]:
                return partial(self._list, element, wanted)
        return quoted

    def _bytes(self, wanted: pa.DataType | None, text: bytes) -> bytes:
        """Return bytes, which the server writes in hexadecimal, as the reader of the column takes them."""
        if self.envelopes:
            return b'"%b"' % b64encode(bytes.fromhex(text[2:].decode()))
        if wanted is None or not _is_bytes(wanted):
            return quoted(text)
        data = bytes.fromhex(text[2:].decode())
        try:
            return quoted(data.decode().encode())
        except UnicodeDecodeError as error:
            words = "are no text, so rows in JSON cannot have them: read them with format='debezium'"
            msg = f"bytes {text.decode()[:100]} {words}"
            raise NoTextError(msg) from error

    def _list(self, element: int, wanted: Any, text: bytes) -> bytes:
        """Return an array as a list; ``element``: the type of its elements, at any depth."""
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
                pieces.append(self._reader(element, levels[-1])(plain))
        return b"".join(pieces)


def _as_it_is(text: bytes) -> bytes:
    return text


def _in_a_line(text: bytes) -> bytes:
    return text.replace(b"\n", b" ")  # texts of JSON have none


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_list(kind: Any) -> bool:
    return kind is not None and (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def quoted(text: bytes) -> bytes:
    """Return a text as JSON has it.

    >>> quoted('Z\u00fcrich "a"'.encode()).decode(), quoted(b"\\xff")
    ('"Z\u00fcrich \\\\"a\\\\""', b'"\\xff"')
    """
    text_quoted = json.encoder.encode_basestring(text.decode(errors="surrogateescape"))
    return text_quoted.encode(errors="surrogateescape")
