"""Results do not depend on where pages are cut: a few operators, and one whose results do."""

from __future__ import annotations

import pytest

from tests.cases import all_cases
from tests.simulation.cuts import differences

CASES = {case.id: case for case in all_cases()}


@pytest.mark.slow(keep=3)
@pytest.mark.parametrize(
    "name",
    [
        "aggregates-auto",
        "low-level-lazy",
        "oa_join-as_of-left",
        "multi_join-bands",
        "latest",
        "versions-sessions",
        "sliced-many",
    ],
)
def test_results_are_the_same_in_pages_of_any_size(name: str) -> None:
    assert list(differences(CASES[name], 120)) == []


def test_results_that_follow_from_pages_are_found() -> None:
    found = list(differences(CASES["partial-sliding"], 120))
    assert "partial-sliding: other results by run, in pages of 7 rows" in found
