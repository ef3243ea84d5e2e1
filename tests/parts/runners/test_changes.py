"""Changes on their way: from all sources to the operator, the first copy of each, behind nothing of their time."""

from __future__ import annotations

import pyarrow as pa
import pytest

from oop_engine import (
    Change,
    ContractError,
    Graph,
    GraphError,
    GroupWise,
    Linear,
    Local,
    Operator,
    Page,
    Schema,
    UsageError,
    replay,
    write_trace,
)
from oop_engine.core.errors import TraceError
from oop_engine.core.graphs.contract import EdgeContract
from oop_engine.errors import SnapshotError
from oop_engine.operators import (
    BoundedDisorder,
    Count,
    Meld,
    Ordered,
    Punctuate,
    Tumbling,
    Upstream,
    WindowAggregate,
)
from oop_engine.policies import Heartbeat
from oop_engine.rewrites import in_order
from oop_engine.runners.changes import Changes
from oop_engine.runners.event_loop import run_async
from oop_engine.spark.io.spool import spool
from oop_engine.testing import Driver, GraphDriver, multiset

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")
TEN = Change(1, 30, {"ten": Tumbling(10)})
WANTED = [
    {"window": "twenty", "window_start": 0, "window_end": 20, "n": 4},
    {"window": "twenty", "window_start": 20, "window_end": 40, "n": 4},
    {"window": "twenty", "window_start": 40, "window_end": 60, "n": 2},
    {"window": "ten", "window_start": 30, "window_end": 40, "n": 2},
    {"window": "ten", "window_start": 40, "window_end": 50, "n": 2},
]


def at(*times: int) -> Page:
    return Page.of(SCHEMA, {"ts": list(times)})


def count(**windows) -> WindowAggregate:
    return WindowAggregate(windows or {"twenty": Tumbling(20)}, {"n": Count()}, changing=True)


def graph(policy=None) -> Graph:
    """Two sources, which meet before the operator that changes; another one that does not is beside it."""
    built = Graph("changing")
    edges = [
        built.add(f"{name}_edge", Punctuate(policy or Upstream()), built.source(name, SCHEMA))
        for name in ("west", "east")
    ]
    together = built.add("together", Meld(2), *edges)
    built.sink("out", built.add("count", count(), together))
    hours = built.add("hours", WindowAggregate({"1 h": Tumbling(3600)}, {"n": Count()}), together)
    built.sink("hours_out", hours)
    return built


def feed(change: Change | None = None) -> list:
    return [at(1, 19), Linear(22), *([change] if change else []), at(29, 39, 49), Linear(55)]


def test_a_change_goes_to_all_sources_and_is_taken_once():
    driver = GraphDriver(graph())
    for source in ("west", "east"):
        driver.feed(source, at(1, 19))
    driver.feed("west", Linear(22))
    driver.feed("west", TEN)
    driver.move()
    for source in ("west", "east"):
        driver.feed(source, at(29, 39, 49))
        driver.feed(source, Linear(55))
        driver.move()
    driver.end()
    driver.expect("out", WANTED)
    assert driver.punctuation("hours_out") == [Linear(3600), Linear(2**63 - 1)]


@pytest.mark.parametrize("on", ["inline", "local"])
def test_a_change_may_stand_in_a_feed(on):
    found = replay(graph(), {"west": feed(TEN), "east": feed()}, on=on, check=True)
    assert multiset(found.results["out"].to_pylist()) == multiset(WANTED)
    assert found.statistics.edges["west -> west_edge"].punctuations == 2


def test_a_service_changes_an_operator():
    rows = []

    async def run() -> None:
        async with Local(
            graph(), lambda result: rows.append(result.message), check=True, capacity=1
        ) as local:
            for source in ("west", "east"):
                await local.push(source, at(1, 19))
                await local.push(source, Linear(22))
            await local.change("count", TEN)
            for source in ("west", "east"):
                await local.push(source, at(29, 39, 49))

    run_async(run())
    found = [row for page in rows if isinstance(page, Page) for row in page.to_pylist()]
    assert multiset(row for row in found if row["window"] != "1 h") == multiset(WANTED)


