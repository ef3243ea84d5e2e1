from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import FOREVER, ContractError, GraphError, GroupWise, Joint, Linear, Page, Schema
from oop_engine.core.graphs.contract import EdgeContract
from oop_engine.core.snapshot import pack
from oop_engine.operators.in_order import opib_join
from oop_engine.operators.in_order.opib_join import OPIBJoin
from oop_engine.operators.in_order.opob_join import OPOBJoin
from oop_engine.operators.joining.bands import Band, TumblingBand
from oop_engine.testing import END, Driver, as_messages, multiset, row_lists, rows_of, scripts
from tests.naive.joins import band, joined, tumbling

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
ON_K = [("k", "k")]


def driver(given_band: Band | TumblingBand) -> Driver:
    return Driver(OPIBJoin(ON_K, given_band), SCHEMA, SCHEMA)


def page(*times: int, k: str | None = "a") -> Page:
    return Page.of(SCHEMA, {"ts": times, "k": [k] * len(times)})


def test_left_tuples_wait_until_the_right_input_is_past_their_band() -> None:
    d = driver(Band(before=1, after=2))
    assert d.feed(0, page(5, 6, 9)) == [(0, Linear(5))]
    assert d.feed(1, page(3, 4, 7)) == []  # 5 + 2 can still come
    assert d.operator.state().tuples == 3 + 2  # the right tuple of 3 can match no left one
    _, linear = d.feed(1, page(8))
    assert [(r["ts"], r["ts_right"]) for r in d.rows()] == [(5, 4), (5, 7)]
    assert linear == (0, Linear(6))
    assert d.operator.state().tuples == 2 + 2  # 6 and 9 wait for 8 and more, and 7 and 8 for them
    d.feed(1, END)
    assert [(r["ts"], r["ts_right"]) for r in d.rows()][2:] == [(6, 7), (6, 8), (9, 8)]
    assert d.punctuation()[-1] == Linear(9)
    d.feed(0, END)
    assert d.punctuation()[-1] == Linear(FOREVER)
    assert d.operator.state().tuples == 0


def test_tumbling_left_tuples_wait_for_the_end_of_their_window() -> None:
    d = driver(TumblingBand(10))
    d.feed(0, page(1, 2, 11))
    assert d.feed(1, page(5)) == []
    said = d.feed(1, page(12))
    assert [(r["ts"], r["ts_right"]) for r in d.rows()] == [(1, 5), (2, 5)]
    assert said[1:] == [(0, Linear(11))]
    assert d.operator.state().tuples == 2  # left 11, right 12


def test_left_ended_early_so_right_tuples_are_not_stored() -> None:
    d = driver(Band(1, 1))
    d.feed(0, page(5))
    d.feed(0, END)
    d.feed(1, page(5, 6, 7, 8))
    assert len(d.rows()) == 2
    state = d.operator.state()
    assert (state.tuples, state.groups) == (0, 0)
    d.feed(1, page(9))
    assert d.operator.state().tuples == 0


def test_null_keys_do_not_wait() -> None:
    d = driver(Band(1, 1))
    d.feed(0, page(5, k=None))
    d.feed(1, page(1, k=None))
    assert d.operator.state().tuples == 0


def test_a_lull_is_bridged_by_linear_punctuation_and_other_promises_are_dropped() -> None:
    d = driver(Band(0, 0))
    d.feed(0, page(5))
    d.feed(1, page(5))
    assert d.feed(1, GroupWise.of({"k": ["a"]}, [50])) == []
    assert d.feed(1, Joint.of(ts=50)) == []
    assert [len(m) if isinstance(m, Page) else m for _, m in d.feed(1, Linear(6))] == [1]
    assert d.feed(0, Linear(6)) == [(0, Linear(6))]


def test_many_left_tuples_at_once_stay_sorted() -> None:
    times = np.sort(np.random.default_rng(3).integers(0, 5_000, 20_000))
    rows = Page.of(SCHEMA, {"ts": times, "k": ["a"] * len(times)})
    d = driver(Band(0, 0))
    d.feed(0, rows)
    d.feed(1, rows)
    d.run([])
    out = np.concatenate([p.times for p in d.pages()])
    assert bool((np.diff(out) >= 0).all())
    assert len(out) == int((np.bincount(times) ** 2).sum())


@pytest.mark.parametrize("bad", [page(8, 7), page(4)])
def test_an_input_out_of_order_is_refused(bad: Page) -> None:
    d = driver(Band(1, 1))
    d.feed(1, page(3, 5))
    with pytest.raises(
        ContractError, match=r"OPIBJoin: input 'right' must be sorted by 'ts'; got . after . s"
    ):
        d.feed(1, bad)


def test_what_does_not_fit_is_refused_in_its_own_name() -> None:
    with pytest.raises(GraphError, match="OPIBJoin: right: no column 'z'"):
        OPIBJoin([("k", "z")], Band(1, 1)).output_schemas((SCHEMA, SCHEMA))


@given(
    st.data(),
    st.sampled_from([(Band(2, 3), band(2, 3)), (Band(6, -1), band(6, -1)), (TumblingBand(8), tumbling(8))]),
    st.sampled_from(["inner", "left", "full", "semi", "anti"]),
    st.sampled_from([OPIBJoin, OPOBJoin]),
)
def test_results_are_sorted_and_those_of_the_definition(
    data: st.DataObject, given_band, kind: str, join: type[OPIBJoin]
) -> None:
    described, times = given_band
    rows = [data.draw(row_lists(SCHEMA)), data.draw(row_lists(SCHEMA))]
    script = data.draw(scripts((SCHEMA, SCHEMA), rows, ordered=True, grouped=False))
    d, contract = Driver(join(ON_K, described, how=kind), SCHEMA, SCHEMA), EdgeContract("out")
    move_at = data.draw(st.integers(0, 10))
    for step, (port, message) in enumerate(as_messages(script, (SCHEMA, SCHEMA))):
        if step == move_at:
            d.move()
        for _, out in d.feed(port, message):
            contract.check(out)
    d.run([])
    left, right = rows_of(script, 2)
    expected = joined(kind, left, right, ON_K, times, names=(SCHEMA.names, SCHEMA.names))
    assert multiset(d.rows()) == multiset(expected)
    time = d.operator.schemas_out[0].progressing
    assert all(a[time] <= b[time] for a, b in pairwise(d.rows()))
    assert d.operator.state().tuples == 0


@pytest.mark.parametrize("kind", ["inner", "full"])
def test_results_are_cut_alike_after_a_restart(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """How many left tuples are joined at once follows from the matches so far, so it is part of the state."""
    monkeypatch.setattr(opib_join, "_AT_FIRST", 1)
    monkeypatch.setattr(opib_join, "_MORE", 2)
    stayed, moved = (Driver(OPIBJoin(ON_K, Band(1, 1), how=kind), SCHEMA, SCHEMA) for _ in range(2))
    for first in range(0, 60, 6):
        for port in (0, 1):
            times = range(first, first + 6)
            for one in (stayed, moved):
                one.feed(port, page(*times))
            moved.move()
    assert [p.to_pylist() for p in moved.run([]).pages()] == [p.to_pylist() for p in stayed.run([]).pages()]


def test_a_state_that_has_no_number_of_left_tuples_is_taken() -> None:
    before = driver(Band(1, 1))
    before.feed(0, page(1, 2))
    saved = before.operator.save()
    del saved["at_once"]
    after = driver(Band(1, 1)).operator
    after.restore(pack("OPIBJoin", saved))
    assert after.state().tuples == 2
