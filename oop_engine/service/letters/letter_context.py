"""Letter context: all that a record was read with besides its bytes, so that it is read again in the same way.

Columns of its message (a key, an offset), and the line of names that held above it: without them a record that is fed
again would have nulls, or cells of other columns.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from oop_engine.connectors.payload import Payload
from oop_engine.service.letters.letter_folder import Retry

__all__ = ["bytes_of", "context_of", "names_in", "of_bytes", "with_message"]

_MESSAGE, _NULL, _NAMES, _BYTES = "message", "null", "names", "base64"


def context_of(raw: Any, names: bytes) -> dict[str, Any] | None:
    """Return the context of a record as JSON; None: it has none.

    >>> context_of(Payload(b"{}", {"_key": b"k", "_offset": 7}), b"")
    {'message': {'_key': {'base64': 'aw=='}, '_offset': 7}}
    """
    context: dict[str, Any] = {}
    if isinstance(raw, Payload) and raw.about:
        context[_MESSAGE] = {name: _packed(value) for name, value in raw.about.items()}
    if isinstance(raw, Payload) and raw.is_null:
        context[_NULL] = True
    if names:
        context[_NAMES] = names.decode(errors="surrogateescape")
    return context or None


def with_message(raw: bytes, context: Mapping[str, Any] | None) -> bytes:
    """Return the bytes of a record with the columns of its message, if the context has them."""
    about = (context or {}).get(_MESSAGE)
    if about is None:
        return raw
    is_null = not raw and (context or {}).get(_NULL)
    return Payload(None if is_null else raw, {name: _unpacked(value) for name, value in about.items()})


def names_in(context: Mapping[str, Any] | None) -> bytes:
    """Return the line of names that held above a record; b"" if there was none."""
    names: str = (context or {}).get(_NAMES) or ""
    return names.encode(errors="surrogateescape")


def _packed(value: Any) -> Any:
    if isinstance(value, bytes):
        return {_BYTES: b64encode(value).decode()}
    return [_packed(each) for each in value] if isinstance(value, list | tuple) else value


def _unpacked(value: Any) -> Any:
    if isinstance(value, Mapping):
        return b64decode(value[_BYTES])
    return tuple(map(_unpacked, value)) if isinstance(value, list) else value


def of_bytes(message: Any, data: bytes) -> bytes:
    """Return other bytes of the same message; of one without bytes there are no others."""
    if isinstance(message, Payload) and message.is_null:
        return message
    return message.of(data) if isinstance(message, Payload) else data


def bytes_of(letter: Retry) -> bytes:
    """Return the record of a dead letter as it came."""
    return b64decode(letter.record) if letter.coding == "base64" else letter.record.encode()