def test_a_time_that_any_source_has_passed_is_refused_and_nothing_changes():
    driver = GraphDriver(graph())
    driver.feed("east", at(29, 30))
    with pytest.raises(ContractError, match=r"source 'east': .*got at=30, and 30 has been let through"):
        driver.feed("west", TEN)
    driver.feed("west", Change(1, 31, {"ten": Tumbling(10)}))
    driver.move()
    with pytest.raises(ContractError, match="versions of changes must grow; got 1 after 1"):
        driver.feed("west", Change(1, 40, {"two": Tumbling(2)}))
    with pytest.raises(GraphError, match="ten are there already"):
        driver.feed("west", Change(2, 40, {"ten": Tumbling(2)}))
    driver.end("east")
    driver.feed("west", Change(2, 40, drop=("ten",)))  # a source that has ended has nothing more to say
    driver.end()
    driver.expect("out", [{"window": "twenty", "window_start": 20, "window_end": 40, "n": 2}])


def test_a_bound_made_on_the_way_may_be_ahead_of_all_tuples():
    driver = GraphDriver(graph(Ordered()))
    for source in ("west", "east"):
        driver.feed(source, at(29))
    driver.feed("west", TEN)
    driver.feed("west", at(31))
    driver.end()
    assert [row["window"] for row in driver.rows("out")] == ["twenty", "ten"]


def test_the_operator_must_be_known():
    driver = GraphDriver(graph())
    with pytest.raises(
        UsageError, match="has no operator 'hours' that changes while it runs; there are 'count'"
    ):
        driver.feed("west", Change(1, 30, drop=("1 h",), operator="hours"))
    plain = Graph("plain")
    plain.sink("out", plain.source("in", SCHEMA))
    with pytest.raises(UsageError, match="there is none: make the operator with changing=True"):
        GraphDriver(plain).feed("in", TEN)


def test_a_snapshot_that_cannot_be_read_leaves_no_change_behind():
    driver = GraphDriver(graph())
    driver.feed("west", TEN)
    states = driver._inline.snapshot()
    fresh = GraphDriver(graph())
    with pytest.raises(SnapshotError):
        fresh._inline.restore({**states, "together": b"damaged"})
    fresh.feed("west", TEN)
    fresh.feed("west", at(31))
    fresh.end()
    assert [row["window"] for row in fresh.rows("out")] == ["twenty", "ten"]


def test_of_several_operators_the_change_names_one():
    built = Graph("two")
    source = built.source("in", SCHEMA)
    for name in ("one", "other"):
        built.sink(f"{name}_out", built.add(name, count(), source))
    driver = GraphDriver(built)
    with pytest.raises(UsageError, match="or the change must name it; there are 'one', 'other'"):
        driver.feed("in", TEN)
    driver.feed("in", Change(1, 30, {"ten": Tumbling(10)}, operator="other"))
    driver.feed("in", at(31))
    driver.end()
    assert [len(driver.rows(sink)) for sink in ("one_out", "other_out")] == [1, 2]


def test_operators_pass_the_first_copy_of_each_version_on():
    meld = Driver(Meld(2), SCHEMA, SCHEMA)
    change = Change(1, 30, {"ten": Tumbling(10)}, operator="count")
    assert meld.feed(0, change) == [(0, change)]
    meld.move()
    assert meld.feed(1, change) == []
    later = Change(2, 40, drop=("ten",), operator="count")
    assert meld.feed(1, later) == [(0, later)]
    meld.operator.snapshot()


