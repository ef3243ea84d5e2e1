"""Partial aggregates of any division of a stream, melded and consolidated, give what one operator gives."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import FOREVER, ContractError, GraphError, GroupWise, Joint, Linear, Page, Schema
from oop_engine.core.progress import Progress
from oop_engine.operators.aggregates import Avg, Count, First, Last, Max, Min, Stddev, Sum, UserDefined, Var
from oop_engine.operators.levels.consolidate import Consolidate
from oop_engine.operators.levels.partial_aggregate import PartialAggregate
from oop_engine.operators.meld import Meld
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Landmark, Session, Sliding, Tumbling
from oop_engine.testing import Driver, multiset
from tests.naive import windows as naive
from tests.parts.operators.window_streams import MOVE, SCHEMA, Checked, events, rows


def product(*, kind: str) -> UserDefined:
    """A product of 1 + x / 8, exact in any order, and whether there was a value at all."""

    def lift(x):
        values = x.to_numpy(zero_copy_only=False).astype("float64")
        return np.where(np.isnan(values), 1, 1 + np.nan_to_num(values) / 8).astype(kind), ~np.isnan(values)

    return UserDefined(
        lift=lift, combine=lambda a, b: (a[0] * b[0], a[1] | b[1]), lower=lambda s: s[0].real.astype("float64"),
        reads=("x",), state_types=(kind, "bool"), returns=pa.float64(),
    )  # fmt: skip


AGGREGATES = {
    "n": Count(), "nv": Count("v"), "sv": Sum("v"), "sx": Sum("x"), "min": Min("x"), "max": Max("v"),
    "first": First("v"), "last": Last("x"), "avg": Avg("v"), "var": Var("v"), "sd": Stddev("x"),
}  # fmt: skip
USER = {"p": product(kind="float64"), "z": product(kind="complex128")}
ORACLE = {
    "n": naive.aggregate("count"), "nv": naive.aggregate("count", "v"), "sv": naive.aggregate("sum", "v"),
    "sx": naive.aggregate("sum", "x"), "min": naive.aggregate("min", "x"), "max": naive.aggregate("max", "v"),
    "first": naive.aggregate("first", "v"), "last": naive.aggregate("last", "x"),
    "avg": naive.aggregate("avg", "v"), "var": naive.aggregate("var", "v"),
}  # fmt: skip
BY = st.sampled_from([(), ("k",), ("j", "k")])
LENGTH = st.integers(1, 25)


def halves(windows, aggregates, by, schema=SCHEMA, **more):
    first = PartialAggregate(windows, aggregates, by)
    return first, Consolidate(windows, aggregates, by, tuples=schema, **more)


def shard_of(page: Page, shards: int, moved: bool) -> np.ndarray:
    """A key has one shard before a move, and another one after it."""
    keys = [-1 if j is None else j for j in page.column("j").to_pylist()]
    return (np.array(keys, np.int64) + moved) % shards


def divided(said, shards: int, move_at: int):
    """Yield (shard, message): tuples by key, promises to all."""
    for i, message in enumerate(said):
        if not isinstance(message, Page):
            yield from ((shard, message) for shard in range(shards))
            continue
        shard = shard_of(message, shards, i >= move_at)
        yield from ((s, message.filter(shard == s)) for s in range(shards))


def split(first, second, said, shards: int, move_at: int) -> Checked:
    """Run ``first`` in shards, meld what they say, and run ``second`` on that."""
    parts = [Checked(first, SCHEMA) for _ in range(shards)]
    meld = Checked(Meld(shards), *(p.operator.schemas_out[0] for p in parts))
    tail = Checked(second, parts[0].operator.schemas_out[0])

    def pass_on(shard, message):
        for _, partial in parts[shard].feed(0, message):
            for _, melded in meld.feed(shard, partial):
                tail.feed(0, melded)

    for shard, message in divided(said, shards, move_at):
        if message == MOVE:
            for driver in (parts[shard], meld, tail):
                driver.move()
        else:
            pass_on(shard, message)
    for shard in range(shards):
        pass_on(shard, Linear(FOREVER))
    for driver in parts:
        driver._check()
    tail._check()
    return tail


@settings(max_examples=50, deadline=None)
@given(
    data=st.data(), of=rows(), by=BY, range_=LENGTH, slide=LENGTH, origin=st.integers(-9, 9),
    empty=st.booleans(), shards=st.integers(1, 4), stamp=st.sampled_from(["start", "end"]),
)  # fmt: skip
def test_any_division_gives_the_windows_of_the_definition(
    data, of, by, range_, slide, origin, empty, shards, stamp
):
    windows = Sliding(range_, slide, origin)
    said = data.draw(events(of, kinds="plgm"))
    first, second = halves(windows, AGGREGATES, by, empty=empty, stamp=stamp)
    tail = split(first, second, said, shards, data.draw(st.integers(0, 10)))
    whole = Checked(WindowAggregate(windows, AGGREGATES, by, empty=empty, stamp=stamp), SCHEMA).play(said)
    assert tail.operator.schemas_out == whole.operator.schemas_out
    assert multiset(tail.rows()) == multiset(whole.rows())
    named = [{name: row[name] for name in row if name != "sd"} for row in tail.rows()]
    expected = naive.sliding(of, "ts", by, ORACLE, range_, slide, origin, empty=empty)
    assert multiset(named) == multiset(expected)
    assert tail.operator.state().partials == tail.operator.state().groups == 0


@settings(max_examples=40, deadline=None)
@given(
    data=st.data(), of=rows(), by=BY, gap=st.integers(1, 12), shards=st.integers(1, 4),
    stamp=st.sampled_from(["start", "end"]), several=st.booleans(),
)  # fmt: skip
def test_any_division_gives_the_sessions_of_the_definition(data, of, by, gap, shards, stamp, several):
    windows = {"long": Session(gap), "short": Session(3), "same": Session(gap)} if several else Session(gap)
    said = data.draw(events(of, kinds="plgm"))
    tail = split(*halves(windows, AGGREGATES, by, stamp=stamp), said, shards, data.draw(st.integers(0, 10)))
    whole = Checked(WindowAggregate(windows, AGGREGATES, by, stamp=stamp), SCHEMA).play(said)
    assert tail.operator.schemas_out == whole.operator.schemas_out
    assert multiset(tail.rows()) == multiset(whole.rows())
    assert tail.operator.state().partials == tail.operator.state().groups == 0


@settings(max_examples=80, deadline=None)
@given(
    data=st.data(), of=rows(), by=BY, gap=st.integers(0, 9), range_=LENGTH, slide=LENGTH, shards=st.integers(1, 3),
    stamp=st.sampled_from(["start", "end"]), empty=st.booleans(),
)  # fmt: skip
def test_any_division_gives_the_windows_of_all_definitions(
    data, of, by, gap, range_, slide, shards, stamp, empty
):
    windows = {"a": Sliding(range_, slide, 3), "b": Tumbling(7), "c": Sliding(5, 11)}
    if gap:
        windows |= {"d": Session(gap), "e": Session(2)}
    more = {"stamp": stamp, "empty": empty and not gap}
    said = data.draw(events(of, kinds="plgm"))
    tail = split(*halves(windows, AGGREGATES, by, **more), said, shards, data.draw(st.integers(0, 10)))
    whole = Checked(WindowAggregate(windows, AGGREGATES, by, **more), SCHEMA).play(said)
    assert tail.operator.schemas_out == whole.operator.schemas_out
    assert multiset(tail.rows()) == multiset(whole.rows())
    assert tail.operator.state().partials == tail.operator.state().groups == 0


def test_sessions_without_groups_are_split_in_halves():
    count = WindowAggregate({"a": Session(5), "b": Session(2)}, {"n": Count()})
    first, second = count.halves((SCHEMA,))
    assert first.output_schemas((SCHEMA,))[0].names == ["run_first", "run_last", "state0_count"]
    assert second.output_schemas(first.output_schemas((SCHEMA,))) == count.output_schemas((SCHEMA,))
    mixed = WindowAggregate({"a": Session(5), "b": Landmark(2)}, {"n": Count()})
    assert mixed.halves((SCHEMA,)) is None
    many = {str(i): Tumbling(i + 1) for i in range(65)}
    assert WindowAggregate(many, {"n": Count()}).halves((SCHEMA,)) is None
    del many["64"]
    assert WindowAggregate(many, {"n": Count()}).halves((SCHEMA,)) is not None
    with pytest.raises(GraphError, match="empty=True needs windows on a grid"):
        Consolidate(Session(5), {"n": Count()}, tuples=SCHEMA, empty=True).opened(
            *first.output_schemas((SCHEMA,))
        )


@settings(max_examples=40, deadline=None)
@given(data=st.data(), of=rows(), range_=LENGTH, slide=LENGTH, empty=st.booleans())
def test_one_shard_promises_and_closes_as_the_whole_does(data, of, range_, slide, empty):
    windows = Sliding(range_, slide, 3)
    said = data.draw(events(of, kinds="plg"))
    first, second = (Checked(o, SCHEMA) if isinstance(o, PartialAggregate) else o
                     for o in halves(windows, {"n": Count()}, ("j", "k"), empty=empty))  # fmt: skip
    tail = Checked(second, first.operator.schemas_out[0])
    whole = Checked(WindowAggregate(windows, {"n": Count()}, ("j", "k"), empty=empty), SCHEMA)
    for message in [*_growing(said), Linear(FOREVER)]:
        answers = whole.feed(0, message)
        got = [answer for _, partial in first.feed(0, message) for answer in tail.feed(0, partial)]
        assert [m for _, m in got if not isinstance(m, Page)] == [
            m for _, m in answers if not isinstance(m, Page)
        ]
        assert _rows(got) == _rows(answers)


def _growing(said):
    """Leave out promises that say nothing new: the first half does not pass them on."""
    progress = Progress()
    for message in said:
        yield from [message] if isinstance(message, Page) else progress.advance(0, message)


def _rows(said):
    return multiset(row for _, page in said if isinstance(page, Page) for row in page.to_pylist())


@settings(max_examples=40, deadline=None)
@given(data=st.data(), of=rows(), shards=st.integers(1, 3))
def test_states_of_your_own_travel(data, of, shards):
    said = data.draw(events(of, kinds="plg"))
    first, second = halves(Sliding(20, 7), USER, ("k",))
    tail = split(first, second, said, shards, 3)
    whole = Checked(WindowAggregate(Sliding(20, 7), USER, ("k",)), SCHEMA).play(said)
    assert multiset(tail.rows()) == multiset(whole.rows())


TYPES = {
    "i8": pa.int8(), "u32": pa.uint32(), "f32": pa.float32(), "b": pa.bool_(), "d": pa.date32(),
    "t": pa.timestamp("us", "UTC"), "dur": pa.duration("ms"),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["string", "dictionary", "float", "null", "list", "time"])
def test_groups_and_values_of_any_type_come_back_as_they_were(kind):
    keys = {
        "string": pa.array(["a", None, "b", "a"]),
        "dictionary": pa.array(["a", None, "b", "a"]).dictionary_encode(),
        "float": pa.array([0.0, -0.0, float("nan"), None], pa.float32()),
        "null": pa.nulls(4),
        "list": pa.array([[1], None, [1, 2], [1]]),
        "time": pa.array([1, None, 2, 1], pa.time64("us")),
    }[kind]
    schema = Schema({"ts": pa.timestamp("ms", "UTC"), "k": keys.type, **TYPES}, "ts")
    values = {name: pa.array([3, None, 7, 5], pa.int64()).cast(pa.int32()) for name in TYPES}
    columns = {"ts": pa.array([1, 2, 3, 15]).cast(schema.type_of("ts")), "k": keys}
    for name, of in TYPES.items():
        plain = values[name].cast(pa.int64()) if of in (TYPES["t"], TYPES["dur"]) else values[name]
        columns[name] = plain.cast(of)
    page = Page(schema, pa.RecordBatch.from_arrays([columns[n] for n in schema.names], schema=schema.fields))
    aggregates = {f"lo_{n}": Min(n) for n in TYPES} | {f"last_{n}": Last(n) for n in TYPES} | {"s": Sum("i8")}
    first, second = halves(Sliding("10 ms", "5 ms"), aggregates, ("k",), schema)
    first = Driver(first, schema)
    tail = Driver(second, *first.operator.schemas_out)
    for piece in (page.slice(0, 2), page.slice(2, 4), Linear(FOREVER)):
        for _, partial in first.feed(0, piece):
            tail.feed(0, partial)
    whole = Driver(WindowAggregate(Sliding("10 ms", "5 ms"), aggregates, ("k",)), schema).run([(0, page)])
    assert tail.operator.schemas_out == whole.operator.schemas_out
    assert sorted(map(str, tail.rows())) == sorted(map(str, whole.rows()))


def many(seed: int, size: int, groups: int) -> list[Page]:
    random = np.random.default_rng(seed)
    pages = []
    for i in range(6):
        columns = {
            "ts": i * 40 + random.integers(0, 90, size), "k": random.choice(["a", "b"], size),
            "j": random.integers(0, groups, size), "v": random.integers(-99, 99, size),
            "x": random.integers(-99, 99, size) / 4,
        }  # fmt: skip
        pages.append(Page.of(SCHEMA, columns))
    return pages


@pytest.mark.parametrize("empty", [False, True])
def test_runs_are_merged_and_large_streams_come_out_the_same(empty):
    said = [m for i, page in enumerate(many(1, 3_000, 40)) for m in (page, Linear(i * 40 + 40), MOVE)]
    first, second = halves(Sliding(60, 7), AGGREGATES, ("j",), empty=empty)
    whole = Driver(WindowAggregate(Sliding(60, 7), AGGREGATES, ("j",), empty=empty), SCHEMA)
    whole.run((0, m) for m in said if m != MOVE)
    tail = split(first, second, said, shards=3, move_at=9)
    assert multiset(tail.rows(), 11) == multiset(whole.rows(), 11)


def test_many_windows_are_combined_in_blocks(monkeypatch):
    monkeypatch.setattr("oop_engine.operators.slicing.runs.held_runs._PAIRS", 10)
    said = [*many(2, 200, 3), Linear(70), MOVE, Linear(200)]
    for empty in (False, True):
        first, second = halves(Sliding(60, 7), {"n": Count(), "s": Sum("v")}, ("j",), empty=empty)
        whole = Driver(WindowAggregate(Sliding(60, 7), first.aggregates, ("j",), empty=empty), SCHEMA)
        whole.run((0, m) for m in said if m != MOVE)
        assert multiset(split(first, second, said, 2, 3).rows()) == multiset(whole.rows())


def test_groups_that_are_over_are_forgotten():
    first, second = halves(Tumbling(10), {"n": Count()}, ("j",))
    first = Driver(first, SCHEMA)
    tail = Driver(second, *first.operator.schemas_out)
    sizes = []
    for i in range(60):
        page = Page.of(SCHEMA, {"ts": [10 * i] * 200, "k": ["a"] * 200, "j": range(200 * i, 200 * i + 200),
                                "v": [1] * 200, "x": [0.0] * 200})  # fmt: skip
        for message in (page, Linear(10 * i)):
            for _, partial in first.feed(0, message):
                tail.feed(0, partial)
        sizes.append(tail.operator.state().nbytes)
    assert max(sizes[-25:]) <= max(sizes[:25])
    assert len(tail.rows()) == 59 * 200


def test_a_row_keeps_its_place_in_memory_once():
    first, second = halves(Sliding(1_000, 10), {"n": Count()}, ("k",))
    first = Driver(first, SCHEMA)
    tail = Driver(second, *first.operator.schemas_out)
    for page in many(3, 500, 1) * 10:
        for _, partial in first.feed(0, page):
            tail.feed(0, partial)
    differ = len({(row["k"], row["pane_start"]) for row in first.rows()})
    assert len(first.rows()) > 4 * differ
    assert differ <= tail.operator.state().partials <= 2 * differ + 64


def sums(*values: int):
    page = Page.of(SCHEMA, {"ts": range(len(values)), "k": ["a"] * len(values), "j": [1] * len(values),
                            "v": values, "x": [0.0] * len(values)})  # fmt: skip
    first, second = halves(Sliding(20, 10), {"s": Sum("v")}, ("k",))
    first = Driver(first, SCHEMA)
    return first, Driver(second, *first.operator.schemas_out), page


def test_a_sum_that_leaves_64_bits_is_refused_where_it_does():
    told = r"Sum\('v'\) must fit .* in window \[-10, 10\) of group {'k': 'a'}"
    first, second, page = sums(2**62, 2**62)
    for row in (0, 1):
        for _, partial in first.feed(0, page.slice(row, row + 1)):
            second.feed(0, partial)
    with pytest.raises(ContractError, match=rf"Consolidate: {told}"):
        second.feed(0, Linear(10))


def test_joint_promises_end_here():
    first, second, _ = sums(1, 2)
    assert first.feed(0, Joint.of(j=5, ts=100)) == []
    assert second.feed(0, Joint.of(pane_start=100)) == []
    assert first.feed(0, GroupWise.of({"j": [1]}, [5])) == []  # of a column that rows do not have


def test_the_input_must_be_of_the_same_question():
    first, _ = halves(Tumbling(10), {"n": Count()}, ("k",))
    given = first.output_schemas((SCHEMA,))
    for _, second in (
        halves(Tumbling(10), {"n": Count(), "s": Sum("v")}, ("k",)),
        halves(Tumbling(10), {"n": Count()}, ("j",)),
    ):
        with pytest.raises(
            GraphError, match="put a PartialAggregate with the same windows, aggregates and by"
        ):
            second.output_schemas(given)


def test_results_do_not_need_the_tuples_to_be_pickled():
    _, second = halves(Sliding("20 s", 10), AGGREGATES, ("k",))
    assert pickle.loads(pickle.dumps(second)).describe() == second.describe()
    assert "Consolidate(Sliding('20 s', 10); n=Count()" in second.describe()
