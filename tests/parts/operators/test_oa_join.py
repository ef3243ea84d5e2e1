from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import FOREVER, NEVER, GraphError, GroupWise, Joint, Linear, Page, Schema
from oop_engine.core.graphs.contract import EdgeContract
from oop_engine.extend import Message, Progress
from oop_engine.operators.joining.bands import Band, BandRule, TumblingBand, TumblingRule
from oop_engine.operators.oa_join import OAJoin
from oop_engine.operators.project import Project
from oop_engine.testing import END, Driver, as_messages, multiset, row_lists, rows_of, scripts
from tests.naive.joins import band, equal, joined, window_join

LEFT = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
RIGHT = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
TWO = Schema({"ts": pa.int64(), "a": pa.string(), "b": pa.int64()}, "ts", "s")
ON_K = [("k", "k")]


def page(*rows: tuple[Any, ...], schema: Schema = LEFT) -> Page:
    return Page.of(schema, {n: [row[i] for row in rows] for i, n in enumerate(schema.names)})


def driver(join: OAJoin, left: Schema = LEFT, right: Schema = RIGHT) -> Driver:
    return Driver(join, left, right)


def promised(said: list[tuple[int, Message]]) -> list[Message]:
    return [message for _, message in said]


# --- what joins -----------------------------------------------------------------------


def test_the_band_is_closed_and_each_pair_joins_once_whoever_comes_first() -> None:
    d = driver(OAJoin(ON_K, Band(2, 3)))
    d.feed(0, page((10, "a"), (10, "b")))
    d.feed(1, page((7, "a"), (8, "a"), (13, "a"), (14, "a"), (10, "c")))
    d.feed(0, page((5, "a"), (11, "c")))
    pairs = sorted((r["ts"], r["ts_right"], r["k"]) for r in d.rows())
    assert pairs == [(5, 7, "a"), (5, 8, "a"), (10, 8, "a"), (10, 13, "a"), (11, 10, "c")]


def test_a_band_of_nothing_joins_equal_times() -> None:
    d = driver(OAJoin([], Band(0, 0)))
    d.feed(0, page((1, "a"), (1, "b"), (2, None)))
    d.feed(1, page((1, "x"), (2, "y"), (3, "z")))
    pairs = sorted((r["ts"], r["k"] or "-", r["k_right"]) for r in d.rows())
    assert pairs == [(1, "a", "x"), (1, "b", "x"), (2, "-", "y")]


def test_null_keys_match_nothing_and_are_not_stored() -> None:
    d = driver(OAJoin(ON_K, Band(9, 9)))
    d.feed(0, page((1, None), (1, "a")))
    d.feed(1, page((1, None)))
    assert d.rows() == []
    assert d.operator.state().tuples == 1


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.float64(), [1.5, float("nan"), -0.0, 0.0, None]),
        (pa.timestamp("us"), [0, 5, None]),
        (pa.dictionary(pa.int32(), pa.string()), ["a", "b", None]),
        (pa.decimal128(9, 2), [1, 2, None]),
        (pa.bool_(), [True, False, None]),
        (pa.list_(pa.int64()), [[1, 2], [], None]),
    ],
    ids=str,
)
def test_keys_of_any_type(kind: pa.DataType, values: list[Any]) -> None:
    schema = Schema({"ts": pa.int64(), "k": kind}, "ts", "s")
    rows = [{"ts": ts, "k": v} for ts in (1, 2, 4) for v in pa.array(values, kind).to_pylist()]
    d = driver(OAJoin(ON_K, Band(1, 1)), schema, schema)
    for row in rows:
        d.feed(0, Page.of(schema, {"ts": [row["ts"]], "k": [row["k"]]}))
        d.feed(1, Page.of(schema, {"ts": [row["ts"]], "k": [row["k"]]}))
        d.move()
    assert multiset(d.rows()) == multiset(window_join(rows, rows, ON_K, band(1, 1)))


