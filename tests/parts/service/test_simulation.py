"""Worlds with a seed: the laws hold in each, and find each of three planted bugs (``make simulate``: many more)."""

from __future__ import annotations

import pytest

from tests.simulation.laws import BUGS, simulate

SEEDS, AT_ONCE, MOST = 200, 25, 200


@pytest.mark.parametrize("first", range(1_000_000, 1_000_000 + SEEDS, AT_ONCE))
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
def test_the_laws_hold(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        try:
            simulate(seed)
        except Exception as error:
            pytest.fail(f"seed {seed}: FROM={seed} make simulate SEEDS=1: {error!r}")


@pytest.mark.slow(keep=1)
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
