"""Wire: the head of a message of a schema registry: a zero, the id of its schema, then its content.

Source: the Confluent documentation, "Wire format".
"""

from __future__ import annotations

from struct import Struct

__all__ = ["HEAD", "head_of", "indexes_of", "with_head"]

_HEAD = Struct(">bI")
HEAD = _HEAD.size
"""Bytes before the content."""


def head_of(payload: bytes) -> int | str:
    """Return the id of the schema of a message, or the reason why it has none.

    >>> head_of(with_head(7, b"content")), head_of(b"{}")
    (7, 'the message has no schema id: it has 2 bytes, and the id alone takes 5')
    """
    if len(payload) < HEAD:
        return f"the message has no schema id: it has {len(payload)} bytes, and the id alone takes {HEAD}"
    magic, number = _HEAD.unpack_from(payload)
    if magic:
        words = (
            f"it begins with the byte 0x{payload[0]:02x}, where a registry wants 0x00 and four bytes of an id"
        )
        return f"the message has no schema id: {words}"
    return int(number)


def with_head(number: int, content: bytes) -> bytes:
    """Return the message of some content."""
    return _HEAD.pack(0, number) + content


def indexes_of(payload: bytes) -> tuple[list[int], int]:
    """Return the path to the message type of a Protobuf message in its schema, and the byte behind that.

    A single zero stands for the first type.  Raises ``ValueError`` if the payload ends before.

    >>> indexes_of(with_head(7, bytes([0]))), indexes_of(with_head(7, bytes([4, 2, 0])))
    (([0], 6), ([1, 0], 8))
    """
    count, at = _zigzag(payload, HEAD)
    if not count:
        return [0], at
    indexes = []
    for _ in range(count):
        index, at = _zigzag(payload, at)
        indexes.append(index)
    return indexes, at


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    """Return a whole number of variable length, and the byte behind it."""
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), at
    msg = "the message ends before its content"
    raise ValueError(msg)