@pytest.mark.parametrize(
    "residual",
    [
        pc.field("b") < pc.field("b_right"),
        lambda joined: pc.less(joined.column("b"), joined.column("b_right")),
        lambda joined: (
            joined.column("b").fill_null(9).to_numpy() < joined.column("b_right").fill_null(0).to_numpy()
        ),
    ],
    ids=["expression", "function", "mask"],
)
def test_residual_and_null_is_no_match(residual: Any) -> None:
    d = Driver(OAJoin([("a", "a")], Band(5, 5), residual=residual), TWO, TWO)
    d.feed(0, page((1, "x", 1), (1, "x", 5), (1, "x", None), schema=TWO))
    d.feed(1, page((2, "x", 3), (2, "x", None), (2, "y", 9), schema=TWO))
    assert [(r["b"], r["b_right"]) for r in d.rows()] == [(1, 3)]


def test_many_results_are_cut_into_pages() -> None:
    d = driver(OAJoin(ON_K, Band(0, 0)))
    d.feed(0, Page.of(LEFT, {"ts": [1] * 300, "k": ["a"] * 300}))
    d.feed(1, Page.of(RIGHT, {"ts": [1] * 500, "k": ["a"] * 500}))
    sizes = [len(p) for p in d.pages()]
    assert sum(sizes) == 150_000
    assert len(sizes) == 3
    assert 65_000 < max(sizes) <= 65_536


def test_one_key_with_many_tuples_out_of_the_band() -> None:
    rows = 100_000
    times = np.random.default_rng(7).permutation(rows)
    d = driver(OAJoin(ON_K, Band(1, 0)))
    for start in range(0, rows, 5_000):
        part = {"ts": times[start : start + 5_000], "k": ["a"] * 5_000}
        d.feed(0, Page.of(LEFT, part))
        d.feed(1, Page.of(RIGHT, part))
    out = pa.concat_batches([p.batch for p in d.pages()])
    assert out.num_rows == 2 * rows - 1
    assert set(pc.subtract(out.column("ts"), out.column("ts_right")).to_pylist()) == {0, 1}


def test_output_columns_and_their_names() -> None:
    right = Schema({"at": pa.timestamp("s"), "k": pa.string(), "v": pa.int8()}, "at")
    (out,) = OAJoin(ON_K, Band(1, 1), suffix="2").output_schemas((LEFT, right))
    assert (out.names, out.progressing, out.unit) == (["ts", "k", "at", "k2", "v"], "ts", "s")
    d = driver(OAJoin(ON_K, Band("1 s", "1 s")), LEFT, right)
    d.feed(0, page((5, "a")))
    d.feed(1, Page.of(right, {"at": pa.array([6], pa.timestamp("s")), "k": ["a"], "v": [1]}))
    assert len(d.rows()) == 1
    assert d.feed(0, Linear(9)) == [] == d.feed(1, GroupWise.of({"v": [1]}, [50]))
    assert promised(d.feed(1, Linear(9))) == [Linear(8), Joint.of(at=8)]


# --- what is kept ---------------------------------------------------------------------


def test_what_can_match_nothing_later_is_never_stored() -> None:
    d = driver(OAJoin(ON_K, Band(before=2, after=5)))
    d.feed(1, Linear(100))
    d.feed(0, page((94, "a"), (95, "a")))
    assert d.operator.state().tuples == 1  # 100 <= 95 + 5
    d.feed(0, Linear(100))
    d.feed(1, page((100, "a")))
    assert d.operator.state().tuples == 2  # 100 <= 100 + 2
    d.feed(0, Linear(103))
    d.feed(1, Linear(101))
    assert d.operator.state().tuples == 0


def test_left_ended_early_so_right_tuples_are_not_stored() -> None:
    d = driver(OAJoin(ON_K, Band(2, 5)))
    d.feed(0, page((1, "a")))
    d.feed(0, END)
    said = d.feed(1, page((1, "a"), (2, "b")))
    assert len(said) == 1
    state = d.operator.state()
    assert (state.tuples, state.groups) == (1, 1)  # only the left tuple and its key
    d.feed(1, Linear(7))
    assert d.operator.state().tuples == d.operator.state().groups == 0


