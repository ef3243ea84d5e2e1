"""Worlds with a seed: the laws hold in each, and find each of three planted bugs (``make simulate``: many more)."""

from __future__ import annotations

import pytest

from tests.simulation.laws import BUGS, simulate

SEEDS, MOST = 8, 200


@pytest.mark.parametrize("seed", range(1_000_000, 1_000_000 + SEEDS))
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_laws_hold(seed: int) -> None:
    simulate(seed)


@pytest.mark.parametrize("bug", sorted(BUGS))
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_planted_bug_is_found(bug: str) -> None:
    def fails(seed: int) -> bool:
        try:
            simulate(seed, bug)
        except Exception:
            return True
        return False

    assert any(fails(seed) for seed in range(10, 10 + MOST))
