"""Distinct: one of each, and no key kept that cannot come again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oop_engine import FOREVER, GraphError, GroupWise, Joint, Linear, Page, Schema
from oop_engine.operators import distinct as module
from oop_engine.operators.distinct import Distinct
from oop_engine.testing import Driver, as_messages, multiset, row_lists, rows_of, scripts
from tests.naive.stateless import distinct

SCHEMA = Schema({"k": pa.string(), "ts": pa.int64(), "n": pa.int32()}, "ts", "s")
FEW: dict[str, list[Any]] = {"ts": [3, 4, 20], "k": ["a", "b", None], "n": [1, None]}


def page_of(**columns):
    return Page.of(SCHEMA, {"n": [1] * len(columns["ts"])} | columns)


@pytest.fixture(params=[0, module._FEW], ids=lambda few: f"few={few}")
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to how many pairs a bound looks at all of them."""
    monkeypatch.setattr(module, "_FEW", request.param)


@pytest.mark.usefixtures("few")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.sampled_from([None, ("k",), ("n", "ts"), ()]), st.integers(1, 5))
def test_each_combination_comes_once(data, by, page_rows):
    rows = data.draw(row_lists(SCHEMA, FEW, most=15))
    script = data.draw(scripts([SCHEMA], [rows]))
    names = SCHEMA.names if by is None else [n for n in SCHEMA.names if n in by or n == "ts"]
    driver = Driver(Distinct(by), SCHEMA)
    for port, message in as_messages(script, [SCHEMA], page_rows=page_rows):
        driver.feed(port, message)
        driver.move()
    assert multiset(driver.rows()) == multiset(distinct(rows_of(script, 1)[0], names))


@given(st.data(), st.sampled_from([("k",), ("k", "n")]))
def test_it_keeps_exactly_what_may_come_again(data, by):
    """The keys kept are those that no promise so far, on columns that are compared, has passed."""
    rows = data.draw(row_lists(SCHEMA, FEW, most=12))
    driver, keys = Driver(Distinct(by), SCHEMA), []
    for port, message in as_messages(data.draw(scripts([SCHEMA], [rows])), [SCHEMA]):
        driver.feed(port, message)
        match message:
            case Page():
                keys += [tuple(row[n] for n in ("ts", *by)) for row in message.to_pylist()]
            case Linear(below):
                keys = [key for key in keys if key[0] >= below]
            case GroupWise(groups, belows) if set(groups.schema.names) <= set(by):
                for group, below in zip(groups.to_pylist(), belows, strict=True):
                    at = {n: 1 + by.index(n) for n in group}
                    keys = [k for k in keys if k[0] >= below or any(k[at[n]] != group[n] for n in group)]
        assert driver.operator.state().tuples == len(set(keys))


def test_nulls_nans_and_zeros_are_equal_to_themselves():
    schema = Schema({"ts": pa.int64(), "x": pa.float64()}, "ts", "s")
    page = Page.of(schema, {"ts": [1] * 6, "x": [None, None, np.nan, -np.nan, 0.0, -0.0]})
    assert len(Driver(Distinct(), schema).feed(0, page)[0][1]) == 3


def test_a_page_of_first_copies_is_not_copied():
    page = page_of(ts=[1, 2], k=["a", "a"])
    [(_, same)] = Driver(Distinct(), SCHEMA).feed(0, page)
    assert same.column("k").buffers()[2].address == page.column("k").buffers()[2].address


def test_arrival_stays_with_the_first_copy():
    page = Page.of(SCHEMA, {"ts": [1, 1, 2], "k": ["a"] * 3, "n": [1, 2, 3]}, arrival=[5, 6, 7])
    assert Driver(Distinct(("k",)), SCHEMA).feed(0, page)[0][1].arrival.tolist() == [5, 7]


@pytest.mark.parametrize(
    ("promise", "passes", "left"),
    [
        (Linear(5), True, 1),
        (Linear(FOREVER), True, 0),
        (GroupWise.of({"k": ["a", "z"]}, [9, 9]), True, 1),
        (GroupWise.of({"n": [1]}, [9]), False, 3),
        (Joint.of(ts=9), True, 3),
        (Joint.of(ts=9, n=9), False, 3),
    ],
)
def test_promises(promise, passes, left):
    driver = Driver(Distinct(("k",)), SCHEMA)
    driver.feed(0, page_of(ts=[4, 6, 4], k=["a", "a", None]))
    promise_type = pa.schema([SCHEMA.fields.field(n) for n in getattr(promise, "attributes", ())])
    if isinstance(promise, GroupWise):
        promise = GroupWise(promise.groups.cast(promise_type), promise.below)
    assert driver.feed(0, promise) == ([(0, promise)] if passes else [])
    assert driver.operator.state().tuples == left


