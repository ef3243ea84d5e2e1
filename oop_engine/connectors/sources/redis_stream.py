"""Redis stream: its entries, from an id on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from oop_engine.connectors import link
from oop_engine.connectors.library import library
from oop_engine.connectors.link import UnreachableError
from oop_engine.connectors.source import Format, LiveSource, Position
from oop_engine.core.errors import SetupError, TraceError

__all__ = ["RedisStream"]

_MOST, _BLOCK_MS = 1000, 1000


class RedisStream(LiveSource):
    """The entries of ``stream`` at ``url`` (``"redis://127.0.0.1:6379/0"``); needs the package redis.

    ``field``: that of an entry that has its payload, in ``format``; None: all fields are columns, as texts.  The
    position is the id of an entry, and how many were added up to it, so that entries which were trimmed before they
    were read are found out.  ``follow=False``: end at the entries that are there now. Raises ``SetupError`` if no
    server answers or there is no such stream, ``TraceError`` if entries behind the position are gone: nothing is
    skipped.  Trim to more than the service can be behind (``XADD ... MAXLEN``).
    """

    replayable = True

    def __init__(
        self,
        url: str,
        stream: str,
        format: Format = "jsonl",
        *,
        field: str | None = "data",
        follow: bool = True,
    ) -> None:
        self._url, self._stream, self.format, self._follow = url, stream, format, follow
        self._field = None if field is None else field.encode()
        if field is None:
            self.format = "jsonl"

    async def read(self, position: Position) -> AsyncIterator[tuple[list[bytes], Position]]:
        """Yield up to 1,000 entries at a time, each with the id of the last one."""
        redis = library("redis.asyncio", "redis", "RedisStream")
        errors = library("redis.exceptions", "redis", "RedisStream")
        limits = {"socket_connect_timeout": link.ANSWER_S, "socket_timeout": link.ANSWER_S}
        try:
            async with redis.Redis.from_url(self._url, **limits) as client:
                last, count = position or (None, None)
                while True:
                    entries, count = await self._next(client, last, count)
                    self.link.here()
                    if entries:
                        last = entries[-1][0].decode()
                        yield self._payloads(entries), [last, count]
                    elif not self._follow:
                        return
                    else:
                        await client.xread({self._stream: last or "0-0"}, count=1, block=_BLOCK_MS)
        except (errors.RedisError, OSError) as error:
            msg = f"{self._place}: {' '.join(str(error).split())}: give the address of a server that runs"
            refused = isinstance(error, errors.AuthenticationError | errors.AuthorizationError)
            away = isinstance(error, errors.ConnectionError | errors.TimeoutError | OSError) and not refused
            raise (UnreachableError if away else SetupError)(msg) from error

    @property
    def _place(self) -> str:
        return f"Redis stream {self._stream!r} at {self._url.rpartition('@')[2]}"

    async def _next(self, client: Any, last: str | None, count: int | None) -> tuple[list[Any], int]:
        """Return the entries behind the last one, and how many were added up to the last of them.

        Both commands are one transaction, so no entry can be trimmed in between.
        """
        if (kind := await client.type(self._stream)) != b"stream":
            if last is not None and kind == b"none":
                raise self._gone(last, "there is no such stream")
            there = "nothing" if kind == b"none" else f"a {kind.decode()}"
            msg = f"{self._place}: must be a stream; there is {there}: check its name, or add an entry first"
            raise SetupError(msg)
        async with client.pipeline(transaction=True) as both:
            both.xinfo_stream(self._stream)
            both.xread({self._stream: last or "0-0"}, count=_MOST)
            about, found = await both.execute()
        removed = about["entries-added"] - about["length"]
        if last is not None and count is not None:
            known = _number(last)
            lost = removed > count or known > _number(about["last-generated-id"])
            if lost or _number(about["max-deleted-entry-id"]) > known:
                raise self._gone(last, _range(about))
        entries = found[0][1] if found else []
        return entries, (removed if count is None else count) + len(entries)

    def _gone(self, last: str, there: str) -> TraceError:
        return TraceError(
            f"{self._place}: entries behind {last}, the next to read, are no longer there; {there}: keep more of them, "
            "or begin anew with another folder of checkpoints"
        )

    def _payloads(self, entries: list[Any]) -> list[bytes]:
        if self._field is None:
            return [json.dumps(dict(map(_texts, fields.items()))).encode() for _, fields in entries]
        payloads = []
        for number, fields in entries:
            payload = fields.get(self._field)
            if payload is not None:
                payloads.append(payload)
            elif self.unreadable is not None:
                self.unreadable(
                    f"no field {self._field.decode()!r}", f"{number.decode()}: {fields!r}"[:1000], 1
                )
        return payloads


def _range(about: dict[str, Any]) -> str:
    """Return in words which entries a stream has."""
    first, last = about["first-entry"], about["last-entry"]
    return f"it has {first[0].decode()} to {last[0].decode()}" if first else "it is empty"


def _number(entry: Any) -> tuple[int, int]:
    """Return the two parts of an id, by which ids are ordered."""
    text = entry.decode() if isinstance(entry, bytes) else str(entry)
    first, _, second = text.partition("-")
    return int(first), int(second or 0)


def _texts(field: tuple[bytes, bytes]) -> tuple[str, str]:
    name, value = field
    return name.decode(errors="replace"), value.decode(errors="replace")
