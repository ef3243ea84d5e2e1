"""Reasons of MQTT 5: those with which a broker refuses or ends a connection, by whether they pass."""

from __future__ import annotations

from typing import Any

from oop_engine.system.stopwatch import wall

__all__ = ["MOST_SHORT", "SHORT_S", "ShortConnections", "passes", "way_out"]

SHORT_S, MOST_SHORT = 5.0, 10

_PASSING = (0x88, 0x89, 0x97, 0x9F)  # unavailable, busy, quota, rate of connections
_RIGHTS = "check name, password and rights"
_REFUSED = {
    0x87: _RIGHTS,
    0x8C: _RIGHTS,
    0x8E: "another client has this client id: give each service one of its own",
    0x95: "a packet is larger than the broker takes",
    0x98: "the administrator has ended it",
    0x9C: "another broker has this client: give its address",
    0x9D: "another broker has this client: give its address",
}


class ShortConnections:
    """Counts connections in a row that end at once: two clients of one id end each other's, for ever.

    Not every broker gives that reason.
    """

    def __init__(self) -> None:
        self._count, self._since = 0, 0.0

    def begin(self) -> None:
        """Record that the broker has accepted this client."""
        self._since = wall()

    def end(self) -> str:
        """Record that the connection has ended; return the problem if each connection ends so, else ""."""
        self._count = self._count + 1 if wall() - self._since < SHORT_S else 0
        if self._count < MOST_SHORT:
            return ""
        return f"{self._count} connections in a row ended within {SHORT_S:g} s: has another client this client id?"


def passes(reason: Any) -> bool:
    """Return whether a refusal may be another answer after a while."""
    return reason.value in _PASSING


def way_out(reason: Any) -> str:
    """Return the way out of the end of a connection that would end again; "" for one that passes."""
    return "" if isinstance(reason, int) else _REFUSED.get(reason.value, "")
