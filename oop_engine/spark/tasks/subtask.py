"""Subtask: one component, run for one key group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import process_time

from oop_engine.core.change import Change
from oop_engine.core.page import Page
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import GroupWise, Punctuation, Watermark
from oop_engine.core.snapshot import pack, unpack
from oop_engine.runners.dispatch import Signal
from oop_engine.spark.plan.pieces import Component, Cut, Edge
from oop_engine.spark.plan.routing import RECORDS_A_NUMBER, Addresses, Router
from oop_engine.spark.tasks.record import EdgeMessage, Record, unpack_messages
from oop_engine.spark.tasks.task_metrics import metrics_of

__all__ = ["Subtask"]

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

    def run(self, records: Iterable[Record]) -> Iterator[Record]:
        """Take records, sorted by ``seq`` and channel; yield those that follow, at each change of number."""
        began = process_time()
        number: int | None = None
        for record in records:
            if number is not None and record.seq // RECORDS_A_NUMBER != number:
                yield from self._router.records(number)
            number = record.seq // RECORDS_A_NUMBER
            self._take(record)
        if number is not None:
            yield from self._router.records(number)
            spent = process_time() - began
            yield metrics_of(self._component.name, self._group, self._tuples, self._inline, spent)

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

    def _take(self, record: Record) -> None:
        edge = self._edges[record.edge]
        self._tuples += record.tuples
        for message in unpack_messages(edge.schema, record.body):
            for following in self._together(edge, record.channel, message):
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
        of = punctuation.of if isinstance(punctuation, Watermark) else punctuation
        alone = isinstance(of, GroupWise) and edge.owner is not None and set(edge.owner) <= set(of.attributes)
        alone = isinstance(of, GroupWise) and edge.owner is not None and set(edge.owner) <= set(of.attributes)
        for number in (
            range(edge.channels) if alone else (channel,)
        ):  # no other channel has tuples of these groups
            yield from progress.advance(number, punctuation)
