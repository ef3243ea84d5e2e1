from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import FOREVER, Linear, Operator, Page, Schema
from oop_engine.core.snapshot import pack
from oop_engine.errors import SnapshotError
from oop_engine.extend import Emission, State
from oop_engine.testing import END, Driver, multiset

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")
PAGE = Page.of(SCHEMA, {"ts": [1, 2]})


class Counting(Operator):
    """Passes everything on and remembers how many rows there were."""

    def open(self) -> None:
        self.rows = 0

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        self.rows += len(page)
        yield 0, page

    def on_clock(self, now: int) -> Iterator[Emission]:
        yield 0, Linear(now)

    def state(self) -> State:
        return State(tuples=self.rows)

    def save(self) -> dict[str, Any]:
        return {"rows": self.rows}

    def load(self, state: dict[str, Any]) -> None:
        self.rows = state["rows"]


def test_states_add_up() -> None:
    one, two = State(1, 2, 3, 4), State(10, 20, 30, 40)
    assert one + two == State(11, 22, 33, 44)
    assert two - one == State(9, 18, 27, 36)
    assert State() == State(0, 0, 0, 0)


def test_the_plain_operator_passes_everything_on() -> None:
    driver = Driver(Operator(), SCHEMA)
    assert driver.feed(0, PAGE) == [(0, PAGE)]
    assert driver.feed(0, Linear(3)) == [(0, Linear(3))]
    assert driver.clock(5) == []
    assert driver.feed(0, END) == [(0, Linear(FOREVER))]
    assert driver.operator.state() == State()
    assert driver.operator.counts() == {}
    assert driver.operator.describe() == "Operator"


def test_opening_leaves_the_description_alone() -> None:
    description = Counting()
    one, two = description.opened(SCHEMA), description.opened(SCHEMA)
    list(one.on_page(0, PAGE))
    assert (one.state().tuples, two.state().tuples) == (2, 0)
    assert vars(description) == {}
    assert one.schemas_in == one.schemas_out == (SCHEMA,)
    assert vars(pickle.loads(pickle.dumps(description))) == {}


def test_a_state_moves_to_another_operator() -> None:
    driver = Driver(Counting(), SCHEMA)
    driver.feed(0, PAGE)
    before = driver.operator
    driver.move()
    assert driver.operator is not before
    assert driver.operator.state() == State(tuples=2)
    with pytest.raises(SnapshotError, match="snapshot of Operator"):
        Operator().opened(SCHEMA).restore(driver.operator.snapshot())


def test_a_state_that_does_not_fit_is_refused() -> None:
    with pytest.raises(SnapshotError, match="snapshot of Counting: made with other parameters"):
        Counting().opened(SCHEMA).restore(pack("Counting", {"something": "else"}))


def test_the_driver_collects_by_port_and_ends_what_was_not_ended() -> None:
    driver = Driver(Counting(), SCHEMA).run([(0, PAGE), (0, Linear(1))])
    assert driver.rows() == [{"ts": 1}, {"ts": 2}]
    assert driver.pages() == [PAGE]
    assert driver.punctuation() == [Linear(1), Linear(FOREVER)]
    assert Driver(Counting(), SCHEMA).run([(0, END)]).punctuation() == [Linear(FOREVER)]
    assert driver.clock(9) == [(0, Linear(9))]


def test_multisets_forgive_the_last_digits_of_floats_only() -> None:
    assert multiset([{"x": 0.1 + 0.2}, {"x": 1}]) == multiset([{"x": 1}, {"x": 0.3}])
    assert multiset([{"x": float("nan")}]) == multiset([{"x": float("nan")}])
    assert multiset([{"x": 1}]) != multiset([{"x": 1}, {"x": 1}])
    assert multiset([{"x": [1], "y": None}]) == multiset([{"y": None, "x": [1]}])
