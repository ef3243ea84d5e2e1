"""Schedule: the order in which several feeds are read, and the moment of each message.

Feeds whose pages have arrivals are merged by these.  Of the others nobody knows when they come, so they come by turns,
a message of each in the order in which the feeds are given.  Where some feeds have arrivals, a message of each
feed without comes before each message of those, at its moment; the rest, when those have ended, comes
at the last arrival.  So all feeds are read side by side, no further than needed, and the same way every time.
A feed has arrivals if its first page with tuples has; a page without, further on, comes with the page before it, and
so does punctuation without an arrival of its own.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from oop_engine.core.change import Change
from oop_engine.core.errors import ContractError
from oop_engine.core.graphs.graph import Plan
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.ticks import Ticks
from oop_engine.runners.dispatch import Signal
from oop_engine.system.knobs import knob

__all__ = ["Step", "by_order_alone", "check_arrivals", "cut_page", "moment", "schedule"]

_PEEKED = knob(__name__, "_PEEKED", 1000)
"""Punctuations that a feed may begin with; with more it is one without arrivals."""


class Step(NamedTuple):
    """One thing that a source does: a message or its end; or (``source`` is empty) the clock ticks.

    ``until``: nothing earlier can follow; None: all that is to be done can be done now.  ``whole``: it is a
    message of a feed, or the beginning of one, and not the rest of a page that was cut, or a tick.
    """

    source: str
    message: Message | Signal
    now: int
    until: int | None = None
    whole: bool = True


def by_order_alone(plan: Plan) -> bool:
    """Return whether results depend on the order of the rows of one source alone, not on their arrival.

    Pages may then go in as a whole: the same rows are late, and the same results come.
    """
    operators = [node.operator for node in plan.nodes if node.operator is not None]
    alone = all(len(operator.inputs) == 1 and not operator.uses_arrival() for operator in operators)
    return alone and len(plan.of_kind("source")) == 1


def schedule(feeds: Mapping[str, Iterable[Message]], cuts: list[int], ticks: int | None) -> Iterator[Step]:
    """Yield the steps of the feeds, in the order of the module; pages are cut at multiples of each of ``cuts``.

    ``ticks``: how often the clock ticks, in between; None: never.  Raises ``ContractError`` if the
    arrivals of a feed go back, or begin after pages without.
    """
    timed: list[Iterator[Step]] = []
    timeless: dict[str, Iterator[Message]] = {}
    for name, feed in feeds.items():
        arrives, messages = _begun(feed)
        if arrives:
            timed.append(_steps_of(name, messages, cuts))
        else:
            timeless[name] = messages
    steps = heapq.merge(*timed, key=lambda step: step.now)
    return _by_turns(_with_until(steps if ticks is None else _with_ticks(steps, ticks)), timeless)


def _begun(feed: Iterable[Message]) -> tuple[bool, Iterator[Message]]:
    """Return whether a feed has arrivals; return it with the messages that had to be read for that."""
    messages, read = iter(feed), list[Message]()
    for message in itertools.islice(messages, _PEEKED):
        read.append(message)
        if isinstance(message, Page) and len(message):
            return message.arrival is not None, itertools.chain(read, messages)
    return False, itertools.chain(read, messages)


def _by_turns(timed: Iterator[Step], timeless: dict[str, Iterator[Message]]) -> Iterator[Step]:
    last = NEVER
    for step in timed:
        if step.whole:
            yield from _a_turn(timeless, step.now, step.now)
        last = max(last, step.now)
        yield step
    while timeless:
        yield from _a_turn(timeless, last, None)


def _a_turn(feeds: dict[str, Iterator[Message]], now: int, until: int | None) -> Iterator[Step]:
    """Yield the next message of each feed, or its end; who has ended is forgotten."""
    for name in list(feeds):
        message: Message | Signal = next(feeds[name], Signal.END)
        if message is Signal.END:
            del feeds[name]
        elif isinstance(message, Page) and message.arrival is not None and len(message):
            msg = f"feed {name!r}: a page has arrivals, and the first one has none: give them to all pages or to none"
            raise ContractError(msg)
        yield Step(name, message, now, until)


def _steps_of(name: str, feed: Iterable[Message], cuts: list[int]) -> Iterator[Step]:
    """Give each message of a feed with arrivals the moment when it comes."""
    now = NEVER
    for message in feed:
        if not isinstance(message, Page):
            now = moment(name, message, now)
            yield Step(name, message, now)
            continue
        if message.arrival is None or not len(message):
            yield Step(name, message, now)
            continue
        check_arrivals(name, message, now)
        whole = True
        for part in cut_page(message, cuts):
            assert part.arrival is not None
            yield Step(name, part, int(part.arrival[0]), whole=whole)
            now, whole = int(part.arrival[-1]), False
    yield Step(name, Signal.END, now)


def moment(name: str, message: Message, now: int) -> int:
    """Return the moment when a punctuation or a change comes, behind a message that came at ``now``.

    Raises ``ContractError`` if that is earlier.
    """
    if isinstance(message, Page | Change) or message.arrival is None:
        return now
    if message.arrival < now:
        got = f"{message} at {message.arrival} after {now}"
        msg = f"feed {name!r}: arrivals must not go back; got {got}: sort the feed by arrival"
        raise ContractError(msg)
    return message.arrival


def check_arrivals(name: str, page: Page, now: int) -> None:
    """Raise ``ContractError`` if a page came before the one in front of it."""
    assert page.arrival is not None
    if not len(page) or (page.arrival[0] >= now and (page.arrival[1:] >= page.arrival[:-1]).all()):
        return
    before_each = np.concatenate([[now], page.arrival[:-1]])
    row = int(np.argmax(page.arrival < before_each))
    got = f"{page.arrival[row]} {page.schema.unit} after {int(before_each[row])}"
    msg = f"feed {name!r}: arrivals must not go back; got {got}: sort the feed by arrival"
    raise ContractError(msg)


def cut_page(page: Page, cuts: list[int]) -> Iterator[Page]:
    """Yield a page with arrivals in parts, cut where these pass a multiple of one of ``cuts``."""
    assert page.arrival is not None
    crossed = np.zeros(len(page) - 1, np.bool_)
    for every in cuts:
        crossed |= np.diff(page.arrival // every) != 0
    edges = [0, *(np.flatnonzero(crossed) + 1).tolist(), len(page)]
    for start, stop in itertools.pairwise(edges):
        yield page.slice(start, stop)


def _with_ticks(steps: Iterator[Step], every: int) -> Iterator[Step]:
    """Insert the ticks of the clock that the arrivals pass."""
    clock = Ticks(every)
    for step in steps:
        if step.now not in (NEVER, FOREVER):
            clock.start(step.now)
            for tick in clock.up_to(step.now):
                yield Step("", Signal.TICK, tick, whole=False)
        yield step


def _with_until(steps: Iterator[Step]) -> Iterator[Step]:
    """Yield each step with the moment of the next one: anything earlier can be done."""
    last: Step | None = None
    for step in steps:
        if last is not None:
            yield last._replace(until=step.now)
        last = step
    if last is not None:
        yield last