def test_group_wise_promises_purge_by_key_and_hold_for_later_arrivals() -> None:
    d = driver(OAJoin(ON_K, Band(2, 5)))
    d.feed(0, page((10, "a"), (10, "b")))
    d.feed(1, GroupWise.of({"k": ["a", "new"]}, [16, 50]))
    assert d.operator.state().tuples == 1
    d.feed(0, page((10, "a"), (11, "a"), (44, "new"), (45, "new")))
    assert d.operator.state().tuples == 3
    d.feed(1, Linear(17))
    assert d.operator.state().tuples == 1


def test_a_promise_on_part_of_the_key_purges_all_keys_with_it() -> None:
    keys = [("a", "a"), ("b", "b")]
    d = Driver(OAJoin(keys, Band(0, 0)), TWO, TWO)
    d.feed(0, page((1, "x", 1), (1, "x", 2), (1, "y", 1), schema=TWO))
    assert promised(d.feed(1, GroupWise.of({"a": ["x"]}, [FOREVER]))) == []
    assert d.operator.state().tuples == 1
    d.feed(0, GroupWise.of({"b": [1], "a": ["y"]}, [7]))
    assert promised(d.feed(1, GroupWise.of({"a": ["y"], "b": [1]}, [5]))) == [
        GroupWise.of({"a": ["y"], "b": [1]}, [5])
    ]
    assert d.operator.state().tuples == 0


def test_groups_are_forgotten_with_their_tuples() -> None:
    d = driver(OAJoin(ON_K, Band(0, 0)))
    for start in range(0, 50_000, 5_000):
        times = list(range(start, start + 5_000))
        d.feed(0, Page.of(LEFT, {"ts": times, "k": [f"k{t}" for t in times]}))
        d.feed(1, Linear(start + 4_990))
        assert d.operator.state().tuples == 10
        assert d.operator.state().groups <= 1_100


# --- what is promised -----------------------------------------------------------------


def test_individual_promises_are_those_of_the_thesis_with_erratum_4() -> None:
    d = driver(OAJoin(ON_K, Band(before=2, after=5)))
    assert d.feed(0, Linear(60)) == []
    assert promised(d.feed(1, Linear(61))) == [Linear(56), Joint.of(ts_right=58)]
    assert promised(d.feed(1, Linear(65))) == [Linear(60)]
    assert d.feed(1, Linear(70)) == []
    assert promised(d.feed(0, Linear(64))) == [Linear(64), Joint.of(ts_right=62)]
    assert promised(d.feed(0, END)) == [Linear(65), Joint.of(ts_right=70)]
    assert promised(d.feed(1, END)) == [Linear(FOREVER), Joint.of(ts_right=FOREVER)]


def test_tumbling_promises_take_the_floor() -> None:
    d = driver(OAJoin(ON_K, TumblingBand(60), punctuation="both"))
    d.feed(0, Linear(130))
    assert promised(d.feed(1, Linear(119))) == [Linear(60), Joint.of(ts_right=119)]
    assert promised(d.feed(1, Linear(121))) == [
        Linear(120),
        Joint.of(ts_right=120),
        Joint.of(ts=130, ts_right=121),
    ]
    assert promised(d.feed(1, Linear(122))) == [Joint.of(ts=130, ts_right=122)]


def test_joint_promises_only_while_the_corner_is_in_the_band() -> None:
    d = driver(OAJoin(ON_K, Band(before=2, after=5), punctuation="joint"))
    assert d.feed(0, Linear(60)) == []
    assert d.feed(1, Linear(57)) == []
    assert promised(d.feed(1, Linear(58))) == [Joint.of(ts=60, ts_right=58)]
    assert d.feed(1, Linear(58)) == []
    assert promised(d.feed(1, Linear(65))) == [Joint.of(ts=60, ts_right=65)]
    assert d.feed(1, Linear(66)) == []
    assert d.feed(0, GroupWise.of({"k": ["a"]}, [99])) == []
    assert d.feed(0, END) == []
    assert promised(d.feed(1, END)) == [Joint.of(ts=FOREVER, ts_right=FOREVER)]


