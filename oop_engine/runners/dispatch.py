"""What every runner shares: which handler a message belongs to, and what a sink is told."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import Enum
from typing import NamedTuple, Protocol

from oop_engine.core.errors import UsageError
from oop_engine.core.graph import Stream
from oop_engine.core.operator import Emission, Message, Operator, State
from oop_engine.core.page import Page

__all__ = ["Result", "Signal", "Watch", "edge_name", "handle", "source_stream"]


class Signal(Enum):
    """What travels beside messages."""

    END = "nothing more comes on this port"
    TICK = "the arrival clock has moved"
    GO_ON = "a suspended generator may go on"


class Result(NamedTuple):
    """A message that reached a sink.

    ``now``: the virtual time of that; ``waited_s``: wall seconds since the punctuation (or
    page) that released it left the edge of the graph.
    """

    sink: str
    message: Message
    now: int
    waited_s: float


class Watch(Protocol):
    """Somebody who looks on as a graph runs, and changes nothing."""

    def passed(self, stream: Stream, node: str, message: Message, now: int) -> None:
        """Learn that a message of ``stream`` goes to ``node`` at the virtual time ``now``."""

    def kept(self, now: int, state: State) -> None:
        """Learn what the whole graph holds after something was done."""


def handle(operator: Operator, port: int, message: Message | Signal, now: int) -> Iterator[Emission]:
    """Return what ``operator`` has to say to a message."""
    match message:
        case Page():
            return operator.on_page(port, message)
        case Signal.END:
            return operator.on_end(port)
        case Signal.TICK:
            return operator.on_clock(now)
        case Signal.GO_ON:
            return iter(())
        case _:
            return operator.on_punctuation(port, message)


def edge_name(stream: Stream, node: str) -> str:
    """Return the name of an edge, for statistics and errors."""
    return f"{stream if stream.port != 'out' else stream.node} -> {node}"


def source_stream(graph: str, source: str, sources: Collection[str], ended: Collection[str]) -> Stream:
    """Return the stream of a source.  Raises ``UsageError`` if there is none, or it has ended."""
    if source not in sources:
        msg = f"graph {graph!r} has no source {source!r}; it has {', '.join(sources)}"
        raise UsageError(msg)
    if source in ended:
        msg = f"graph {graph!r}: source {source!r} has ended; nothing can follow"
        raise UsageError(msg)
    return Stream(source, "out")
