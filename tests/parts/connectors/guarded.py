"""A wire to a broker of Kafka that asks for a password: SASL with PLAIN, as brokers have it."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

from tests.parts.connectors.wire import Wire

__all__ = ["Guarded", "shown"]

_HANDSHAKE, _AUTHENTICATE, _REFUSED = 17, 36, 58


def shown(password: str) -> dict[str, Any]:
    """Return the options of a client that shows a password."""
    return {
        "log_level": 0,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": password,
    }


class Guarded(Wire):
    """Lets in who shows ``password``."""

    password = "open sesame"

    async def greet(
        self, client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        broker: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:  # fmt: skip
        """Answer for the broker until the client is let in; raises ``ConnectionError`` if it is not."""
        while True:
            asked = await _frame(client[0])
            key, version, number = struct.unpack_from(">hhi", asked)
            if key == _AUTHENTICATE:
                right = asked.rsplit(b"\0", 1)[1].decode() == self.password
                words = b"" if right else b"wrong name or password"
                answer = struct.pack(">ihh", number, 0 if right else _REFUSED, len(words)) + words
                _send(client[1], answer + struct.pack(">i", 0) + (struct.pack(">q", 0) if version else b""))
                if not right:
                    await client[1].drain()
                    raise ConnectionError
                return
            if key == _HANDSHAKE:
                _send(client[1], struct.pack(">ihih5s", number, 0, 1, 5, b"PLAIN"))
            else:
                _send(broker[1], asked)
                _send(client[1], await _frame(broker[0]))


async def _frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


def _send(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(struct.pack(">i", len(frame)) + frame)