def test_groups_go_when_their_keys_have_gone():
    driver = Driver(Distinct(("k",)), SCHEMA)
    driver.feed(0, page_of(ts=list(range(1000)), k=[str(i) for i in range(1000)]))
    driver.feed(0, Linear(990))
    state = driver.operator.state()
    assert (state.tuples, state.groups) == (10, 10)
    driver.feed(0, page_of(ts=[990, 995, 999, 1000], k=["990", "995", "x", "1000"]))
    assert [row["ts"] for row in driver.pages()[1].to_pylist()] == [999, 1000]


def test_many_pages_of_any_size_against_a_set():
    rng, seen = np.random.default_rng(7), set()
    driver = Driver(Distinct(("n",)), SCHEMA)
    for start in range(0, 40_000, 2_000):
        times = rng.integers(start, start + 3_000, 4_000)
        codes = rng.integers(-3, 3, 4_000).astype(np.int32)
        page = Page.of(SCHEMA, {"k": ["a"] * 4_000, "ts": times, "n": codes})
        fresh = set(zip(times.tolist(), codes.tolist(), strict=True)) - seen
        seen |= fresh
        said = [message for _, message in driver.feed(0, page)]
        assert sorted((r["ts"], r["n"]) for p in said for r in p.to_pylist()) == sorted(fresh)
        driver.feed(0, Linear(start + 2_000))
    assert driver.operator.state().tuples == sum(t >= 40_000 for t, _ in seen)


@pytest.mark.parametrize("by", [["k", "k"], ("k", "k")])
def test_columns_that_cannot_be(by):
    with pytest.raises(GraphError, match="Distinct: by must"):
        Distinct(by)


def test_a_column_that_is_not_there():
    with pytest.raises(GraphError, match="no column 'z'"):
        Distinct(("z",)).output_schemas((SCHEMA,))


def test_keys_that_a_bound_passes_are_dropped_together_once_they_are_half():
    driver, looked = Driver(Distinct(("n",)), SCHEMA), []
    many = 3 * module._FEW
    numbers = np.arange(many)
    driver.feed(0, Page.of(SCHEMA, {"k": ["a"] * many, "ts": numbers, "n": numbers.astype(np.int32)}))
    for below in range(0, many + 1, 16):
        driver.feed(0, Linear(below))
        looked.append(driver.operator.state().tuples)
        assert looked[-1] <= max(2 * (many - below), module._FEW)
    assert len(set(looked[: many // 32])) <= 2  # they were not looked at for each bound
    assert looked[-1] == 0


def test_a_group_that_ended_may_begin_anew_though_its_keys_are_still_held():
    driver = Driver(Distinct(("n",)), SCHEMA)
    many = 2 * module._FEW
    numbers = np.arange(many).astype(np.int32)
    driver.feed(0, Page.of(SCHEMA, {"k": ["a"] * many, "ts": [5] * many, "n": numbers}))
    driver.feed(0, GroupWise.of({"n": pa.array([7], pa.int32())}, [FOREVER]))
    assert driver.operator.state().tuples == many
    out = driver.feed(0, page_of(ts=[5, 5, 5], k=["a", "a", "a"], n=[7, 7, 8]))
    assert [(row["ts"], row["n"]) for _, page in out for row in page.to_pylist()] == [(5, 7)]
    driver.move()
    assert driver.feed(0, page_of(ts=[5, 5], k=["a", "a"], n=[7, 9])) == []
    assert driver.operator.state().tuples == many + 1


@pytest.mark.parametrize("few", [1, 2, 7])
def test_a_restore_has_the_state_of_a_run_without_one_though_pairs_are_dropped_late(monkeypatch, few):
    monkeypatch.setattr(module, "_FEW", few)
    stayed, moved, dropped = Driver(Distinct(("n",)), SCHEMA), Driver(Distinct(("n",)), SCHEMA), []
    many = 20
    numbers = np.arange(many).astype(np.int32)
    page = Page.of(SCHEMA, {"k": ["a"] * many, "ts": numbers, "n": numbers})
    ended = GroupWise.of({"n": pa.array([15, 17], pa.int32())}, [FOREVER, 9])
    again = Page.of(SCHEMA, {"k": ["a"] * 3, "ts": [15, 17, 16], "n": np.array([15, 17, 16], np.int32)})
    bounds = [Linear(below) for below in range(1, many + 2)]
    for message in (page, *bounds[:3], ended, again, *bounds[3:]):
        assert str(stayed.feed(0, message)) == str(moved.feed(0, message))
        moved.move()
        assert stayed.operator.state().in_use == moved.operator.state().in_use
        dropped.append(stayed.operator.state().tuples)
        assert moved.operator.save()["due"] == stayed.operator.save()["due"]
    assert dropped[3] == many > dropped[-3] >= dropped[-1] == 0
