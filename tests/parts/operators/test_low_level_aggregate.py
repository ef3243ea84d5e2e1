"""A table of fixed size lets go of the right entries, and the level above makes the results of one operator of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import FOREVER, GraphError, GroupWise, Linear, Page, Schema
from oop_engine.operators.aggregates import Collect, Count, Sum
from oop_engine.operators.keys.key_codes import key_hashes
from oop_engine.operators.levels.consolidate import Consolidate
from oop_engine.operators.levels.low_level_aggregate import LowLevelAggregate
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.values.flush import AtOnce, Flush, InOrder, Lazy, Slow
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Landmark, Session, Sliding, Tumbling
from oop_engine.testing import Driver, multiset
from tests.naive.low_level import Table
from tests.parts.operators.test_consolidate import AGGREGATES, BY, split
from tests.parts.operators.window_streams import SCHEMA, Checked, events, rows

FLUSHES = [AtOnce(), Lazy(1), Lazy(2), Slow(1), Slow(3, within=2)]
NARROW = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")


def page(*tuples: tuple[int, str | None]) -> Page:
    return Page.of(NARROW, {"ts": [t for t, _ in tuples], "k": [k for _, k in tuples]})


def count(flush: Flush, slots: int, **more: bool) -> LowLevelAggregate:
    return LowLevelAggregate(Tumbling(10), {"n": Count()}, ("k",), slots=slots, flush=flush, **more)


@settings(max_examples=40, deadline=None)
@given(
    data=st.data(), of=rows(), by=BY, range_=st.integers(1, 25), slide=st.integers(1, 25), slots=st.integers(1, 5),
    flush=st.sampled_from(FLUSHES), probe=st.booleans(), shards=st.integers(1, 3),
)  # fmt: skip
def test_any_table_gives_the_windows_of_the_definition(
    data, of, by, range_, slide, slots, flush, probe, shards
):
    windows = Sliding(range_, slide, 3)
    said = data.draw(events(of, kinds="plgm"))
    first = LowLevelAggregate(windows, AGGREGATES, by, slots=slots, flush=flush, probe=probe)
    second = Consolidate(windows, AGGREGATES, by, tuples=SCHEMA)
    tail = split(first, second, said, shards, data.draw(st.integers(0, 10)))
    whole = Checked(WindowAggregate(windows, AGGREGATES, by), SCHEMA).play(said)
    assert tail.operator.schemas_out == whole.operator.schemas_out
    assert multiset(tail.rows()) == multiset(whole.rows())


KEYS = st.sampled_from(["a", "b", "c", "d", None])


@settings(max_examples=80, deadline=None)
@given(
    data=st.data(), of=st.lists(st.tuples(st.integers(0, 49), KEYS), max_size=40), slots=st.integers(1, 4),
    flush=st.sampled_from([*FLUSHES, InOrder()]), probe=st.booleans(),
)  # fmt: skip
def test_entries_leave_one_by_one_as_defined(data, of, slots, flush, probe):
    def home(group):
        return int(key_hashes([pa.array([group], pa.string())], 1).view(np.uint64)[0] % np.uint64(slots))

    driver = Driver(count(flush, slots, probe=probe), NARROW)
    table = Table(slots, 10, home, within=flush.within, every=flush.every, ordered=flush.ordered, probe=probe)
    of = sorted(of, key=lambda row: row[0]) if flush.ordered else of
    while of:
        some, of = of[: (cut := data.draw(st.integers(1, 6)))], of[cut:]
        driver.feed(0, page(*some))
        for time, group in some:
            table.tuple_(group, time)
        if data.draw(st.booleans()):
            below = min((time for time, _ in of), default=50)
            driver.feed(0, Linear(below))
            table.punctuation(below)
        if data.draw(st.booleans()):
            driver.move()
        left = [((row["k"], row["pane_start"]), row["state0_count"]) for row in driver.rows()]
        assert left == table.out
        assert driver.operator.state().partials == sum(entry is not None for entry in table.entries)


def test_in_order_two_groups_of_a_new_window_empty_the_table_and_out_of_order_they_do_not():
    old = page(*((1, str(number)) for number in range(20)))
    new = [page((11, str(number))) for number in range(100, 120)]
    for flush, least in ((InOrder(), 10), (Lazy(2), 1)):
        driver = Driver(count(flush, 64), NARROW)
        driver.feed(0, old)
        driver.feed(0, Linear(10))
        most = max(sum(len(m) for _, m in driver.feed(0, each) if isinstance(m, Page)) for each in new)
        assert most >= least if flush.ordered else most <= least


def test_nothing_is_promised_that_is_still_in_the_table():
    driver = Driver(count(Lazy(2), 8), NARROW)
    driver.feed(0, page((1, "a"), (11, "b"), (25, "c")))
    assert driver.feed(0, Linear(20)) == [(0, Linear(0))]
    assert driver.feed(0, Linear(29)) == []
    [(_, left), bound] = driver.feed(0, Linear(30))
    assert left.to_pylist() == [{"k": "a", "pane_start": 0, "state0_count": 1}]
    assert bound == (0, Linear(10))


def test_the_bound_goes_on_as_soon_as_nothing_old_is_left():
    driver = Driver(count(Slow(1, within=5), 8), NARROW)
    driver.feed(0, page((1, "a")))
    assert driver.feed(0, Linear(10)) == [(0, Linear(0))]
    [(_, left), bound] = driver.feed(0, page((11, "a")))
    assert (left.to_pylist()[0]["pane_start"], bound) == (0, (0, Linear(10)))


def test_a_group_that_ends_leaves_with_its_punctuation():
    driver = Driver(count(Lazy(3), 64), NARROW)
    driver.feed(0, page((1, "a"), (2, "b")))
    bound = GroupWise(pa.record_batch({"k": pa.array(["b"])}), np.array([15]))
    [(_, left), (_, said)] = driver.feed(0, bound)
    assert left.to_pylist() == [{"k": "b", "pane_start": 0, "state0_count": 1}]
    assert said.below.tolist() == [10]


def test_memory_is_that_of_the_table():
    driver = Driver(LowLevelAggregate(Tumbling(10), {"n": Count()}, ("k",), slots=256), NUMBERS)
    for start in range(0, 500_000, 50_000):
        keys = np.arange(start, start + 50_000)
        driver.feed(0, Page.of(NUMBERS, {"ts": np.full(keys.size, 5), "k": keys}))
        assert driver.operator.state().partials == 256
        assert driver.operator.state().groups <= 256
        assert driver.operator.state().nbytes < 100_000


NUMBERS = Schema({"ts": pa.int64(), "k": pa.int64()}, "ts", "s")


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: LowLevelAggregate(Tumbling(5), {"n": Count()}, slots=0), "slots must be a whole number"),
        (lambda: Lazy(0), "Lazy: within must be a whole number, at least 1; got 0"),
        (lambda: Slow(0), "Slow: every must be a whole number, at least 1; got 0"),
        (lambda: low(Session(5)), "LowLevelAggregate: windows must be on one grid"),
        (lambda: low(Landmark(5)), "LowLevelAggregate: windows must be on grids, with a range"),
        (
            lambda: low(Tumbling(5), Collect("k", 5)),
            r"states of any length \(lists, texts\); .* must have others",
        ),
        (lambda: low(Tumbling(5), Sum("gone")), "gone"),
    ],
)
def test_a_table_of_something_else_is_refused_when_the_graph_is_built(make, named):
    with pytest.raises(GraphError, match=named):
        make()


def low(windows, aggregate=None):
    return LowLevelAggregate(windows, {"n": aggregate or Count()}, slots=4).opened(NARROW)


def test_a_damaged_snapshot_is_refused():
    driver = Driver(count(Lazy(1), 2), NARROW)
    driver.feed(0, page((1, "a")))
    data = driver.operator.snapshot()
    other = count(Lazy(1), 1).opened(NARROW)
    with pytest.raises(Exception, match="snapshot of LowLevelAggregate"):
        [other.restore(data.replace(b"entries", b"entriez"))]
    assert other.state().partials == 0


def test_the_end_empties_the_table():
    driver = Driver(count(Lazy(9), 8), NARROW)
    driver.feed(0, page((1, "a"), (2, None)))
    out = driver.feed(0, "end")
    assert out[-1] == (0, Linear(FOREVER))
    assert driver.operator.state().in_use == (0, 0, 0)


def test_the_twin_lets_go_in_order():
    from oop_engine import Graph
    from oop_engine.operators import Ordered, Punctuate

    graph = Graph("g")
    edge = graph.add("edge", Punctuate(Ordered()), graph.source("in", NARROW))
    graph.sink("out", graph.add("low", count(Lazy(2), 4), edge))
    assert "InOrder" in in_order(graph).text()
