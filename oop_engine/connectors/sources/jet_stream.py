"""JetStream: the messages of a stream of NATS, from a sequence number on."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from oop_engine.connectors import link
from oop_engine.connectors.library import library, loaded
from oop_engine.connectors.link import UnreachableError
from oop_engine.connectors.payload import Payload
from oop_engine.connectors.refusals import refused_by_nats
from oop_engine.connectors.servers.nats_client import headers_of, nats_closed, nats_connected
from oop_engine.connectors.servers.reasons import why_not
from oop_engine.connectors.servers.stream_log import StreamLog
from oop_engine.connectors.source import Format, LiveSource, Position
from oop_engine.core.errors import SetupError, UsageError
from oop_engine.system.addresses import Address
from oop_engine.system.knobs import knob

__all__ = ["JetStream"]

_MOST = knob(__name__, "_MOST", 1000)
_WAIT_S, _FORGET_S = 0.5, 600.0
_RECONNECT_S, _RECONNECTS = 2.0, 60
_IN_NO_STREAM = re.compile(r"[\s.*>/\\]")
_IN_NO_SUBJECT = re.compile(r"\s|^\.|\.$|\.\.")


class JetStream(LiveSource):
    """The messages of ``stream`` at ``server`` (``"nats://127.0.0.1:4222"``); needs nats-py.

    ``subject``: those of it alone.  The position is a sequence number of the stream, when the stream was made, and when
    that message was stored.  ``follow=False``: end at the messages that are there now.  ``options`` are those of
    ``nats.connect``.  Raises ``SetupError`` if no server answers or there is no such stream, ``TraceError`` if messages
    behind the position are gone, or the stream was deleted and made again: nothing is skipped but messages that were
    overwritten (``max_msgs_per_subject``, buckets of keys and values) or deleted alone, which a line tells.  A
    schema may have columns of the message: ``_subject``, ``_sequence``, ``_time``, ``_headers``.
    """

    replayable = True
    metadata = MappingProxyType(
        {
            "_subject": pa.string(), "_sequence": pa.int64(), "_time": pa.timestamp("ns", "UTC"),
            "_headers": pa.map_(pa.string(), pa.binary()),
        }
    )  # fmt: skip

    def __init__(
        self, server: str, stream: str, subject: str | None = None, format: Format = "jsonl", *, follow: bool = True,
        options: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        for kind, name, bad in (
            ("stream", stream, _IN_NO_STREAM),
            ("subject", subject or "", _IN_NO_SUBJECT),
        ):
            if bad.search(name) or (kind == "stream" and not name):
                msg = f"JetStream: {name!r} can be no name of a {kind}: NATS takes none with spaces or empty parts"
                raise UsageError(msg)
        self._server, self._stream, self._subject = server, stream, subject
        self.format, self._follow, self._options = format, follow, options or {}
        self._address = Address(server, options)

    async def read(self, position: Position) -> AsyncIterator[tuple[list[bytes], Position]]:
        """Yield up to 1,000 messages at a time, with the position behind them; none where it passed other subjects."""
        async with self._connected() as client, aclosing(self._messages(client, position)) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                yield piece

    async def latest(self) -> Position:
        """Return the position behind the last message of the stream."""
        async with self._connected() as client:
            about = await self._state(client.jetstream(timeout=link.ANSWER_S))
        log = StreamLog(self._place, about.state.last_seq)
        log.check_made(about)
        return log.position

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Any]:
        """Give a client; errors of the server become ``UnreachableError`` where it may be back, else ``SetupError``."""
        await loaded("nats")
        errors = library("nats.errors", "nats", "JetStream")
        problems = library("nats.js.errors", "nats", "JetStream")
        broken = deque[Exception](maxlen=10)
        leaving = asyncio.Event()
        client = await self._begin(broken, leaving)
        try:
            yield client
        except errors.Error as error:
            known = isinstance(error, problems.APIError) and not isinstance(
                error, problems.ServiceUnavailableError
            )
            refused = refused_by_nats([*broken, error])
            msg = f"{self._place}: {self._address.clean(refused or error)}"
            cause = self._address.cause(refused or error)
            raise (SetupError if known or refused else UnreachableError)(msg) from cause
        finally:
            leaving.set()
            await nats_closed(client)

    async def _begin(self, broken: deque[Exception], leaving: asyncio.Event) -> Any:
        nats = library("nats", "nats", "JetStream")
        errors = library("nats.errors", "nats", "JetStream")

        async def quiet(error: Exception) -> None:
            broken.append(error)

        async def gone() -> None:
            if not leaving.is_set():
                self.link.gone(self._address.clean(broken[-1] if broken else "the server has closed it"))

        async def here() -> None:
            self.link.here()

        try:
            options = {
                "connect_timeout": min(5.0, link.ANSWER_S / 4),
                "reconnect_time_wait": 0.1,
                "max_reconnect_attempts": 3,
            }
            client = await nats_connected(
                nats,
                self._server,
                quiet,
                disconnected_cb=gone,
                reconnected_cb=here,
                **{**options, **self._options},
            )
        except (errors.Error, OSError) as error:
            cause = self._address.cause(error)
            if (refused := refused_by_nats([*broken, error])) is not None:
                words = f"{self._address.clean(refused)}: give the name and the password of the server"
                msg = f"{self._place}: {words}, nats://NAME:PASSWORD@..."
                raise SetupError(msg) from cause
            reason = broken[-1] if broken else error
            raise UnreachableError(why_not(reason, self._address, "server", self._place)) from cause
        client.options.update(reconnect_time_wait=_RECONNECT_S, max_reconnect_attempts=_RECONNECTS)
        return client

    async def _messages(self, client: Any, position: Position) -> AsyncIterator[tuple[list[bytes], Position]]:
        jetstream, log = client.jetstream(timeout=link.ANSWER_S), StreamLog(self._place, position)
        about = await self._state(jetstream)
        log.check(about)
        log.check_kind(about)
        self.link.here()
        if log.last is None:
            log.last = max(about.state.first_seq - 1, 0)  # 0: it never had a message
        asking, received = await self._asking(jetstream, log), 0
        while True:
            about = await self._state(jetstream)
            log.check_made(about)
            messages, end = await _fetched(asking), about.state.last_seq
            numbers = [message.metadata.sequence for message in messages]
            if messages and numbers[-1].consumer == received + len(messages):
                if received == 0 or numbers[0].stream > log.last + 1:
                    about = await self._state(jetstream)
                    log.check_made(about) if numbers[0].stream == log.last + 1 else log.check(about)
                received = numbers[-1].consumer
                log.note(messages, all_subjects=self._subject is None)
                yield [self._payload(message) for message in messages], log.position
            elif (
                messages
                or (sent := await self._sent(asking)) is None
                or sent.delivered.consumer_seq != received
            ):
                with suppress(library("nats.errors", "nats", "JetStream").Error):
                    await asking.unsubscribe()  # some were lost on the way, as with a connection that broke
                asking, received = await self._asking(jetstream, log), 0
            elif not sent.num_pending:
                about = await self._state(jetstream)
                log.check(about)
                if log.last < end:  # all up to there is of other subjects
                    log.skip_to(end, all_subjects=self._subject is None)
                    yield [], log.position
                if not self._follow and about.state.last_seq == end:
                    return

    def _payload(self, message: Any) -> bytes:
        data: bytes = message.data
        return Payload(data, _about(message)) if self.wanted else data

    async def _asking(self, jetstream: Any, log: StreamLog) -> Any:
        """Return a subscription to the messages behind the last one; the server numbers those that it sends."""
        log.check_made(await self._state(jetstream))
        await log.check_message(jetstream, self._stream)
        api = library("nats.js.api", "nats", "JetStream")
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=log.last + 1,
            ack_policy=api.AckPolicy.NONE,
            inactive_threshold=_FORGET_S,
        )
        return await jetstream.pull_subscribe(self._subject or ">", stream=self._stream, config=config)

    async def _sent(self, asking: Any) -> Any:
        """Return the server's account of a subscription; None: it has forgotten it."""
        with suppress(library("nats.js.errors", "nats", "JetStream").NotFoundError):
            return await asking.consumer_info()

    async def _state(self, jetstream: Any) -> Any:
        """Return the server's account of the stream."""
        errors = library("nats.js.errors", "nats", "JetStream")
        try:
            return await jetstream.stream_info(self._stream)
        except errors.NotFoundError as error:
            msg = f"{self._place}: there is no such stream: check its name, or make it"
            raise SetupError(msg) from error
        except errors.ServiceUnavailableError as error:
            msg = f"{self._place}: this server has no JetStream: start it with -js"
            raise SetupError(msg) from error

    @property
    def _place(self) -> str:
        return f"NATS stream {self._stream!r} at {self._address}"


def _about(message: Any) -> dict[str, Any]:
    """Return the columns of a message: the ninth part of its reply subject is the time, in nanoseconds."""
    parts = message.reply.split(".")
    return {
        "_subject": message.subject,
        "_sequence": message.metadata.sequence.stream,
        "_time": int(parts[7] if len(parts) < 11 else parts[9]),
        "_headers": headers_of(message),
    }


async def _fetched(asking: Any) -> list[Any]:
    """Return the messages that there are, or that come soon; a fetch that took too long raises, or has none."""
    with suppress(TimeoutError):
        messages: list[Any] = await asking.fetch(_MOST, timeout=_WAIT_S)
        return messages
    return []
