"""WindowAggregate against the definition, in any order, page cut and schedule of promises."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import FOREVER, ContractError, GraphError, GroupWise, Joint, Linear, Page, Schema
from oop_engine.extend import State
from oop_engine.operators.aggregates import Avg, Count, First, Last, Max, Min, Stddev, Sum, UserDefined, Var
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Landmark, PartitionedTupleBased, Sliding, Tumbling, TupleBased
from oop_engine.testing import Driver, multiset
from oop_engine.testing.case import typed
from tests.naive import windows as naive
from tests.parts.operators.window_streams import SCHEMA, Checked, events, page, rows

AGGREGATES = {
    "n": Count(), "nv": Count("v"), "sv": Sum("v"), "sx": Sum("x"), "min": Min("x"), "max": Max("v"),
    "first": First("v"), "last": Last("x"), "avg": Avg("v"), "var": Var("v"),
}  # fmt: skip
ORACLE = {
    "n": naive.aggregate("count"), "nv": naive.aggregate("count", "v"), "sv": naive.aggregate("sum", "v"),
    "sx": naive.aggregate("sum", "x"), "min": naive.aggregate("min", "x"), "max": naive.aggregate("max", "v"),
    "first": naive.aggregate("first", "v"), "last": naive.aggregate("last", "x"),
    "avg": naive.aggregate("avg", "v"), "var": naive.aggregate("var", "v"),
}  # fmt: skip
BY = st.sampled_from([(), ("k",), ("j", "k")])
LENGTH = st.integers(1, 25)
STRATEGY = st.sampled_from(["windows", "panes"])


def check(operator: WindowAggregate, said, expected) -> Checked:
    driver = Checked(operator, SCHEMA).play(said)
    assert multiset(driver.rows()) == multiset(expected)
    assert driver.operator.state().partials == driver.operator.state().groups == 0
    return driver


@settings(max_examples=50, deadline=None)
@given(
    data=st.data(),
    of=rows(),
    by=BY,
    range_=LENGTH,
    slide=LENGTH,
    origin=st.integers(-9, 9),
    strategy=STRATEGY,
)
def test_sliding_windows_are_those_of_the_definition(data, of, by, range_, slide, origin, strategy):
    operator = WindowAggregate(Sliding(range_, slide, origin), AGGREGATES, by, strategy=strategy)
    expected = naive.sliding(of, "ts", by, ORACLE, range_, slide, origin)
    check(operator, data.draw(events(of)), expected)


@settings(max_examples=30, deadline=None)
@given(data=st.data(), of=rows(), by=BY, range_=LENGTH, slide=LENGTH, origin=st.integers(-9, 9))
def test_empty_windows_are_those_of_the_definition(data, of, by, range_, slide, origin):
    operator = WindowAggregate(Sliding(range_, slide, origin), AGGREGATES, by, empty=True)
    expected = naive.sliding(of, "ts", by, ORACLE, range_, slide, origin, empty=True)
    check(operator, data.draw(events(of)), expected)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), of=rows(), by=BY, slide=LENGTH, origin=st.integers(-9, 9))
def test_landmark_windows_are_those_of_the_definition(data, of, by, slide, origin):
    operator = WindowAggregate(Landmark(slide, origin), AGGREGATES, by)
    check(operator, data.draw(events(of)), naive.landmark(of, "ts", by, ORACLE, slide, origin))


@settings(max_examples=30, deadline=None)
@given(data=st.data(), of=rows(), by=BY, range_=st.integers(1, 6), slide=st.integers(1, 6), strategy=STRATEGY)
def test_tuple_based_windows_count_arrivals(data, of, by, range_, slide, strategy):
    aggregates = {"n": Count(), "first": First("v")}
    operator = WindowAggregate(TupleBased(range_, slide), aggregates, by, strategy=strategy)
    functions = {"n": ORACLE["n"], "first": naive.aggregate("first", "v", time="row")}
    expected = naive.sliding(naive.number(of), "row", by, functions, range_, slide)
    check(operator, data.draw(events(of)), expected)


@settings(max_examples=30, deadline=None)
@given(data=st.data(), of=rows(), range_=st.integers(1, 6), slide=st.integers(1, 6), strategy=STRATEGY)
def test_partitioned_windows_count_arrivals_of_a_group(data, of, range_, slide, strategy):
    by = ("k", "j")
    windows = PartitionedTupleBased(range_, slide)
    operator = WindowAggregate(windows, {"n": Count()}, by, strategy=strategy)
    expected = naive.sliding(naive.number(of, by), "row", by, {"n": ORACLE["n"]}, range_, slide)
    check(operator, data.draw(events(of)), expected)


@settings(max_examples=30, deadline=None)
@given(
    data=st.data(),
    of=rows(st.sampled_from([-(2**62), -(2**62) + 3, 0, 2**62, 2**62 + 9])),
    by=BY,
    strategy=STRATEGY,
)
def test_times_far_apart(data, of, by, strategy):
    operator = WindowAggregate(Sliding(7, 3), {"n": Count()}, by, strategy=strategy)
    expected = naive.sliding(of, "ts", by, {"n": ORACLE["n"]}, 7, 3)
    check(operator, data.draw(events(of, kinds="pm")), expected)


def test_a_bound_closes_all_windows_that_end_by_it():
    driver = Driver(WindowAggregate(Sliding(20, 10), {"n": Count()}), SCHEMA)
    driver.feed(0, page([row(ts) for ts in (5, 15, 25)]))
    said = driver.feed(0, Linear(39))
    assert [(r["window_end"], r["n"]) for r in said[0][1].to_pylist()] == [(10, 1), (20, 2), (30, 2)]
    assert said[1] == (0, Linear(40))
    assert driver.feed(0, Linear(39)) == []


def test_group_wise_bounds_close_and_travel_on_also_of_groups_never_seen():
    driver = Driver(WindowAggregate(Tumbling(10), {"n": Count()}, ("k", "j")), SCHEMA)
    driver.feed(0, page([row(1, "a"), row(2, "b")]))
    bounds = GroupWise.of({"k": ["a", "z"]}, [15, 25])
    said = driver.feed(0, bounds)
    assert [r["k"] for r in said[0][1].to_pylist()] == ["a"]
    assert said[1] == (0, GroupWise(bounds.groups, np.array([20, 30])))
    assert driver.operator.state().groups == 1
    said = driver.feed(0, GroupWise.of({"k": ["b"]}, [15]))
    assert [r["k"] for r in said[0][1].to_pylist()] == ["b"]


def test_group_wise_bounds_on_other_columns_are_dropped():
    driver = Driver(WindowAggregate(Tumbling(10), {"n": Count()}, ("k",)), SCHEMA)
    driver.feed(0, page([row(1)]))
    assert (
        driver.feed(0, GroupWise(pa.RecordBatch.from_pydict({"v": pa.array([1])}), np.array([FOREVER]))) == []
    )


def test_joint_bounds_close_and_end_here():
    driver = Driver(WindowAggregate(Tumbling(10), {"n": Count()}, ("j",)), SCHEMA)
    driver.feed(0, page([row(1, j=0), row(11, j=0), row(1, j=2)]))
    [(_, closed)] = driver.feed(0, Joint.of(j=2, ts=10))
    assert [(r["j"], r["window_end"]) for r in closed.to_pylist()] == [(0, 10)]
    [(_, closed)] = driver.feed(0, Joint.of(j=1))
    assert [(r["j"], r["window_end"]) for r in closed.to_pylist()] == [(0, 20)]
    assert driver.feed(0, Joint.of(v=9, ts=99)) == []


def test_a_gap_may_be_all_that_closes():
    driver = Driver(WindowAggregate(Tumbling(10), {"n": Count()}, empty=True), SCHEMA)
    driver.feed(0, page([row(5)]))
    assert driver.feed(0, Linear(35))[-1] == (0, Linear(20))
    driver.feed(0, page([row(35)]))
    [(_, gap), promise] = driver.feed(0, Linear(35))
    assert [(r["window_end"], r["n"]) for r in gap.to_pylist()] == [(20, 0), (30, 0)]
    assert promise == (0, Linear(40))


def test_stamp_start_promises_starts():
    operator = WindowAggregate(Sliding(20, 10), {"n": Count()}, stamp="start")
    driver = Driver(operator, SCHEMA)
    assert driver.operator.schemas_out[0].progressing == "window_start"
    assert driver.feed(0, Linear(30)) == [(0, Linear(20))]


@pytest.mark.parametrize("strategy", ["windows", "panes"])
def test_integer_sums_are_checked(strategy):
    driver = Driver(WindowAggregate(Tumbling(10), {"s": Sum("v")}, ("k",), strategy=strategy), SCHEMA)
    message = r"WindowAggregate: Sum\('v'\) must fit 64 bits.*\[0, 10\) of group \{'k': 'b'\}"
    driver.feed(0, page([row(1, "a", v=5), row(1, "b", v=2**62), row(2, "b", v=2**62)]))
    with pytest.raises(ContractError, match=message):
        driver.feed(0, Linear(10))


def test_running_sums_of_landmark_windows_are_checked():
    driver = Driver(WindowAggregate(Landmark(10), {"s": Sum("v")}, ("k",)), SCHEMA)
    driver.feed(0, page([row(1, "b", v=-(2**62)), row(15, "b", v=-(2**62)), row(27, "b", v=-1)]))
    with pytest.raises(ContractError, match=r"\[0, 30\) of group \{'k': 'b'\}"):
        driver.feed(0, "end")


def test_variance_is_stable():
    values = [1e9 + v for v in (4.0, 7.0, 13.0, 16.0)]
    driver = Driver(WindowAggregate(Tumbling(10), {"s": Stddev("x"), "v": Var("x")}), SCHEMA)
    driver.run([(0, page([row(1, x=x) for x in values]))])
    assert driver.rows()[0]["v"] == pytest.approx(30.0, abs=1e-6)
    assert driver.rows()[0]["s"] == pytest.approx(30.0**0.5, abs=1e-6)


def test_types_of_results_and_keys():
    schema = Schema(
        {"t": pa.timestamp("ms"), "d": pa.date32(), "f": pa.float32(), "b": pa.bool_(), "i": pa.int16()}, "t"
    )
    aggregates = {"d": Max("d"), "f": Min("f"), "anything": First("b"), "s": Sum("i"), "t": Last("t")}
    driver = Driver(WindowAggregate(Tumbling("1 s"), aggregates), schema)
    columns = {"t": [0, 10], "d": [3, None], "f": [0.5, 1.5], "b": [True, False], "i": [30000, 30000]}
    columns = {name: typed(values, schema.type_of(name)) for name, values in columns.items()}
    driver.run([(0, Page.of(schema, columns))])
    [result] = driver.pages()
    types = {field.name: field.type for field in result.schema.fields}
    assert types["window_end"] == pa.timestamp("ms")
    assert [types[n] for n in aggregates] == [
        pa.date32(), pa.float32(), pa.bool_(), pa.int64(), pa.timestamp("ms")
    ]  # fmt: skip
    assert result.column("d").cast(pa.int32()).to_pylist() == [3]
    assert [result.column(n).to_pylist() for n in ("f", "anything", "s")] == [[0.5], [True], [60000]]


@pytest.mark.parametrize("strategy", ["windows", "panes"])
def test_memory_follows_what_is_open(strategy):
    driver = Driver(WindowAggregate(Tumbling(10), {"n": Count()}, ("v",), strategy=strategy), SCHEMA)
    before = driver.operator.state()
    assert before.partials == before.groups == 0
    for start in range(0, 100_000, 10_000):
        driver.feed(0, page([row(start // 1000, v=start + i) for i in range(3000)]))
        driver.feed(0, Linear(start // 1000 + 10))
        assert driver.operator.state().partials == 0
        assert driver.operator.state().nbytes <= before.nbytes + 2048  # room for sixteen windows
    assert len(driver.rows()) == 30_000


@pytest.mark.parametrize("strategy", ["windows", "panes"])
def test_many_windows_a_tuple_and_pages_of_results(strategy):
    driver = Driver(WindowAggregate(Sliding(200_000, 1), {"s": Sum("v")}, strategy=strategy), SCHEMA)
    driver.run([(0, page([row(0, v=1), row(5, v=2)]))])
    sizes = [len(p) for p in driver.pages()]
    assert sum(sizes) == 200_005
    assert max(sizes) <= 65_536
    assert sum(p.column("s").to_numpy().sum() for p in driver.pages()) == 3 * 200_000


def test_empty_pages_and_one_tuple():
    driver = Driver(WindowAggregate(Tumbling(10), {"n": Count()}, ("k",)), SCHEMA)
    assert driver.feed(0, Page.empty(SCHEMA)) == []
    driver.feed(0, page([row(3)]))
    assert driver.operator.state() - State(nbytes=driver.operator.state().nbytes) == State(
        partials=1, groups=1
    )
    driver.feed(0, "end")
    assert driver.rows() == [{"k": "a", "window_start": 0, "window_end": 10, "n": 1}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Tumbling(0), {"n": Count()}), "range must be > 0"),
        ((Tumbling(1), {}), "at least one aggregate"),
        ((Tumbling(1), {"n": Count()}, ("k", "k")), "must differ"),
        ((Tumbling(1), {"n": Count()}, ("q",)), "no column 'q'"),
        ((Tumbling(1), {"n": Sum("q")}), "no column 'q'"),
        ((Tumbling(1), {"n": Sum("k")}), "or a duration; 'k' is string"),
        ((Tumbling(1), {"k": Count()}, ("k",)), "output columns must differ; got k twice"),
        ((Tumbling(1), {"window_end": Count()}), "got window_end twice"),
        ((PartitionedTupleBased(1, 1), {"n": Count()}), "partitioned"),
        ((Tumbling(1), {"n": 5}), "must be an aggregate"),
    ],
)
def test_wrong_parameters_are_refused(arguments, message):
    with pytest.raises(GraphError, match=message) as error:
        WindowAggregate(*arguments).opened(SCHEMA)
    assert str(error.value).startswith("WindowAggregate: ")


PRODUCT = UserDefined(
    lift=lambda v: (v.to_numpy(),), combine=lambda a, b: (a[0] * b[0],), lower=lambda state: state[0],
    reads=("v",), state_types=("float64",), returns=pa.float64(),
)  # fmt: skip


@pytest.mark.parametrize(
    ("windows", "aggregate", "empty"),
    [(Landmark(1), Count(), False)],
)
def test_panes_are_refused_where_there_are_none(windows, aggregate, empty):
    aggregates = {"n": aggregate}
    with pytest.raises(GraphError, match="strategy='panes' needs windows of one length"):
        WindowAggregate(windows, aggregates, empty=empty, strategy="panes").opened(SCHEMA)
    WindowAggregate(windows, aggregates, empty=empty).opened(SCHEMA)


def test_the_strategy_is_told_unless_it_is_left_open():
    assert "panes" not in WindowAggregate(Tumbling(1), {"n": Count()}).describe()
    assert WindowAggregate(Tumbling(1), {"n": Count()}, strategy="panes").describe().endswith("; by panes)")
    with pytest.raises(GraphError, match="got 'slices'"):
        WindowAggregate(Tumbling(1), {"n": Count()}, strategy="slices")


def test_landmark_cannot_progress_by_start():
    with pytest.raises(GraphError, match="stamp='end'"):
        WindowAggregate(Landmark(1), {"n": Count()}, stamp="start").opened(SCHEMA)
    with pytest.raises(GraphError, match="got 'middle'"):
        WindowAggregate(Landmark(1), {"n": Count()}, stamp="middle")


def test_the_description_is_plain_data():
    operator = WindowAggregate(Sliding("20 s", 10), AGGREGATES, ("k",))
    assert pickle.loads(pickle.dumps(operator)).describe() == operator.describe()


def test_definitions_are_read_once_for_all_that_is_opened(monkeypatch):
    read, bound = [], Tumbling.bound
    monkeypatch.setattr(Tumbling, "bound", lambda self, *given: read.append(self) or bound(self, *given))
    operator = WindowAggregate({"short": Tumbling(5), "long": Tumbling(10)}, {"n": Count()}, ("k",))
    operator.output_schemas((SCHEMA,))
    first, second = operator.opened(SCHEMA), operator.opened(SCHEMA)
    assert read == [Tumbling(5), Tumbling(10)]
    assert multiset(Checked(first, SCHEMA).play([page([row(3)]), Linear(FOREVER)]).rows())
    assert second.state().partials == 0


def row(ts, k="a", j=0, v=0, x=0.0):
    return {"ts": ts, "k": k, "j": j, "v": v, "x": x}


@pytest.mark.parametrize("windows", [5, Tumbling])
def test_windows_are_a_value(windows):
    with pytest.raises(GraphError, match=r"windows must be a value such as Tumbling"):
        WindowAggregate(windows, {"n": Count()}).output_schemas((Schema({"ts": pa.int64()}, "ts", "s"),))


def test_aggregates_have_names():
    with pytest.raises(
        GraphError, match=r"at least one aggregate by name, such as {'n': Count\(\)}; got \[Count"
    ):
        WindowAggregate(Tumbling(5), [Count()])


def test_emit_is_a_value():
    with pytest.raises(GraphError, match=r"emit must be an Emit; got True"):
        WindowAggregate(Tumbling(5), {"n": Count()}, emit=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("windows", [PartitionedTupleBased(2, 1), Sliding(20, 10)])
@pytest.mark.parametrize("named", ["k", "kj"])
def test_groups_that_are_over_leave_nothing_behind(windows, named):
    driver = Driver(WindowAggregate(windows, {"n": Count()}, ("k", "j")), SCHEMA)
    held = []
    for at in range(0, 2000, 100):
        of = [{"ts": at, "k": f"{at + i:04}", "j": 0, "v": 1, "x": 0.0} for i in range(100)]
        driver.feed(0, page(of))
        driver.feed(0, GroupWise.of({"k": [row["k"] for row in of], "j": [0] * 100}, [at] * 100))
        over = {name: [row[name] for row in of] for name in named}
        driver.feed(0, GroupWise.of(over, [FOREVER] * 100))
        assert driver.operator.state().in_use == (0, 0, 0)
        held.append(driver.operator.state().nbytes)
    assert max(held[1:]) <= held[0]


@pytest.mark.parametrize("windows", [Tumbling(10), Sliding(40, 10)], ids=["tumbling", "sliding"])
def test_open_windows_take_the_bytes_of_their_columns(windows):
    """A key, its place, a count and a sum: a group takes no more however many windows it is in, by panes."""
    many = 4_096
    driver = Driver(
        WindowAggregate(windows, {"n": Count(), "s": Sum("n")}, ("i",), strategy="panes"),
        Schema({"ts": pa.int64(), "i": pa.int64(), "n": pa.int64()}, "ts", "s"),
    )
    columns = {"ts": np.arange(many) % 10, "i": np.arange(many), "n": np.arange(many)}
    driver.feed(0, Page.of(driver.operator.schemas_in[0], columns))
    assert 24 * many < driver.operator.state().nbytes < 64 * many
