"""Aggregates in order that are divided in front of a union: each input aggregates, and the merge buffers panes.

    Meld, WindowAggregate  ->  LowLevelAggregate of each input, Merge, Consolidate

Sound where the union feeds this aggregate alone, the windows are on one grid, and the states of its aggregates merge
and are of fixed size.  An input is sorted, so one entry is open at a time; it is emitted when the next pane begins, or
a bound passes its own.

Aggregates by group are not divided: an input would need an entry for each group of a pane, and nothing tells how many
there are.  A table with room for the groups takes about the bytes of the rows that it saves (``docs/design.md``).

Source: consolidation of partial aggregates, Madsen, Zhou, Su, Enorm, DEBS 2016, section 4; eager aggregation below a
join or union, Yan, Larson, VLDB 1995.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from oop_engine.core.errors import GraphError
from oop_engine.core.graphs.graph import Graph, Node, Plan, Stream
from oop_engine.core.operator import Operator
from oop_engine.operators.in_order.merge import Merge
from oop_engine.operators.levels.low_level_aggregate import LowLevelAggregate
from oop_engine.operators.meld import Meld
from oop_engine.operators.values.flush import AtOnce
from oop_engine.operators.window_aggregate import WindowAggregate

__all__ = ["EarlyHalves", "aggregated_early"]


@dataclass(frozen=True)
class EarlyHalves:
    """The halves of an aggregate behind the node ``union``, which gets ``inputs``."""

    union: str
    inputs: tuple[Stream, ...]
    first: Operator
    second: Operator

    def add(self, twin: Graph, name: str, moved: Mapping[Stream, Stream]) -> None:
        """Add the first half to each input, then the merge and the second half, which has the ``name``."""
        links = [
            twin.add(f"{name}-{number}", self.first, moved.get(stream, stream))
            for number, stream in enumerate(self.inputs, start=1)
        ]
        twin.add(name, self.second, twin.add(self.union, Merge(len(links)), *links))


def aggregated_early(plan: Plan) -> dict[str, EarlyHalves]:
    """Return the halves of the aggregates that can be divided in front of a union, by their nodes.  O(nodes)."""
    by_node = {node.name: _halves(plan, node) for node in plan.nodes}
    return {name: halves for name, halves in by_node.items() if halves is not None}


def _halves(plan: Plan, node: Node) -> EarlyHalves | None:
    aggregate, stream = node.operator, node.inputs[0] if node.inputs else None
    if not isinstance(aggregate, WindowAggregate) or aggregate.by or aggregate.named or stream is None:
        return None
    union = plan.node(stream.node)
    readers = [consumer for at, consumer, _ in plan.edges() if at.node == union.name]
    schemas = (plan.schema(plan.input(node, 0)),)
    if (
        not isinstance(union.operator, Meld)
        or len(readers) > 1
        or (halves := aggregate.halves(schemas)) is None
    ):
        return None
    first = LowLevelAggregate(aggregate.windows, aggregate.aggregates, slots=1, flush=AtOnce())
    try:
        first.output_schemas(schemas)
    except GraphError:  # of states of any size, and of windows that are not on a grid
        return None
    inputs = tuple(plan.input(union, port) for port in range(len(union.inputs)))
    return EarlyHalves(union.name, inputs, first, halves[1])
