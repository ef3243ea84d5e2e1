from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import FOREVER, NEVER, GraphError, GroupWise, Linear, Page, Schema
from oop_engine.core.graphs.contract import EdgeContract
from oop_engine.errors import LateTuple
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.in_order.sort import Sort
from oop_engine.operators.policies import group_progress as module
from oop_engine.operators.policies.late import Late
from oop_engine.operators.policies.policies import (
    BoundedCount,
    BoundedDisorder,
    Heartbeat,
    Ordered,
    PerGroup,
    Upstream,
)
from oop_engine.testing import END, Driver
from tests.naive.progress import bounded_count, bounded_disorder, ordered, punctuate, punctuate_groups

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
LOWEST = -100
LAGS = [
    (Ordered(), ordered),
    (BoundedDisorder(7), bounded_disorder(7)),
    (BoundedCount(3), bounded_count(3)),
]
ROWS = st.lists(st.fixed_dictionaries({"ts": st.integers(0, 60), "k": st.sampled_from("abc")}), max_size=25)
CUTS = st.integers(1, 25)


def page(rows, arrival=None) -> Page:
    return Page.of(SCHEMA, {name: [row[name] for row in rows] for name in ("ts", "k")}, arrival)


def times(*values: int, k: str = "a") -> Page:
    return page([{"ts": value, "k": k} for value in values])


def fed(operator: Punctuate, rows: list[dict[str, Any]], cut: int) -> Driver:
    driver = Driver(operator, SCHEMA)
    for start in range(0, len(rows), cut):
        driver.feed(0, page(rows[start : start + cut], list(range(start, min(start + cut, len(rows))))))
    return driver


def flat(messages) -> list[Any]:
    """Return the messages with pages as rows: what is left when page cuts are forgotten."""
    return [x for m in messages for x in (m.to_pylist() if isinstance(m, Page) else [m])]


