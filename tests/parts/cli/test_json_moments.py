"""Moments in what the program writes for other programs: RFC 3339, in every command with ``--json`` and on the page."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from oop_engine import Graph, serve
from oop_engine.cli.app import COMMANDS, app
from oop_engine.core.units import dated, instant
from oop_engine.runners.event_loop import run_async
from oop_engine.service.dashboard.dashboard import _outside
from oop_engine.sinks import Gathered, PartFiles
from oop_engine.sources import Replayed
from oop_engine.system.python_file import load_file
from tests.parts.service.test_dashboard import MINUTE, NAMES, push, sampled

GRAPH = """
import pyarrow as pa
from oop_engine import Graph, Schema
from oop_engine.operators import BoundedDisorder, Count, Punctuate, Tumbling, WindowAggregate

schema = Schema({"ts": pa.timestamp("ms", "UTC"), "host": pa.string()}, "ts")
graph = Graph("requests")
edge = graph.add("edge", Punctuate(BoundedDisorder("5 s")), graph.source("log", schema))
graph.sink("out", graph.add("count", WindowAggregate(Tumbling("10 s"), {"n": Count()}), edge))
"""
RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
LIKE_ONE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[^ ,;\"']*")
_EPOCH = datetime.fromisoformat("2000-01-01T00:00:00Z").timestamp()
_NAMES_OF_MOMENTS = {"at", "first", "last", "below", "bound", "oldest", "newest"}


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the plain values in some JSON, each with the name that it is under."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, name if name in ("bounds", "at") else key)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each, name)
    else:
        yield name, value


def check(value: Any) -> int:
    """Check all moments in some JSON; return how many there are."""
    count = 0
    for name, leaf in leaves(value):
        if isinstance(leaf, str):
            for text in LIKE_ONE.findall(leaf):
                assert RFC_3339.fullmatch(text), (name, leaf)
                count += 1
        elif name in (*_NAMES_OF_MOMENTS, "bounds") and leaf is not None:
            assert leaf < _EPOCH, (name, leaf)  # a moment as a bare number
    return count


async def service(graph: Graph, times: list[str]) -> None:
    """Run a service over some rows, and one that is none, until they are processed; windows are open then."""
    stop = asyncio.Event()

    async def rows(start: int) -> AsyncIterator[Any]:
        for at in [*times[start:], "none"]:
            yield {"ts": datetime.fromisoformat(at), "host": "a"} if at != "none" else at
        stop.set()
        await asyncio.Event().wait()

    folders: dict[str, Any] = {"checkpoint": "state", "dead_letters": PartFiles("dead", "jsonl")}
    await serve(graph, {"log": Replayed(rows)}, {"out": Gathered()}, stop=stop, **folders)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a graph, its trace, the checkpoints and dead letters of a service."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graph.py").write_text(GRAPH)
    times = [f"2026-03-01T09:00:{second:02}Z" for second in range(45)]
    (tmp_path / "more.jsonl").write_text("".join(f'{{"ts": "{at}", "host": "a"}}\n' for at in times))
    run_async(service(load_file(tmp_path / "graph.py", "Python").graph, times))
    return tmp_path


TIMED = {  # and how many moments there are at least
    "checkpoints": (["checkpoints", "state"], 4),
    "why": (["why", "state"], 1),
    "dead-letters": (["dead-letters", "dead"], 1),
    "compare": (["compare", "graph.py", "more.jsonl"], 0),
    "explain": (["explain", "graph.py"], 0),
    "generate": (["generate", "made.csv"], 0),
    "profile": (["profile", "more.jsonl", "--time", "ts"], 2),
    "replay": (["replay", "union_count", "--set", "minutes=2"], 0),
    "run": (["run", "graph.py", "more.jsonl"], 4),
    "scenarios": (["scenarios"], 0),
    "sql": (["sql", "SELECT ts, host FROM 'more.jsonl'"], 45),
}


@pytest.mark.parametrize("command", TIMED)
def test_moments_in_json_are_rfc_3339(folder: Path, command: str) -> None:
    args, least = TIMED[command]
    done = CliRunner().invoke(app, [*args, "--json"])
    assert done.exit_code == 0, done.output
    by_line = command in ("run", "sql")
    found = [json.loads(line) for line in done.stdout.splitlines()] if by_line else json.loads(done.stdout)
    assert check(found) >= least


def test_every_command_with_json_is_here() -> None:
    with click.Context(app) as context:
        named = {name for name in COMMANDS for one in [app.get_command(context, name)] if one is not None
                 for option in one.params if "--json" in option.opts}  # fmt: skip
    assert named == {
        *TIMED,
        "pipeline",
        "sources",
        "warm",
    }  # one needs Spark, one has no moments, one compiles for minutes


def test_letters_that_are_shown_have_moments_too(folder: Path) -> None:
    shown = CliRunner().invoke(app, ["dead-letters", "dead", "--show"]).stdout
    assert check([json.loads(line) for line in shown.splitlines()]) == 1


def test_a_time_has_the_zone_of_its_column_and_no_other() -> None:
    assert instant(1_772_355_600_500, "ms", "utc") == "2026-03-01T09:00:00.500Z"
    assert instant(1_772_355_600, "s", "local") == "2026-03-01T09:00:00"
    assert instant(-1, "us", "utc") == "1969-12-31T23:59:59.999999Z"
    assert instant(1_772_355_600_000_000_001, "ns") == "2026-03-01T09:00:00.000000001Z"
    assert (dated(40, "s"), dated(40, "rows", "utc"), dated(2**62, "s", "utc")) == (None, None, None)


def test_the_page_sends_moments() -> None:
    async def main() -> None:
        async with sampled() as (service, sampler, _):
            for name in NAMES:
                await push(service, name, MINUTE * 60, MINUTE * 60 + 35)
            sampler.take()
            sent = json.loads(json.dumps(_outside(sampler.last, [*sampler.points])))
            assert check(sent) >= 10
            assert {source["below"] for source in sent["sources"]} == {"2024-05-01T11:30:30Z"}

    run_async(main())
