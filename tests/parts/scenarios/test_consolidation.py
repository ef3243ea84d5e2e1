"""Enorm's plan makes windows of the fewest parts: by hand, and against all paths."""

from __future__ import annotations

import random
from functools import cache

import pytest

from oop_engine.scenarios.enorm.consolidation import parts


@pytest.mark.parametrize(("every", "step", "counted"), [(60, 1, 86), (60, 5, 38), (1, 5, 42)])
def test_windows_of_5_10_15_and_20_minutes_are_of_so_many_parts(every: int, step: int, counted: int) -> None:
    assert sum(parts((5, 10, 15, 20), every, step)) == counted
    assert parts((5,), every, step) == [60 // step]


def test_a_path_has_the_fewest_parts() -> None:
    draw = random.Random(3)
    for _ in range(30):
        lengths = sorted(draw.sample((1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60), 3))
        ways = [all_paths(lengths[: i + 1]) for i in range(3)]
        assert parts(lengths, 60, 1) == ways


def all_paths(lengths: list[int]) -> int:
    """Return the parts of the longest windows: of each, the least of all ways to put shorter ones behind each other."""
    *shorter, longest = lengths

    @cache
    def fewest(at: int, start: int) -> int:
        if at == start:
            return 0
        ways = [1 + fewest(at - 1, start)]
        ways += [1 + fewest(at - s, start) for s in shorter if at % s == 0 and at - s >= start]
        return min(ways)

    return sum(fewest(end, end - longest) for end in range(longest, 61, longest))
