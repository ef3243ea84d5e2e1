"""MQTT, on a real broker (mosquitto)."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from oop_engine.connectors import link
from oop_engine.errors import SetupError, TraceError
from oop_engine.extend import LiveSource
from oop_engine.runners.event_loop import run_async
from oop_engine.sources import Journal, Mqtt
from tests.children import MOST_S
from tests.parts.connectors.servers import IN_A_ROW, free_port, program, served
from tests.parts.connectors.wire import wired

CONFIG = """
listener {port} 127.0.0.1
allow_anonymous true
max_inflight_messages 0
max_queued_messages 0
"""
pytestmark = IN_A_ROW


def test_without_the_package_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "paho.mqtt.client", None)
    with pytest.raises(SetupError, match=r"pip install 'oop-engine\[mqtt\]'"):
        run_async(first(Mqtt("127.0.0.1", "topic", "me"), None, 1))


async def test_a_broker_that_falls_silent_does_not_keep_a_stop_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It lets the client in, grants its topic, and answers nothing more."""
    pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed (the extra mqtt)")
    monkeypatch.setattr("oop_engine.connectors.sources.mqtt._END_S", 0.1)
    monkeypatch.setattr(link, "ANSWER_S", 10.0 * MOST_S)
    subscribed, gone = asyncio.Event(), asyncio.Event()

    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1024)
        writer.write(bytes.fromhex("2003000000"))  # CONNACK
        asked = await reader.read(1024)
        writer.write(bytes([0x90, 4, *asked[2:4], 0, 1]))  # SUBACK
        await writer.drain()
        subscribed.set()
        await reader.read()
        writer.close()
        await writer.wait_closed()
        gone.set()

    server = await asyncio.start_server(broker, "127.0.0.1", 0)
    source = Mqtt("127.0.0.1", "topic", "me", port=server.sockets[0].getsockname()[1])
    reading = asyncio.create_task(first(source, None, 1))
    await subscribed.wait()
    await asyncio.sleep(0)
    reading.cancel()
    done, _ = await asyncio.wait({reading}, timeout=MOST_S)
    assert done
    async with asyncio.timeout(MOST_S):
        await gone.wait()
    server.close()
    await server.wait_closed()


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed (the extra mqtt)")
    folder, number = tmp_path_factory.mktemp("mqtt"), free_port()
    (folder / "mosquitto.conf").write_text(CONFIG.format(port=number))
    with served([program("mosquitto", "mosquitto"), "-v", "-c", "mosquitto.conf"], "running", folder):
        yield number


def send(port: int, topic: str, *times: int) -> None:
    import paho.mqtt.client as paho
    from paho.mqtt.enums import CallbackAPIVersion

    client = paho.Client(CallbackAPIVersion.VERSION2)
    client.max_inflight_messages_set(0)
    client.connect("127.0.0.1", port)
    client.loop_start()
    for ts in times:
        client.publish(topic, json.dumps({"ts": ts}), qos=1).wait_for_publish(MOST_S)
    client.disconnect()
    client.loop_stop()


async def first(
    source: LiveSource, position: Any, count: int, acknowledged: int = 0
) -> tuple[list[int], Any]:
    """Return the times of the first messages, and the position behind; of some of them it is acknowledged."""
    found: list[int] = []
    async with aclosing(source.read(position)) as pieces:  # type: ignore[type-var]
        async for data, position in pieces:
            found += [json.loads(payload)["ts"] for payload in data]
            if acknowledged:
                await source.acknowledge(
                    {"count": (position["count"] - len(found)) + acknowledged, "sent": {}}
                )
            if len(found) >= count:
                break
    return found, position


def begin(port: int, topic: str, client: str) -> None:
    """Subscribe for a client whose session stays."""
    config = [
        program("mosquitto_sub", "mosquitto-clients"),
        "-h",
        "127.0.0.1",
        "-p",
        str(port),
        "-V",
        "5",
        "-q",
        "1",
    ]
    subprocess.run([*config, "-t", topic, "-i", client, "-c", "-x", "1000", "-E"], check=True, timeout=MOST_S)


def test_messages_that_no_checkpoint_has_come_again_and_no_others(port: int) -> None:
    begin(port, "one/#", "first")
    send(port, "one/a", *range(100))
    source = Mqtt("127.0.0.1", "one/#", "first", port=port)
    found, _ = run_async(first(source, None, 100, acknowledged=40))
    assert found == [*range(100)]
    found, position = run_async(first(Mqtt("127.0.0.1", "one/#", "first", port=port), None, 60))
    assert found == [*range(40, 100)]
    # killed between the checkpoint and the acknowledgement: the broker sends all 60 again
    send(port, "one/b", 100, 101)
    found, after = run_async(first(Mqtt("127.0.0.1", "one/#", "first", port=port), position, 2))
    assert found == [100, 101]
    assert after["count"] == 62
    assert len(after["sent"]) == 62  # whether the broker has read 60 acknowledgements is not known yet


