"""Subtask: one component, run for one key group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from time import process_time
from typing import TypeAlias

import numpy as np

from oop_engine.core.change import Change
from oop_engine.core.page import Page, concat
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import GroupWise, Punctuation, Watermark
from oop_engine.core.snapshot import pack, unpack
from oop_engine.runners.dispatch import Signal
from oop_engine.spark.io.segments import SEGMENT_ROWS
from oop_engine.spark.plan.pieces import Component, Cut, Edge
from oop_engine.spark.plan.routing import RECORDS_A_NUMBER, Addresses, Router
from oop_engine.spark.tasks.record import EdgeMessage, Record, unpack_messages
from oop_engine.spark.tasks.task_metrics import metrics_of

__all__ = ["Subtask"]

Numbered: TypeAlias = tuple[int, Edge, int, EdgeMessage]
"""A message with its number (see ``Record.seq``), its edge and its channel."""

_NAME = "Copy"


class Subtask:
    """Runs the operators of ``component`` over the records of one of its key groups.

    The bounds of an edge are those of its channels together (``Progress``); a page goes to the
    operators as it comes.  Between micro-batches all there is is a snapshot.
    """

    def __init__(self, cut: Cut, component: Component, addresses: Addresses, group: int) -> None:
        self._component = component
        self._edges = {number: cut.edges[number] for number in component.inlets}
        home = addresses[component.number][group]
        self._router = Router(cut, addresses, component.outlets, channel=group, home=home)
        self._group = group
        self._inline = self._router.inline(component.graph)
        self._progress = {n: Progress(e.channels, remember_ended=True) for n, e in self._edges.items()}
        self._ended: dict[int, set[int]] = {number: set() for number in self._edges}
        self._tuples = 0

    def run_all(self, records: Iterable[Record]) -> Iterator[Record]:
        """Take all records of a micro-batch, in any order; yield those that follow.

        Rows without an order of arrival come first, by their times: how Spark deals them to partitions changes nothing.
        """
        ordered, others = list[Record](), list[Record]()
        for record in sorted(records, key=lambda record: (record.seq, record.channel)):
            (others if self._edges[record.edge].unordered else ordered).append(record)
        yield from self._run(chain(self._by_time(others), self._messages(ordered)))

    def run(self, records: Iterable[Record]) -> Iterator[Record]:
        """Take records, sorted by ``seq`` and channel; yield those that follow, at each change of number."""
        yield from self._run(self._messages(records))

    def _run(self, messages: Iterable[Numbered]) -> Iterator[Record]:
        began = process_time()
        last: int | None = None
        for number, edge, channel, message in messages:
            if last is not None and number != last:
                yield from self._router.records(last)
            last = number
            self._take(edge, channel, message)
        if last is not None:
            yield from self._router.records(last)
            spent = process_time() - began
            yield metrics_of(self._component.name, self._group, self._tuples, self._inline, spent)

    def _messages(self, records: Iterable[Record]) -> Iterator[Numbered]:
        for record in records:
            edge = self._edges[record.edge]
            for message in unpack_messages(edge.schema, record.body):
                yield record.seq // RECORDS_A_NUMBER, edge, record.channel, message

    def _by_time(self, records: Iterable[Record]) -> Iterator[Numbered]:
        """Yield the messages of records: tuples by their times, then others; all numbers are below 0."""
        by_edge: dict[int, list[Numbered]] = {}
        for numbered in self._messages(records):
            by_edge.setdefault(numbered[1].number, []).append(numbered)
        steps = [step for messages in by_edge.values() for step in _in_order(messages)]
        for number, (edge, channel, message) in enumerate(steps, start=-len(steps)):
            yield number, edge, channel, message

    def snapshot(self) -> bytes:
        """Return the state as bytes."""
        progress = {number: progress.save() for number, progress in self._progress.items()}
        ended = {number: sorted(channels) for number, channels in self._ended.items()}
        state = {
            "inline": self._inline.snapshot(),
            "progress": progress,
            "ended": ended,
            "tuples": self._tuples,
        }
        return pack(_NAME, state)

    def restore(self, data: bytes) -> None:
        """Take over the state of the same key group."""
        state = unpack(_NAME, data)
        self._inline.restore(state.part("inline"))
        self._tuples = state.integer("tuples", least=0)
        progress, ended = state.part("progress"), state.part("ended")
        for number, edge in self._edges.items():
            self._progress[number].load(progress.part(number))
            channels = ended.part(number)
            self._ended[number] = {channels.integer(i, least=0, most=edge.channels - 1) for i in channels}

    @property
    def reached(self) -> int:
        """The largest time that has passed any edge here to an operator that takes changes."""
        return self._inline.reached

    def _take(self, edge: Edge, channel: int, message: EdgeMessage) -> None:
        self._tuples += len(message) if isinstance(message, Page) else 0
        for following in self._together(edge, channel, message):
            if isinstance(following, Signal):
                self._inline.end(edge.name)
            else:
                self._inline.push(edge.name, following)
            self._inline.drain()

    def _together(self, edge: Edge, channel: int, message: EdgeMessage) -> Iterator[EdgeMessage]:
        """Yield the messages of the edge as a whole that follow from one of a channel."""
        match message:
            case Page() | Change():  # of a change the first copy counts, whatever channel it comes from
                yield message
            case Signal():
                ended = self._ended[edge.number]
                ended.add(channel)
                if len(ended) == edge.channels:
                    yield message
            case _:
                yield from self._combined(edge, channel, message)

    def _combined(self, edge: Edge, channel: int, punctuation: Punctuation) -> Iterator[Punctuation]:
        if edge.channels == 1:
            yield punctuation
            return
        progress = self._progress[edge.number]
        bounds = punctuation.of if isinstance(punctuation, Watermark) else punctuation
        alone = (
            isinstance(bounds, GroupWise)
            and edge.owner is not None
            and set(edge.owner) <= set(bounds.attributes)
        )
        alone = (
            isinstance(bounds, GroupWise)
            and edge.owner is not None
            and set(edge.owner) <= set(bounds.attributes)
        )
        for number in (
            range(edge.channels) if alone else (channel,)
        ):  # no other channel has tuples of these groups
            yield from progress.advance(number, punctuation)


def _in_order(messages: Iterable[Numbered]) -> Iterator[tuple[Edge, int, EdgeMessage]]:
    """Yield the tuples of one edge by their times, a page of ``SEGMENT_ROWS`` at a time, then its other messages."""
    pages = list[Page]()
    others = list[tuple[Edge, int, EdgeMessage]]()
    for _, edge, channel, message in messages:
        if isinstance(message, Page):
            pages.append(message)
        else:
            others.append((edge, channel, message))
    if pages:
        together = concat(edge.schema, pages)
        together = together.take(np.argsort(together.times, kind="stable"))
        for start in range(0, len(together), SEGMENT_ROWS):
            yield edge, channel, together.slice(start, min(start + SEGMENT_ROWS, len(together)))
    yield from others
