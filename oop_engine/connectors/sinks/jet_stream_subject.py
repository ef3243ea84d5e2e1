"""JetStream subject: rows of an epoch, each under an id of its own, by which the server knows it again."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from oop_engine.connectors import link
from oop_engine.connectors.library import library, loaded
from oop_engine.connectors.link import UnreachableError
from oop_engine.connectors.refusals import refused_by_nats
from oop_engine.connectors.registry.declared_format import DeclaredFormat
from oop_engine.connectors.servers.nats_client import nats_closed, nats_connected
from oop_engine.connectors.servers.reasons import why_not
from oop_engine.connectors.sinks.held import HeldSink, Keyed, TooLargeError
from oop_engine.connectors.sinks.taken_up import TakenUp
from oop_engine.core.errors import SetupError
from oop_engine.system.addresses import Address
from oop_engine.system.knobs import knob

__all__ = ["JetStreamSubject"]

T = TypeVar("T")
_AT_ONCE = knob(__name__, "_AT_ONCE", 256)
_ID = "Nats-Msg-Id"
_FOR_GOOD = (10_039, 10_076, 10_077)
"""Codes of JetStream under 503 that do not pass: it is not enabled; the stream is full."""
_TOO_LARGE = 10_054
"""The code of JetStream for a message above the limit of its stream."""


class JetStreamSubject(HeldSink):
    """Publishes each row to ``subject`` at ``server`` (``"nats://127.0.0.1:4222"``), in ``format``; needs nats-py.

    A stream must take up the subject.  The id of a message is made of the run, the epoch and its number, so the server
    leaves out one that comes twice within the stream's time for that (2 minutes).  A service that starts again after a
    longer time first reads from the stream which messages of its last epoch are there, and sends the others: so each
    is there once as long as the stream keeps it.  ``options`` are those of ``nats.connect``.  Raises ``SetupError`` if
    no server answers, or no stream has the subject; ``SnapshotError`` if the stream was made again, or restored, since
    results were published to it.
    """

    def __init__(
        self,
        server: str,
        subject: str,
        format: str | DeclaredFormat = "jsonl",
        *,
        options: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(format)
        self._server, self._subject, self._options = server, subject, options or {}
        self._client: Any = None
        self._address = Address(server, options)
        self._broken = deque[Exception](maxlen=10)
        self._taken_up = TakenUp(self.place)

    async def connect(self) -> None:
        """Connect, and look for the stream that takes up the subject."""
        await loaded("nats")
        errors = library("nats.errors", "nats", "JetStreamSubject")
        self._errors = library("nats.js.errors", "nats", "JetStreamSubject")
        self.failures = (errors.Error, OSError)
        try:
            await self._begin()
        except self.failures as error:
            await self.close()
            raise SetupError(self._reason(error)) from self._address.cause(error)

    async def _begin(self) -> None:
        nats = library("nats", "nats", "JetStreamSubject")

        async def quiet(error: Exception) -> None:
            self._broken.append(error)
            if refused_by_nats([error]) is not None:  # no answer comes to the request
                lost.set()

        async def gone() -> None:
            lost.set()

        self._broken.clear()
        self._lost = lost = asyncio.Event()

        options = {
            "connect_timeout": min(5.0, link.ANSWER_S / 4),
            "reconnect_time_wait": 0.5,
            "max_reconnect_attempts": 3,
            "disconnected_cb": gone,
        }
        self._client = await nats_connected(nats, self._server, quiet, **{**options, **self._options})
        self._jetstream = self._client.jetstream(timeout=link.ANSWER_S)
        self._stream = await self._jetstream.find_stream_name_by_subject(self._subject)
        about = await self._jetstream.stream_info(self._stream)
        self._taken_up.check(about)
        longest = about.config.max_msg_size or -1
        server = self._client.max_payload
        head = len(f"NATS/1.0\r\n{_ID}: {self._run}-{10**12}-{10**9}\r\n\r\n")  # which counts, too
        self.most_bytes = (server if longest < 0 else min(server, longest)) - head

    async def _asked(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return an answer of the server, on a new connection if the last one broke."""
        try:
            if self._client is None:
                await self._begin()
            return await self._unless_lost(work())
        except self.failures as error:
            await self.close()
            cause = self._address.cause(error)
            if self._is_too_large(error):
                await self._check_taken_up(error)  # which has the limit of now
                msg = f"{self.place}: {self._address.clean(error)}: raise its limit"
                raise TooLargeError(msg) from cause
            if (refused := refused_by_nats([*self._broken, error])) is not None:
                msg = f"{self.place}: {self._address.clean(refused)}: check rights and limits"
                raise SetupError(msg) from cause
            if isinstance(error, self._errors.NoStreamResponseError | self._errors.NotFoundError):
                await self._check_taken_up(error)
            if self._is_refusal(error):
                msg = f"{self.place}: {self._address.clean(error)}: check the stream's limits"
                raise SetupError(msg) from cause
            msg = f"{self.place}: {self._address.clean(error)}"
            raise UnreachableError(msg) from cause

    def _is_refusal(self, error: Exception) -> bool:
        """Return whether an answer of JetStream comes again: a full stream, one that is gone; no lack of a leader."""
        if not isinstance(error, self._errors.APIError):
            return False
        passes = isinstance(error, self._errors.ServiceUnavailableError) and error.err_code not in _FOR_GOOD
        return not passes

    def _is_too_large(self, error: Exception) -> bool:
        """Return whether a message is above the limit of the stream, or that of the server, which may have changed."""
        of_stream = isinstance(error, self._errors.APIError) and error.err_code == _TOO_LARGE
        return of_stream or "maximum payload" in str(error).lower()

    async def _check_taken_up(self, error: Exception) -> None:
        """Raise ``SetupError`` if no stream takes the subject up any more; nothing if the server is just away."""
        try:
            await self._begin()
        except self.failures as failure:
            await self.close()
            if isinstance(failure, self._errors.NotFoundError):
                raise SetupError(self._reason(failure)) from self._address.cause(error)

    def _reason(self, error: Exception) -> str:
        if isinstance(error, self._errors.NotFoundError):
            return f"{self.place}: no stream takes it up: check its name, or make a stream with this subject"
        if isinstance(error, self._errors.ServiceUnavailableError):
            return f"{self.place}: this server has no JetStream: start it with -js"
        if (refused := refused_by_nats([*self._broken, error])) is not None:
            words = f"{self._address.clean(refused)}: give the name and the password of the server"
            return f"{self.place}: {words}, nats://NAME:PASSWORD@..."
        return why_not(self._broken[-1] if self._broken else error, self._address, "server", self.place)

    async def _unless_lost(self, work: Awaitable[T]) -> T:
        """Return an answer; raises ``ConnectionError`` as soon as the connection is lost, before an answer is late."""
        answer, lost = asyncio.ensure_future(work), asyncio.ensure_future(self._lost.wait())
        try:
            await asyncio.wait({answer, lost}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                msg = str(self._broken[-1]) if self._broken else "the server has closed the connection"
                raise ConnectionError(msg)
            return await answer
        finally:
            answer.cancel()
            lost.cancel()

    async def mark(self) -> list[Any]:
        """Return the number of the last message of the stream, before those of the epoch, and its identity."""
        about = await self._asked(lambda: self._jetstream.stream_info(self._stream))
        self._taken_up.check(about)
        return [int(about.state.last_seq), *(self._taken_up.known or ())]

    async def send(self, run: str, epoch: int, messages: list[Keyed], mark: list[Any] | None) -> None:
        """Publish the messages of an epoch that are not there, in their order."""
        await self._asked(lambda: self._publish(run, epoch, messages, mark))

    async def _publish(self, run: str, epoch: int, messages: list[Keyed], mark: list[Any] | None) -> None:
        numbered = enumerate(payload for _, payload in messages)
        named = {f"{run}-{epoch}-{number}": each for number, each in numbered if each is not None}
        if mark is not None:
            last, *known = mark
            if not self._taken_up.is_one(known, epoch):
                last = 0
            for name in await self._there(named, last):
                del named[name]
        left = [*named.items()]
        for at in range(0, len(left), _AT_ONCE):
            part = left[at : at + _AT_ONCE]
            sent = (self._jetstream.publish(self._subject, data, headers={_ID: name}) for name, data in part)
            for answer in await asyncio.gather(*sent):
                self._taken_up.note(answer)

    async def _there(self, named: dict[str, bytes], mark: int) -> set[str]:
        """Return the ids that messages behind ``mark`` have."""
        names = set[str]()
        while len(names) < len(named):
            try:
                message = await self._jetstream.get_msg(self._stream, mark + 1, self._subject, next=True)
            except self._errors.NotFoundError:
                break
            mark = message.seq
            names |= {(message.headers or {}).get(_ID, "")} & named.keys()
        return names

    async def close(self) -> None:
        """Disconnect."""
        client, self._client = self._client, None
        if client is not None:
            await nats_closed(client)

    @property
    def topic(self) -> str:
        """The name that its schema is registered by."""
        return self._subject

    @property
    def place(self) -> str:
        """The subject."""
        return f"NATS subject {self._subject!r} at {self._address}"
