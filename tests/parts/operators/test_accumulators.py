"""Accumulators: whatever is done with states at once gives what combining them one by one gives."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import GraphError, UsageError
from oop_engine.operators.aggregates import Part, UserDefined
from oop_engine.operators.kernels.sliding import ALONE
from oop_engine.operators.slicing.accumulators import (
    Accumulator,
    Compiled,
    SumOverflowError,
    accumulator,
    register_accumulator,
)

USER = UserDefined(
    lambda x: (x.to_numpy(),), lambda a, b: (a[0] | b[0],), lambda s: s[0], ("v",), ("int64",), pa.int64()
)
PARTS = [
    Part("count", "v"), Part("sum", "v"), Part("sum", "v", floating=True), Part("min", "v"), Part("max", "v"),
    Part("min", "v", floating=True), Part("first", "v"), Part("last", "v", floating=True),
    Part("moments", "v", floating=True), Part("user", user=USER),
]  # fmt: skip
NAMES = [f"{p.kind}-{'float' if p.floating else 'int'}" for p in PARTS]
each_part = pytest.mark.parametrize("part", PARTS, ids=NAMES)


def states(part: Part, size: int):
    """Random states, some of them of no values, some NaN."""
    random = np.random.default_rng(7)
    columns = []
    for identity in accumulator(part).identity:
        values = random.integers(1, 9, size).astype(identity.dtype)
        columns.append(values)
    if part.kind in ("min", "last") and part.floating:
        columns[0][random.random(size) < 0.3] = np.nan
    none = random.random(size) < 0.3
    for column, identity in zip(columns, accumulator(part).identity, strict=True):
        column[none] = identity
    return tuple(columns)


def same(got, expected):
    for column, wanted in zip(got, expected, strict=True):
        assert column.dtype == wanted.dtype
        np.testing.assert_allclose(column, wanted, rtol=1e-12)


def row(state, at):
    return tuple(column[at : at + 1] for column in state)


def stacked(rows):
    return tuple(np.concatenate(columns) for columns in zip(*rows, strict=True))


@each_part
def test_all_at_once_is_one_by_one(part):
    state, starts = states(part, 60), np.array([0, 1, 3, 10, 11, 40])
    got = accumulator(part).reduce(state, starts)
    same(got, one_by_one(accumulator(part), state, [*starts, 60]))


def one_by_one(of: Accumulator, state, edges):
    results = []
    for start, stop in pairwise(edges):
        held = row(state, start)
        for at in range(start + 1, stop):
            held = of.combine(held, row(state, at))
        results.append(held)
    return stacked(results)


@each_part
def test_steps_are_taken_one_after_the_other(part):
    random = np.random.default_rng(3)
    to, a, b = random.integers(0, 20, (3, 60))
    to[::3] = ~np.arange(20)
    b[::7] = -1
    of, state = accumulator(part), states(part, 20)
    cells, results = [row(state, at) for at in range(20)], [None] * 20
    for i, one, other in zip(to.tolist(), a.tolist(), b.tolist(), strict=True):
        both = cells[one] if other < 0 else of.combine(cells[one], cells[other])
        if i < 0:
            results[~i] = both
        else:
            cells[i] = both
    held = tuple(column.copy() for column in state)
    got = of.fold_steps(held, np.stack([to, a, b]), 20)
    same(got, stacked(results))
    same(held, stacked(cells))


@each_part
def test_groups_side_by_side_are_groups_one_by_one(part):
    of, groups = accumulator(part), 9
    ring = tuple(column.reshape(6, 10) for column in states(part, 60))
    steps = np.array(
        [[1, ~0, ~1], [2, 1, ~2], [0, ~3, ~4], [~0, 2, 0], [0, 0, ~5], [~1, 1, 0], [~2, ~5, ALONE]]
    )
    together = of.fold_rows(ring, 1, groups, (3, 3), steps.T.copy())
    for group in range(groups):
        alone = tuple(np.ascontiguousarray(column[:, 1 + group]) for column in ring)
        pane = [row(alone, at) for at in range(6)]
        one = of.combine(pane[0], pane[1])
        two = of.combine(one, pane[2])
        back = of.combine(pane[3], pane[4])
        longer = of.combine(back, pane[5])
        expected = stacked([of.combine(two, back), of.combine(one, longer), pane[5]])
        same(tuple(column[:, group] for column in together), expected)


@each_part
def test_adding_states_to_rows_is_combining_them(part):
    """What ``prepare`` returns of a user-defined one are states; the others have the oracle of windows."""
    if isinstance(accumulator(part), Compiled):
        part = Part("user", user=USER)
    of, new = accumulator(part), states(part, 30)
    rows = np.random.default_rng(1).integers(0, 5, 30)
    held, starts = states(part, 5), np.arange(31)
    expected = [row(held, at) for at in range(5)]
    for at, to in enumerate(rows.tolist()):
        expected[to] = of.combine(expected[to], row(new, at))
    once, twice = tuple(c.copy() for c in held), tuple(c.copy() for c in held)
    of.add(once, rows, new)
    same(once, stacked(expected))
    of.update(twice, rows, starts, 0, 12, new)
    of.update(twice, rows, starts, 12, 30, new)
    same(twice, stacked(expected))


MOST = np.array([2**62, 2**62, -5, 2**62, 1, 2**62])


def test_a_sum_that_wraps_tells_where():
    of = accumulator(Part("sum", "v"))
    with pytest.raises(SumOverflowError) as caught:
        of.reduce((MOST,), np.array([0, 2, 3]))
    assert (caught.value.column, caught.value.at) == ("v", 0)
    with pytest.raises(SumOverflowError) as caught:
        of.combine((MOST,), (MOST[::-1].copy(),))
    assert caught.value.at == 0
    with pytest.raises(SumOverflowError) as caught:
        of.fold_steps((MOST.copy(),), np.array([[~0, 4, ~1], [2, 4, 0], [1, -1, 1]]), 2)
    assert caught.value.at == 2
    with pytest.raises(SumOverflowError) as caught:
        of.fold_rows((MOST.reshape(2, 3),), 0, 3, (1, 1), np.array([[~0], [~0], [~1]]))
    assert (caught.value.at, caught.value.group) == (0, 0)
    with pytest.raises(SumOverflowError) as caught:
        of.add((MOST.copy(),), np.array([2, 3, 4]), (MOST[:3], np.empty(0, np.bool_)))
    assert caught.value.at == 3


def test_a_sum_in_place_tells_the_group_that_wraps():
    """The result lies where one side of it was."""
    of = accumulator(Part("sum", "v"))
    ring = (np.array([[1, 2, 2**62], [3, 4, 2**62], [5, 6, 1]]),)
    with pytest.raises(SumOverflowError) as caught:
        of.fold_rows(ring, 0, 3, (1, 1), np.array([[0, 0, ~0], [~2, 0, 0], [~0, ~1, ALONE]]))
    assert (caught.value.at, caught.value.group) == (1, 2)


def test_spread_is_found_far_from_zero():
    state = np.array([2, 1]), np.array([1e9 + 0.5, 1e9 + 3.5]), np.array([0.5, 0.0])
    [n], [m], [s] = accumulator(Part("moments", "v", floating=True)).reduce(state, np.array([0]))
    assert (n, m) == (3, 1e9 + 1.5)
    assert s == pytest.approx(6.5)


def test_a_kind_must_be_known_and_is_kept_by_one():
    with pytest.raises(GraphError, match=r"a kind that has an accumulator .*; got 'unheard of'"):
        accumulator(Part("unheard of"))
    with pytest.raises(UsageError, match="'sum' already, of oop_engine"):

        @register_accumulator("sum")
        class Other(Compiled):
            pass
