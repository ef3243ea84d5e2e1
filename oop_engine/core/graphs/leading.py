"""Leading: which nodes of a graph lead to others."""

from __future__ import annotations

from oop_engine.core.graphs.graph import Plan

__all__ = ["leading_to", "leading_to_changing"]


def leading_to(plan: Plan, *names: str) -> set[str]:
    """Return nodes, and all from which a stream leads to one of them.  O(edges)."""
    leading = set(names)
    for node in reversed(plan.nodes):
        if node.name in leading:
            leading |= {stream.node for stream in node.inputs}
    return leading


def leading_to_changing(plan: Plan) -> dict[str, set[str]]:
    """Return the operators that take changes while they run, each with the nodes that lead to it, and itself."""
    changing = [node.name for node in plan.of_kind("operator") if plan.operator(node.name).changing]
    return {name: leading_to(plan, name) for name in changing}