def test_promises_for_each_key_in_the_names_of_the_left_columns() -> None:
    left = Schema({"ts": pa.int64(), "src": pa.string(), "port": pa.int64()}, "ts", "s")
    right = Schema({"ts": pa.int64(), "dport": pa.int64(), "dst": pa.string()}, "ts", "s")
    d = Driver(OAJoin([("src", "dst"), ("port", "dport")], Band(2, 5)), left, right)
    d.feed(0, Linear(10))
    d.feed(1, Linear(10))
    nothing = d.feed(0, GroupWise.of({"src": ["x", "y"], "port": [1, 1]}, [30, 30]))
    assert nothing == []  # for no key the right input has promised more than 10
    said = promised(d.feed(1, GroupWise.of({"dport": [1, 1], "dst": ["x", "z"]}, [33, 99])))
    assert [(m.groups.to_pylist(), m.below.tolist()) for m in said if isinstance(m, GroupWise)] == [
        ([{"src": "x", "port": 1}, {"src": "z", "port": 1}], [28, 10])
    ]


def test_promises_of_no_use_are_dropped() -> None:
    d = Driver(OAJoin([("a", "a")], Band(2, 5)), TWO, TWO)
    d.feed(0, Linear(10))
    assert promised(d.feed(1, Linear(10))) == [Linear(5), Joint.of(ts_right=8)]
    for port in (0, 1):
        assert d.feed(port, Joint.of(ts=50)) == []
        assert d.feed(port, GroupWise.of({"b": [1]}, [50])) == []
        assert d.feed(port, GroupWise.of({"a": ["x"], "b": [1]}, [50])) == []
        assert d.feed(port, Linear(9)) == []


# --- laws -----------------------------------------------------------------------------


class Heard:
    """Promises of one input, by definition."""

    def __init__(self) -> None:
        self.linear = NEVER
        self.grouped: list[tuple[dict[str, Any], int]] = []

    def hear(self, message: Message) -> None:
        if isinstance(message, Linear):
            self.linear = max(self.linear, message.below)
        if isinstance(message, GroupWise):
            self.grouped += zip(message.groups.to_pylist(), message.below.tolist(), strict=True)

    def bound(self, key: dict[str, Any]) -> int:
        own = [below for group, below in self.grouped if group.items() <= key.items()]
        return max([self.linear, *own])


def rules() -> st.SearchStrategy[tuple[Any, Any]]:
    bands = [(Band(b, a), BandRule(b, a)) for b, a in [(0, 0), (3, 1), (-2, 6), (8, 8)]]
    return st.sampled_from([*bands, (TumblingBand(8, 3), TumblingRule(8, 3))])


@given(st.data(), rules(), st.sampled_from(["individual", "both"]))
def test_keeps_and_promises_exactly_what_the_definition_says(
    data: st.DataObject, given_band, punctuation: str
) -> None:
    described, rule = given_band
    rows = [data.draw(row_lists(LEFT)), data.draw(row_lists(RIGHT))]
    script = data.draw(scripts((LEFT, RIGHT), rows))
    d = driver(OAJoin(ON_K, described, punctuation=punctuation))
    contract, said = EdgeContract("out"), Progress(1, remember_ended=True)
    heard = [Heard(), Heard()]
    seen: list[list[dict[str, Any]]] = [[], []]
    move_at = data.draw(st.integers(0, 10))
    for step, (port, message) in enumerate(as_messages(script, (LEFT, RIGHT))):
        if step == move_at:
            d.move()
        heard[port].hear(message)
        seen[port] += message.to_pylist() if isinstance(message, Page) else []
        for _, out in d.feed(port, message):
            contract.check(out)
            if isinstance(out, Linear | GroupWise):
                assert said.advance(0, out), "a promise goes out only when it has grown"
        kept = [
            row
            for side in (0, 1)
            for row in seen[side]
            if row["k"] is not None
            and row["ts"] >= rule.keep_from(side, heard[1 - side].bound({"k": row["k"]}))
        ]
        assert d.operator.state().tuples == len(kept)
        for key in ("a", "b", "c"):
            promise, _ = rule.output_bounds(*(h.bound({"k": key}) for h in heard))
            assert said.bounds(pa.RecordBatch.from_pydict({"k": [key]})).tolist() == [promise]
    left, right = rows_of(script, 2)
    times = lambda a, b: (
        int(rule.reach(0, np.array([a]))[0][0]) <= b <= int(rule.reach(0, np.array([a]))[1][0])
    )
    assert multiset(d.rows()) == multiset(window_join(left, right, ON_K, times))


