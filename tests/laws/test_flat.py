"""The state of operators does not grow with a stream (``python -m tests.simulation.flat 10``: all cases, longer)."""

from __future__ import annotations

import pytest

from tests.cases import all_cases
from tests.simulation.flat import MUST_STAY, WAYS, asked, grown, reason

TRIED = (
    "consolidate-sessions", "distinct-by_key", "distinct-of_changes", "finalize", "oa_join-as_of-left-speculative",
    "oa_join-full-speculative", "oa_join-of_changes", "multi_join-bands", "top_n-of_keys_and_times",
    "versions-values-many",
)  # fmt: skip
CASES = {case.id: case for case in all_cases()}
KEPT = [(case, way) for case, way in asked() if case.id in TRIED and reason(case, way) is None]


@pytest.mark.slow(keep=8)
@pytest.mark.parametrize(("case", "way"), KEPT, ids=lambda of: str(of))
def test_what_is_over_goes(case, way) -> None:
    assert grown(case, way, 3) == []


RETAINED = ("last-rows", "latest", "oa_join-as_of-left", "top_n-of_keys", "wid-empty", "wid-rows-of-group")
"""Some of those of which ``retains`` states that something stays."""


@pytest.mark.parametrize("name", RETAINED)
def test_what_an_operator_retains_is_found_to_grow(name: str) -> None:
    case = CASES[name]
    assert reason(case, "linear") == case.operator.retains(case.inputs) is not None
    assert "groups" in "".join(grown(case, "linear", 3)) or "tuples" in "".join(grown(case, "linear", 3))


def test_ends_that_an_operator_drops_are_found_to_free_nothing() -> None:
    assert [name.split()[0] for name in grown(CASES["latest"], "ended", 3)] == [
        "tuples",
        "nbytes",
        "snapshot",
    ]


def test_each_case_that_must_stay_is_there() -> None:
    assert {case for case, _ in MUST_STAY} <= set(CASES)
    assert {way for _, way in MUST_STAY} <= set(WAYS)


def test_bounds_free_all_where_nothing_is_retained() -> None:
    retained = {case.id for case in CASES.values() if case.operator.retains(case.inputs) is not None}
    assert {"wid-landmark", "frames", "ranked-of-group", "delimited", "buffering-landmark"} <= retained
    assert not {"frames-of-a-length", "oa_join-band", "distinct-by_key", "top_n", "wid-panes"} & retained
