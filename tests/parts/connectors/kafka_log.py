"""Batches of messages as the log of a broker has them once it is compacted: with gaps, and without any message.

A broker that stores batches as they come (Tansu does) then serves such a log, which no producer can make.

Source: the Kafka documentation, "Record Batch" and "Protocol: Produce".
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Mapping

__all__ = ["append"]

_ATTRIBUTES, _CONTROL = 0, 0x30
_COMMITTED = struct.pack(">hh", 0, 1)


def append(
    at: str, topic: str, size: int, messages: Mapping[int, bytes | None], *, mark: bool = False
) -> None:
    """Append ``size`` offsets to partition 0, of which those of ``messages`` are still there.

    ``mark``: they are the mark of a transaction that was committed.
    """
    name, batch = topic.encode(), _batch(size, messages, mark=mark)
    asked = struct.pack(">hhih", 0, 3, 1, 4) + b"test" + struct.pack(">hhii", -1, -1, 5000, 1)
    asked += struct.pack(">h", len(name)) + name + struct.pack(">iii", 1, 0, len(batch)) + batch
    host, port = at.split(":")
    with socket.create_connection((host, int(port))) as way:
        way.sendall(struct.pack(">i", len(asked)) + asked)
        answer = way.makefile("rb").read(4 + 4 + 4 + 2 + len(name) + 4 + 4 + 2)
    (code,) = struct.unpack(">h", answer[-2:])
    assert code == 0, code


def _batch(size: int, messages: Mapping[int, bytes | None], *, mark: bool) -> bytes:
    now = time.time_ns() // 1_000_000
    attributes, producer = (_CONTROL, (1, 0, -1)) if mark else (_ATTRIBUTES, (-1, -1, -1))
    if mark:
        messages = {0: b"\0" * 6}
    rest = struct.pack(">hiqqqhii", attributes, size - 1, now, now, *producer, len(messages))
    for offset, value in messages.items():
        body = (
            b"\0"
            + _number(0)
            + _number(offset)
            + _text(_COMMITTED if mark else b"key")
            + _text(value)
            + _number(0)
        )
        rest += _number(len(body)) + body
    head = struct.pack(">ibI", -1, 2, _crc32c(rest))
    return struct.pack(">qi", 0, len(head) + len(rest)) + head + rest


def _text(value: bytes | None) -> bytes:
    return _number(-1) if value is None else _number(len(value)) + value


def _number(value: int) -> bytes:
    """Return a number in zigzag, seven bits a byte."""
    left, found = (value << 1) ^ (value >> 63), bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])


def _crc32c(data: bytes) -> int:
    found = 0xFFFFFFFF
    for byte in data:
        found ^= byte
        for _ in range(8):
            found = (found >> 1) ^ (0x82F63B78 if found & 1 else 0)
    return found ^ 0xFFFFFFFF
