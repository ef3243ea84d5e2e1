"""A tail under a simulated logrotate: each line comes once (``make rotations``: many more histories)."""

from __future__ import annotations

import pytest

from tests.simulation.rotated_log import check

_ONCE_BROKEN = [29, 1114, 1173, 2205, 2749, 2764, 2996, 3062, 3136, 3576, 4132, 7361]
"""Histories in which files were taken for others: read to byte 0, compressed too early, cut before a look."""


@pytest.mark.parametrize(
    "seeds",
    [range(1000, 1100), range(1100, 1200), range(1200, 1300), _ONCE_BROKEN],
    ids=lambda seeds: seeds[0],
)
def test_each_line_comes_once_across_rotations_and_restarts(seeds: list[int]) -> None:
    for seed in seeds:
        try:
            check(seed)
        except Exception as error:
            pytest.fail(f"seed {seed}: FROM={seed} make rotations HISTORIES=1: {error!r}")
