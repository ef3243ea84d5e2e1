from __future__ import annotations

import pyarrow as pa
import pytest

from oop_engine import FOREVER, ContractError, GraphError, GroupWise, Joint, Linear, Page, Schema
from oop_engine.operators.in_order.opob_join import OPOBJoin
from oop_engine.operators.joining.bands import Band, TumblingBand
from oop_engine.testing import END, Driver

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
ON_K = [("k", "k")]


def driver(given_band: Band | TumblingBand) -> Driver:
    return Driver(OPOBJoin(ON_K, given_band), SCHEMA, SCHEMA)


def page(*times: int, k: str | None = "a") -> Page:
    return Page.of(SCHEMA, {"ts": times, "k": [k] * len(times)})


def test_results_wait_for_those_with_a_smaller_left_time() -> None:
    d = driver(Band(before=1, after=2))
    assert d.feed(0, page(5, 6, 9)) == []
    said = d.feed(1, page(6, 7, 7))
    assert said == [(0, Linear(5))]  # 5 can still match a right tuple of 7
    assert d.operator.state().tuples == 3 + 6  # left tuples and results; right ones are too old for 9
    _, linear = d.feed(1, page(8))
    assert [(r["ts"], r["ts_right"]) for r in d.rows()] == [(5, 6), (5, 7), (5, 7)]
    assert linear == (0, Linear(6))
    d.feed(1, END)
    assert [r["ts"] for r in d.rows()] == [5, 5, 5, 6, 6, 6, 6]  # that of 9 waits for more left tuples
    d.feed(0, END)
    assert (d.rows()[-1]["ts"], d.punctuation()[-1]) == (9, Linear(FOREVER))
    assert d.operator.state().tuples == 0


def test_tumbling_results_leave_with_their_window() -> None:
    d = driver(TumblingBand(10))
    d.feed(0, page(1, 2, 11))
    assert d.feed(1, page(5)) == [(0, Linear(0))]
    said = d.feed(1, page(12))
    assert [(r["ts"], r["ts_right"]) for r in d.rows()] == [(1, 5), (2, 5)]
    assert said[1:] == [(0, Linear(10))]
    d.feed(0, END)
    assert d.operator.state().tuples == 1 + 1  # the left tuple of 11, and its result


def test_a_lull_is_bridged_by_linear_punctuation_and_other_promises_are_dropped() -> None:
    d = driver(Band(0, 0))
    d.feed(0, page(5))
    d.feed(1, page(5))
    assert d.rows() == []
    assert d.feed(1, GroupWise.of({"k": ["a"]}, [50])) == []
    assert d.feed(1, Joint.of(ts=50)) == []
    assert d.feed(0, Linear(6)) == []
    assert [len(m) if isinstance(m, Page) else m for _, m in d.feed(1, Linear(6))] == [1, Linear(6)]


@pytest.mark.parametrize("bad", [page(8, 7), page(4)])
def test_an_input_out_of_order_is_refused(bad: Page) -> None:
    d = driver(Band(1, 1))
    d.feed(0, page(3, 5))
    with pytest.raises(
        ContractError, match=r"OPOBJoin: input 'left' must be sorted by 'ts'; got . after . s"
    ):
        d.feed(0, bad)


def test_what_does_not_fit_is_refused_in_its_own_name() -> None:
    with pytest.raises(GraphError, match="OPOBJoin: left: no column 'z'"):
        OPOBJoin([("z", "k")], Band(1, 1)).output_schemas((SCHEMA, SCHEMA))
