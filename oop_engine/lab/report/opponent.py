"""The opponent: how the in-order plans of a comparison were made, and the records that each buffers."""

from __future__ import annotations

from collections.abc import Sequence

from oop_engine.core.graphs.graph import Node, Plan, Stream
from oop_engine.lab.scenario import Variant
from oop_engine.operators.in_order.buffering_aggregate import BufferingAggregate
from oop_engine.operators.in_order.merge import Merge
from oop_engine.operators.in_order.opib_join import OPIBJoin
from oop_engine.operators.in_order.opob_join import OPOBJoin
from oop_engine.operators.in_order.sort import Sort

__all__ = ["FAIR", "buffers"]

FAIR = (
    "All plans read the same records and the same punctuation, and the same records are late in all of them. By one "
    "rule no plan carries a column that no operator reads. In-order plans sort each source up to its bound, merge by "
    "the bounds of all inputs, and drop a buffered record as soon as a bound allows."
)
_BUFFERS = (Sort, Merge, BufferingAggregate, OPOBJoin, OPIBJoin)


def buffers(variant: Variant) -> str:
    """Return the buffers of an in-order plan, each with the columns that it holds; "" out of order.  O(nodes)."""
    if variant.order == "out":
        return ""
    plan = variant.graph.plan()
    parts = [_buffer(plan, node) for node in plan.nodes if isinstance(node.operator, _BUFFERS)]
    return f"Buffers: {'; '.join(parts)}." if parts else "No operator buffers records."


def _buffer(plan: Plan, node: Node) -> str:
    at_end = isinstance(node.operator, Sort | OPOBJoin)  # they hold the columns that they emit
    streams = (
        [Stream(node.name, node.ports[0])]
        if at_end
        else [plan.input(node, port) for port in range(len(node.inputs))]
    )
    return f"{type(node.operator).__name__} {node.name} ({_columns(plan, streams)})"


def _columns(plan: Plan, streams: Sequence[Stream]) -> str:
    return ", ".join(dict.fromkeys(name for stream in streams for name in plan.schema(stream).names))
