"""Policies for tuples that come behind a bound: none is lost silently (thesis 6.1.5, 8.1)."""

from __future__ import annotations

from enum import Enum, StrEnum

__all__ = ["Late", "Slack"]


class Late(Enum):
    """The action of ``Punctuate`` or ``Guard`` on a tuple that it cannot let through."""

    DROP = "drop"
    """Leave it out, and count it."""
    DIVERT = "divert"
    """Put it out on a port of its own, and count it."""
    RAISE = "raise"
    """Stop with an error that names the tuple and the bound."""

    def ports(self, name: str) -> tuple[str, ...]:
        """Return the output ports of an operator that may divert to ``name``."""
        return ("out", name) if self is Late.DIVERT else ("out",)


class Slack(StrEnum):
    """Which extents a late tuple is missing from, with in-order aggregation (thesis 6.1.5.2)."""

    CONSISTENT = "consistent"
    """Late for one extent: dropped from all of them, and counted."""
    GENEROUS = "generous"
    """Late for one extent: still added to those that are open."""
