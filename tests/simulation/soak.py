"""Soak: a service for days of virtual time, and the memory that it takes, day by day.

``python -m tests.simulation.soak DAYS [FAMILY]`` (``make soak``).  Two links, of which one falls silent for two hours
a day, with disorder, late tuples, keys that come and go every hour, and punctuation of single keys; windows, sessions,
a join and distinct keys over them, or the operators of one of the ``FAMILIES``; checkpoints on a real disk.  The last
day may not take more than the second, but for a margin.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow as pa

from benchmarks.process import resident_bytes
from oop_engine import Graph, GroupWise, Linear, Operator, Page, Schema
from oop_engine.aggregates import Last, Median
from oop_engine.extend import LiveSink
from oop_engine.operators import (
    AsOf,
    Band,
    BoundedDisorder,
    Count,
    Distinct,
    Emit,
    Meld,
    MultiJoin,
    OAJoin,
    Project,
    Punctuate,
    Session,
    Sliding,
    Sum,
    TopN,
    Tumbling,
    Upstream,
    WindowAggregate,
)
from oop_engine.policies import Heartbeat
from oop_engine.service.checkpoint_folder import CheckpointFolder
from oop_engine.service.service import Service
from oop_engine.sinks import Callback
from oop_engine.sources import Generated
from oop_engine.system.kernel import COMPILES, numba
from tests.simulation.virtual_time import run_virtual

__all__ = ["MARGINS", "Day", "grown", "soak"]

HOUR, DAY = 3600, 86_400
LOOK = 900  # between two looks at states, which rise and fall: keys without a window are forgotten many at a time
KEYS = 400  # that are new each hour: more in a day than an operator keeps for those that may come back
BEGIN = 1_704_067_200  # 2024-01-01
SCHEMA = Schema({"ts": pa.int64(), "key": pa.string(), "n": pa.int64()}, "ts", "s")
MARGINS = {"rss_mb": (1.05, 8), "objects": (1.02, 1_000), "state_bytes": (1.1, 65_536), "files": (1.0, 2),
           "file_bytes": (1.1, 65_536), "groups": (1.1, 10), "held": (1.1, 100)}  # fmt: skip
"""By column: how many times as much as on the second day the last one may have, and how much more."""


class Day(NamedTuple):
    """A day: memory at its end, the most that states and files had in it, and how much was done up to then."""

    day: int
    rss_mb: float
    objects: int
    state_bytes: int
    groups: int
    held: int
    files: int
    file_bytes: int
    results: int
    late: int
    unreadable: int


def _windows(windows: Any, asked: Any, **more: Any) -> Callable[[], Operator]:
    return lambda: WindowAggregate(windows, asked, by=("key",), **more)


def _joined(*given: Any, **more: Any) -> Callable[[], Operator]:
    return lambda: OAJoin([("key", "name")], *given, **more)


_PAIR, _BOTH, _COUNT = ("east", "renamed"), ("both",), {"n": Count()}
FAMILIES: dict[str, dict[str, tuple[Callable[[], Operator], tuple[str, ...]]]] = {
    "as-of": {
        "within": (_joined(AsOf(600), how="left"), _PAIR),
        "speculative": (_joined(AsOf(600), how="left", speculative=True), _PAIR),
    },
    "outer joins": {
        "full": (_joined(Band(120, 120), how="full"), _PAIR),
        "anti": (_joined(Band(120, 120), how="anti"), _PAIR),
    },
    "joins of three": {
        "star": (
            lambda: MultiJoin("a", {"b": Band(60, 60), "c": Band(60, 60)}, [("key", "key", "key")]),
            ("both", "east", "west"),
        ),
    },
    "values": {
        "medians": (_windows(Tumbling(600), {"m": Median("n")}), _BOTH),
        "lasts": (_windows(Sliding(HOUR, 600), {"last": Last("n")}), _BOTH),
    },
    "versions": {"early": (_windows(Sliding(HOUR, 600), _COUNT, emit=Emit()), _BOTH)},
    "definitions": {
        "shared": (_windows({"a": Tumbling(600), "b": Sliding(HOUR, 600)}, _COUNT), _BOTH),
        "capped": (_windows(Session(gap=900, most=HOUR), _COUNT), _BOTH),
    },
    "rows of a time": {
        "first": (lambda: TopN(2, "-n", by="key"), _BOTH),
        "once": (lambda: Distinct(by=("key",)), _BOTH),
    },
}
"""By name: sinks, each with its operator and the names of its inputs."""


def graph(family: str = "windows") -> Graph:
    made, sums = Graph("soak"), {"n": Count(), "sum": Sum("n")}
    lulls = Heartbeat(BoundedDisorder(90), threshold=300, slack=120)
    east = made.add("east-edge", Punctuate(lulls), made.source("east", SCHEMA))
    west = made.add("west-edge", Punctuate(Upstream()), made.source("west", SCHEMA))
    asked = FAMILIES.get(family, {})
    used = {one for _, inputs in asked.values() for one in inputs} or {"both", "renamed"}
    given = {"east": east, "west": west}
    if "renamed" in used:
        given["renamed"] = made.add(
            "renamed", Project({"at": "ts", "name": "key", "m": "n"}, progressing="at"), west
        )
    if "both" in used:
        given["both"] = made.add("both", Meld(2), east, west)
    for name, (operator, inputs) in asked.items():
        made.sink(name, made.add(f"{name}-of", operator(), *(given[one] for one in inputs)))
    if asked:
        return made
    both, renamed = given["both"], given["renamed"]
    for name, windows in (("hours", Sliding(HOUR, 600)), ("sessions", Session(gap=900))):
        made.sink(name, made.add(f"{name}-of", WindowAggregate(windows, sums, by=("key",)), both))
    joined = made.add("pairs", OAJoin([("key", "name")], Band(120, 120)), east, renamed)
    made.sink("pairs-of", made.add("count", WindowAggregate(Tumbling(600), {"n": Count()}), joined))
    made.sink("seen", made.add("distinct", Distinct(), both))
    return made


async def link(name: str, every_s: int, rows: int) -> AsyncIterator[Any]:
    """Yield the items of a link, each at its time."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for number, now in enumerate(range(BEGIN, BEGIN + 400 * DAY, every_s)):
        await asyncio.sleep(max(begun + now - BEGIN - loop.time(), 0))
        for item in items_at(name, number, now, every_s, rows):
            yield item


