"""In turn: traces of one feed are read one after the other, so none of their rows arrives before earlier ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER

__all__ = ["InTurn"]


class InTurn:
    """The arrivals of one feed; those of a trace begin where the trace before it ended."""

    def __init__(self) -> None:
        self._last = NEVER

    def behind(self, messages: Iterable[Message]) -> Iterator[Message]:
        """Yield the messages of a trace; a row that arrived before the last one of earlier traces arrives with that."""
        earliest = self._last
        for message in messages:
            if not isinstance(message, Page) or message.arrival is None or not len(message):
                yield message
                continue
            arrival = message.arrival
            if arrival[0] < earliest:
                arrival = np.maximum(arrival, earliest)
                message = Page(message.schema, message.batch, arrival)
            self._last = int(arrival[-1])
            yield message
