"""Reasons of MQTT 5: those with which a broker refuses or ends a connection, by whether they pass."""

from __future__ import annotations

from typing import Any

__all__ = ["passes", "way_out"]

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


def passes(reason: Any) -> bool:
    """Tell whether a refusal may be another answer after a while."""
    return reason.value in _PASSING


def way_out(reason: Any) -> str:
    """Return the way out of the end of a connection that would end again; "" for one that passes."""
    return "" if isinstance(reason, int) else _REFUSED.get(reason.value, "")
