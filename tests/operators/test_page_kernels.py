"""Loops over a page that may be taken in two ways: both give the same, and what a plain loop gives."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from oop_engine.operators.kernels.lists import ascending, counted, tally
from oop_engine.operators.kernels.runs import reaches
from oop_engine.operators.keys.row_codes import row_codes
from oop_engine.operators.slicing.window_states import WindowStates

FAR = 1 << 62


@pytest.mark.parametrize(("lists", "span", "rows"), [(1, 1, 3), (3, 5, 40), (4, 50, 20)])
def test_pairs_are_counted_by_cells_as_by_a_sort(lists: int, span: int, rows: int) -> None:
    pairs = np.random.default_rng(rows).integers(0, lists * span, rows)
    found = []
    for count, given in ((counted, pairs), (tally, ascending(pairs, int(pairs.max())))):
        lengths, values, numbers = np.zeros(lists, np.int64), np.empty_like(pairs), np.empty_like(pairs)
        many = count(given, span, -7, lengths, values, numbers)
        found.append((lengths.tolist(), values[:many].tolist(), numbers[:many].tolist()))
    assert found[0] == found[1]
    assert sum(found[0][2]) == rows


@pytest.mark.parametrize("apart", [1, 1 << 20, FAR])
def test_rows_have_one_number_if_their_values_are_the_same(apart: int) -> None:
    draw = np.random.default_rng(5)
    first, second = (draw.integers(-2, 3, 60) * apart // 2 for _ in range(2))
    codes, rows = row_codes([pa.array(first), pa.array(second.astype(np.int64)), pa.array(["a", "b"] * 30)])
    names = list(zip(first.tolist(), second.tolist(), ["a", "b"] * 30, strict=True))
    seen: dict[tuple[int, int, str], int] = {}
    assert codes.tolist() == [seen.setdefault(name, len(seen)) for name in names]
    assert rows.tolist() == [names.index(name) for name in seen]


def test_a_run_reaches_to_the_last_of_its_rows() -> None:
    last, out = np.array([5, 9, 7, 3, 4, 8]), np.empty(3, np.int64)
    reaches(last, np.array([0, 3, 4]), out)
    assert out.tolist() == [9, 3, 8]


@pytest.mark.parametrize("apart", [1, 1000, FAR // 8])
@pytest.mark.parametrize("rows", [2, 300])
def test_windows_are_put_in_order_of_end_definition_and_group(apart: int, rows: int) -> None:
    draw = np.random.default_rng(rows)
    ends, number, slots = (draw.integers(0, most, rows) for most in (9, 3, 50))
    ends = ends * apart + draw.integers(0, 2, rows)
    ordered = WindowStates.ordered([WindowStates(slots, ends, [], number)])
    assert isinstance(ordered.number, np.ndarray)
    found = list(zip(ordered.ends.tolist(), ordered.number.tolist(), ordered.slots.tolist(), strict=True))
    assert found == sorted(zip(ends.tolist(), number.tolist(), slots.tolist(), strict=True))
