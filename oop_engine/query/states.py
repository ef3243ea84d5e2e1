"""States of a query's nodes in words: the records that each stores, until when, and whether that has an end."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import numpy as np

from oop_engine.core.graphs.graph import Plan
from oop_engine.core.graphs.node import Node
from oop_engine.operators.distinct import Distinct
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.joining.bands import AsOf, Band
from oop_engine.operators.meld import Meld
from oop_engine.operators.oa_join import OAJoin
from oop_engine.operators.policies.policies import PerGroup
from oop_engine.operators.filter import Filter
from oop_engine.operators.top_n import TopN
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import (
    Global,
    Landmark,
    PartitionedTupleBased,
    RowsBetween,
    SlideByTuple,
    TupleBased,
)

__all__ = ["pushed_down", "states"]

_FOREVER = (Global, Landmark)


def states(plan: Plan, unbounded: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the nodes that store records, and for how long; ``unbounded``: why one has no end."""
    lines = []
    for node in plan.nodes:
        if node.name in unbounded:
            lines.append((node.name, f"without an end: {unbounded[node.name]}"))
        elif words := _growing(plan, node, _state(node)):
            lines.append((node.name, words))
    return lines


def pushed_down(plan: Plan) -> list[tuple[str, str]]:
    """Return the columns that each source reads, and the filters that come before a join or a union."""
    read = [
        (node.name, f"reads {', '.join(node.schema.names)}") for node in plan.nodes if node.schema is not None
    ]
    filters = []
    for node in plan.nodes:
        if isinstance(node.operator, OAJoin | Meld):
            names = [stream.node for stream in node.inputs]
            before = [node for node in plan.nodes if node.name in names and isinstance(node.operator, Filter)]
            filters += [(filter_node.name, f"before {node.name!r}") for filter_node in before]
    return read + filters


def _growing(plan: Plan, node: Node, words: str) -> str:
    """Return the words about a state, or those of ``Operator.retains`` where it is not bounded."""
    if node.operator is None or words.startswith("grows"):
        return words
    retained = node.operator.retains(tuple(plan.inputs(node.name)))
    return words if retained is None else f"grows with the keys: {retained}"


def _state(node: Node) -> str:
    match node.operator:
        case WindowAggregate() as made:
            return _of_windows(made)
        case OAJoin() as made:
            return _of_join(made)
        case Distinct():
            return "bounded: the key of each record, until the bound passes its event time"
        case TopN():
            return "bounded: the first records of each event time, until the bound passes it"
        case Punctuate() as made if isinstance(made.policy, PerGroup):
            return f"grows with the keys: a bound of each {', '.join(made.policy.by)}"
    return ""


def _of_windows(made: WindowAggregate) -> str:
    given = made.windows
    windows = list(given.values()) if isinstance(given, Mapping) else [given]
    each = f" of each {', '.join(made.by)}" if made.by else ""
    if any(isinstance(window, _FOREVER) for window in windows):
        grows = "grows with the keys" if made.by else "bounded"
        return f"{grows}: a partial aggregate{each} that no bound drops, for its window has no end"
    if made.by and any(isinstance(window, PartitionedTupleBased | RowsBetween) for window in windows):
        return f"grows with the keys: the last records{each}"
    if any(isinstance(window, TupleBased | RowsBetween) for window in windows):
        return "bounded: the last records"
    if any(isinstance(window, SlideByTuple) for window in windows):
        return f"bounded: the records{each} of the window's length, until the bound passes their windows"
    return f"bounded: a partial aggregate{each} in each open window, until the bound passes its end"


def _of_join(made: OAJoin) -> str:
    keys = ", ".join(a for a, _ in made.terms.keys)
    match made.terms.band:
        case AsOf(within=None):
            each = f" of each {keys}" if keys else ""
            grows = "grows with the keys" if keys else "bounded"
            return (
                f"{grows}: the latest right record{each}, and left records until the right bound passes them"
            )
        case AsOf(within=within):
            return (
                f"bounded: right records for {_length(within)} behind the left bound, "
                "and left ones until the right bound passes them"
            )
        case Band(before=before, after=after):
            return (
                f"bounded: left records until the right bound is {_length(after)} behind them, "
                f"right ones until the left bound is {_length(before)} behind them"
            )
    return "bounded: the records of open windows, until the bound of the other side passes their end"


def _length(given: Any) -> str:
    if isinstance(given, np.timedelta64):
        given = timedelta(microseconds=int(given / np.timedelta64(1, "us")))
    return f"{given.total_seconds():g} s" if isinstance(given, timedelta) else str(given)
