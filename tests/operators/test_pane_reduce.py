"""Reducing many states at once gives what combining them one by one gives."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from oop_engine.operators.aggregates import Part
from oop_engine.operators.slicing.components import component
from oop_engine.operators.slicing.pane_reduce import reduced

PARTS = [
    Part("count", "v"), Part("sum", "v"), Part("sum", "v", floating=True), Part("min", "v"), Part("max", "v"),
    Part("min", "v", floating=True), Part("first", "v"), Part("last", "v", floating=True),
    Part("moments", "v", floating=True),
]  # fmt: skip


def states(part: Part, size: int):
    """Random states, some of them of no values, some NaN."""
    random = np.random.default_rng(7)
    columns = []
    for identity in component(part).identity:
        values = random.integers(1, 9, size).astype(identity.dtype)
        columns.append(values)
    if part.kind in ("min", "last") and part.floating:
        columns[0][random.random(size) < 0.3] = np.nan
    none = random.random(size) < 0.3
    for column, identity in zip(columns, component(part).identity, strict=True):
        column[none] = identity
    return tuple(columns)


@pytest.mark.parametrize("part", PARTS, ids=lambda p: f"{p.kind}-{'float' if p.floating else 'int'}")
def test_all_at_once_is_one_by_one(part):
    state, starts = states(part, 60), np.array([0, 1, 3, 10, 11, 40])
    got = reduced(part, state, starts)
    for column, expected in zip(got, one_by_one(part, state, [*starts, 60]), strict=True):
        assert column.dtype == expected.dtype
        np.testing.assert_allclose(column, expected, rtol=1e-12)


def one_by_one(part: Part, state, edges):
    of, results = component(part), []
    for start, stop in pairwise(edges):
        held = tuple(column[start : start + 1] for column in state)
        for row in range(start + 1, stop):
            held = of.combine(held, tuple(column[row : row + 1] for column in state))
        results.append(held)
    return [np.concatenate(columns) for columns in zip(*results, strict=True)]


def test_what_may_wrap_or_is_your_own_is_left_to_halving():
    starts = np.array([0])
    assert reduced(Part("sum", "v"), (np.array([2**61, 2**61, -5]),), starts) is None
    assert reduced(Part("sum", "v"), (np.array([-(2**63), 1]),), starts) is None
    assert reduced(Part("user"), (np.array([True]),), starts) is None


def test_spread_is_found_far_from_zero():
    number, mean, squares = np.array([2, 1]), np.array([1e9 + 0.5, 1e9 + 3.5]), np.array([0.5, 0.0])
    [n], [m], [s] = reduced(Part("moments", "v", floating=True), (number, mean, squares), np.array([0]))
    assert (n, m) == (3, 1e9 + 1.5)
    assert s == pytest.approx(6.5)
