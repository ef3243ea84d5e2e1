"""No secret of a service from the shell is on its page, in its metrics, or in the output of other commands."""

from __future__ import annotations

import asyncio
import http.client
import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from tests.children import MOST_S
from tests.parts.connectors import test_outages
from tests.parts.connectors.postgres_server import do
from tests.parts.connectors.servers import IN_A_ROW, free_port, program, served
from tests.parts.connectors.test_outages import PostgresServer
from tests.parts.service.store_server import served_store

pytestmark = IN_A_ROW
folder = test_outages.folder
WHO, WORD, MORE = PLANTED = ("planted-user", "planted-word", "planted-more")
PROGRAM = [sys.executable, "-m", "oop_engine.cli"]
ENVIRONMENT = {**os.environ, "REDIS_PASSWORD": WORD, "NATS_PASSWORD": WORD}
ENVIRONMENT |= {"MQTT_PASSWORD": WORD, "PGPASSWORD": WORD}
GRAPH = """
import pyarrow as pa
from oop_engine import Graph, Schema
from oop_engine.operators import Meld, Punctuate, Upstream

graph = Graph("numbers")
names = {sources}
ends = [graph.add(f"{{name}}-edge", Punctuate(Upstream()), graph.source(name, Schema({{"ts": pa.int64()}}, "ts", "s")))
        for name in names]
melded = graph.add("melded", Meld(len(names)), *ends)
for name in {sinks}:
    graph.sink(name, melded)
"""
PATHS = ("/", "/page.js", "/graph.js", "/state", "/metrics", "/events", "/nothing")


WEB = """
import asyncio, sys
from websockets.asyncio.server import serve

async def of_web_sockets(connection):
    await connection.send('{"ts": 1}')
    await connection.send('{"ts": "pla"}')
    await asyncio.Future()

async def of_events(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    writer.write(b'HTTP/1.1 200 OK\\r\\nContent-Type: text/event-stream\\r\\n\\r\\ndata: {"ts": 1}\\n\\n')
    await writer.drain()
    await asyncio.Future()

async def main():
    stream = await asyncio.start_server(of_events, "127.0.0.1", int(sys.argv[2]))
    async with serve(of_web_sockets, "127.0.0.1", int(sys.argv[1])):
        print("ready", flush=True)
        await asyncio.Future()

asyncio.run(main())
"""
"""Serves a web socket and a stream of events."""


def shown(port: int, path: str) -> str:
    """Return an answer of the page; of the endless stream of events the first."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=MOST_S)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.readline() if path == "/events" else answer.read()
    connection.close()
    return f"{answer.headers}{body.decode()}"


@pytest.mark.slow
def test_a_service_from_the_shell_shows_no_secret(tmp_path: Path) -> None:
    """While its servers are there, and once they have gone."""
    for package in ("websockets", "httpx", "redis", "nats"):
        pytest.importorskip(package, reason="the packages of all connectors are needed")
    with ExitStack() as stack:
        servers = stack.enter_context(ExitStack())
        sources, sinks = begun(servers, tmp_path)
        assert_none_shown(stack, servers, tmp_path, sources, sinks, "state")


@pytest.mark.skipif("OOP_ENGINE_KILLS" not in os.environ, reason="run by make kills and make test-servers")
def test_a_service_of_logins_shows_no_secret(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same of MQTT and Postgres by passwords, and of checkpoints in an object store by keys."""
    for package in ("paho.mqtt", "psycopg", "obstore"):
        pytest.importorskip(package, reason="the packages of all connectors are needed")
    objects = dict[str, bytes]()
    with ExitStack() as stack:
        port = stack.enter_context(served_store(objects))
        keys = {"AWS_ACCESS_KEY_ID": WHO, "AWS_SECRET_ACCESS_KEY": WORD, "AWS_SESSION_TOKEN": MORE}
        about = {"AWS_ALLOW_HTTP": "true", "AWS_REGION": "here", "AWS_ENDPOINT": f"http://127.0.0.1:{port}"}
        for name, value in (keys | about).items():
            monkeypatch.setitem(ENVIRONMENT, name, value)
        servers = stack.enter_context(ExitStack())
        sources, sinks = of_logins(servers, folder)
        assert_none_shown(stack, servers, tmp_path, sources, sinks, "s3://bucket/state")
    stored = [f"{key} {value.decode(errors='replace')}" for key, value in objects.items()]
    assert any("checkpoints" in each or "epochs" in each for each in stored)
    assert not [each for each in stored if any(secret in each for secret in PLANTED)]


