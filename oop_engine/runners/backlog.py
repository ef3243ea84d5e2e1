"""Backlog: what waits in front of an operator, put together where that changes no result.

Each message costs an operator some tens of microseconds, whatever is in it.  So what has come meanwhile
is handed over in *runs*: the pages of a port as one page, and then its promises, of the linear ones
only the largest.  A promise may always be moved behind tuples that came after it: it still holds, for they keep to
it.  Between ports there is no order to keep.

What would change results, or their virtual time, is left as it came:

* The end of a port, and a tick of the clock, are never passed.
* Messages of different moments of virtual time stay apart, and so do pages with arrivals: what leaves without a
  promise (a match, a late tuple) has the moment of the last tuple of its page.
* Up to the edge nobody has to keep to a promise yet, and what comes behind one is late.  So promises stay
  where they are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from oop_engine.core.errors import ContractError
from oop_engine.core.graph import Plan
from oop_engine.core.operator import Message
from oop_engine.core.page import Page, concat
from oop_engine.core.punctuation import Linear
from oop_engine.runners.dispatch import Signal

__all__ = ["MOST", "Backlog", "Leave", "Letter", "leaves"]

MOST = 65_536
"""Tuples of a page that is put together."""


class Letter(NamedTuple):
    """A message on its way: to which port, its virtual time, and when (wall) what released it left the edge."""

    port: int
    message: Message | Signal
    now: int
    born: float


class Leave(NamedTuple):
    """What may be put together: pages, and perhaps promises, which are moved behind them."""

    promises: bool = True

    def moment(self, letter: Letter) -> int | None:
        """Return what letters must have in common to be one run; None: this one stands alone."""
        message = letter.message
        if isinstance(message, Page):
            return letter.now if message.arrival is None else None
        return None if isinstance(message, Signal) or not self.promises else letter.now


@dataclass(slots=True)
class _Run:
    moment: int | None
    letters: list[Letter] = field(default_factory=list)
    rows: int = 0
    nbytes: int = 0


class Backlog:
    """Letters in the order they came, as ``leave`` allows in runs.

    ``letters``: how many there are; ``nbytes``: what was told of their sizes; ``len``: how many runs.
    """

    def __init__(self, leave: Leave) -> None:
        self._leave = leave
        self._runs: deque[_Run] = deque()
        self.letters = self.nbytes = 0

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, letter: Letter, nbytes: int) -> None:
        """Take one more letter.  O(1)."""
        moment = self._leave.moment(letter)
        rows = len(letter.message) if isinstance(letter.message, Page) else 0
        last = self._runs[-1] if self._runs else None
        if last is None or moment is None or last.moment != moment or last.rows + rows > MOST:
            self._runs.append(last := _Run(moment))
        last.letters.append(letter)
        last.rows += rows
        last.nbytes += nbytes
        self.letters += 1
        self.nbytes += nbytes

    def take(self) -> list[Letter]:
        """Return the first run, put together; there must be one.  O(its tuples)."""
        run = self._runs.popleft()
        self.letters -= len(run.letters)
        self.nbytes -= run.nbytes
        if len(run.letters) == 1:
            return run.letters
        ports: dict[int, list[Letter]] = {}
        for letter in run.letters:
            ports.setdefault(letter.port, []).append(letter)
        return [one for letters in ports.values() for one in _together(letters)]


def leaves(plan: Plan) -> dict[str, Leave]:
    """Return for each operator what may be put together in front of it: what those behind it can do with."""
    operators = {node.name: plan.operator(node.name) for node in plan.of_kind("operator")}
    edge = _up_to(plan, {name for name, operator in operators.items() if operator.makes_progress})
    return {name: Leave(name not in edge) for name in operators}


def _up_to(plan: Plan, names: set[str]) -> set[str]:
    """Return the nodes of those names, and all from which a stream leads there."""
    for node in reversed(plan.nodes):
        if node.name in names:
            names |= {stream.node for stream in node.inputs}
    return names


def _together(letters: Sequence[Letter]) -> list[Letter]:
    """Return the letters of one port: pages as one, then its promises, of the linear ones the largest."""
    pages: list[Letter] = []
    promises: list[Letter] = []
    linear: list[Letter] = []
    for letter in letters:
        kind = pages if isinstance(letter.message, Page) else promises
        (linear if isinstance(letter.message, Linear) else kind).append(letter)
    return _as_one(pages) + promises + _largest(linear)


def _as_one(pages: Sequence[Letter]) -> list[Letter]:
    messages = [letter.message for letter in pages if isinstance(letter.message, Page)]
    if len(messages) < 2:
        return list(pages)
    try:
        page = concat(messages[0].schema, messages)
    except ContractError:  # dictionaries of short codes, or texts of gigabytes, may not fit into one column
        return list(pages)
    return [_for_all(pages, page)]


def _largest(linear: Sequence[Letter]) -> list[Letter]:
    bounds = [letter.message.below for letter in linear if isinstance(letter.message, Linear)]
    return [_for_all(linear, Linear(max(bounds)))] if bounds else []


def _for_all(letters: Sequence[Letter], message: Message) -> Letter:
    """Return one letter for some, which has waited as long as the first of them."""
    return letters[-1]._replace(message=message, born=min(letter.born for letter in letters))
