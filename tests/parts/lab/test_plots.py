"""The axes of the report's pictures: the unit of delays, and figures that do not stand on each other."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from oop_engine.lab.comparison import Comparison, compare
from oop_engine.lab.report.curves import delay_curves, sweep_figures
from oop_engine.lab.report.plots import delay_scale, delays, shown_figures, sweep_curves
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Sweep
from tests.parts.toy_scenario import SCENARIO


@pytest.fixture(scope="module")
def toy() -> Comparison:
    return compare(SCENARIO)


def counted(runs: list[Run]) -> list[Run]:
    """The runs as if their progressing attribute were a number of rows."""
    return [replace(run, unit="rows", delay_p50_s=9000.0, delays_s=run.delays_s + 9000) for run in runs]


def test_delays_in_rows_are_no_seconds(toy: Comparison) -> None:
    titles = [title for title, _ in shown_figures(counted(toy.runs))]
    assert "delay of a result, median, rows" in titles
    assert not [title for title in titles if title.endswith(", s")]
    assert delay_scale(counted(toy.runs), 9000) == (1, "rows")
    assert delay_scale(toy.runs, 10_000) == (60, "min")
    assert "within, rows" in delays(counted(toy.runs), "plot")
    assert {chart["xlabel"] for chart in delay_curves(counted(toy.runs))} == {"within, rows"}


def test_delays_before_the_end_are_not_cut_off(toy: Comparison) -> None:
    """With 0 among them, figures that differ a lot are on an axis that is linear around it."""
    run = toy.runs[0]
    runs = [replace(run, late=late, delay_p50_s=s) for late, s in ((0, -50.0), (700, 7.0), (90_000, 900.0))]
    runs = [replace(one, parameters={"x": at}) for at, one in enumerate(runs)]
    drawn = sweep_curves(runs, Sweep("x", (0, 1, 2)), "plot")
    texts = re.findall(r">([-−]?[\d.]+k?)</text>", drawn)
    assert "-10" in texts
    assert "1" not in texts  # it would stand on the 0 of the delays, whose least is 7
    assert sweep_figures(runs, Sweep("x", (0, 1, 2)))
