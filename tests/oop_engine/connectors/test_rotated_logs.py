"""A tail under a simulated logrotate: each line comes once (``make rotations``: many more histories)."""

from __future__ import annotations

import pytest

from tests.simulation.rotated_log import check


@pytest.mark.parametrize("first", range(1000, 1300, 100))
def test_each_line_comes_once_across_rotations_and_restarts(first: int) -> None:
    for seed in range(first, first + 100):
        try:
            check(seed)
        except Exception as error:
            pytest.fail(f"seed {seed}: FROM={seed} make rotations HISTORIES=1: {error!r}")