def purged(row: dict[str, Any], keep_from: int) -> bool:
    return row["k"] is None or row["ts"] < keep_from or keep_from == FOREVER


@given(st.data(), rules(), st.sampled_from(["left", "full", "semi", "anti"]))
def test_what_has_matched_nothing_leaves_where_it_is_purged(
    data: st.DataObject, given_band, kind: str
) -> None:
    described, rule = given_band
    rows = [data.draw(row_lists(LEFT)), data.draw(row_lists(RIGHT))]
    script = data.draw(scripts((LEFT, RIGHT), rows))
    d = driver(OAJoin(ON_K, described, how=kind))
    contract, said = EdgeContract("out"), Progress(1, remember_ended=True)
    heard, seen = [Heard(), Heard()], [list[dict[str, Any]](), list[dict[str, Any]]()]
    move_at = data.draw(st.integers(0, 10))
    for step, (port, message) in enumerate(as_messages(script, (LEFT, RIGHT))):
        if step == move_at:
            d.move()
        heard[port].hear(message)
        seen[port] += message.to_pylist() if isinstance(message, Page) else []
        for _, out in d.feed(port, message):
            contract.check(out)
            if isinstance(out, Linear | GroupWise):
                said.advance(0, out)
        due = by_definition(kind, rule, seen, heard)
        assert multiset(d.rows()) == multiset(due)
        for key in ("a", "b", "c"):
            left, right = (h.bound({"k": key}) for h in heard)
            promise, right_time = rule.output_bounds(left, right)
            promise = min(promise, right_time) if kind == "full" else promise
            assert said.bounds(pa.RecordBatch.from_pydict({"k": [key]})).tolist() == [promise]


def by_definition(
    kind: str, rule: BandRule | TumblingRule, seen: list[list[dict[str, Any]]], heard: list[Heard]
) -> list[dict[str, Any]]:
    """All that must be out by now: what is alone only if it is purged."""

    def times(a: int, b: int) -> bool:
        first, last = rule.reach(0, np.array([a]))
        return int(first[0]) <= b <= int(last[0])

    def stays(side: int, row: dict[str, Any]) -> bool:
        return not purged(row, rule.keep_from(side, heard[1 - side].bound({"k": row["k"]})))

    def met(side: int, row: dict[str, Any]) -> bool:
        pairs = ((row, o) if side == 0 else (o, row) for o in seen[1 - side])
        return any(times(a["ts"], b["ts"]) and equal(a["k"], b["k"]) for a, b in pairs)

    known = [[row for row in seen[side] if met(side, row) or not stays(side, row)] for side in (0, 1)]
    return joined(kind, known[0], known[1], ON_K, times, names=(LEFT.names, RIGHT.names))


@given(st.data())
def test_boxes_grow_and_are_kept(data: st.DataObject) -> None:
    rows = [data.draw(row_lists(LEFT)), data.draw(row_lists(RIGHT))]
    script = data.draw(scripts((LEFT, RIGHT), rows, grouped=False))
    d = driver(OAJoin([], Band(4, 4), punctuation="joint"))
    contract = EdgeContract("out")
    for port, message in as_messages(script, (LEFT, RIGHT)):
        for _, out in d.feed(port, message):
            contract.check(out)
    boxes = [box.bounds for box in d.punctuation() if isinstance(box, Joint)]
    assert all(a != b and all(x[1] <= y[1] for x, y in zip(a, b, strict=True)) for a, b in pairwise(boxes))
    assert len(boxes) == len(d.punctuation())


# --- tuples that match nothing --------------------------------------------------------


