"""Acceptance: whether an operator may stand behind others, by the rows that come; asked when a graph is built."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from oop_engine.core.errors import GraphError
from oop_engine.core.operator import Operator
from oop_engine.core.schema import Schema

__all__ = ["check_accepts"]


def check_accepts(
    name: str, operator: Operator, inputs: Sequence[Schema], before: Iterable[tuple[str, Operator | None]]
) -> None:
    """Raise ``GraphError`` if the operator of node ``name`` would misunderstand its input.

    That is a revision stream that it does not take, or the rows of a node ``before`` it that are for sinks alone.
    """
    if operator.revisions == "refuses" and any(schema.change for schema in inputs):
        kind = type(operator).__name__
        msg = f"node {name!r}: {kind} cannot take revisions: put a Finalize before it, which ends them"
        raise GraphError(msg)
    for other, made_by in before:
        if made_by is not None and made_by.for_sinks:
            msg = (
                f"node {name!r}: behind {other!r} there can be sinks only, for {made_by.for_sinks}: "
                "take mode='retracting', whose rows operators understand"
            )
            raise GraphError(msg)