def assert_none_shown(
    stack: ExitStack,
    servers: ExitStack,
    folder: Path,
    sources: dict[str, str],
    sinks: dict[str, str],
    state: str,
) -> None:
    """Serve, have the servers taken away, and stop; nothing that is written or shown has a secret."""
    (folder / "graph.py").write_text(GRAPH.format(sources=[*sources], sinks=[*sinks]))
    (folder / "log.jsonl").write_text('{"ts": 1}\n{"ts": "x"}\n')
    service = started(stack, folder, sources, sinks, state)
    lines, port = list[str](), 0
    for line in service.stdout or ():
        lines.append(line)
        if found := re.search(r"page: http://127\.0\.0\.1:(\d+)/", line):
            port = int(found[1])
            break
    assert port, lines
    while not [*(folder / "dead").glob("*.jsonl")]:  # no dead letter is in a checkpoint yet
        try:
            assert "state" in shown(port, "/state")
        except OSError:
            pytest.fail(f"the service has ended: {[*lines, *(service.stdout or ())]}")
    texts = [shown(port, path) for path in PATHS]
    servers.close()  # all are gone: lines of the log and the page show why it waits
    away = {f"source {name!r}" for name in sources if name != "tail"}
    for line in service.stdout or ():
        lines.append(line)
        away -= {name for name in away if name in line}
        if not away:
            break
    texts += [shown(port, path) for path in PATHS]
    service.send_signal(signal.SIGINT)
    service.send_signal(signal.SIGINT)
    lines += service.stdout or ()
    texts += ["".join(lines), *listed(folder, state)]
    assert any("127.0.0.1" in text for text in texts)  # addresses are shown, without what is secret of them
    assert not [text for text in texts if any(secret in text for secret in PLANTED)]


