"""Split: each tuple to one port, none lost without being counted."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import GraphError, Linear, Page, Schema
from oop_engine.operators.split import Split
from oop_engine.testing import Driver
from tests.naive.stateless import split

SCHEMA = Schema({"ts": pa.int64(), "n": pa.int64()}, "ts", "s")
PREDICATES = {"small": pc.field("n") < 5, "even": lambda batch: pc.equal(pc.bit_wise_and(batch["n"], 1), 0)}
ROWS = st.lists(
    st.fixed_dictionaries({"ts": st.integers(0, 9), "n": st.none() | st.integers(0, 9)}), max_size=8
)


def page_of(rows):
    return Page.of(SCHEMA, {n: [r[n] for r in rows] for n in SCHEMA.names}, arrival=range(len(rows)))


@given(st.lists(ROWS, max_size=4))
def test_each_tuple_goes_to_the_first_true_predicate(pages):
    rows = [row for page in pages for row in page]
    naive = split(
        rows,
        [
            lambda r: None if r["n"] is None else r["n"] < 5,
            lambda r: None if r["n"] is None else r["n"] % 2 == 0,
        ],
    )
    kept = Driver(Split(PREDICATES, rest="rest"), SCHEMA).run((0, page_of(p)) for p in pages)
    assert [kept.rows(port) for port in range(3)] == naive
    dropped = Driver(Split(PREDICATES), SCHEMA).run((0, page_of(p)) for p in pages)
    assert [dropped.rows(port) for port in range(2)] == naive[:2]
    assert dropped.operator.counts() == {"unmatched": len(naive[2])}


def test_arrival_stays_with_its_tuple():
    driver = Driver(Split(PREDICATES, rest="rest"), SCHEMA)
    driver.feed(0, page_of([{"ts": 0, "n": n} for n in (9, 1, 6, 2, 8, 7)]))
    assert [driver.pages(p)[0].arrival.tolist() for p in range(3)] == [[1, 3], [2, 4], [0, 5]]


def test_a_page_for_one_port_is_not_copied():
    page = page_of([{"ts": 0, "n": 6}, {"ts": 1, "n": 8}])
    [(port, same)] = Driver(Split(PREDICATES), SCHEMA).feed(0, page)
    assert port == 1
    assert same is page


def test_promises_go_to_every_port():
    assert Driver(Split(PREDICATES, "rest"), SCHEMA).feed(0, Linear(3)) == [(p, Linear(3)) for p in range(3)]


def test_a_single_predicate_makes_two_ports():
    assert Split(pc.field("n") < 5).outputs == ("out", "rest")
    assert Split(pc.field("n") < 5, rest="other").outputs == ("out", "other")


def test_the_count_moves_with_the_operator():
    driver = Driver(Split({"small": pc.field("n") < 5}), SCHEMA)
    driver.feed(0, page_of([{"ts": 0, "n": 9}]))
    driver.move()
    assert driver.operator.counts() == {"unmatched": 1}


@pytest.mark.parametrize(("predicates", "rest"), [({}, None), ({"a": "n"}, "a")])
def test_ports_that_cannot_be(predicates, rest):
    with pytest.raises(GraphError, match="different names"):
        Split(predicates, rest)


def test_a_predicate_that_is_a_number():
    with pytest.raises(GraphError, match="boolean"):
        Split({"a": pc.field("n") + 1}).output_schemas((SCHEMA,))
