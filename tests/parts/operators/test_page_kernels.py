"""Loops over a page that may be taken in two ways: both give the same, and what a plain loop gives."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from oop_engine.operators.aggregates.sketches import Bins
from oop_engine.operators.kernels.lists import ascending, counted, tally
from oop_engine.operators.kernels.ordering import trail
from oop_engine.operators.kernels.pane_rows import changed
from oop_engine.operators.kernels.panes import Geometry
from oop_engine.operators.kernels.partials import NO_WINDOW
from oop_engine.operators.kernels.places import pane_rows, place
from oop_engine.operators.kernels.runs import reaches
from oop_engine.operators.keys.row_codes import row_codes
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.windows import Extents

FAR = 1 << 62


@pytest.mark.parametrize("error", [0.5, 0.01, 0.0001])
def test_a_value_has_the_bin_of_its_log(error: float) -> None:
    bins, draw = Bins(error), np.random.default_rng(3)
    limits = np.exp(np.arange(-20, 20) * math.log((1 + error) / (1 - error)))
    near = np.concatenate(
        [limits, np.nextafter(limits, 0), np.nextafter(limits, np.inf), 2.0 ** np.arange(-1074, 1024)]
    )
    far = draw.integers(-(1 << 63), (1 << 63) - 1, 4000).view(np.float64)
    values = np.concatenate([near, -near, far[np.isfinite(far)], np.arange(1.0, 5000.0)])
    scale, least = 1 / math.log((1 + error) / (1 - error)), bins.of(np.array([5e-324]))[0]
    first = math.ceil(math.log(5e-324) * scale) - least
    expected = [math.copysign(math.ceil(math.log(abs(v)) * scale) - first, v) for v in values.tolist()]
    assert bins.of(values).tolist() == expected
    for kind in (np.int32, np.int64):
        whole = draw.integers(np.iinfo(kind).min, np.iinfo(kind).max, 2000, dtype=kind)
        assert (bins.of(whole) == bins.of(whole.astype(np.float64))).all()
    assert bins.of(np.array([0.0, -0.0, np.inf, -np.inf, np.nan])).tolist() == [
        0, 0, bins.last, -bins.last, bins.last + 1,
    ]  # fmt: skip


@pytest.mark.parametrize(("lists", "span", "rows"), [(1, 1, 3), (3, 5, 40), (4, 50, 20)])
def test_pairs_are_counted_by_cells_as_by_a_sort(lists: int, span: int, rows: int) -> None:
    draw = np.random.default_rng(rows)
    of, keys = draw.integers(0, lists, rows), draw.integers(-7, span - 7, rows)
    pairs = of * span + keys + 7
    found = []
    for count, *given in ((counted, of, keys), (tally, ascending(pairs, int(pairs.max())))):
        lengths, (values, numbers) = np.zeros(lists, np.int64), np.empty((2, rows + 1), np.int64)
        many = count(*given, span, -7, lengths, values, numbers)
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


@pytest.mark.parametrize(
    ("range_", "slide"), [(10, 10), (30, 10), (25, 10), (3, 10), (1, 1), (2**50 + 7, 2**50)]
)
@pytest.mark.parametrize("origin", [0, -7, 2**60])
def test_tuples_of_a_group_and_pane_have_one_row(range_: int, slide: int, origin: int) -> None:
    extents, draw = Extents(range_, slide, origin), np.random.default_rng(slide)
    edges = [origin + at * slide - side for at in range(-3, 3) for side in (0, range_ % slide)]
    within = draw.integers(origin - 3 * slide, origin + 3 * slide, 1000)
    times = draw.permutation(np.concatenate([within, *(np.array(edges) + near for near in (-1, 0, 1))]))
    slots, steps = draw.integers(0, 3, times.size), extents.panes[1]
    begin = origin + (int(times.min()) - origin) // slide * slide
    free = np.full((8 * steps, 3), -1, np.int32)
    rows, first = np.empty((2, times.size), np.int64)
    many = pane_rows(slots, times, (begin, slide, steps, slide - range_ % slide), free, rows, first)
    windows = extents.wids(times)
    names = list(zip(slots.tolist(), *(side.tolist() for side in windows), strict=True))
    seen: dict[tuple[int, ...], int] = {}
    assert rows.tolist() == [seen.setdefault(name, len(seen)) for name in names]
    assert first[:many].tolist() == [names.index(name) for name in seen]


@pytest.mark.parametrize("every", [1, 7, 4000])
@pytest.mark.parametrize("apart", [0, 3])
@pytest.mark.parametrize("slacks", [(20, 20), (20, 9), (9, 20), (60, 3)])
def test_rows_are_behind_the_bounds_of_those_before_them(
    every: int, apart: int, slacks: tuple[int, int]
) -> None:
    draw = np.random.default_rng(every)
    times = np.arange(2000) * apart + draw.integers(-30, 30, 2000)
    memory, late = np.array([-50, -100, -90, 0, 0]), np.empty(times.size, np.bool_)
    found = trail(times, *slacks, every, memory, late)
    largest, bounds, expected, allowed = -50, [-100, -90], [], 0
    for time in times.tolist():
        expected.append(time < bounds[0])
        allowed += bounds[0] <= time < bounds[1]
        largest = max(largest, time)
        bounds = [max(one, (largest - by) // every * every) for one, by in zip(bounds, slacks, strict=True)]
    assert (late.tolist(), found) == (expected, (sum(expected), allowed))
    assert memory.tolist() == [largest, *bounds, times.min(), times.max()]


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize(("known", "groups"), [(5, 5), (3, 200), (90, 90)])
def test_windows_have_changed_if_they_have_other_numbers_of_tuples(
    step: int, known: int, groups: int
) -> None:
    draw, room, low, first, kept_windows = np.random.default_rng(groups), 8 * step, 5 * step, 6, 3
    geometry = Geometry(step, 1, low, low + room - 1, room - 1, groups, low % room)
    before = draw.integers(0, 3, (8, groups)) * (np.arange(groups) < known)  # windows 5 to 12
    before[[0, 4, 5, 6, 7]] = 0  # of which 6 to 8 are kept
    after = before + (draw.random((8, groups)) < 0.1)
    rows = np.zeros((room, groups), np.int16)
    for wid in range(5, 13):
        rows[((wid + 1) * step - 1) % room] = after[wid - 5]
    was, now = np.empty((5, 8 * groups + 1), np.int64), np.empty((4, 8 * groups + 1), np.int64)
    kept = np.ascontiguousarray(before[1 : 1 + kept_windows, :known].astype(np.int16))
    had, many = changed(geometry, rows.ravel(), kept, first, 5, 12, was, now)
    expected = [
        (wid, g) for wid in range(5, 12) for g in range(groups) if after[wid - 5, g] != before[wid - 5, g]
    ]
    assert [(w, g) for g, w in now[:2, :many].T.tolist()] == expected
    assert now[3, :many].tolist() == [after[w - 5, g] for w, g in expected]
    assert (rows.ravel()[now[2, :many]] == now[3, :many]).all()
    there = [i for i, (w, g) in enumerate(expected) if before[w - 5, g]]
    assert was[4, :had].tolist() == there
    assert [(w, g) for g, w in was[:2, :had].T.tolist()] == [expected[i] for i in there]
    assert was[3, :had].tolist() == [before[w - 5, g] for w, g in (expected[i] for i in there)]
    assert (kept.ravel()[was[2, :had]] == was[3, :had]).all()


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


@pytest.mark.parametrize("slide", [1, 3, 10, 999_983, 2**49 - 1, 2**50])
@pytest.mark.parametrize("low", [0, -5, 4000])
@pytest.mark.parametrize("groups", [1, 3])
def test_a_tuple_is_in_the_pane_that_its_time_divided_by_the_slide_is(
    slide: int, low: int, groups: int
) -> None:
    geometry, draw = Geometry(1, 1, low, low + 5, 7, groups, low % 8), np.random.default_rng(slide)
    edges = [(low + pane) * slide + near for pane in range(-1, 8) for near in (-1, 0, 1)]
    ends = [-(2**63), -(2**63) + 1, 2**63 - 1]
    within = draw.integers(low * slide, (low + 6) * slide, 1000)
    times = draw.permutation(np.concatenate([np.array(edges + ends), within]))
    slots = draw.integers(0, groups + 1, times.size)
    tuples, spans = np.zeros(8 * groups, np.int32), np.full((groups + 1, 2), NO_WINDOW)
    counts, rows = np.array([0, 0, NO_WINDOW]), np.empty(times.size, np.int64)
    spans[:, 1], turns = -1 - NO_WINDOW, np.zeros((4, groups), np.int64)
    slots.flags.writeable = times.flags.writeable = False
    least = np.full(1, NO_WINDOW)
    grid, known = (low * slide, slide), (spans, least, counts, turns)
    new, out, *_ = place(geometry, grid, tuples, known, slots, times, rows, (0, FAR))
    pairs = zip(times.tolist(), slots.tolist(), strict=True)
    expected = [
        (time // slide & 7) * groups + slot if low <= time // slide <= low + 5 and slot < groups else -1
        for time, slot in pairs
    ]
    assert rows.tolist() == expected
    cells, numbers = np.unique(rows[rows >= 0], return_counts=True)
    assert tuples[cells].tolist() == numbers.tolist()
    assert (new, out) == (cells.size, expected.count(-1))
    assert counts.tolist() == [0, groups, low]
    assert least.tolist() == [low]