def begun(servers: ExitStack, folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Begin servers with the planted user and passwords; return the addresses of sources and sinks."""
    redis_at, nats_at, sockets, events = (free_port() for _ in range(4))
    redis = [program("redis-server", "redis-server"), "--port", str(redis_at), "--bind", "127.0.0.1"]
    redis += ["--save", "", "--user", WHO, "on", f">{WORD}", "~*", "&*", "+@all"]
    nats = [program("nats-server", "nats-server"), "-js", "-sd", str(folder / "nats"), "-a", "127.0.0.1"]
    nats += ["-p", str(nats_at), "--user", WHO, "--pass", WORD]
    servers.enter_context(served(redis, "eady to accept connections", folder))
    servers.enter_context(served(nats, "Server is ready", folder))
    servers.enter_context(served([sys.executable, "-c", WEB, str(sockets), str(events)], "ready", folder))
    asyncio.run(streams(redis_at, nats_at))
    of_redis, of_nats = f"redis:127.0.0.1:{redis_at}", f"nats:127.0.0.1:{nats_at}"
    web = {
        "ws": f"ws://{WHO}:{WORD}@127.0.0.1:{sockets}/x?token={MORE}",
        "sse": f"sse:http://{WHO}:{WORD}@127.0.0.1:{events}/x?token={MORE}",
    }
    sources = {"redis": f"{of_redis}/s?user={WHO}", "nats": f"{of_nats}/s?user={WHO}"}
    sinks = {"into-redis": f"{of_redis}/out?user={WHO}", "into-nats": f"{of_nats}/out?user={WHO}"}
    return sources | web | {"tail": "tail:log.jsonl"}, sinks | {"files": "jsonl:out"}


def of_logins(servers: ExitStack, folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Begin servers of the other kinds, as ``begun``."""
    mqtt, postgres = free_port(), PostgresOfLogins(folder)
    chosen, lines = (
        folder / "passwords",
        f"user root\nlistener {mqtt} 127.0.0.1\npassword_file {folder}/passwords\n",
    )
    made = [program("mosquitto_passwd", "mosquitto"), "-c", "-b", str(chosen), WHO, WORD]
    subprocess.run(made, check=True, capture_output=True, timeout=MOST_S)
    (folder / "mosquitto.conf").write_text(lines)
    servers.enter_context(
        served([program("mosquitto", "mosquitto"), "-v", "-c", "mosquitto.conf"], "running", folder)
    )
    send = [
        program("mosquitto_pub", "mosquitto-clients"),
        "-h",
        "127.0.0.1",
        "-p",
        str(mqtt),
        "-u",
        WHO,
        "-P",
        WORD,
    ]
    subprocess.run([*send, "-t", "in", "-m", '{"ts": 1}', "-r", "-q", "1"], check=True, timeout=MOST_S)
    servers.enter_context(postgres.process())
    do(postgres.at, 'create table "in" (ts bigint)', "create table out (ts bigint)",
       'create publication "in" for table "in"', "select pg_create_logical_replication_slot('in', 'pgoutput')",
       'insert into "in" values (1)')  # fmt: skip
    at = f"postgres:127.0.0.1:{postgres.port}/postgres?user={WHO}"
    sources = {"mqtt": f"mqtt:127.0.0.1:{mqtt}/in?client=c&user={WHO}", "tail": "tail:log.jsonl"}
    sources["postgres"] = f"{at}&publication=in&slot=in"
    return sources, {"files": "jsonl:out", "into-postgres": f"{at}&table=out"}


class PostgresOfLogins(PostgresServer):
    """It lets in the planted user alone, with the password."""

    @property
    def at(self) -> str:
        return f"postgresql://{WHO}:{WORD}@127.0.0.1:{self.port}/postgres"

    def init(self) -> list[str]:
        (word := self.folder / "word").write_text(WORD)
        word.chmod(0o644)
        return ["-A", "scram-sha-256", "-U", WHO, "--pwfile", str(word)]


def started(
    stack: ExitStack, folder: Path, sources: dict[str, str], sinks: dict[str, str], state: str
) -> subprocess.Popen[str]:
    """Start the service; it is killed at the end, and where it takes too long."""
    command = [*PROGRAM, "run", "graph.py", "--checkpoint", state, f"--page={free_port()}", "--every", "1"]
    command += [word for name, at in sources.items() for word in ("--source", f"{name}={at}")]
    command += [word for name, at in sinks.items() for word in ("--sink", f"{name}={at}")]
    both: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    service = stack.enter_context(
        subprocess.Popen([*command, "--dead-letters", "jsonl:dead"], cwd=folder, env=ENVIRONMENT, **both)
    )
    stack.callback(service.kill)
    (late := Timer(MOST_S, service.kill)).start()  # no line is waited for any longer
    stack.callback(late.cancel)
    return service


def listed(folder: Path, state: str) -> list[str]:
    """Return all that commands show of what the service has left, and all of its files."""
    found = list[str]()
    for more in (
        ("checkpoints", state),
        ("dead-letters", "dead"),
        ("why", state, "--json"),
        ("explain", "graph.py"),
        ("explain", "graph.py", "--json"),
    ):
        done = subprocess.run(
            [*PROGRAM, *more], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
        )
        assert not done.returncode, done.stderr
        found.append(done.stdout + done.stderr)
    files = [path for path in folder.rglob("*") if path.is_file() and "nats" not in path.parts]
    return found + [path.read_bytes().decode(errors="replace") for path in files]


async def streams(redis_at: int, nats_at: int) -> None:
    import nats
    import redis.asyncio as redis

    async with redis.Redis(port=redis_at, username=WHO, password=WORD) as entries:
        await entries.xadd("s", {"value": b'{"ts": 1}'})
    client = await nats.connect(f"nats://{WHO}:{WORD}@127.0.0.1:{nats_at}")
    for name in ("s", "out"):
        await client.jetstream().add_stream(name=name, subjects=[name])
    await client.jetstream().publish("s", b'{"ts": 1}')
    await client.close()
