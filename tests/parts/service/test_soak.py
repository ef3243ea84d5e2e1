"""A service for some days of virtual time: memory stays as it is (``make soak``: a week of a busier one)."""

from __future__ import annotations

import pytest

from tests.simulation.soak import FAMILIES, Day, grown, soak


@pytest.mark.slow
def test_memory_is_flat() -> None:
    days = soak(3, every_s=1800, rows=150, checkpoint_s=10_800.0)
    assert [day.day for day in days] == [1, 2, 3]
    assert days[-1].results > days[1].results > 0
    assert days[-1].late > days[1].late > 0
    assert days[-1].unreadable > 0
    assert grown(days) == []


def test_what_grows_is_named() -> None:
    first = Day(1, 100.0, 1_000, 10_000, 10, 10, 20, 5_000, 1, 1, 1)
    later = first._replace(day=2), first._replace(day=3, files=30)
    assert grown([first, *later]) == [
        "files grows: 20 on day 2, 30 on day 3; at most 1.0 times as much and 2 more are allowed"
    ]


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_runs_for_a_day(family: str) -> None:
    [day] = soak(1, every_s=1800, rows=20, family=family)
    assert day.results > 0
