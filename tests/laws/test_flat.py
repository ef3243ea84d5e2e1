"""The state of operators does not grow with a stream (``python -m tests.simulation.flat 10``: all cases, longer)."""

from __future__ import annotations

import pytest

from tests.cases import all_cases
from tests.simulation.flat import MUST_STAY, WAYS, asked, grown

TRIED = (
    "consolidate-sessions", "distinct-by_key", "distinct-of_changes", "finalize", "oa_join-as_of-left-speculative",
    "oa_join-full-speculative", "oa_join-of_changes", "multi_join-bands", "top_n-of_keys_and_times",
    "versions-values-many",
)  # fmt: skip
KEPT = [(case, way) for case, way in asked() if case.id in TRIED and (case.id, way) not in MUST_STAY]


@pytest.mark.slow(keep=8)
@pytest.mark.parametrize(("case", "way"), KEPT, ids=lambda of: str(of))
def test_what_is_over_goes(case, way) -> None:
    assert grown(case, way, 3) == []


def test_what_must_stay_is_found_to_grow() -> None:
    [case] = [case for case in all_cases() if case.id == "latest"]
    assert [name.split()[0] for name in grown(case, "ended", 3)] == ["tuples", "nbytes", "snapshot"]


def test_each_case_that_must_stay_is_there() -> None:
    assert {case for case, _ in MUST_STAY} <= {case.id for case in all_cases()}
    assert {way for _, way in MUST_STAY} <= set(WAYS)
