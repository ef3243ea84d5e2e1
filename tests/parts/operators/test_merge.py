from __future__ import annotations

import gc
import tracemalloc

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import FOREVER, ContractError, GraphError, GroupWise, Linear, Page, Schema
from oop_engine.core.graphs.contract import EdgeContract
from oop_engine.operators.in_order.merge import Merge
from oop_engine.testing import END, Driver

SCHEMA = Schema({"ts": pa.int64(), "id": pa.int64()}, "ts", "s")
STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.lists(st.integers(0, 4), max_size=5), st.booleans()), max_size=15
)


def page(*times: int, of: int = 0) -> Page:
    return Page.of(SCHEMA, {"ts": times, "id": [of] * len(times)})


@given(STEPS)
def test_sorted_complete_and_as_early_as_possible(steps):
    stayed, moved = (Driver(Merge(3), *[SCHEMA] * 3) for _ in range(2))
    reached, fed = [-1, -1, -1], []
    for port, gaps, lull in steps:
        times = [max(reached[port], 0) + sum(gaps[: i + 1]) for i in range(len(gaps))]
        reached[port] = times[-1] if times else reached[port]
        for driver in (stayed, moved):
            driver.feed(port, Linear(reached[port]) if lull else page(*times, of=port))
        moved.move()
        fed += [] if lull else times
        assert [row["ts"] for row in stayed.rows()] == sorted(t for t in fed if t <= min(reached))
    stayed.run([])
    moved.run([])
    assert stayed.out == moved.out
    assert [row["ts"] for row in stayed.rows()] == sorted(fed)
    assert (stayed.operator.state().tuples, stayed.operator._nbytes) == (0, 0)
    contract = EdgeContract("out")
    for message in stayed.out[0]:
        contract.check(message)


def test_a_lull_is_waited_out_unless_punctuation_tells():
    driver = Driver(Merge(2), SCHEMA, SCHEMA)
    assert driver.feed(0, page(1, 4, 9)) == []
    assert driver.operator.state().tuples == 3
    assert driver.feed(1, Linear(5)) == [(0, page(1, 4)), (0, Linear(5))]
    assert driver.feed(1, GroupWise.of({"id": [0]}, [9])) == []
    assert driver.feed(1, page(6, 9, of=1))[-1] == (0, Linear(9))
    assert [row["ts"] for row in driver.rows()] == [1, 4, 6, 9, 9]
    assert driver.operator.state().tuples == 0


def test_equal_times_go_by_input():
    driver = Driver(Merge(2), SCHEMA, SCHEMA)
    times = [time for time in range(50) for _ in range(4)]
    driver.feed(1, page(*times, of=1))
    driver.feed(0, page(*times, of=0))
    assert [row["id"] for row in driver.rows()] == [0, 0, 0, 0, 1, 1, 1, 1] * 50


def test_an_input_that_has_ended_is_not_waited_for():
    driver = Driver(Merge(2), SCHEMA, SCHEMA)
    driver.feed(0, page(1, 2))
    assert driver.feed(1, END) == [(0, page(1, 2)), (0, Linear(2))]
    assert driver.feed(0, END) == [(0, Linear(FOREVER))]


@pytest.mark.parametrize(
    ("pages", "words"),
    [
        (
            [page(1, 3, 2)],
            "got 2 after 3 s (row 2 of the page): put a Sort before it",
        ),
        (
            [page(5), page(4)],
            "in1 must be sorted by 'ts'; got 4 after 5 s (row 0 of the page)",
        ),
        ([Linear(5), page(4)], "got 4 after 5 s (row 0 of the page)"),
    ],
)
def test_inputs_must_be_sorted(pages, words):
    driver = Driver(Merge(2), SCHEMA, SCHEMA)
    for before in pages[:-1]:
        driver.feed(1, before)
    with pytest.raises(ContractError) as error:
        driver.feed(1, pages[-1])
    assert words in str(error.value)


def test_bad_parameters():
    with pytest.raises(GraphError, match="from 1 to 10,000; got 0"):
        Merge(0)
    with pytest.raises(GraphError, match="Merge: inputs must have the same schema"):
        Merge(2).output_schemas((SCHEMA, Schema(SCHEMA.fields, "ts", "ms")))


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 16, 4096])
def test_bytes_are_those_that_are_held_whatever_the_size_of_pages(rows: int) -> None:
    def waiting() -> Merge:
        merge = Merge(2).opened(SCHEMA, SCHEMA)
        for start in range(0, 4096, rows):
            columns = {name: [*range(start, start + rows)] for name in SCHEMA.names}
            list(merge.on_page(0, Page.of(SCHEMA, columns)))
        return merge

    waiting()  # fill caches
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes()
    merge = waiting()
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes() - before
    tracemalloc.stop()
    assert merge.state().tuples == 4096
    assert held <= 1.2 * merge.state().nbytes + 20_000