def test_many_tuples_without_a_match_are_cut_into_pages() -> None:
    d = driver(OAJoin(ON_K, Band(0, 0), how="left"))
    d.feed(0, Page.of(LEFT, {"ts": range(150_000), "k": [None, "a", "b"] * 50_000}))
    assert [len(p) for p in d.pages()] == [50_000]
    d.feed(1, END)
    assert [len(p) for p in d.pages()] == [50_000, 65_536, 100_000 - 65_536]
    assert d.operator.state().tuples == 0


def test_a_left_tuple_that_has_matched_is_not_kept_by_a_semi_join() -> None:
    for kind, kept in (("semi", 1), ("anti", 1), ("left", 2)):
        d = driver(OAJoin(ON_K, Band(9, 9), how=kind))
        d.feed(0, page((1, "a"), (1, "b")))
        d.feed(1, page((1, "a"), (2, "a")))
        assert d.operator.state().tuples == kept + 2


def test_few_runs_are_kept_of_tuples_that_come_one_by_one() -> None:
    d = driver(OAJoin(ON_K, Band(0, 0)))
    for ts in range(3000):
        d.feed(0, page((ts, "a")))
    assert [len(side) for side in d.operator.save()["held"]["sides"]] == [3, 0]
    d.feed(1, page((2999, "a"), (0, "a"), (1500, "b"), (1024, "a")))
    assert sorted((r["ts"], r["ts_right"]) for r in d.rows()) == [(0, 0), (1024, 1024), (2999, 2999)]


def test_a_residual_chooses_among_the_matches_of_all_runs() -> None:
    later = pc.field("ts_right") > pc.field("ts")
    d = driver(OAJoin(ON_K, Band(5, 5), residual=later, how="left"))
    for start in (0, 2000):  # a run each: two are too many for a young one
        d.feed(0, page(*((start + i, "a") for i in range(600))))
    d.feed(1, page((1, "a"), (2599, "a"), (2001, "b")))
    assert sorted(r["ts"] for r in d.rows()) == [0, 2594, 2595, 2596, 2597, 2598]
    d.feed(1, Linear(FOREVER))
    alone = [r["ts"] for r in d.rows() if r["ts_right"] is None]
    assert len(alone) == len(set(alone)) == 1200 - 6


def test_promises_of_a_null_key_stop_at_a_full_join() -> None:
    d = driver(OAJoin(ON_K, Band(0, 0), how="full"))
    d.feed(0, GroupWise.of({"k": ["a", None]}, [50, 50]))
    said = d.feed(1, GroupWise.of({"k": ["a", None]}, [50, 50]))  # right tuples of "b" have a null left key
    assert [m.groups.to_pylist() for _, m in said if isinstance(m, GroupWise)] == [[{"k": "a"}]]


def test_times_of_two_types_make_one() -> None:
    right = Schema({"at": pa.timestamp("s"), "k": pa.string()}, "at")
    [out] = OAJoin(ON_K, Band(1, 1), how="full").output_schemas((LEFT, right))
    assert (out.progressing, out.type_of("time"), out.unit) == ("time", pa.int64(), "s")
    d = driver(OAJoin(ON_K, Band(1, 1), how="full"), LEFT, right)
    d.feed(1, Page.of(right, {"at": pa.array([6], pa.timestamp("s")), "k": ["a"]}))
    d.feed(0, END)
    assert [r["time"] for r in d.rows()] == [6]


def test_what_may_be_null_makes_no_progress() -> None:
    for kind, column in (("left", "ts_right"), ("full", "ts"), ("full", "ts_right")):
        [out] = OAJoin(ON_K, Band(1, 1), how=kind).output_schemas((LEFT, RIGHT))
        with pytest.raises(GraphError, match=f"'{column}' is null where a join found no match"):
            Project([out.progressing, column], progressing=column).output_schemas((out,))
    [out] = OAJoin(ON_K, Band(1, 1)).output_schemas((LEFT, RIGHT))
    assert Project(["ts_right"], progressing="ts_right").output_schemas((out,))[0].progressing == "ts_right"


