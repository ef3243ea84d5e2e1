"""Stream: an output of a node, to which other nodes are connected."""

from __future__ import annotations

from dataclasses import dataclass, field

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import GraphError

__all__ = ["Stream"]


class _NoOutputError(GraphError, AttributeError):
    """A node has no output of the name that was asked for as an attribute."""


@dataclass(frozen=True)
class Stream:
    """One output port of one node, to which other nodes are connected.

    ``stream.late`` is the output ``late`` of the same node, ``stream["late"]`` too.
    """

    node: str
    port: str = ""
    ports: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __getitem__(self, port: str) -> Stream:
        """Return another output of the same node: ``progress["late"]``."""
        return Stream(self.node, port, self.ports)

    def __getattr__(self, port: str) -> Stream:
        """Return another output of the same node by its name: ``progress.late``."""
        ports = vars(self).get("ports", ())  # none yet where it is unpacked
        if port.startswith("_") or port not in ports:
            there = f"there are {', '.join(ports) or 'no others'}{did_you_mean(port, ports)}"
            way_out = ": write late=Late.DIVERT to have it" * (port == "late")
            msg = f"stream {vars(self).get('node')!r}: there is no output {port!r}; {there}{way_out}"
            raise _NoOutputError(msg)
        return self[port]

    def __str__(self) -> str:
        return f"{self.node}.{self.port}" if self.port else self.node
