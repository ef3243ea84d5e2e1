"""The arrival clock, where the clock of the machine is set."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import Graph, Operator, Schema
from oop_engine.operators import (
    ArrivalTime,
    Count,
    Filter,
    Guard,
    Ordered,
    Punctuate,
    Shed,
    Tumbling,
    WindowAggregate,
)
from oop_engine.policies import Ahead, Heartbeat
from oop_engine.runners.event_loop import run_async
from oop_engine.runners.local import Local
from oop_engine.service.arrival_clock import ArrivalClock, are_read, steady
from oop_engine.service.gate import Gate
from oop_engine.service.service import Service
from oop_engine.sinks import Gathered
from oop_engine.sources import Generated

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")
BEGIN = 1_700_000_000


class Machine:
    """Its clock, and seconds that nobody sets."""

    def __init__(self) -> None:
        self.steady, self.set = 0.0, 0.0

    def wall(self) -> float:
        return BEGIN + self.steady + self.set


def graph() -> Graph:
    found = Graph("n")
    policy = Heartbeat(Ordered(), threshold=10, slack=5, every=1)
    edge = found.add("edge", Punctuate(policy), found.source("in", SCHEMA))
    found.sink("out", found.add("count", WindowAggregate(Tumbling(10), {"n": Count()}), edge))
    return found


@pytest.mark.parametrize("step", [3600, -3600, 3, -3, 1, 0, 10**9])
def test_it_never_goes_back_and_comes_near_slowly(step: int, caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    clock = ArrivalClock(graph().plan(), machine.wall, lambda: machine.steady)
    shown = []
    for second in range(200):
        machine.steady = second
        machine.set = step if second >= 100 else 0
        shown.append(clock())
    assert shown[:100] == [BEGIN + second for second in range(100)]
    apart = [after - before for before, after in pairwise(shown)]
    assert min(apart) >= 0
    assert max(apart) <= 2
    off = max(min(step, 10), -10)  # seconds in 100
    assert abs(shown[-1] - (BEGIN + 199 + off)) <= 1
    lines = [line for line in caplog.messages if "the clock of this machine was set" in line]
    assert len(lines) == (abs(step) > 2)
    assert all(f"{'forward' if step > 0 else 'back'} by {abs(step)} s" in line for line in lines)


def test_seconds_that_nobody_sets_go_on() -> None:
    assert 0 <= steady() - steady() + 1 <= 1


@pytest.mark.parametrize("step", [3600, -3600])
def test_a_source_that_sends_is_not_silent_and_one_that_stops_is(
    step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, stop, sink = Machine(), asyncio.Event(), Gathered()
    found: list[tuple[ArrivalClock, Local]] = []

    async def kept(clock: ArrivalClock, local: Local, gate: Gate) -> None:
        found.append((clock, local))

    monkeypatch.setattr(ArrivalClock, "tick_on", kept)

    async def ticked() -> None:
        machine.steady += 1
        [(clock, local)] = found
        await local.clock(clock())
        await local.settle()

    async def feed() -> AsyncIterator[Any]:
        for second in range(60):
            machine.set = step if second >= 25 else 0
            yield {"ts": BEGIN + second}
            for _ in range(5):
                await asyncio.sleep(0)  # it is handed over
            await ticked()
        for _ in range(40):  # it is silent
            await ticked()
        stop.set()
        await asyncio.Event().wait()

    async def main() -> Any:
        service = Service(
            graph(), {"in": Generated(feed())}, {"out": sink}, folder=None, clock=machine.wall,
            steady=lambda: machine.steady,
        )  # fmt: skip
        return await service.run(stop)

    served = run_async(main())
    assert served.statistics.late.total == 0
    assert [row["n"] for row in sink.rows] == [10] * 6


async def rows() -> AsyncIterator[Any]:
    for ts in (BEGIN, BEGIN + 1, BEGIN + 3600):
        yield {"ts": ts}


@pytest.mark.parametrize(
    ("operator", "found"),
    [
        (ArrivalTime("came"), [{"ts": BEGIN + after, "came": BEGIN} for after in (0, 1, 3600)]),
        (Guard(60, of=Ahead.ARRIVAL), [{"ts": BEGIN + after} for after in (0, 1)]),
        (Shed(budget=1000), [{"ts": BEGIN + after, "weight": 1} for after in (0, 1, 3600)]),
    ],
    ids=lambda given: type(given).__name__,
)
def test_operators_that_go_by_arrivals_have_them(operator: Operator, found: list[dict[str, Any]]) -> None:
    """Though nothing here ticks: no policy looks for silence."""
    made, sink = Graph("arrivals"), Gathered()
    made.sink("out", made.add("by", operator, made.source("in", SCHEMA)))
    service = Service(
        made, {"in": Generated(rows())}, {"out": sink}, folder=None, clock=Machine().wall, steady=lambda: 0.0
    )
    run_async(service.run(asyncio.Event()))
    assert sink.rows == found


@pytest.mark.parametrize(
    ("operators", "read"),
    [
        ([ArrivalTime("came")], True),
        ([Filter(pc.field("ts") > 0), ArrivalTime("came")], True),
        ([Punctuate(Ordered()), ArrivalTime("came")], False),
        ([Punctuate(Ordered()), WindowAggregate(Tumbling(10), {"n": Count()})], False),
    ],
)
def test_arrivals_are_read_in_front_of_the_generators_of_punctuation(
    operators: list[Operator], read: bool
) -> None:
    made = Graph("g")
    stream = made.source("in", SCHEMA)
    for number, operator in enumerate(operators):
        stream = made.add(f"n{number}", operator, stream)
    made.sink("out", stream)
    assert are_read(made.plan()) is read
