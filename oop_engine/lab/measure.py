"""Measure: the answer that the results of a point of the sweep are compared with."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from oop_engine.lab.answers import as_table, check_columns, check_keys
from oop_engine.lab.brute_force.true_answer import NoTruthError, true_answer
from oop_engine.lab.run import HeldTo, Values
from oop_engine.lab.scenario import Scenario, Variant

__all__ = ["Measure", "measure_of"]


class Measure(NamedTuple):
    """The answer that the results of a point of the sweep are compared with; without one, the reason."""

    truth: pa.Table | None
    held_to: HeldTo
    why: str = ""


def _result_fields(variants: list[Variant]) -> pa.Schema:
    """Return the columns of the results of a point of the sweep."""
    if not variants:
        return pa.schema([])
    plan = variants[0].graph.plan()
    return plan.schema(plan.of_kind("sink")[0].inputs[0]).fields


def measure_of(scenario: Scenario, point: Values) -> Measure:
    """Return the truth of the scenario, or that of the first plan that brute force can evaluate.

    Raises ``UsageError`` for keys or a truth of other columns than the results.
    """
    fields = _result_fields(scenario.plans(point))
    check_keys(scenario.name, fields, scenario.keys if fields.names else ())
    if scenario.truth is not None:
        truth = as_table(scenario.truth(point), fields)
        check_columns(scenario.name, fields, truth)
        return Measure(truth, "truth")
    reasons = []
    for variant in scenario.plans(point):
        try:
            return Measure(true_answer(variant.graph, scenario.feeds(point)), "brute force")
        except NoTruthError as reason:
            reasons.append(str(reason))
    return Measure(None, "nothing", next(iter(reasons), "there is no plan"))