def test_a_forgotten_session_and_a_wrong_broker_are_told_in_a_line(port: int) -> None:
    position = {"count": 3, "sent": {}}
    with pytest.raises(
        TraceError, match="client 'nobody': the broker has no session of this client any more"
    ):
        run_async(first(Mqtt("127.0.0.1", "two", "nobody", port=port), position, 1))
    with pytest.raises(SetupError, match="no broker answers"):
        run_async(first(Mqtt("127.0.0.1", "two", "me", port=free_port()), None, 1))
    for topic in ("a/#/b", ""):
        with pytest.raises(SetupError, match=f"client 'me': {topic!r}: .*: give topics such as 'rooms/"):
            run_async(first(Mqtt("127.0.0.1", topic, "me", port=port), None, 1))


def test_a_broker_that_refuses_is_told_in_a_line(tmp_path: Path) -> None:
    pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed (the extra mqtt)")
    number = free_port()
    (tmp_path / "mosquitto.conf").write_text(f"listener {number} 127.0.0.1\nallow_anonymous false\n")
    with (
        served([program("mosquitto", "mosquitto"), "-v", "-c", "mosquitto.conf"], "running", tmp_path),
        pytest.raises(SetupError, match="the broker refuses: Not authorized: check name and password"),
    ):
        run_async(first(Mqtt("127.0.0.1", "two", "me", port=number, username="a", password="b"), None, 1))


def test_a_broker_that_says_nothing_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed (the extra mqtt)")
    monkeypatch.setattr(link, "ANSWER_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        source = Mqtt("127.0.0.1", "two", "me", port=silent.getsockname()[1])
        with pytest.raises(SetupError, match="client 'me': the broker does not answer: give the address"):
            run_async(first(source, None, 1))


def test_a_journal_takes_messages_off_the_broker_before_a_checkpoint_has_them(
    port: int, tmp_path: Path
) -> None:
    begin(port, "kept/#", "keeper")
    send(port, "kept/a", *range(50))
    source = Mqtt("127.0.0.1", "kept/#", "keeper", port=port)
    found, _ = run_async(first(Journal(source, tmp_path), None, 50))
    assert found == [*range(50)]
    send(port, "kept/b", 50, 51)
    again = Mqtt("127.0.0.1", "kept/#", "keeper", port=port)
    found, _ = run_async(first(Journal(again, tmp_path), None, 52))
    assert found == [*range(52)]


def test_a_message_whose_acknowledgement_is_lost_on_the_way_does_not_come_twice(port: int) -> None:
    """The connection breaks behind it, so the broker sends the message again to the client that it knows."""
    begin(port, "broken/#", "again")
    send(port, "broken/a", 1)

    async def main() -> list[int]:
        async with wired(port) as wire:
            source = Mqtt("127.0.0.1", "broken/#", "again", port=wire.here)
            async with aclosing(source.read(None)) as pieces:  # type: ignore[type-var]
                found, position = await anext(pieces)
                wire.still = True
                await source.acknowledge(position)
                later = source._position()  # of a checkpoint behind it
                await wire.cut()
                await wire.mend()
                await asyncio.to_thread(send, port, "broken/b", 2)
                found += (await anext(pieces))[0]
                await wire.cut()
            await wire.mend()
            again = Mqtt("127.0.0.1", "broken/#", "again", port=wire.here)
            await asyncio.to_thread(send, port, "broken/c", 3)
            async with aclosing(again.read(later)) as pieces:  # type: ignore[type-var]
                while len(found) < 4:
                    data, position = await anext(pieces)
                    found += data
                while len(position["sent"]) > 1:  # the others are forgotten once the broker has read all that
                    await again.acknowledge(position)
                    await asyncio.to_thread(send, port, "broken/c", 4)
                    _, position = await anext(pieces)
        return [json.loads(payload)["ts"] for payload in found]

    assert run_async(main()) == [1, 2, 2, 3]  # the second one is in no checkpoint


def test_a_message_has_its_topic_and_user_properties_as_columns(port: int) -> None:
    import paho.mqtt.client as paho
    from paho.mqtt.enums import CallbackAPIVersion
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    begin(port, "told/#", "told")
    sender = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
    sender.connect("127.0.0.1", port)
    sender.loop_start()
    properties = Properties(PacketTypes.PUBLISH)
    properties.UserProperty = ("trace", "7")
    sender.publish("told/a", b"{}", qos=1, properties=properties).wait_for_publish(MOST_S)
    sender.disconnect()
    sender.loop_stop()

    async def one() -> Any:
        source = Mqtt("127.0.0.1", "told/#", "told", port=port)
        source.wanted = source.metadata
        async with aclosing(source.read(None)) as found:  # type: ignore[type-var]
            async for data, _ in found:
                return getattr(data[0], "about", None)

    assert run_async(one()) == {"_topic": "told/a", "_headers": [("trace", "7")]}
