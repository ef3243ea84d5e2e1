"""Backlog: the messages that wait in front of an operator, combined where that changes no result.

Each message costs an operator some tens of microseconds, whatever its size.  So messages that have come meanwhile
are handed over in *batches*: the pages of a port as one page, and then its punctuation, of the linear ones
(hard bounds, and watermarks) only the one with the largest bound.  A punctuation may always be moved behind
tuples that came after it: it still holds, for they are not below its bound.  Between ports there is no order to keep.

Messages are left as they came where results, or their virtual time, would change:

* The end of a port, a tick of the clock, and a change are never passed.
* Messages of different moments of virtual time stay apart where virtual time matters (``exact``), and so do pages with
  arrivals: output that no punctuation releases (a match, a late tuple) has the moment of the last tuple of its page.
* Up to a generator of punctuation tuples may be behind a bound, and are late then.  So punctuation stays
  where it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from oop_engine.core.change import Change
from oop_engine.core.errors import ContractError
from oop_engine.core.graphs.graph import Plan
from oop_engine.core.graphs.leading import leading_to
from oop_engine.core.operator import Message
from oop_engine.core.page import Page, concat
from oop_engine.core.punctuation import NEVER, Linear, Watermark
from oop_engine.runners.dispatch import Signal
from oop_engine.system.knobs import knob

__all__ = ["MOST", "Backlog", "Envelope", "Leave", "leaves"]

MOST = knob(__name__, "MOST", 65_536)
"""The most tuples of a combined page."""
_TIMELESS, _TIMED = 0, 1


class Envelope(NamedTuple):
    """A message on its way: its port, its virtual time, and when (wall) the punctuation that released it was made."""

    port: int
    message: Message | Signal
    now: int
    born: float


class Leave(NamedTuple):
    """Which messages may be combined: pages, and perhaps punctuation, which is moved behind them.

    ``exact``: only those of one moment of virtual time.
    """

    punctuation: bool = True
    exact: bool = True

    def moment(self, envelope: Envelope) -> int | None:
        """Return the mark that envelopes of one batch share, the moment if it matters; None: this one stands alone."""
        message = envelope.message
        if isinstance(message, Page):
            if message.arrival is not None:
                return None if self.exact else _TIMED
        elif isinstance(message, Signal | Change) or not self.punctuation:
            return None
        return envelope.now if self.exact else _TIMELESS


@dataclass(slots=True)
class _Batch:
    moment: int | None
    envelopes: list[Envelope] = field(default_factory=list)
    rows: int = 0
    nbytes: int = 0


class Backlog:
    """Envelopes in the order they came, in batches as ``leave`` allows.

    ``envelopes``: how many there are; ``nbytes``: the sum of their sizes; ``len``: how many batches.
    """

    def __init__(self, leave: Leave) -> None:
        self._leave = leave
        self._batches: deque[_Batch] = deque()
        self.envelopes = self.nbytes = 0

    def __len__(self) -> int:
        return len(self._batches)

    def add(self, envelope: Envelope, nbytes: int) -> None:
        """Add one more envelope.  O(1)."""
        moment = self._leave.moment(envelope)
        rows = len(envelope.message) if isinstance(envelope.message, Page) else 0
        last = self._batches[-1] if self._batches else None
        if last is None or moment is None or last.moment != moment or last.rows + rows > MOST:
            self._batches.append(last := _Batch(moment))
        last.envelopes.append(envelope)
        last.rows += rows
        last.nbytes += nbytes
        self.envelopes += 1
        self.nbytes += nbytes

    def take(self) -> list[Envelope]:
        """Return the first batch, combined; there must be one.  O(its tuples)."""
        batch = self._batches.popleft()
        self.envelopes -= len(batch.envelopes)
        self.nbytes -= batch.nbytes
        if len(batch.envelopes) == 1:
            return batch.envelopes
        ports: dict[int, list[Envelope]] = {}
        for envelope in batch.envelopes:
            ports.setdefault(envelope.port, []).append(envelope)
        return [envelope for envelopes in ports.values() for envelope in _together(envelopes)]


def leaves(plan: Plan, *, exact: bool) -> dict[str, Leave]:
    """Return for each operator which messages may be combined in front of it."""
    operators = {node.name: plan.operator(node.name) for node in plan.of_kind("operator")}
    generators = leading_to(plan, *(name for name, operator in operators.items() if operator.makes_progress))
    return {name: Leave(name not in generators, exact) for name in operators}


def _together(envelopes: Sequence[Envelope]) -> list[Envelope]:
    """Return the envelopes of one port: pages as one, then its punctuation, of the linear ones the largest."""
    pages: list[Envelope] = []
    punctuation: list[Envelope] = []
    linear: list[Envelope] = []
    soft: list[Envelope] = []
    for envelope in envelopes:
        match envelope.message:
            case Page():
                pages.append(envelope)
            case Linear():
                linear.append(envelope)
            case Watermark(Linear()):
                soft.append(envelope)
            case _:
                punctuation.append(envelope)
    return _as_one(pages) + punctuation + _largest(linear) + _largest(soft)


def _as_one(pages: Sequence[Envelope]) -> list[Envelope]:
    messages = [envelope.message for envelope in pages if isinstance(envelope.message, Page)]
    if len(messages) < 2:
        return list(pages)
    try:
        page = concat(messages[0].schema, messages)
    except ContractError:  # texts of gigabytes do not fit into one column
        return list(pages)
    return [_for_all(pages, page)]


def _largest(linear: Sequence[Envelope]) -> list[Envelope]:
    """Return the linear punctuation with the largest bound, or the linear watermark that has it."""
    if not linear:
        return []
    return [_for_all(linear, max((envelope.message for envelope in linear), key=_bound))]


def _bound(message: Message | Signal) -> int:
    bounds = message.of if isinstance(message, Watermark) else message
    return bounds.below if isinstance(bounds, Linear) else NEVER


def _for_all(envelopes: Sequence[Envelope], message: Message | Signal) -> Envelope:
    """Return one envelope for some, which has waited as long as the first of them."""
    return envelopes[-1]._replace(message=message, born=min(envelope.born for envelope in envelopes))
