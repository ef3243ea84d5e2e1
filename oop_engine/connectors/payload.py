"""Payload: the bytes of a message, and the columns that its server gives with them.

A source makes payloads where the schema has columns of messages (``LiveSource.metadata``); else it yields plain bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import pyarrow as pa

from oop_engine.core.errors import UsageError
from oop_engine.core.schema import Schema
from oop_engine.core.values.kinds import converts

__all__ = ["Metadata", "Payload", "metadata_in"]

Metadata = Mapping[str, pa.DataType]
"""Columns that a source adds to rows from its messages, by name, each with the type of its values."""


class Payload(bytes):
    """Bytes of a message; ``about`` has the values of columns of the message, ``is_null``: it has no bytes at all.

    >>> Payload(b"{}", {"_offset": 7}).about, Payload(None, {}).is_null
    ({'_offset': 7}, True)
    """

    about: Mapping[str, Any]
    is_null: bool

    def __new__(cls, data: bytes | None, about: Mapping[str, Any]) -> Self:
        """Make one; ``data``: None of a message without a value."""
        payload = super().__new__(cls, b"" if data is None else data)
        payload.about, payload.is_null = about, data is None
        return payload

    def of(self, data: bytes) -> Payload:
        """Return other bytes of the same message."""
        return Payload(data, self.about)


def metadata_in(schema: Schema, offered: Metadata, place: str) -> dict[str, pa.DataType]:
    """Return the columns of ``schema`` that are columns of messages, with the types of their values.

    Raises ``UsageError`` in the name of ``place`` if one is declared with a type that has no such values.

    >>> schema = Schema({"ts": pa.int64(), "_offset": pa.int64()}, "ts", "s")
    >>> metadata_in(schema, {"_offset": pa.int64(), "_topic": pa.string()}, "source 'in'")
    {'_offset': DataType(int64)}
    """
    wanted = {name: kind for name, kind in offered.items() if name in schema.names}
    for name, kind in wanted.items():
        if not converts(kind, schema.type_of(name)):
            declared = schema.type_of(name)
            msg = (
                f"{place}: column {name!r} comes from the message, as {kind}; got {declared}: declare {kind}"
            )
            raise UsageError(msg)
    return wanted
