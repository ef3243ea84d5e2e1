"""The source chain of a source: its segments in order of arrival, through the operators before any shuffle."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from time import process_time

import numpy as np

from oop_engine.core.change import Change
from oop_engine.core.errors import ContractError
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER
from oop_engine.core.snapshot import pack, unpack
from oop_engine.core.ticks import Ticks
from oop_engine.spark.io.segments import Segments
from oop_engine.spark.plan.balance import Assignments
from oop_engine.spark.plan.pieces import Cut, SourceChain
from oop_engine.spark.plan.routing import Addresses, Router
from oop_engine.spark.tasks.record import Record
from oop_engine.spark.tasks.task_metrics import chain_name, metrics_of
from oop_engine.traces.trace import Trace

__all__ = ["SourceChainRun"]

_NAME = "Head"


class SourceChainRun:
    """Runs a source chain over segments of its source, from the first or from a snapshot on.

    Where an operator of the graph wants the arrival clock, it ticks (``ticks``) as arrivals pass the multiples of
    ``cut.clock_every``, those of other sources too if the segments know them, as in a replay.
    """

    def __init__(
        self,
        cut: Cut,
        chain: SourceChain,
        addresses: Addresses,
        segments: Segments,
        assignments: Assignments | None = None,
    ) -> None:
        self._chain, self._segments = chain, segments
        self._router = Router(cut, addresses, chain.outlets, assignments=assignments or {})
        self._inline = self._router.inline(chain.graph)
        self._clock = None if cut.clock_every is None else Ticks(cut.clock_every)
        operators = [node.operator for node in chain.graph.plan().nodes if node.operator is not None]
        self._reads_arrivals = any(operator.uses_arrival() for operator in operators)
        self._now = NEVER
        self._tuples = 0
        self._changes = 0  # how many were given from outside

    def run(self, start: int, stop: int, changes: Sequence[Change] = ()) -> Iterator[Record]:
        """Yield the records that follow from segments ``start`` to ``stop``; the one after the last is the end.

        ``changes``: all so far that do not stand in segments; those that are new come before the first segment.
        """
        began = process_time()
        for change in changes[self._changes :]:
            self._push(change)
        self._changes = len(changes)
        for number in range(start, stop):
            if number < self._segments.count():
                self._segment(number)
            else:
                self._inline.end(self._chain.source)
                self._inline.drain()
            yield from self._router.records(number)
        spent = process_time() - began
        yield metrics_of(
            chain_name(self._chain.source), 0, self._tuples, self._inline, spent, self._router.loads()
        )

    def snapshot(self) -> bytes:
        """Return the state as bytes."""
        state = {
            "inline": self._inline.snapshot(),
            "due": None if self._clock is None else self._clock.due,
            "now": self._now,
            "tuples": self._tuples,
            "changes": self._changes,
        }
        return pack(_NAME, state)

    def restore(self, data: bytes) -> None:
        """Take over the state of the same source chain."""
        state = unpack(_NAME, data)
        self._inline.restore(state.part("inline"))
        self._now, self._tuples = state.integer("now"), state.integer("tuples", least=0)
        self._changes = (
            state.integer("changes", least=0) if "changes" in state else 0
        )  # there were none before
        if self._clock is not None:
            self._clock.due = state["due"]

    def _segment(self, number: int) -> None:
        span = self._segments.clock(number)
        if span is not None and self._clock is not None:
            self._clock.start(span[0])
        messages = self._segments.read(number)
        for message in messages:
            self._take(self._behind(message, messages, number))
        if span is not None and self._clock is not None:
            self._tick(self._clock, span[1])

    def _behind(self, message: Message, messages: Iterable[Message], number: int) -> Message:
        """Return a message as it comes behind all that came; raises ``ContractError`` if it arrived before."""
        if not isinstance(message, Page) or message.arrival is None or not len(message):
            return message
        first = int(message.arrival[0])
        if first >= self._now:
            return message
        if isinstance(messages, Trace) and messages.arrival is None:  # made of the times in this file alone
            return Page(message.schema, message.batch, np.maximum(message.arrival, self._now))
        name = messages.path if isinstance(messages, Trace) else f"segment {number}"
        msg = (
            f"source {self._chain.source!r}, {name}: arrivals must not go back; got {first} {message.schema.unit} "
            f"after {self._now} of the segments before: give segments in order of arrival, or leave this one empty"
        )
        raise ContractError(msg)

    def _take(self, message: Message) -> None:
        self._tuples += len(message) if isinstance(message, Page) else 0
        if not isinstance(message, Page) or message.arrival is None or not len(message):
            self._push(message)
            return
        if self._clock is None:  # nobody asks when: a page is taken as a whole
            self._now = int(message.arrival[-1])
            self._push(message if self._reads_arrivals else message.without_arrival())
            return
        self._clock.start(int(message.arrival[0]))
        for part in _cut(message, self._clock.every):
            assert part.arrival is not None
            self._tick(self._clock, int(part.arrival[0]))
            self._now = int(part.arrival[-1])
            self._push(part)

    def _push(self, message: Message) -> None:
        self._inline.push(self._chain.source, message, None if self._now == NEVER else self._now)
        self._inline.drain()

    def _tick(self, clock: Ticks, now: int) -> None:
        """Advance the clock to ``now``."""
        for tick in clock.up_to(now):
            self._inline.clock(tick)
            self._inline.drain()


def _cut(page: Page, every: int) -> Iterator[Page]:
    """Cut a page where the clock ticks."""
    assert page.arrival is not None
    crossed = np.flatnonzero(np.diff(page.arrival // every)) + 1
    for start, stop in itertools.pairwise([0, *crossed.tolist(), len(page)]):
        yield page.slice(start, stop)
