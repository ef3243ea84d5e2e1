"""Claims that do not hold, but for those on times: a test is no place to measure, ``make scenarios`` is."""

from __future__ import annotations

from typing import Any

from oop_engine.lab.comparison import Comparison
from oop_engine.lab.scenario import Timed

__all__ = ["unfounded"]


def unfounded(found: Comparison) -> dict[str, dict[str, Any]]:
    """Return the figures of the claims that do not hold; those on times must have figures."""
    timed = [claim for claim in found.claims if isinstance(claim, Timed)]
    assert all(claim.figures for claim in timed)
    return {claim.claim: claim.figures for claim in found.claims if not claim.holds and claim not in timed}
