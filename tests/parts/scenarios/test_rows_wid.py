"""The combinations of ``rows_wid`` are counted, not timed."""

from __future__ import annotations

import pytest

from oop_engine.scenarios.thesis.rows_wid import BUFFERING, PANES, WID, combined

VALUES = {"range": 100, "tuples": 2100, "seed": 0}


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("slide", [1, 5, 100])
def test_windows_combine_a_tuple_in_each_and_panes_once(slide: int) -> None:
    pairs = (
        (2100 * 100 - 2100 - 100) / slide / 2100
    )  # of a tuple and a window, but for the first of each window
    found = {way: combined({**VALUES, "slide": slide}, way) for way in (BUFFERING, WID, PANES)}
    assert found[BUFFERING] == found[WID] == pytest.approx(pairs, abs=0.01)
    assert found[PANES] <= 1 + 3 / slide