def test_what_repeats_a_key_where_nothing_matched() -> None:
    asked = {"left": "k", "semi": "k", "anti": "k", "inner": "k_right"}
    for kind, column in asked.items():
        assert OAJoin(ON_K, Band(1, 1), how=kind).lineage(column, (LEFT, RIGHT)) == ("k", "k")
    for kind, column in (("left", "k_right"), ("full", "k"), ("full", "k_right"), ("full", "time")):
        assert OAJoin(ON_K, Band(1, 1), how=kind).lineage(column, (LEFT, RIGHT)) == (None, None)


# --- what is refused ------------------------------------------------------------------


def other(**columns: pa.DataType) -> Schema:
    return Schema({"ts": pa.int64(), **columns}, "ts", "s")


@pytest.mark.parametrize(
    ("make", "right", "said"),
    [
        (lambda: OAJoin([("z", "k")], Band(1, 1)), RIGHT, "left: no column 'z'"),
        (lambda: OAJoin([("k", "z")], Band(1, 1)), RIGHT, "right: no column 'z'"),
        (lambda: OAJoin(["kk"], Band(1, 1)), RIGHT, "left: no column 'kk'.*did you mean k"),
        (lambda: OAJoin([("k", "k"), ("k", "v")], Band(1, 1)), RIGHT, "one key pair only"),
        (lambda: OAJoin(ON_K, Band(1, 1)), other(k=pa.int64()), "left 'k' string and right 'k' int64"),
        (
            lambda: OAJoin(ON_K, Band(1, 1)),
            Schema({"n": pa.int64(), "k": pa.string()}, "n", "rows"),
            "one unit; got",
        ),
        (
            lambda: OAJoin(ON_K, Band(1, 1)),
            other(k=pa.string(), k_right=pa.string()),
            "choose another suffix",
        ),
        (lambda: OAJoin(ON_K, Band(1, 1), suffix=""), RIGHT, "clash even with suffix ''"),
        (lambda: OAJoin(ON_K, Band(-2, 1)), RIGHT, "at least 0 s; got before=-2, after=1"),
        (lambda: OAJoin(ON_K, Band(1, "2 rows")), RIGHT, "after must be a length of time"),
        (lambda: OAJoin(ON_K, 5), RIGHT, "WindowIdBand or AsOf; got 5"),  # type: ignore[arg-type]
        (lambda: OAJoin(ON_K, Band(1, 1), punctuation="none"), RIGHT, "individual, joint, both; got 'none'"),
        (lambda: OAJoin(ON_K, Band(1, 1), how="outer"), RIGHT, "left, full, semi, anti; got 'outer'"),
        (lambda: OAJoin(ON_K, Band(1, 1), how="semi", punctuation="both"), RIGHT, "no right time"),
        (
            lambda: OAJoin([], Band(1, 1), how="full").output_schemas((other(time=pa.int64()), RIGHT)),
            RIGHT,
            "rename",
        ),
        (lambda: OAJoin(ON_K, Band(1, 1), residual=pc.field("z") > 1), RIGHT, "residual must give a boolean"),
        (
            lambda: OAJoin(ON_K, Band(1, 1), residual=pc.field("ts") + 1),
            RIGHT,
            "residual must give a boolean",
        ),
        (
            lambda: OAJoin(ON_K, Band(1, 1), residual=lambda b: b.column("ts")),
            RIGHT,
            "residual must give a boolean",
        ),
        (
            lambda: OAJoin(ON_K, Band(1, 1), residual=lambda b: 1 / 0),
            RIGHT,
            "boolean for each joined tuple: .*: division by zero",
        ),
    ],
)
def test_what_does_not_fit_is_refused_when_the_graph_is_built(make, right: Schema, said: str) -> None:
    with pytest.raises(GraphError, match=said):
        make().output_schemas((LEFT, right))


def test_description_is_picklable_and_says_what_it_joins() -> None:
    join = OAJoin(ON_K, Band("1 s", 2), residual=pc.field("ts") > 1)
    assert pickle.loads(pickle.dumps(join)).describe() == join.describe()
    assert join.describe() == "OAJoin on k, Band(before='1 s', after=2), residual"
