from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oop_engine.lab.comparison import Comparison, compare
from oop_engine.lab.report.columns import shown_runs
from oop_engine.lab.report.plots import shown_delays, shown_figures
from oop_engine.lab.scenario import Sweep
from oop_engine.scenarios.thesis.speculation import CORRECTED, SCENARIO


@pytest.fixture(scope="module")
def compared() -> Comparison:
    return compare(replace(SCENARIO, sweep=Sweep("slack", (0, 1280), "ms")), {"tuples": "40000"})


@pytest.mark.slow
def test_all_claims_hold(compared: Comparison) -> None:
    assert len(compared.claims) == 7
    assert {c.claim: c.figures for c in compared.claims if not c.holds} == {}


def test_the_figures_of_first_and_final_answers_are_in_the_json(compared: Comparison) -> None:
    runs = [run for run in compared.to_dict()["runs"] if run["variant"] == CORRECTED]
    assert [run["revised"] > 50 for run in runs] == [True, True]
    assert all(run["first_delay_p50_s"] < run["delay_p50_s"] - 1 and run["wrong"] == 0 for run in runs)
    assert all(run["revised"] == run["first_wrong"] for run in runs)


def test_the_first_answer_of_a_plain_stream_is_the_final_one(compared: Comparison) -> None:
    plain = [run for run in compared.runs if run.variant != CORRECTED]
    assert all(
        (run.first_delay_p50_s, run.first_wrong, run.revised) == (np.median(run.all_delays_s), run.wrong, 0)
        for run in plain
    )


def test_final_and_first_answers_are_drawn(compared: Comparison) -> None:
    runs = shown_runs(compared)
    assert [title for title, _ in shown_delays(runs)][-1] == "delay of first answers"
    assert {"delay of a first answer, median, s", "rows taken back"} <= {
        title for title, _ in shown_figures(runs)
    }
    plain = [run for run in runs if not run.revised]
    assert not {"first answers wrong", "rows taken back"} & {title for title, _ in shown_figures(plain)}
    assert len(shown_delays(plain)) == 2
