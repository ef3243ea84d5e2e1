"""Held: the base of sinks whose messages of an epoch are in the checkpoint until they are committed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

from oop_engine.connectors.formats.payloads import check_payloads, payloads_of, row_as_json
from oop_engine.connectors.link import UnreachableError
from oop_engine.connectors.registry.declared_format import DeclaredFormat, PayloadsOf
from oop_engine.connectors.sink import LiveSink, Prepared
from oop_engine.connectors.sinks.fitting import RefusedInARow
from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import SetupError
from oop_engine.core.groups.in_python import values_of
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema

__all__ = ["HeldSink", "Keyed", "TooLargeError"]

Keyed: TypeAlias = tuple[str | None, bytes | None]
"""The key of a message, if it has one, and its payload; None: it is left out, and keeps its number."""


class TooLargeError(SetupError):
    """The server refuses a message for its size; the sink has read ``most_bytes`` anew, which may be less by now."""


class HeldSink(LiveSink, ABC):
    """Sends messages in ``format``, a row each (``arrow``: a page), when their epoch is committed.

    ``key``: the column whose value is the key of a message.  Of a system that keeps no unfinished work of a process
    nothing can be prepared, so until the commit the messages are in the checkpoint: results are for this, raw streams
    are not.  Subclasses connect in ``connect``, and send in ``send``; like ``mark`` it raises ``UnreachableError`` if
    the server is away.
    """

    most_bytes: int | None = None
    """Bytes of the largest message that the server takes, once it is known."""

    def __init__(self, format: str | DeclaredFormat, key: str | None = None) -> None:
        self._format, self._key = format, key
        self._payloads_of: PayloadsOf | None = None
        self._messages: dict[int, list[tuple[str | None, bytes]]] = {}
        self._run, self._repeated = "", set[int]()
        self._in_a_row = RefusedInARow()

    async def open(self, schema: Schema, run: str, prepared: Collection[Prepared]) -> None:
        """Check the format and the key, and connect."""
        if isinstance(self._format, str):
            check_payloads(self.place, self._format, schema.plain().fields, keyed=self._key is not None)
        if self._key is not None and self._key not in schema.names:
            msg = f"{self.place}: key must be one of {', '.join(schema.names)}; got {self._key!r}"
            msg += did_you_mean(self._key, schema.names)
            raise SetupError(msg)
        self._run = run
        self._repeated = {epoch for run_of, epoch, *_ in prepared if run_of == run}
        await self.connect()
        if isinstance(self._format, DeclaredFormat):
            self._payloads_of = await self._format.writer(schema.fields, self.topic, self.place)

    async def write(self, epoch: int, page: Page) -> None:
        """Keep the messages of a page; a row that is larger than the server takes is a dead letter."""
        keys: Sequence[Any] = [None] * len(page)
        if self._key is not None:
            keys = values_of(page.column(self._key))
        messages = [
            (None if key is None else str(key), payload)
            for key, payload in zip(keys, self._fitting(page), strict=False)
            if payload is not None
        ]
        self._messages.setdefault(epoch, []).extend(messages)

    def _made(self, page: Page) -> list[bytes]:
        if self._payloads_of is not None:
            return self._payloads_of(page.batch)
        return payloads_of(page, str(self._format))

    def _fitting(self, page: Page) -> list[bytes | None]:
        """Return the messages of a page; None for a row that is above the server's limit, which is a dead letter.

        Without a sink for dead letters it is an error: the row would be lost.
        A page that is one message (``arrow``) is halved until its messages fit.
        """
        payloads, most = self._made(page), self.most_bytes
        if most is None or max(map(len, payloads), default=0) <= most:
            self._in_a_row.end_epoch([], len(payloads))
            return list(payloads)
        if len(payloads) < len(page):
            half = len(page) // 2
            return self._fitting(page.slice(0, half)) + self._fitting(page.slice(half, len(page)))
        large = {number: len(each) for number, each in enumerate(payloads) if len(each) > most}
        errors = {number: self._too_large(size) for number, size in large.items()}
        if self.refused is None or not self.keeps_refused:
            raise next(iter(errors.values()))
        self._in_a_row.end_epoch([*errors.values()], len(payloads) - len(large))
        for number, error in errors.items():
            self.refused(str(error), row_as_json([page], number), 1, coding="json")
        return [None if number in large else each for number, each in enumerate(payloads)]

    def _too_large(self, size: int) -> SetupError:
        msg = (
            f"{self.place}: a message has {size:,} bytes, and the server takes {self.most_bytes:,}: raise its "
            "limit, or leave such rows out of the graph"
        )
        return SetupError(msg)

    async def prepare(self, epoch: int) -> Prepared:
        """Hand the messages to the checkpoint."""
        if (messages := self._messages.get(epoch)) is None:
            return None
        mark = await self.mark()
        del self._messages[epoch]
        try:
            coding, texts = "utf-8", [payload.decode() for _, payload in messages]
        except UnicodeDecodeError:
            coding, texts = "base64", [b64encode(payload).decode() for _, payload in messages]
        rows = [[key, text] for (key, _), text in zip(messages, texts, strict=True)]
        return [self._run, epoch, rows, coding, mark]

    async def commit(self, prepared: Prepared) -> None:
        """Send the messages of an epoch, unless that was done."""
        run, epoch, rows, coding, mark = prepared
        decoded = b64decode if coding == "base64" else str.encode
        messages: list[Keyed] = [(key, decoded(text)) for key, text in rows]
        try:
            try:
                await self.send(run, epoch, messages, mark if epoch in self._repeated else None)
            except TooLargeError as error:  # the limit was lowered since they were made
                await self.send(run, epoch, self._fitting_now(messages, error), mark)
        except UnreachableError:  # some of them may be there
            self._repeated.add(epoch)
            raise
        self._repeated.discard(epoch)

    def _fitting_now(self, messages: list[Keyed], error: TooLargeError) -> list[Keyed]:
        """Return messages without those above the limit of now, which are dead letters."""
        most = self.most_bytes
        large = {number for number, (_, each) in enumerate(messages) if each and most and len(each) > most}
        if not large or self.refused is None or not self.keeps_refused:
            raise error
        errors = {number: self._too_large(len(messages[number][1] or b"")) for number in large}
        self._in_a_row.end_epoch([*errors.values()], len(messages) - len(large))
        coding = "json" if self._format == "jsonl" else None
        for number, each in errors.items():
            payload = messages[number][1] or b""
            self.refused(str(each), payload.decode() if coding else payload, 1, coding=coding)
        return [(key, None if number in large else each) for number, (key, each) in enumerate(messages)]

    @property
    @abstractmethod
    def topic(self) -> str:
        """The name of the topic, stream or subject, by which a schema is registered."""

    @property
    @abstractmethod
    def place(self) -> str:
        """The sink, as messages name it."""

    @abstractmethod
    async def connect(self) -> None:
        """Connect, also once more; raises ``SetupError`` if nobody answers."""

    async def mark(self) -> Any:
        """Return a value of JSON that ``send`` is given again if the commit may be a repeated one."""
        return None

    @abstractmethod
    async def send(self, run: str, epoch: int, messages: list[Keyed], mark: Any) -> None:
        """Send the messages of an epoch, unless that was done; ``mark``: None if it surely was not.

        Raises ``TooLargeError`` if the server takes no message of such a size; some of the epoch may be there then.
        """
