"""When partial aggregates of closed windows leave a table of fixed size (``LowLevelAggregate``).

A window that closes leaves much at once, and that is a burst of work behind the table.  Where nothing has to be in
order it can be spread over the time that follows, and still be over by a fixed number of windows later.

Source: thesis 8.3.3 (lazy-flush and slow-flush), fig. 8-6 for those in order.
"""

from __future__ import annotations

from dataclasses import dataclass

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError

__all__ = ["AtOnce", "Flush", "InOrder", "Lazy", "Slow"]


@checked_arguments
@dataclass(frozen=True)
class Flush:
    """When partial aggregates of closed windows leave.

    ``within``: all of a window have left when that many windows later one closes.  ``every``: one leaves for each so
    many tuples as well; 0: none.  ``ordered``: windows leave one after the other.
    """

    within: int = 0
    every: int = 0
    ordered = False

    def __post_init__(self) -> None:
        _check(self, "within", self.within, least=0)
        _check(self, "every", self.every, least=0)


@checked_arguments
@dataclass(frozen=True)
class AtOnce(Flush):
    """All of a window leave with the punctuation that closes it."""

    def __init__(self) -> None:
        super().__init__()


@checked_arguments
@dataclass(frozen=True)
class Lazy(Flush):
    """They leave when a tuple needs their place, and at the latest when the window closes that is ``within`` later.

    Raises ``GraphError`` unless ``within`` is at least 1.
    """

    def __init__(self, within: int = 1) -> None:
        _check(self, "within", within, least=1)
        super().__init__(within)


@checked_arguments
@dataclass(frozen=True)
class Slow(Flush):
    """Delay rows as ``Lazy`` does, and emit one for each ``every`` tuples that come.

    Raises ``GraphError`` unless both are at least 1.

    >>> Slow(every=160, within=2)
    Slow(within=2, every=160)
    """

    def __init__(self, every: int, within: int = 1) -> None:
        _check(self, "every", every, least=1)
        _check(self, "within", within, least=1)
        super().__init__(within, every)


@checked_arguments
@dataclass(frozen=True)
class InOrder(Flush):
    """One leaves for each tuple, and all of a window before any of the next: the slow-flush of an in-order system.

    So where two groups of the new window want one place, all that is left of the old one leaves first, which
    ``Lazy`` and ``Slow`` do without.  Its input must be sorted.
    """

    ordered = True

    def __init__(self) -> None:
        super().__init__(1, 1)


def _check(flush: Flush, name: str, value: int, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        msg = f"{type(flush).__name__}: {name} must be a whole number, at least {least}; got {value!r}"
        raise GraphError(msg)
