"""No secret that is typed on the command line, or is in the environment, is in what the program writes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from oop_engine.cli.app import app
from oop_engine.connectors import link
from oop_engine.connectors.by_name import SINKS, SOURCES
from tests.parts.connectors.servers import IN_A_ROW, free_port

pytestmark = IN_A_ROW
WHO, WORD, MORE = PLANTED = ("planted-user", "planted-word", "planted-more")
GRAPH = """
import pyarrow as pa
from oop_engine import Graph, Schema
from oop_engine.operators import Punctuate, Upstream

graph = Graph("numbers")
source = graph.source("in", Schema({"ts": pa.int64()}, "ts", "s"))
graph.sink("out", graph.add("edge", Punctuate(Upstream()), source))
"""
PASSWORDS = {f"{name}_PASSWORD": WORD for name in ("KAFKA", "NATS", "MQTT", "REDIS")}
NAMED = {"mqtt": "t?client=c", "postgres": "db?publication=p&table=t"}
"""What an address of a kind needs behind its host."""
REGISTRIES = (f"http://{WHO}:{WORD}@", f"https://{WHO}:{WORD}@")


def broker_addresses(kind: str, host: str, needs: str) -> list[str]:
    name = needs or "t?x="
    return [
        f"{kind}:{host}/{name}&user={WHO}",
        f"{kind}:{host}/{name}&user={WHO}&tls=yes",
        f"{kind}:{host}/{name}&password={MORE}",
        f"{kind}:{WHO}:{WORD}@{host}/{name}",
        f"{kind}://{WHO}:{WORD}@{host}/{name}",
        *(f"{kind}:{host}/{name}&format=avro&registry={at}{host}" for at in REGISTRIES),
        f"{kind}:{host}/{name}&format=protobuf&registry={REGISTRIES[0]}{host}/?key={MORE}",
    ]


def web_addresses(kind: str, host: str) -> list[str]:
    at = "sse:http" if kind == "sse" else kind
    return [
        f"{at}://{WHO}:{WORD}@{host}/x?token={MORE}",
        f"{at}://{host}/x?token={MORE}&format=csv",
        f"{at}://{WHO}:{WORD}@{host}/x?journal=kept&token={MORE}",
    ]


def addresses(kind: str, host: str, *, sink: bool) -> list[str]:
    """Return addresses of a kind that have secrets wherever people put them."""
    if kind in ("ws", "wss", "sse"):
        return web_addresses(kind, host)
    if kind in ("kafka", "redis", "nats", "mqtt", "postgres"):
        needs = NAMED.get(kind, "").replace("&table=t" if not sink else "publication=p&", "")
        return [one.replace("?x=&", "?").replace("?x=", "") for one in broker_addresses(kind, host, needs)]
    return [f"{kind}:{WHO}:{WORD}@{host}?token={MORE}", f"{kind}:s3://{WHO}:{WORD}@bucket/x?key={MORE}"]


Told = Callable[..., str]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Told:
    """Have a function that runs the program, and returns all that it has written; that has no secret."""
    monkeypatch.setattr(link, "ANSWER_S", 0.3)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graph.py").write_text(GRAPH)
    (tmp_path / "log.jsonl").write_text('{"ts": 1}\n{"ts": "x"}\n')

    def told(*arguments: str, code: int = 2) -> str:
        done = CliRunner().invoke(app, arguments, env={**os.environ, **PASSWORDS, "PGPASSWORD": WORD})
        assert done.exit_code == code, done.output
        written = done.output + caplog.text
        for path in tmp_path.rglob("*"):
            written += str(path.relative_to(tmp_path))
            if path.is_file() and path.name != "graph.py":
                written += path.read_bytes().decode(errors="replace")
        assert not [secret for secret in PLANTED if secret in written], (arguments, written)
        return written

    return told


PACKAGES = ("websockets", "httpx", "redis", "nats", "confluent_kafka", "paho.mqtt", "psycopg", "fastavro")
RUN = ("run", "graph.py", "--checkpoint", "state")
LIVE = ("--source", "in=tail:log.jsonl?follow=no")


@pytest.mark.slow(keep=4)
@pytest.mark.parametrize("kind", sorted({*SOURCES}))
def test_of_sources(kind: str, told: Told) -> None:
    """Of all that there are, so that a new one is not forgotten."""
    for package in PACKAGES:
        pytest.importorskip(package, reason="the packages of all connectors are needed")
    here, nowhere = (
        addresses(kind, host, sink=False) for host in (f"127.0.0.1:{free_port()}", "nowhere.invalid:1")
    )
    for address in (*here, *nowhere[:2]):
        told(*RUN, "--source", f"in={address}", "--sink", "out=print:")


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("kind", sorted({*SINKS} - {"print"}))
def test_of_sinks_and_of_those_of_dead_letters(kind: str, told: Told) -> None:
    for package in PACKAGES:
        pytest.importorskip(package, reason="the packages of all connectors are needed")
    here, nowhere = (
        addresses(kind, host, sink=True) for host in (f"127.0.0.1:{free_port()}", "nowhere.invalid:1")
    )
    for address in (*here, nowhere[-1]):
        told(*RUN, *LIVE, "--sink", f"out={address}")
    told(*RUN, *LIVE, "--sink", "out=print:", "--dead-letters", here[min(3, len(here) - 1)])


WRONG = [
    f"redis:{WHO}:{WORD}@host:1/s",
    f"wss://{WHO}:{WORD}@host/x?token={MORE}",
    f"none://{WHO}:{WORD}@b/x?k={MORE}",
]


@pytest.mark.parametrize("address", WRONG)
@pytest.mark.parametrize(
    "arguments",
    [
        (*RUN, "--source", "inn={}", "--sink", "out=print:"),
        (*RUN, "--source", "{}", "--sink", "{}"),
        (*RUN, "--sink", "in={}"),
        (*RUN[:2], "--checkpoint", "{}", *LIVE, "--sink", "out=print:"),
        ("run", "graph.py", "{}"),
        ("run", "graph.py", "in={}"),
        ("run", "graph.py", "--out", "{}", "log.jsonl"),
        ("run", "graph.py", "--csv", "{}", "log.jsonl"),
        ("run", "{}"),
        ("explain", "{}"),
        ("profile", "{}"),
        ("replay", "{}"),
        ("why", "{}"),
        ("checkpoints", "{}"),
        ("dead-letters", "{}"),
        ("sql", "select * from '{}'"),
    ],
    ids=lambda each: " ".join(each),
)
def test_of_addresses_in_wrong_places(address: str, arguments: tuple[str, ...], told: Told) -> None:
    pytest.importorskip("sqlglot", reason="sqlglot is not installed (the extra sql)")
    pytest.importorskip("obstore", reason="obstore is not installed (the extra objects)")
    if "--checkpoint" in arguments and "{}" in arguments and "://" not in address:
        return  # it is the path of a folder
    told(*(each.format(address) for each in arguments))