@pytest.mark.parametrize("granularity", [1, 10])
@pytest.mark.parametrize(("policy", "keeps"), LAGS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_the_stream_is_as_defined(policy, keeps, granularity):
    @given(ROWS, CUTS)
    def holds(rows, cut):
        driver = fed(Punctuate(policy, granularity, Late.DIVERT), rows, cut)
        on_time, late, said = punctuate(rows, keeps, granularity, LOWEST)
        assert (on_time, late) == (driver.rows(0), driver.rows(1))
        assert [Linear(below) for below in said] == driver.punctuation()
        assert driver.operator.counts() == {"late": len(late)}
        assert flat(fed(Punctuate(policy, granularity), rows, 1).out[0]) == flat(driver.out[0])

    holds()


@pytest.mark.parametrize("granularity", [1, 10])
@pytest.mark.parametrize(("policy", "keeps"), LAGS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_groups_are_as_defined(policy, keeps, granularity):
    @given(ROWS, CUTS)
    def holds(rows, cut):
        driver = fed(Punctuate(PerGroup(policy, ("k",)), granularity, Late.DIVERT), rows, cut)
        on_time, late, said = punctuate_groups(rows, keeps, granularity, LOWEST)
        assert (on_time, late) == (driver.rows(0), driver.rows(1))
        promises = [
            dict(zip(p.groups["k"].to_pylist(), p.below.tolist(), strict=True)) for p in driver.punctuation()
        ]
        assert said == promises

    holds()


MIXED = [
    PerGroup(BoundedDisorder(4), ("k",), linear=BoundedDisorder(15)),
    PerGroup(BoundedCount(1), ("k",), linear=BoundedDisorder(15)),
    PerGroup(Ordered(), ("k",), linear=Heartbeat(BoundedDisorder(20), 2, 10)),
]
PROMISES = st.one_of(
    st.integers(0, 60).map(Linear),
    st.tuples(st.sampled_from("abc"), st.integers(0, 60)).map(lambda p: GroupWise.of({"k": [p[0]]}, [p[1]])),
)


@pytest.mark.parametrize("policy", MIXED, ids=lambda value: getattr(value, "__name__", str(value)))
def test_groups_that_are_let_go_cannot_be_told_from_outside(policy, monkeypatch):
    @given(st.lists(st.one_of(ROWS, PROMISES), max_size=6), CUTS)
    def holds(events, cut):
        outputs = []
        for forgets, rows_a_page in ((True, 25), (True, cut), (False, 25)):
            with monkeypatch.context() as patch:
                if not forgets:
                    patch.setattr(module.GroupProgress, "forget", lambda self, linear: None)
                driver = Driver(Punctuate(policy, 5, Late.DIVERT), SCHEMA)
                for event in events:
                    rows = event if isinstance(event, list) else []
                    for start in range(0, len(rows), rows_a_page):
                        driver.feed(0, page(rows[start : start + rows_a_page]))
                    if not isinstance(event, list):
                        driver.feed(0, event)
            outputs.append([in_any_order(flat(out)) for out in driver.out])
        assert outputs[0] == outputs[1] == outputs[2]

    holds()


def in_any_order(messages: list[Any]) -> list[Any]:
    """Return group-wise promises with their groups sorted: slots are no part of the promise."""
    return [
        sorted(zip(m.groups["k"].to_pylist(), m.below.tolist(), strict=True))
        if isinstance(m, GroupWise)
        else m
        for m in messages
    ]


@pytest.mark.parametrize(
    "policy",
    [*MIXED, PerGroup(Ordered(), ("k",)), BoundedCount(2), Heartbeat(Ordered(), 3, 2)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
@pytest.mark.parametrize("granularity", [None, 4])
def test_what_is_put_out_is_grammatical_and_can_move(policy, granularity):
    @given(st.lists(st.one_of(ROWS, PROMISES, st.integers(0, 90)), max_size=6))
    def holds(events):
        stayed, moved = (Driver(Punctuate(policy, granularity), SCHEMA) for _ in range(2))
        for event in events:
            for driver in (stayed, moved):
                if isinstance(event, int):
                    driver.clock(event)
                else:
                    driver.feed(0, page(event) if isinstance(event, list) else event)
            moved.move()
        assert stayed.out == moved.out
        contract = EdgeContract("out")
        for message in stayed.out[0]:
            contract.check(message)

    holds()


def test_a_promise_is_not_held_back_and_parts_keep_their_arrivals():
    driver = Driver(Punctuate(Ordered(), 10), SCHEMA)
    said = driver.feed(0, page([{"ts": t, "k": "a"} for t in (3, 11, 12, 25, 26)], [4, 12, 13, 26, 27]))
    assert [m if isinstance(m, Linear) else m.arrival.tolist() for _, m in said] == [
        [4], Linear(0), [12], Linear(10), [13, 26], Linear(20), [27],
    ]  # fmt: skip


EXTREMES = [NEVER + 1, NEVER + 5, NEVER + 25, -30, -1, 0, 9, 10, 31, FOREVER - 30, FOREVER - 1, FOREVER]


@pytest.mark.parametrize("granularity", [None, 1, 10])
@pytest.mark.parametrize(
    "policy", [Ordered(), BoundedDisorder(7), BoundedCount(2), Heartbeat(Ordered(), 1, 2)]
)
def test_a_page_without_arrivals_goes_on_as_a_whole_with_the_same_outcome(policy, granularity):
    @given(st.lists(st.sampled_from(EXTREMES) | st.integers(-40, 40), max_size=25), CUTS, st.none() | CUTS)
    def holds(values, cut, promised):
        whole, parted = (Driver(Punctuate(policy, granularity, Late.DIVERT), SCHEMA) for _ in range(2))
        if promised is not None:
            for driver in (whole, parted):
                driver.feed(0, Linear(promised))
        for start in range(0, len(values), cut):
            rows = [{"ts": value, "k": "a"} for value in values[start : start + cut]]
            said = whole.feed(0, page(rows))
            assert [type(m) for port, m in said if port == 0] in ([], [Page], [Linear], [Page, Linear])
            parted.feed(0, page(rows, [start] * len(rows)))
            assert whole.punctuation()[-1:] == parted.punctuation()[-1:]
        assert (whole.rows(0), whole.rows(1)) == (parted.rows(0), parted.rows(1))

    holds()


def test_without_granularity_one_promise_a_page():
    driver = Driver(Punctuate(BoundedDisorder(5)), SCHEMA)
    assert driver.feed(0, times(9, 30, 25)) == [(0, times(9, 30, 25)), (0, Linear(25))]
    assert driver.feed(0, times(28)) == [(0, times(28))]
    assert driver.feed(0, times(28, 24)) == [(0, times(28))]
    assert driver.feed(0, times(50, 44, 45)) == [(0, times(50, 45)), (0, Linear(45))]


def test_the_stronger_promise_goes_on():
    driver = Driver(Punctuate(BoundedDisorder(5), 10), SCHEMA)
    assert driver.feed(0, Linear(33)) == [(0, Linear(33))]
    assert driver.feed(0, times(44, 45)) == [(0, times(44, 45)), (0, Linear(40))]
    assert driver.feed(0, Linear(39)) == []
    assert driver.feed(0, GroupWise.of({"k": ["b", "c"]}, [30, 70])) == [
        (0, GroupWise.of({"k": ["c"]}, [70]))
    ]
    assert driver.feed(0, page([{"ts": 60, "k": "c"}, {"ts": 41, "k": "b"}])) == [(0, Linear(50))]
    assert driver.operator.counts() == {"late": 2}


def test_an_ended_group_stays_ended():
    driver = Driver(Punctuate(Upstream()), SCHEMA)
    driver.feed(0, GroupWise.of({"k": ["a"]}, [FOREVER]))
    driver.feed(0, Linear(1000))
    assert driver.feed(0, times(2000)) == []
    assert driver.feed(0, times(2000, k="b")) == [(0, times(2000, k="b"))]


def test_raise_names_the_tuple_and_the_promise():
    driver = Driver(Punctuate(BoundedDisorder(5), 10, Late.RAISE), SCHEMA)
    driver.feed(0, times(20, 31))
    with pytest.raises(
        LateTuple,
        match=r"ts=12 s \(row 3 of the stream, the first is 0\) is behind the bound 20 s of BoundedDisorder\(5\)",
    ):
        driver.feed(0, times(25, 12))


def test_the_clock_moves_a_silent_stream():
    driver = Driver(Punctuate(Heartbeat(BoundedDisorder(5), threshold=10, slack=3), 10), SCHEMA)
    assert driver.operator.clock_every == 10
    driver.feed(0, page([{"ts": 40, "k": "a"}], [42]))
    assert [driver.clock(now) for now in (50, 60, 62, 63, 80)] == [
        [], [(0, Linear(50))], [], [(0, Linear(60))], [(0, Linear(70))],
    ]  # fmt: skip


def test_the_end_comes_once_and_lets_go_of_all():
    driver = Driver(Punctuate(PerGroup(Ordered(), ("k",)), 10), SCHEMA)
    driver.feed(0, page([{"ts": i, "k": str(i)} for i in range(50)]))
    assert driver.operator.state().groups == 50
    assert driver.feed(0, END) == [(0, Linear(FOREVER))]
    assert driver.feed(0, END) == []
    assert driver.operator.state().groups == 0


def test_groups_that_stopped_are_let_go_when_the_stream_has_passed_them():
    driver = Driver(Punctuate(PerGroup(Ordered(), ("k",), linear=BoundedDisorder(10)), 10), SCHEMA)
    for start in range(0, 10_000, 100):
        driver.feed(0, page([{"ts": start + i, "k": str(start + i)} for i in range(100)]))
        assert driver.operator.state().groups <= 300


def test_one_message_for_all_groups_a_granule():
    driver = Driver(Punctuate(PerGroup(Ordered(), ("k",)), 100), SCHEMA)
    driver.feed(0, page([{"ts": t, "k": f"k{t * 7 % 50}"} for t in range(10_000)]))
    assert 100 <= len(driver.punctuation()) <= 110
    assert sum(len(p) for p in driver.punctuation()) > 4_000


def test_a_promise_of_the_source_makes_what_is_pending_start_afresh():
    driver = Driver(Punctuate(PerGroup(Ordered(), ("k",)), 10), SCHEMA)
    driver.feed(0, times(10))
    driver.feed(0, times(20, k="b"))  # grown once
    driver.feed(0, times(90, k="c"))
    assert driver.feed(0, Linear(30)) == [(0, Linear(30)), (0, GroupWise.of({"k": ["c"]}, [90]))]
    assert driver.feed(0, times(40, k="b")) == [(0, times(40, k="b"))]  # once since then
    assert driver.feed(0, times(50, k="b"))[1:] == [(0, GroupWise.of({"k": ["b"]}, [50]))]


def test_one_group_far_ahead_does_not_hold_up_the_others():
    driver = Driver(Punctuate(PerGroup(Ordered(), ("k",)), 10), SCHEMA)
    driver.feed(0, times(1_000_000, k="wrong"))
    driver.feed(0, times(5, 15, 25, 35))
    assert driver.punctuation()[-1] == GroupWise.of({"k": ["a"]}, [30])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Punctuate(Ordered(), 0), "Punctuate: granularity must be at least 1 s; got 0"),
        (
            lambda: Punctuate(Ordered(), "5 rows"),
            "Punctuate: granularity must be a length of time; got '5 rows'",
        ),
        (lambda: Punctuate(BoundedDisorder(-5)), "Punctuate: slack must be at least 0 s; got -5"),
        (lambda: Punctuate(PerGroup(Ordered(), ("zone",))), "Punctuate: by: no column 'zone'"),
    ],
)
def test_bad_parameters(make, words):
    with pytest.raises(GraphError) as error:
        make().output_schemas((SCHEMA,))
    assert words in str(error.value)


@pytest.mark.parametrize("operator", [Punctuate, Sort])
@pytest.mark.parametrize("policy", [10, Ordered])
def test_a_policy_is_a_value(operator, policy):
    with pytest.raises(GraphError, match=r"policy must be a Policy; got (10|.*write Ordered\(\.\.\.\))"):
        operator(policy)
