"""Groups that are asleep cost a small message nothing, and no parameter costs more than docstrings state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.growth import asleep, parameters
from benchmarks.growth.asleep import CLOSES, CLOSING, asked, exponent, work
from benchmarks.growth.parameters import GROWTHS, Growth, grown
from oop_engine.operators.slicing import closing
from oop_engine.operators.slicing.panes import open_spans
from oop_engine.operators.slicing.stores import adaptive_groups, pane_store, slice_ring, window_store

FEW, MANY = 1000, 16_000
FEW_CALLS = 20  # of another way for larger numbers
ROOM = (
    1 << 16
)  # bytes of pages and rows that are copied up to some size; a walk over all keys takes 8 bytes of each


@pytest.fixture(autouse=True)
def few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asleep, "TIMES", 3)


@pytest.mark.slow(keep=20)
@pytest.mark.parametrize(("name", "message"), asked())
def test_a_small_message_costs_the_same_at_any_number_of_keys(name: str, message: str) -> None:
    few, many = work(name, message, FEW), work(name, message, MANY)
    assert many.calls <= 2 * few.calls, (few, many)
    assert many.made <= 2 * few.made + ROOM, (few, many)


@pytest.mark.slow(keep=3)
@pytest.mark.parametrize("name", CLOSING)
def test_a_bound_looks_at_few_groups_where_there_are_more_than_leave_at_once(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for module in (closing, open_spans, adaptive_groups, pane_store, slice_ring, window_store):
        monkeypatch.setattr(module, "AT_ONCE", 1 << 9)
    few, many = work(name, CLOSES, FEW), work(name, CLOSES, MANY)
    assert many.calls <= 2 * few.calls, (few, many)
    assert many.made <= 2 * few.made + ROOM, (few, many)


def test_the_exponent_of_a_walk_is_one() -> None:
    assert exponent(8_000, 8_000_000, 1000) == pytest.approx(1)
    assert exponent(14, 14, 1000) == exponent(0, 1, 1000) == 0


def test_a_walk_over_all_keys_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from oop_engine.operators.slicing.closing import Closing

    add = Closing.add

    def walking(self: Closing, *given: Any) -> None:
        add(self, *given)
        np.arange(self.groups.size)

    monkeypatch.setattr(Closing, "add", walking)
    few, many = work("tumbling", "page of a row", FEW), work("tumbling", "page of a row", MANY)
    assert many.made > 2 * few.made + ROOM


@pytest.mark.slow(keep=20)
@pytest.mark.parametrize("growth", GROWTHS, ids=lambda of: f"{of.parameter}: {of.name}")
def test_a_message_costs_no_more_than_its_docstring_states(
    monkeypatch: pytest.MonkeyPatch, growth: Growth
) -> None:
    monkeypatch.setattr(parameters, "TIMES", 3)
    first, last = growth.sizes[-3:-1]
    few, many = grown(growth, first), grown(growth, last)
    most = 2 * (last / first) ** growth.stated
    assert many.calls <= most * few.calls + FEW_CALLS, (few, many)
    assert many.made <= most * few.made + ROOM, (few, many)


def test_all_parameters_are_measured() -> None:
    assert {growth.parameter for growth in GROWTHS} == {
        "open windows", "windows of a tuple", "sessions of a key", "own bounds", "inputs", "definitions", "columns",
        "length of keys", "page size", "bounds of 1,000 rows", "late rows of 1,000", "nodes",
    }  # fmt: skip
