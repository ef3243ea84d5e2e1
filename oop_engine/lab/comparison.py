"""Compare: the same question over the same trace by several plans, each held to the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.graphs.graph import Graph
from oop_engine.core.units import to_seconds
from oop_engine.lab.agreement import agreement_of
from oop_engine.lab.answers import Match, int64_of
from oop_engine.lab.corrected import Answers, Corrected, Heard
from oop_engine.lab.equal_values import CLOSE
from oop_engine.lab.measure import Measure, measure_of
from oop_engine.lab.origin import Fingerprint, versions
from oop_engine.lab.own_graph import scenario_of
from oop_engine.lab.recording import Recording
from oop_engine.lab.run import Run, Values
from oop_engine.lab.scenario import COMPLETE_AT, Claim, Scenario, Variant
from oop_engine.runners.outcome import Outcome
from oop_engine.runners.replay import replay
from oop_engine.system.memory import peak_rss

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    """All runs of a scenario, and the claims with their verdicts.

    ``data`` is a fingerprint of the first run's feeds.  ``peak_rss_bytes`` is the most memory that the process had by
    the end, with the interpreter, libraries, traces and results; ``peak_state_bytes`` of a run is its state alone.
    """

    scenario: Scenario
    parameters: Values
    runs: list[Run]
    claims: list[Claim]
    plans: list[Variant] = field(repr=False)
    data: str = ""
    peak_rss_bytes: int = 0

    @property
    def holds(self) -> bool:
        """Whether no claim fails (some may not have been checked)."""
        return all(claim.verdict != "fails" for claim in self.claims)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        claims = [{"claim": c.claim, "holds": c.holds, "figures": c.figures} for c in self.claims]
        return {
            "scenario": self.scenario.name,
            "parameters": self.parameters,
            "versions": versions(),
            "data": self.data,
            "float_error": CLOSE,
            "peak_rss_bytes": self.peak_rss_bytes,
            "runs": [run.to_dict() for run in self.runs],
            "claims": claims,
        }


def compare(
    scenario: Scenario | Graph,
    settings: Mapping[str, Any] | None = None,
    *,
    on_run: Callable[[str, int, int], None] | None = None,
    on_tuples: Callable[[int], None] | None = None,
) -> Comparison:
    """Run every variant of ``scenario`` for every value of its sweep, and check the claims.

    A parameter in ``settings`` is not swept.  ``on_run`` is called with each run's name, its number
    and how many there are; ``on_tuples`` with the number of tuples that went in.

    ``compare(graph, feeds)`` compares a graph of yours with its in-order twins, over a feed for each of its sources
    (see ``scenario_of``, which also takes a sink, and keys of its results).
    Raises ``UsageError`` for parameters that the scenario does not have, and for feeds of other sources.

    >>> import pyarrow as pa
    >>> from oop_engine import Schema
    >>> from oop_engine.operators import Count, Ordered, Punctuate, Tumbling, WindowAggregate
    >>> graph = Graph("counts")
    >>> edge = graph.add("edge", Punctuate(Ordered()), graph.source("log", Schema({"ts": pa.int64()}, "ts", "s")))
    >>> graph.sink("out", graph.add("count", WindowAggregate(Tumbling(10), {"n": Count()}), edge))
    >>> found = compare(graph, {"log": [{"ts": 1}, {"ts": 12}, {"ts": 3}]})
    >>> [(run.order, run.late, run.missing, run.wrong) for run in found.runs]
    [('in', 1, 0, 1), ('in', 1, 0, 1), ('out', 1, 0, 1)]
    """
    if isinstance(scenario, Graph):
        scenario, settings = scenario_of(scenario, settings or {}), None
    values = scenario.values(settings)
    grid = _grid(scenario, values, settings or {})
    variants = [(point, variant) for point in grid for variant in scenario.plans(point)]
    runs: list[Run] = []
    measure, data = Measure(None, "nothing"), list[str]()
    for number, (point, variant) in enumerate(variants):
        if on_run is not None:
            on_run(_title(scenario, point, variant), number, len(variants))
        if number == 0 or point is not variants[number - 1][0]:
            measure = measure_of(scenario, point)
        recorded = point == values or (values not in grid and point is grid[-1])
        runs.append(_run(scenario, point, variant, measure, on_tuples, data, recorded=recorded))
        if measure.truth is None and variant.exact:
            measure = Measure(runs[-1].table, "first plan", measure.why)
    claims = [*agreement_of(scenario, runs), *scenario.checked(runs)]
    return Comparison(
        scenario, values, runs, claims, scenario.plans(values), next(iter(data), ""), peak_rss()
    )


def _grid(scenario: Scenario, values: Values, settings: Mapping[str, str]) -> list[Values]:
    if scenario.sweep is None or scenario.sweep.parameter in settings:
        return [values]
    return [{**values, scenario.sweep.parameter: value} for value in scenario.sweep.values]


def _title(scenario: Scenario, point: Values, variant: Variant) -> str:
    name = f"{'in order' if variant.order == 'in' else 'out of order'}, {variant.name}"
    sweep = scenario.sweep
    return (
        name if sweep is None else f"{name}, {sweep.parameter} {point[sweep.parameter]} {sweep.unit}".rstrip()
    )


def _run(
    scenario: Scenario,
    point: Values,
    variant: Variant,
    measure: Measure,
    on_tuples: Callable[[int], None] | None,
    data: list[str],
    *,
    recorded: bool,
) -> Run:
    """Run a plan; the first run adds the fingerprint of its feeds to ``data``."""
    recording = Recording(variant.graph.plan()) if recorded else None
    plan = variant.graph.plan()
    sink = plan.of_kind("sink")[0]
    schema, heard = plan.schema(sink.inputs[0]), Heard.of(plan, sink, scenario.keys, recording)
    watch = heard or recording
    fingerprint = None if data else Fingerprint(plan, watch)
    outcome = replay(variant.graph, scenario.feeds(point), on_tuples=on_tuples, watch=fingerprint or watch)
    if fingerprint is not None:
        data.append(fingerprint.text)
    plain = Answers(outcome.results[sink.name], outcome.emitted[sink.name])
    first, final, revised = Corrected(plain, plain, 0) if heard is None else heard.corrected()
    table, emitted = final
    truth = table if measure.truth is None else measure.truth
    match = Match(table, truth, scenario.keys)
    ends = int64_of(table.column(schema.progressing))
    scale = to_seconds(1, schema.unit)
    released = (emitted >= ends) | (emitted < outcome.end)  # else the end of the trace has flushed it
    counted = released if measure.truth is None else released & match.right
    delays = (emitted - ends)[counted].astype(np.float64) * scale
    excess = (emitted - match.complete_at)[match.right & released].astype(np.float64) * scale
    if COMPLETE_AT not in truth.schema.names:
        excess = np.empty(0)
    first_ends = int64_of(first.table.column(schema.progressing))
    soon = (first.at >= first_ends) | (first.at < outcome.end)
    every = (emitted - ends)[released].astype(np.float64) * scale
    firsts = every if heard is None else (first.at - first_ends)[soon].astype(np.float64) * scale
    latency = outcome.waited_s[sink.name] * 1000
    peak = outcome.statistics.peak
    checked, late = measure.truth is not None, outcome.statistics.count("late")
    exact = variant.exact and not (scenario.drops_late and late)
    return Run(
        variant.order, variant.name, exact, point, outcome.tuples, table.num_rows,
        match.missing if checked else None, match.wrong if checked else None, late,
        peak.tuples, peak.partials, peak.groups, peak.nbytes,
        _quantile(delays, 0.5), _quantile(delays, 0.99), _quantile(excess, 0.5), _quantile(excess, 0.99),
        _quantile(latency, 0.5), _quantile(latency, 0.99), outcome.cpu_s, _rate(outcome),
        table, truth, delays, excess, outcome.statistics.series, schema.unit, measure.held_to, measure.why,
        schema.progressing, emitted, recording,
        _quantile(firsts, 0.5), _quantile(firsts, 0.99),
        Match(first.table, truth, scenario.keys).wrong if checked else None, revised, first.table, firsts,
        every,
    )  # fmt: skip


def _rate(outcome: Outcome) -> float:
    return outcome.tuples / outcome.wall_s if outcome.wall_s else 0.0


def _quantile(values: NDArray[np.float64], q: float) -> float:
    return float(np.quantile(values, q)) if values.size else float("nan")
