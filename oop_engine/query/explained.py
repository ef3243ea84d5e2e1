"""Explaining a query: its graph, when results are emitted, the state until then, and whether that has an end."""

from __future__ import annotations

from oop_engine.lab.report.answering import answering
from oop_engine.lab.report.contract import contract
from oop_engine.query.graph_of import Built
from oop_engine.query.states import pushed_down, states

__all__ = ["explained"]


def explained(made: Built) -> str:
    """Return the plan in words, some lines."""
    lines = [made.graph.text()]
    for title, answers in answering(made.graph.plan(), contract):
        if title in ("stored until then", "stored until its key ends"):
            continue
        lines += ["", title, *(f"  {name}  {words}" for name, words in answers)]
    plan = made.graph.plan()
    lines += ["", "state", *(f"  {name}  {words}" for name, words in states(plan, made.unbounded))]
    if lines[-1] == "state":
        lines.append("  none")
    lines += ["", "pushed down to the sources", *(f"  {name}  {words}" for name, words in pushed_down(plan))]
    return "\n".join(lines)