def items_at(name: str, number: int, now: int, every_s: int, rows: int) -> list[Any]:
    """Return what a link sends at a moment: tuples, a row that cannot be read, punctuation."""
    random, of_day = Random(f"{name} {number}"), now % DAY // HOUR
    if name == "west" and of_day in (13, 14):
        return []
    late = 90 if name == "west" else 100  # the bound of the east is at 90, so some are late
    times = [now - random.randint(0, late) for _ in range(rows)]
    keys = [
        random.choice([f"{ts // HOUR}-{random.randrange(KEYS)}", str(random.randint(0, 9))]) for ts in times
    ]
    found: list[Any] = [Page.of(SCHEMA, {"ts": times, "key": keys, "n": [1] * rows})]
    if random.random() < 0.05:
        found.append({"ts": "noon", "key": "a", "n": 1})
    if name == "west" and number:
        hour = now // HOUR
        if now % HOUR < every_s:  # those of the hour before the last one do not come in this one
            keys = [f"{hour - 2}-{key}" for key in range(KEYS)]
            found.append(GroupWise.of({"key": keys}, [(hour + 1) * HOUR] * KEYS))
        found.append(Linear(now + every_s - late))
    return found


def soak(
    days: int, *, every_s: int = 60, rows: int = 60, checkpoint_s: float = 900.0, family: str = "windows"
) -> list[Day]:
    """Run a service for so many days; return the end of each."""
    with TemporaryDirectory() as folder:
        found: list[Day] = run_virtual(_lived(Path(folder), days, every_s, rows, checkpoint_s, family))
    return found


async def _lived(
    folder: Path, days: int, every_s: int, rows: int, checkpoint_s: float, family: str
) -> list[Day]:
    results, found, stop, loop = 0, list[Day](), asyncio.Event(), asyncio.get_running_loop()

    def take(page: Page) -> None:
        nonlocal results
        results += len(page)

    async def at_once(work: Callable[[], Any]) -> Any:
        return work()

    made = graph(family)
    sinks: dict[str, LiveSink] = {node.name: Callback(take) for node in made.plan().of_kind("sink")}
    service = Service(
        made,
        {name: Generated(link(name, every_s, rows), "rows") for name in ("east", "west")},
        sinks,
        folder=CheckpointFolder(folder, clock=lambda: BEGIN + loop.time()),
        every_s=checkpoint_s,
        clock=lambda: BEGIN + loop.time(),
        aside=at_once,
    )
    begun = loop.time()

    async def watch() -> None:
        held = list[dict[str, int]]()
        for at in range(LOOK, days * DAY + 1, LOOK):
            await asyncio.sleep(max(begun + at + every_s / 2 - loop.time(), 0))
            held.append(_held(service, folder))
            if at % DAY == 0:
                found.append(_end_of(at // DAY, held, service, results))
                held.clear()
        stop.set()

    watching = asyncio.create_task(watch())
    await service.run(stop)
    await watching
    return found


def _held(service: Service, folder: Path) -> dict[str, int]:
    """Return the sizes of all states, and of the checkpoint."""
    states = [operator.state() for operator in service.local.operators.values()]
    files = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return {
        "state_bytes": sum(state.nbytes for state in states),
        "groups": sum(state.groups for state in states),
        "held": sum(state.tuples + state.partials for state in states),
        "files": len(files),
        "file_bytes": sum(files),
    }


def _end_of(day: int, held: list[dict[str, int]], service: Service, results: int) -> Day:
    gc.collect()
    late = sum(operator.counts().get("late", 0) for operator in service.local.operators.values())
    unreadable = sum(sum(of.values()) for of in service.dead.counts.values())
    most = {name: max(of[name] for of in held) for name in held[0]}
    done = {"results": results, "late": late, "unreadable": unreadable}
    return Day(day=day, rss_mb=resident_bytes() / 2**20, objects=len(gc.get_objects()), **most, **done)


def grown(found: list[Day]) -> list[str]:
    """Return in words by how much the last day is above the second, where it is by more than the margin."""
    second, last = found[1]._asdict(), found[-1]._asdict()
    return [
        f"{name} grows: {second[name]:,.0f} on day 2, {last[name]:,.0f} on day {found[-1].day}; at most "
        f"{times} times as much and {more:,} more are allowed"
        for name, (times, more) in MARGINS.items()
        if last[name] > times * second[name] + more
    ]


def main() -> int:
    logging.disable(logging.WARNING)
    days, *family = sys.argv[1:]
    if COMPILES:
        numba()  # 40 MB that are imported once kernels have been called often: no growth of the service
    found = soak(int(days), every_s=300, family=family[0]) if family else soak(int(days))
    print(" ".join(f"{name:>12}" for name in Day._fields))
    for day in found:
        print(" ".join(f"{value:>12,.0f}" for value in day))
    print(*grown(found), sep="\n", file=sys.stderr)
    return 1 if grown(found) else 0


if __name__ == "__main__":
    sys.exit(main())
