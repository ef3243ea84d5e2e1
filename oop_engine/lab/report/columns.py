"""The table of runs, once for all who show it: the meaning and the format of each column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from oop_engine.core.units import TIME_UNITS
from oop_engine.lab.report.words import UNKNOWN, count, seconds, size, text

if TYPE_CHECKING:
    from oop_engine.lab.comparison import Comparison
    from oop_engine.lab.run import Run

__all__ = ["EXCESS", "Figure", "columns", "known", "order_word", "shown_runs", "span"]


EXCESS = (
    "virtual time from the arrival of a result's last tuple, when a clairvoyant would emit it, to its emission: 0 is "
    "the best; of right results, since a wrong one may lack its last tuple"
)


@dataclass(frozen=True)
class Figure:
    """A figure of a run.  ``rank``: the larger, the sooner a narrow terminal goes without; ``value``: to sort by."""

    heading: str
    show: Callable[[Run], str]
    rank: int = 0
    about: str = ""
    value: Callable[[Run], float | None] | None = None


def columns(comparison: Comparison) -> list[Figure]:
    """Return the columns, the swept parameter first."""
    revised = any(run.revised for run in comparison.runs)
    return [*_swept(comparison), *_FIGURES, *(_OF_VERSIONS if revised else ())]


def order_word(run: Run) -> str:
    """Return ``"in order"`` or ``"out of order"``."""
    return "in order" if run.order == "in" else "out of order"


def span(run: Run, value: float) -> str:
    """Return a length of the progressing attribute: a time, or a number of its unit."""
    return seconds(value) if run.unit in TIME_UNITS else f"{count(value)} {run.unit}"


def known(number: int | None) -> str:
    """Return a number of things, or that it is not known."""
    return UNKNOWN if number is None else count(number)


def shown_runs(comparison: Comparison) -> list[Run]:
    """Return the runs of one point of the sweep: the default's, or the last."""
    points = [run.parameters for run in comparison.runs]
    if not points:
        return []
    chosen = comparison.parameters if comparison.parameters in points else points[-1]
    return [run for run in comparison.runs if run.parameters == chosen]


def _swept(comparison: Comparison) -> list[Figure]:
    sweep = comparison.scenario.sweep
    if sweep is None:
        return []
    heading = f"{sweep.parameter} ({sweep.unit})" if sweep.unit else sweep.parameter
    return [Figure(heading, lambda run: text(run.parameters[sweep.parameter]))]


_FIGURES = (
    Figure("order", order_word),
    Figure("plan", lambda run: run.variant),
    Figure("tuples", lambda run: count(run.tuples), 5, "tuples that went in", attrgetter("tuples")),
    Figure("results", lambda run: count(run.results), 2, "results that came out", attrgetter("results")),
    Figure(
        "missing",
        lambda run: known(run.missing),
        1,
        "results that the true answer has and the run has not (n/a: not checked)",
        attrgetter("missing"),
    ),
    Figure(
        "wrong",
        lambda run: known(run.wrong),
        1,
        "results that the true answer has not, or has otherwise (n/a: not checked)",
        attrgetter("wrong"),
    ),
    Figure("late", lambda run: count(run.late), 3, "tuples that came behind a bound", attrgetter("late")),
    Figure(
        "peak tuples",
        lambda run: count(run.peak_tuples),
        0,
        "most tuples kept at a time",
        attrgetter("peak_tuples"),
    ),
    Figure(
        "peak partials",
        lambda run: count(run.peak_partials),
        1,
        "most partial aggregates kept at a time",
        attrgetter("peak_partials"),
    ),
    Figure(
        "peak state",
        lambda run: size(run.peak_state_bytes),
        0,
        "most bytes kept at a time",
        attrgetter("peak_state_bytes"),
    ),
    Figure(
        "delay p50",
        lambda run: span(run, run.delay_p50_s),
        0,
        "from the end of the window, virtual time",
        attrgetter("delay_p50_s"),
    ),
    Figure(
        "delay p99",
        lambda run: span(run, run.delay_p99_s),
        4,
        "from the end of the window, virtual time",
        attrgetter("delay_p99_s"),
    ),
    Figure(
        "excess p50",
        lambda run: span(run, run.excess_delay_p50_s),
        4,
        EXCESS,
        attrgetter("excess_delay_p50_s"),
    ),
    Figure(
        "excess p99",
        lambda run: span(run, run.excess_delay_p99_s),
        2,
        EXCESS,
        attrgetter("excess_delay_p99_s"),
    ),
    Figure(
        "latency p50",
        lambda run: seconds(run.latency_p50_ms / 1000),
        7,
        "from punctuation to result, wall time",
        attrgetter("latency_p50_ms"),
    ),
    Figure(
        "latency p99",
        lambda run: seconds(run.latency_p99_ms / 1000),
        6,
        "from punctuation to result, wall time",
        attrgetter("latency_p99_ms"),
    ),
    Figure("CPU", lambda run: seconds(run.cpu_s), 5, "of the graph itself", attrgetter("cpu_s")),
    Figure(
        "tuples/s", lambda run: count(run.tuples_per_s), 3, "of the graph itself", attrgetter("tuples_per_s")
    ),
)
_OF_VERSIONS = (
    Figure(
        "first p50",
        lambda run: span(run, run.first_delay_p50_s),
        0,
        "delay of the first answers, from the end of the window, virtual time",
        attrgetter("first_delay_p50_s"),
    ),
    Figure(
        "first p99",
        lambda run: span(run, run.first_delay_p99_s),
        4,
        "delay of the first answers, from the end of the window, virtual time",
        attrgetter("first_delay_p99_s"),
    ),
    Figure(
        "first wrong",
        lambda run: known(run.first_wrong),
        1,
        "first answers that the true answer has not, or has otherwise",
        attrgetter("first_wrong"),
    ),
    Figure("revised", lambda run: count(run.revised), 0, "rows taken back", attrgetter("revised")),
)
