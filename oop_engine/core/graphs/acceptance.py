"""Acceptance: whether a node is one, and may stand behind others by their rows; asked when a graph is built."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from oop_engine.core.errors import GraphError
from oop_engine.core.operator import Operator
from oop_engine.core.schema import Schema

__all__ = ["check_accepts", "check_given"]

_NAME = re.compile(r"[\w-]+")
_SUCH = {
    "source": "a schema, Schema(columns, progressing)",
    "operator": "an operator, such as Select('flag')",
}


def check_given(place: str, name: object, kind: str, given: object) -> None:
    """Raise ``GraphError`` unless ``name`` is one, and a source has a schema, an operator an ``Operator``."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        first = "" if isinstance(name, str) else ": the name comes first"
        msg = f"{place}: a name is made of letters, digits, '_' and '-'; got {name!r}{first}"
        raise GraphError(msg)
    if kind in _SUCH and not isinstance(given, Schema if kind == "source" else Operator):
        msg = f"{place}: {name!r} must have {_SUCH[kind]}; got {given!r}"
        raise GraphError(msg)


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