@pytest.mark.parametrize("said", [at(30), Linear(31), GroupWise.of({"ts": [1]}, [31])], ids=repr)
def test_the_contract_knows_changes(said):
    edge = EdgeContract("in -> count")
    edge.check(said)
    with pytest.raises(ContractError, match=r"edge 'in -> count': .*got at=30, and 30 has been let through"):
        edge.check(TEN)
    edge.check(Change(1, 31, {"ten": Tumbling(10)}))
    with pytest.raises(ContractError, match="version 1 of a change came after version 1"):
        edge.check(Change(1, 31, {"ten": Tumbling(10)}))


def test_what_does_not_change_says_so():
    with pytest.raises(GraphError, match="Operator: it cannot change while it runs"):
        Operator().changed(TEN, (SCHEMA,))
    with pytest.raises(
        GraphError, match="'count': windows that change while the query runs have no twin in order"
    ):
        in_order(graph())


def test_a_trace_has_no_changes(tmp_path):
    with pytest.raises(TraceError, match="give changes to the runner"):
        write_trace(tmp_path / "trace.jsonl", SCHEMA, [at(1), TEN])


def test_a_spooled_change_is_for_all_feeds_before_what_comes_later(tmp_path):
    feeds = {"west": feed(TEN), "east": feed()}
    schemas = dict.fromkeys(feeds, SCHEMA)
    with pytest.raises(ContractError, match="no operator takes changes; got version 1"):
        spool(feeds, schemas, tmp_path / "alone")
    for _ in range(2):  # what was spooled is taken as it is
        found = spool(feeds, schemas, tmp_path / "spool", changes=Changes(graph().plan()))
        written = Change(1, 30, {"ten": ["Tumbling", {"range": 10, "origin": 0}]}, operator="count")
        for one in found.values():
            assert one.count() == 2
            assert written not in list(one.read(0))
            assert next(iter(one.read(1))) == written
    late = {"west": [at(29), at(30), TEN], "east": [at(1)]}
    with pytest.raises(ContractError, match=r"source 'west': .*got at=30, and 30 has been let through"):
        spool(late, schemas, tmp_path / "late", changes=Changes(graph().plan()))


class Lull:
    """A source of which all is silent for 50 s after its first tuple: its bound goes on by the clock."""

    policy = Heartbeat(BoundedDisorder(5), threshold=10, slack=5)
    refused = r"from 'west_edge' to 'together': .*got at=30, and \d+ has been let through"

    @staticmethod
    def page(*times: int) -> Page:
        return Page.of(SCHEMA, {"ts": list(times)}, arrival=list(times))


def test_a_bound_that_no_source_has_said_is_known_at_the_door():
    driver = GraphDriver(graph(Lull.policy))
    driver.feed("west", Lull.page(1))
    driver.feed("east", Lull.page(1))
    driver.clock(60)
    with pytest.raises(ContractError, match=Lull.refused):
        driver.feed("west", TEN)
    later = Change(1, 70, {"ten": Tumbling(10)})
    driver.feed("west", later)
    driver.end()
    assert [row["window"] for row in driver.rows("out")] == ["twenty"]


def test_a_service_hears_of_such_a_bound_too():
    async def run() -> None:
        async with Local(graph(Lull.policy), lambda result: None) as local:
            for source in ("west", "east"):
                await local.push(source, Lull.page(1))
            await local.clock(60)
            with pytest.raises(ContractError, match=Lull.refused):
                await local.change("count", TEN)
            await local.change("count", Change(1, 70, {"ten": Tumbling(10)}))

    run_async(run())


def test_a_change_may_come_from_who_takes_results():
    rows = []

    async def run() -> None:
        async def take(result) -> None:
            if isinstance(result.message, Page) and result.sink == "out":
                rows.extend(result.message.to_pylist())
                if len(rows) == 1:
                    await local.change("count", TEN)

        async with Local(graph(), take) as local:
            for messages in zip(feed(), feed(), strict=True):
                for source, message in zip(("west", "east"), messages, strict=True):
                    await local.push(source, message)
                await local.settle()

    run_async(run())
    assert multiset(rows) == multiset(WANTED)
