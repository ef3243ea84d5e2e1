"""MQTT: messages of topics, which a broker keeps until a checkpoint has them."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from oop_engine.connectors import link
from oop_engine.connectors.library import library
from oop_engine.connectors.payload import Payload
from oop_engine.connectors.servers.mqtt_reasons import ShortConnections, passes, way_out
from oop_engine.connectors.servers.reasons import why_not
from oop_engine.connectors.source import BEGIN_AGAIN, Format, LiveSource, Position, is_count
from oop_engine.core.errors import SetupError, TraceError, UsageError
from oop_engine.system.addresses import Address
from oop_engine.system.knobs import knob
from oop_engine.system.stopwatch import wall

__all__ = ["Mqtt"]

_MOST = knob(__name__, "_MOST", 1000)
_ALIVE_S = 20
"""Seconds of silence after which the client asks the broker for a sign of life, and then until it is away."""
_END_S = 2.0
"""Seconds for which a stop waits for a broker that does not answer; it sends messages again then, which are known."""


@dataclass(frozen=True, eq=False)
class _Recorded:
    """One acknowledgement of a message that a checkpoint has; the broker may not have read it, and sends it again."""

    content: str


class Mqtt(LiveSource):
    """Messages that are published to ``topics`` with QoS 1, from the broker at ``host:port``; needs paho-mqtt.

    A message is acknowledged when a checkpoint has it, so the broker sends those again that none has.  They are known
    again by their packet identifier and their content, so none counts twice, even if the process dies between the
    checkpoint and the acknowledgement.  ``client_id`` is the name of the session at the broker: it must stay the same
    from run to run, and be nobody else's.  The broker keeps the session for ``keep_s`` seconds without us.

    A broker sends only so many messages that are not acknowledged: at most those come between two checkpoints
    (``max_inflight_messages`` of mosquitto is 20; 0 is no limit).  Messages of QoS 0 are lost with the process.
    ``options`` are keyword arguments for ``username_pw_set`` (``username``, ``password``) and ``tls`` (True, or an
    ``ssl.SSLContext``).
    Raises ``SetupError`` if no broker answers, or it refuses; ``TraceError`` if it has forgotten the session of a
    checkpoint, and so the messages since.  A schema may have columns of the message: ``_topic``, and ``_headers``, its
    user properties.
    """

    metadata = MappingProxyType({"_topic": pa.string(), "_headers": pa.map_(pa.string(), pa.string())})

    def __init__(
        self, host: str, topics: str | list[str], client_id: str, format: Format = "jsonl", *,
        port: int = 1883, keep_s: int = 7 * 86_400, **options: Any,
    ) -> None:  # fmt: skip
        if not client_id:
            msg = "Mqtt: client_id must be a name; without one the broker keeps no session, so messages would be lost"
            raise UsageError(msg)
        self._host, self._port, self._client_id, self.format = host, port, client_id, format
        self._topics = [topics] if isinstance(topics, str) else list(topics)
        self._keep_s, self._options = keep_s, options
        self._address = Address(f"{host}:{port}", options)
        self._client: Any = None
        self._answers = SimpleQueue[int | None]()  # requests the broker has answered; None: it is gone
        self._count = 0
        self._sent = dict[int, tuple[int, str]]()  # by packet identifier, in order: number, content
        self._recorded = dict[int, _Recorded]()  # those of a checkpoint that the broker may send again
        self._asked: tuple[int, dict[int, _Recorded]] | None = (
            None  # a request, and those acknowledged before it
        )

    def is_position(self, position: Position) -> bool:
        """Return whether a value can be a position: the messages that are not acknowledged."""
        return (
            isinstance(position, dict)
            and is_count(position.get("count"))
            and isinstance(position.get("sent"), dict)
        )

    async def read(self, position: Position) -> AsyncIterator[tuple[list[bytes], Position]]:
        """Yield the messages that have come, with how many there were, and those not acknowledged yet."""
        known = position or {"count": 0, "sent": {}}
        self._count, self._sent = known["count"], {}
        self._recorded = {int(mid): _Recorded(content) for mid, content in known["sent"].items()}
        waiting: asyncio.Queue[Any] = asyncio.Queue()
        client = self._connected(waiting, asyncio.get_running_loop(), again=position is not None)
        beginning = _beside(lambda: self._begin(client))
        try:
            await asyncio.shield(beginning)  # a thread goes on, though nobody waits for it any more
            self._client = client
            await self._answered(waiting)
            while True:
                messages = [await waiting.get()]
                while len(messages) < _MOST and not waiting.empty():
                    messages.append(waiting.get_nowait())
                payloads = []
                for message in messages:
                    if isinstance(message, Exception):
                        raise message
                    if message is None:
                        self._asked = None  # of the connection before
                    elif isinstance(message, int):
                        self._was_answered(message)
                    elif self._is_new(message):
                        payloads.append(self._payload(message))
                if payloads:
                    yield payloads, self._position()
        finally:
            self._client = None
            with suppress(TimeoutError):  # its threads end with the process at the latest
                async with asyncio.timeout(_END_S):
                    await asyncio.gather(asyncio.shield(beginning), return_exceptions=True)
                    await _beside(lambda: self._end(client))

    async def _answered(self, waiting: asyncio.Queue[Any]) -> None:
        """Wait until the broker has let this client in, or raise its refusal."""
        try:
            async with asyncio.timeout(link.ANSWER_S):
                answer = await waiting.get()
        except TimeoutError as error:
            msg = f"{self._place}: the broker does not answer: give the address of one that runs"
            raise SetupError(msg) from error
        if answer is not None:
            raise answer

    async def acknowledge(self, position: Position) -> None:
        """Acknowledge the messages that a checkpoint has."""
        if self._client is None:
            return
        for mid, (number, content) in list(self._sent.items()):
            if number > position["count"]:
                break
            self._record(mid, content)
            del self._sent[mid]
        if self._recorded and self._asked is None:
            self._asked = self._subscribe(self._client), dict(self._recorded)

    def _record(self, mid: int, content: str) -> None:
        self._client.ack(mid, 1)
        self._recorded[mid] = _Recorded(content)

    def _was_answered(self, request: int) -> None:
        """Forget messages whose acknowledgements the broker has read: it reads a connection in order."""
        if self._asked is None or self._asked[0] != request:
            return
        for mid, recorded in self._asked[1].items():
            if self._recorded.get(mid) is recorded:
                del self._recorded[mid]
        self._asked = None

    def _position(self) -> Position:
        sent = {str(mid): recorded.content for mid, recorded in self._recorded.items()}
        sent |= {str(mid): content for mid, (_, content) in self._sent.items()}
        return {"count": self._count, "sent": sent}

    def _payload(self, message: Any) -> bytes:
        """Return the payload of a message, with the columns of it if some are wanted; headers are user properties."""
        data: bytes = message.payload
        if not self.wanted:
            return data
        headers = getattr(message.properties, "UserProperty", None) or []
        return Payload(data, {"_topic": message.topic, "_headers": [*map(tuple, headers)]})

    def _is_new(self, message: Any) -> bool:
        """Return whether a message came for the first time; acknowledge it at once if a checkpoint has it."""
        if message.qos == 0:
            self._count += 1
            return True
        content = hashlib.blake2b(message.topic.encode() + b"\0" + message.payload, digest_size=8).hexdigest()
        recorded = self._recorded.get(message.mid)
        if message.dup and recorded is not None and recorded.content == content:
            self._record(message.mid, content)
            return False
        if message.dup and self._sent.get(message.mid, (0, ""))[1] == content:
            return False  # the connection was lost for a while; the message is on its way to a checkpoint
        self._recorded.pop(
            message.mid, None
        )  # another message has its identifier now, so it was acknowledged
        self._count += 1
        self._sent.pop(message.mid, None)
        self._sent[message.mid] = (self._count, content)
        return True

    def _connected(self, waiting: asyncio.Queue[Any], loop: asyncio.AbstractEventLoop, *, again: bool) -> Any:
        """Return a client whose messages and troubles come into the queue.

        So do None, when it is let in, and the numbers of requests that the broker has answered.
        """
        paho = library("paho.mqtt.client", "mqtt", "Mqtt")
        version = library("paho.mqtt.enums", "mqtt", "Mqtt").CallbackAPIVersion.VERSION2
        client = paho.Client(version, client_id=self._client_id, protocol=paho.MQTTv5, manual_ack=True)
        sessions, short = [again], ShortConnections()

        def tell(message: Any) -> None:
            loop.call_soon_threadsafe(waiting.put_nowait, message)

        def on_connect(client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
            if reason.is_failure and self._client is not None and passes(reason):
                return  # it was let in before, and the library tries on
            if reason.is_failure:
                tell(SetupError(f"{self._place}: the broker refuses: {reason}: check name and password"))
            elif sessions[0] and not flags.session_present:
                tell(self._forgotten())
            else:
                sessions[0] = True
                short.begin()
                loop.call_soon_threadsafe(self.link.here)
                tell(None)
                try:
                    self._subscribe(client)
                except ValueError as error:
                    topics = ", ".join(map(repr, self._topics))
                    tell(
                        SetupError(
                            f"{self._place}: {topics}: {error}: give topics such as 'rooms/+/heat', 'rooms/#'"
                        )
                    )

        def on_disconnect(client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
            self._answers.put(None)
            if self._client is None:  # it is we who end
                return
            if problem := short.end():
                tell(SetupError(f"{self._place}: {problem} give each service one of its own"))
            if end := way_out(reason):
                tell(SetupError(f"{self._place}: the broker ends the connection: {reason}: {end}"))
            loop.call_soon_threadsafe(self.link.gone, reason)

        def on_subscribe(client: Any, data: Any, mid: int, reasons: list[Any], properties: Any) -> None:
            for topic, reason in zip(self._topics, reasons, strict=True):
                if reason.is_failure:
                    msg = (
                        f"{self._place}: topic {topic!r} is refused: {reason}: check its name, and the rights"
                    )
                    tell(SetupError(msg))
            self._answers.put(mid)
            tell(mid)

        client.on_connect, client.on_disconnect, client.on_subscribe = on_connect, on_disconnect, on_subscribe
        client.reconnect_delay_set(1, 10)
        client.on_message = lambda client, data, message: tell(message)
        return client

    def _begin(self, client: Any) -> None:
        paho = library("paho.mqtt.properties", "mqtt", "Mqtt")
        packets = library("paho.mqtt.packettypes", "mqtt", "Mqtt").PacketTypes
        if "username" in self._options:
            client.username_pw_set(self._options["username"], self._options.get("password"))
        if isinstance(tls := self._options.get("tls"), ssl.SSLContext):
            client.tls_set_context(tls)
        elif tls:
            client.tls_set()
        properties = paho.Properties(packets.CONNECT)
        properties.SessionExpiryInterval = self._keep_s
        properties.ReceiveMaximum = 65_535
        client.connect_timeout = link.ANSWER_S
        try:
            client.connect(self._host, self._port, _ALIVE_S, clean_start=False, properties=properties)
        except OSError as error:
            raise SetupError(why_not(error, self._address, "broker", self._place)) from self._address.cause(
                error
            )
        client.loop_start()

    def _subscribe(self, client: Any) -> int:
        options = library("paho.mqtt.subscribeoptions", "mqtt", "Mqtt").SubscribeOptions
        once = options(qos=1, retainHandling=1)  # retained messages only the first time
        return int(client.subscribe([(topic, once) for topic in self._topics])[1] or 0)

    def _end(self, client: Any) -> None:
        """Leave when the broker has read all acknowledgements, or does not answer.

        It reads a connection in order, so it has them when it answers a request behind them.  Those it has not read
        when the connection ends, or when the next client of our name comes, it would drop.
        """
        with suppress(ValueError, Empty):  # a wrong topic; no answer in time
            request = self._subscribe(client)
            until = wall() + _END_S / 2
            while client.is_connected() and self._answers.get(timeout=max(until - wall(), 0)) != request:
                pass
        client.disconnect()
        client.loop_stop()

    @property
    def _place(self) -> str:
        return f"MQTT broker {self._address}, client {self._client_id!r}"

    def _forgotten(self) -> TraceError:
        return TraceError(
            f"{self._place}: the broker has no session of this client any more, so messages since the last checkpoint "
            f"may be lost: let it keep sessions for longer; {BEGIN_AGAIN}"
        )


def _beside(work: Callable[[], None]) -> asyncio.Future[None]:
    """Do some work on a thread that keeps neither the event loop nor the process from ending."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: Exception | None) -> None:
        if not done.done():
            done.set_result(None) if error is None else done.set_exception(error)

    def run() -> None:
        failure: Exception | None = None
        try:
            work()
        except Exception as error:
            failure = error
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, failure)

    threading.Thread(target=run, name="MQTT", daemon=True).start()
    return done
