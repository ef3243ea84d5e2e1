"""Routing: which key groups a message goes to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.change import Change
from oop_engine.core.graphs.graph import Graph
from oop_engine.core.graphs.leading import leading_to
from oop_engine.core.page import Page
from oop_engine.core.punctuation import GroupWise, Watermark
from oop_engine.runners.dispatch import Signal
from oop_engine.runners.inline import Inline
from oop_engine.spark.plan.balance import Assignments
from oop_engine.spark.plan.key_groups import key_groups
from oop_engine.spark.plan.pieces import Cut, Edge
from oop_engine.spark.tasks.record import EdgeMessage, Record, gathered, pack_messages

__all__ = ["RECORDS_A_NUMBER", "Addresses", "Router"]

Addresses = tuple[tuple[int, ...], ...]
"""For each component the number that stands for each of its key groups where Spark groups."""


RECORDS_A_NUMBER = 1 << 24
"""How many records of one number keep their order."""


@dataclass
class Router:
    """Puts the messages of one subtask into records; ``channel`` is the number of the subtask.

    Pages are divided by the keys of the edge, punctuation about groups of these keys too; all
    other punctuation, and the end, go to every group.  Without keys a page goes to the groups in turn.
    Where ``assignments`` has a component, the subtasks of that are shards, and it has the groups of each.
    """

    cut: Cut
    addresses: Addresses
    outlets: dict[str, tuple[int, ...]]
    channel: int = 0
    home: int = -1  # no key group has it
    assignments: Assignments = field(default_factory=dict)
    _loads: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    _waiting: list[tuple[str, EdgeMessage]] = field(default_factory=list)
    _turn: int = 0
    _sent: int = 0  # records of one number

    def inline(self, graph: Graph) -> Inline:
        """Return a runner of ``graph`` that hands over here all that reaches its sinks, and their ends."""
        return Inline(
            graph,
            lambda result: self.say(result.sink, result.message),
            on_end=lambda sink: self.say(sink, Signal.END),
            on_change=self.say,
        )

    def say(self, outlet: str, message: EdgeMessage) -> None:
        """Take a message that left the graph by the sink ``outlet``."""
        self._waiting.append((outlet, message))

    def records(self, seq: int) -> Iterator[Record]:
        """Yield the messages since the last time, as records of the number ``seq``."""
        messages, self._waiting, self._sent = self._waiting, [], 0
        for outlet, edges in self.outlets.items():
            own = [message for name, message in messages if name == outlet]
            for edge in (self.cut.edges[number] for number in edges):
                if own and not self._in_order(edge):
                    yield from self._to(edge, gathered(edge.schema, own), seq)
        for outlet, message in messages:
            for edge in (self.cut.edges[number] for number in self.outlets[outlet]):
                if self._in_order(edge):
                    yield from self._to(edge, [message], seq)

    def loads(self) -> dict[int, list[int]]:
        """Return the tuples of each key group since the last time, for each component that has an assignment."""
        loads, self._loads = self._loads, {}
        return {component: counts.tolist() for component, counts in loads.items()}

    def _in_order(self, edge: Edge) -> bool:
        return edge.component is not None and self.cut.components[edge.component].ordered

    def _to(self, edge: Edge, messages: list[EdgeMessage], seq: int) -> Iterator[Record]:
        if edge.component is None:
            pages = [message for message in messages if isinstance(message, Page)]
            yield from self._record(edge, self.home, pages, seq)
            return
        numbers = self.addresses[edge.component]
        parts: list[list[EdgeMessage]] = [[] for _ in numbers]
        for message in messages:
            if isinstance(message, Change) and not self._leads(edge, message):
                continue
            for group, part in self._divided(edge, message, len(numbers)):
                parts[group].append(part)
        for number, messages in zip(numbers, parts, strict=True):
            yield from self._record(edge, number, messages, seq)

    def _leads(self, edge: Edge, change: Change) -> bool:
        """Return whether an edge leads to the operator of a change."""
        assert edge.component is not None
        leading = leading_to(self.cut.plan, change.operator)
        return not leading.isdisjoint(self.cut.components[edge.component].nodes)

    def _record(self, edge: Edge, target: int, parts: Iterable[EdgeMessage], seq: int) -> Iterator[Record]:
        messages = list(parts)
        if messages:
            place = seq * RECORDS_A_NUMBER + self._sent
            self._sent += 1
            yield Record(target, edge.number, self.channel, place, *pack_messages(messages))

    def _divided(self, edge: Edge, message: EdgeMessage, groups: int) -> Iterator[tuple[int, EdgeMessage]]:
        if groups == 1:
            yield 0, message
        elif isinstance(message, Page) and not edge.keys:
            self._turn += 1
            yield self._turn % groups, message
        elif isinstance(message, Page):
            owner = self._owners(edge, [message.column(name) for name in edge.keys], groups, count=True)
            yield from _page_parts(message, owner, groups)
        elif isinstance(message, GroupWise) and edge.keys and set(edge.keys) <= set(message.attributes):
            owner = self._owners(edge, [message.groups.column(name) for name in edge.keys], groups)
            for group in np.unique(owner).tolist():
                yield group, message.filter(owner == group)
        elif isinstance(message, Watermark):
            for group, bounds in self._divided(edge, message.of, groups):
                yield group, Watermark(bounds)  # type: ignore[arg-type]
        else:
            yield from ((group, message) for group in range(groups))

    def _owners(
        self, edge: Edge, columns: list[pa.Array], groups: int, *, count: bool = False
    ) -> NDArray[np.int64]:
        """Return the subtask that each row belongs to; ``count``: its tuples are a load."""
        assert edge.component is not None
        places = self.assignments.get(edge.component)
        if places is None:
            return key_groups(columns, groups)
        numbers = key_groups(columns, len(places))
        if count:
            before = self._loads.get(edge.component, 0)
            self._loads[edge.component] = before + np.bincount(numbers, minlength=len(places))
        return np.array(places, np.int64)[numbers]


def _page_parts(page: Page, owner: NDArray[np.int64], groups: int) -> Iterator[tuple[int, Page]]:
    """Yield the rows of each subtask, in their order.  O(rows)."""
    order = np.argsort(owner.astype(np.uint16 if groups < 1 << 16 else np.int64), kind="stable")
    together = page.take(order)
    ends = np.cumsum(np.bincount(owner, minlength=groups)).tolist()
    for group, (start, stop) in enumerate(zip([0, *ends], ends, strict=False)):
        if stop > start:
            yield group, together.slice(start, stop)
