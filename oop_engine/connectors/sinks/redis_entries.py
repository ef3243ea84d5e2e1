"""Redis entries: rows of an epoch, and its number, in one transaction."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from oop_engine.connectors import link
from oop_engine.connectors.library import library, loaded
from oop_engine.connectors.registry.declared_format import DeclaredFormat
from oop_engine.connectors.servers.redis_errors import about_client, check_database, failure_of_redis
from oop_engine.connectors.sinks.held import HeldSink, Keyed, TooLargeError
from oop_engine.core.errors import SetupError, SnapshotError
from oop_engine.system.addresses import Address

__all__ = ["RedisEntries"]

_MOST_BYTES = 512 << 20
"""The limit of a server that has no other one."""
_TRIES = 5
"""Of a transaction, in which another process may change the number of the epoch."""


class RedisEntries(HeldSink):
    """Adds each row to ``stream`` at ``url`` (``"redis://127.0.0.1:6379/0"``), in ``format``; needs the package redis.

    ``field``: that of an entry which has the payload.  ``most``: the stream is trimmed to about so many entries; None:
    never.  The entries of an epoch and its number, in the key ``oop-engine:{stream}:...``, are one transaction: so each
    is there once, as long as Redis keeps its data.  Raises ``SetupError`` if no server answers, or there is no stream
    under that name but something else; ``SnapshotError`` if the stream, or the number, is gone since.
    """

    def __init__(
        self,
        url: str,
        stream: str,
        format: str | DeclaredFormat = "jsonl",
        *,
        field: str = "data",
        most: int | None = None,
    ) -> None:
        super().__init__(format)
        self._url, self._stream, self._field, self._most = url, stream, field, most
        self._client: Any = None
        self._last = -1
        self._added = 0  # entries that were ever added, up to the last one of ours
        self._newest = b""  # the id of that one
        self._address = Address(url)
        check_database(self.place, url)

    async def connect(self) -> None:
        """Connect, and look for the stream."""
        await loaded("redis.asyncio")
        redis = library("redis.asyncio", "redis", "RedisEntries")
        self._errors = library("redis.exceptions", "redis", "RedisEntries")
        self.failures = (self._errors.RedisError, OSError)
        limits = {"socket_connect_timeout": link.ANSWER_S, "socket_timeout": link.ANSWER_S}
        self._client = redis.Redis.from_url(self._url, **about_client(), **limits)
        try:
            kind = (await self._client.type(self._stream)).decode()
            self.most_bytes = await self._limit()
        except (self._errors.RedisError, OSError) as error:
            await self.close()
            raise failure_of_redis(self.place, self._address, error) from self._address.cause(error)
        if kind not in ("stream", "none"):
            await self.close()
            msg = f"{self.place}: must be a stream; there is a {kind}: take another name"
            raise SetupError(msg)

    async def _limit(self) -> int:
        """Return the bytes of the longest text that the server takes; it ends the connection of a longer one."""
        try:
            config = await self._client.config_get("proto-max-bulk-len")
        except self._errors.ResponseError:  # this client may not ask
            config = {}
        return int(next(iter(config.values()), _MOST_BYTES))

    async def send(self, run: str, epoch: int, messages: list[Keyed], mark: Any) -> None:
        """Add the entries of an epoch, unless that was done."""
        try:
            asks = await self._check_stream()
            await self._add(run, epoch, [each for _, each in messages if each is not None], asks)
        except (self._errors.RedisError, OSError) as error:
            raise await self._failure(error, messages) from self._address.cause(error)

    async def _failure(self, error: Exception, messages: list[Keyed]) -> SetupError:
        """Return the error to raise; the server ends the connection of a message above its limit of now."""
        failure = failure_of_redis(self.place, self._address, error)
        if isinstance(error, self._errors.ConnectionError | self._errors.ResponseError | OSError):
            with suppress(self._errors.RedisError, OSError):
                self.most_bytes = await self._limit()
                if any(each is not None and len(each) > self.most_bytes for _, each in messages):
                    return TooLargeError(str(failure))
        return failure

    async def _entries(self) -> int | None:
        """Return how many entries were ever added to the stream; None: this client may not ask."""
        try:
            return int((await self._client.xinfo_stream(self._stream))["entries-added"])
        except self._errors.NoPermissionError:
            return None
        except self._errors.ResponseError:  # there is none, or something else
            return 0

    async def _check_stream(self) -> bool:
        """Raise ``SnapshotError`` if the stream lacks entries of this process that nobody trimmed.

        One that was made again has more entries behind the last one of ours than were added since.  Returns whether
        this client may ask.
        """
        there = await self._entries()
        if there is None:
            return False
        again = there < self._added
        if not again and self._newest:
            added = len(
                await self._client.xrange(self._stream, b"(" + self._newest, count=there - self._added + 1)
            )
            again = added > (await self._entries() or 0) - self._added
        if again:
            self._added, self._newest = 0, b""
            msg = "the stream was deleted or flushed, has expired, or was restored"
            raise self._lost(msg)
        return True

    async def _add(self, run: str, epoch: int, payloads: list[bytes], asks: bool) -> None:
        done = self._mark_of(run)
        async with self._client.pipeline(transaction=True) as pipe:
            for _ in range(_TRIES):
                try:
                    await pipe.watch(done)
                    there = int(await pipe.get(done) or -1)
                    self._check(there)
                    if there >= epoch:
                        self._added, self._newest = await self._entries() or 0, b""
                        return
                    pipe.multi()
                    pipe.set(done, epoch)
                    for payload in payloads:
                        pipe.xadd(self._stream, {self._field: payload}, maxlen=self._most, approximate=True)
                    if asks and payloads:
                        pipe.xinfo_stream(self._stream)
                    answers = await pipe.execute()
                except self._errors.WatchError:  # an older process repeats the same commit
                    continue
                self._last = epoch
                if asks and payloads:
                    self._added, self._newest = int(answers[-1]["entries-added"]), answers[-2]
                return
        msg = "the server has closed the connection"  # the package takes that for a change of the number, too
        raise ConnectionError(msg)

    def _check(self, there: int) -> None:
        """Raise ``SnapshotError`` unless the server has the last epoch that this process has committed."""
        if there < self._last:
            why = "the server was flushed or restored, or a replica took over without the last entries"
            raise self._lost(why)

    def _lost(self, why: str) -> SnapshotError:
        last, self._last = self._last, -1
        return SnapshotError(
            f"{self.place}: lacks the results of epoch {last}, which was committed: {why}: restart the service to "
            "go on without them"
        )

    async def forget(self) -> None:
        """Remove the number of the last epoch."""
        await self._client.delete(self._mark_of(self._run))

    def _mark_of(self, run: str) -> str:
        return f"oop-engine:{{{self._stream}}}:{run}"  # of one slot in a cluster, by the braces

    async def close(self) -> None:
        """Disconnect."""
        if self._client is not None:
            await self._client.aclose()

    @property
    def topic(self) -> str:
        """The name that its schema is registered by."""
        return self._stream

    @property
    def place(self) -> str:
        """The stream."""
        return f"Redis stream {self._stream!r} at {self._address.host}"
