"""Redis stream: its entries, from an id on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from types import MappingProxyType
from typing import Any
from zlib import crc32

import pyarrow as pa

from oop_engine.connectors import link
from oop_engine.connectors.library import library, loaded
from oop_engine.connectors.payload import Payload
from oop_engine.connectors.servers.redis_errors import about_client, check_database, failure_of_redis
from oop_engine.connectors.source import BEGIN_AGAIN, Format, LiveSource, Position
from oop_engine.core.errors import SetupError, TraceError, UsageError
from oop_engine.system.addresses import Address
from oop_engine.system.knobs import knob

__all__ = ["RedisStream"]

_MOST = knob(__name__, "_MOST", 1000)
_BLOCK_MS = 1000


class RedisStream(LiveSource):
    """The entries of ``stream`` at ``url`` (``"redis://127.0.0.1:6379/0"``); needs the package redis.

    ``field``: that of an entry that has its payload, in ``format``; None: all fields are columns, as texts.  The
    position is the id of an entry, how many were added up to it, and a checksum of it: so entries that were trimmed
    before they were read are found out, and a stream that was made again, or restored.  ``follow=False``: end at the
    entries that are there now.  Raises ``SetupError`` if no server answers or there is no such stream, ``TraceError``
    if entries behind the position are gone: nothing is skipped.  Trim to more than the service can be behind
    (``XADD ... MAXLEN``).  A schema may have columns of the entry: ``_id``, and ``_time``, the moment in it.
    """

    replayable = True
    metadata = MappingProxyType({"_id": pa.string(), "_time": pa.timestamp("ms", "UTC")})

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
        self._address = Address(url)
        check_database(self._place, url)
        self._field = None if field is None else field.encode()
        if field is None:
            self.format = "jsonl"

    async def read(self, position: Position) -> AsyncIterator[tuple[list[bytes], Position]]:
        """Yield up to 1,000 entries at a time, each with the id of the last one."""
        await loaded("redis.asyncio")
        redis = library("redis.asyncio", "redis", "RedisStream")
        errors = library("redis.exceptions", "redis", "RedisStream")
        limits = {"socket_connect_timeout": link.ANSWER_S, "socket_timeout": link.ANSWER_S}
        try:
            async with redis.Redis.from_url(self._url, **about_client(), **limits) as client:
                last, count, mark = self._known(position)
                while True:
                    entries, count = await self._next(client, last, count, mark)
                    self.link.here()
                    if entries:
                        last, mark = entries[-1][0].decode(), _mark(entries[-1][1])
                        yield self._payloads(entries), [last, count, mark]
                    elif not self._follow:
                        return
                    else:
                        await client.xread({self._stream: last or "0-0"}, count=1, block=_BLOCK_MS)
        except (errors.RedisError, OSError) as error:
            raise failure_of_redis(self._place, self._address, error) from self._address.cause(error)

    async def latest(self) -> Position:
        """Return the position behind the last entry."""
        await loaded("redis.asyncio")
        redis = library("redis.asyncio", "redis", "RedisStream")
        errors = library("redis.exceptions", "redis", "RedisStream")
        try:
            async with redis.Redis.from_url(
                self._url, **about_client(), socket_connect_timeout=link.ANSWER_S
            ) as client:
                about = await client.xinfo_stream(self._stream)
        except (errors.RedisError, OSError) as error:
            raise failure_of_redis(self._place, self._address, error) from self._address.cause(error)
        return [about["last-generated-id"].decode(), about["entries-added"], None]

    def _known(self, position: Position) -> list[Any]:
        """Return the id of the last entry that was read, how many were added up to it, and its checksum."""
        if position is None:
            return [None, None, None]
        known = [*position, None, None][:3] if isinstance(position, list) else [str(position), None, None]
        try:
            _number(known[0])
        except (TypeError, ValueError) as error:
            msg = f"{self._place}: a position is the id of an entry, as '1700000000000-0'; got {position!r}"
            raise UsageError(msg) from error
        return known

    @property
    def _place(self) -> str:
        return f"Redis stream {self._stream!r} at {self._address.host}"

    async def _next(
        self, client: Any, last: str | None, count: int | None, mark: int | None
    ) -> tuple[list[Any], int]:
        """Return the entries behind the last one, and how many were added up to the last of them.

        All commands are one transaction, so no entry can be trimmed in between.
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
            both.xrange(self._stream, last or "0-0", last or "0-0")
            about, answer, before = await both.execute()
        removed = about["entries-added"] - about["length"]
        entries = answer[0][1] if answer else []
        if last is not None and count is not None:
            known, deleted = _number(last), _number(about["max-deleted-entry-id"])
            lost = removed > count or known > _number(about["last-generated-id"])
            if lost or deleted > known:
                raise self._gone(last, _range(about))
            trimmed = removed == count or deleted == known  # the last one, and all before it
            same = trimmed if not before else mark is None or _mark(before[0][1]) == mark
            if not same or count + len(entries) > about["entries-added"]:
                raise self._other(last, about)
        return entries, (removed if count is None else count) + len(entries)

    def _other(self, last: str, about: dict[str, Any]) -> TraceError:
        return TraceError(
            f"{self._place}: is another stream than the one that was read to {last}: it was made again, or restored "
            f"from a backup; {_range(about)}; entries of the earlier one that were not read are lost: {BEGIN_AGAIN}"
        )

    def _gone(self, last: str, there: str) -> TraceError:
        return TraceError(
            f"{self._place}: entries behind {last}, the next to read, are no longer there; {there}: keep more of them; "
            f"{BEGIN_AGAIN}"
        )

    def _payloads(self, entries: list[Any]) -> list[bytes]:
        if self._field is None:
            return [self._told(number, _columns(fields)) for number, fields in entries]
        payloads = []
        for number, fields in entries:
            payload = fields.get(self._field)
            if payload is not None:
                payloads.append(self._told(number, payload))
            elif self.unreadable is not None:
                self.unreadable(
                    f"no field {self._field.decode()!r}", f"{number.decode()}: {fields!r}"[:1000], 1
                )
        return payloads

    def _told(self, number: bytes, payload: bytes) -> bytes:
        """Return a payload, with the columns of its entry if some are wanted."""
        if not self.wanted:
            return payload
        return Payload(payload, {"_id": number.decode(), "_time": _number(number)[0]})


def _range(about: dict[str, Any]) -> str:
    """Return in words which entries a stream has."""
    first, last = about["first-entry"], about["last-entry"]
    return f"it has {first[0].decode()} to {last[0].decode()}" if first else "it is empty"


def _number(entry: Any) -> tuple[int, int]:
    """Return the two parts of an id, by which ids are ordered."""
    text = entry.decode() if isinstance(entry, bytes) else str(entry)
    first, _, second = text.partition("-")
    return int(first), int(second or 0)


def _mark(fields: dict[bytes, bytes]) -> int:
    """Return a checksum of an entry."""
    checksum = 0
    for name, value in fields.items():
        checksum = crc32(b"%d %d " % (len(name), len(value)) + name + value, checksum)
    return checksum


def _columns(fields: dict[bytes, bytes]) -> bytes:
    """Return the fields of an entry as an object of JSON; bytes that are no UTF-8 stay, so the row is refused."""
    return b"{" + b", ".join(_quoted(name) + b": " + _quoted(value) for name, value in fields.items()) + b"}"


def _quoted(text: bytes) -> bytes:
    whole = json.dumps(text.decode(errors="surrogateescape"), ensure_ascii=False)
    return whole.encode(errors="surrogateescape")
