"""Reading: the pace at which feeds are read, and the counts and the time of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

from oop_engine.core.graphs.waiting import MissingPunctuation
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.runners.dispatch import Signal
from oop_engine.runners.schedule import Step
from oop_engine.system import stopwatch

__all__ = ["ReplayPace", "RowCounter"]


class ReplayPace:
    """Maps the arrival clock to the wall clock, from the first arrival on."""

    def __init__(self, units_per_s: float) -> None:
        self._units_per_s = units_per_s
        self._start: tuple[int, float] | None = None

    def seconds_until(self, now: int) -> float:
        """Return how many seconds from now the clock shows ``now``."""
        if now in (NEVER, FOREVER):
            return 0.0
        if self._start is None:
            self._start = (now, perf_counter())
        first, began = self._start
        return began + (now - first) / self._units_per_s - perf_counter()


class RowCounter:
    """Counts the tuples that go by, and the time that it takes to read them."""

    def __init__(self, on_tuples: Callable[[int], None] | None, missing: MissingPunctuation) -> None:
        self._on_tuples, self._missing = on_tuples, missing
        self.tuples = 0
        self.start()

    def start(self) -> None:
        """Start the time now."""
        self._wall_s, self._cpu_s = -stopwatch.wall(), -stopwatch.cpu()

    def each(self, steps: Iterator[Step]) -> Iterator[Step]:
        """Yield steps; the time to read them counts for nobody."""
        self.start()
        while (step := self._read(steps)) is not None:
            yield step
            if not isinstance(step.message, Signal):
                self.see(step.source, step.message)

    def see(self, source: str, message: Message) -> None:
        """Count a message of a source that has gone in."""
        self._missing.see(source, message)
        if isinstance(message, Page):
            self.tuples += len(message)
            if self._on_tuples is not None:
                self._on_tuples(len(message))

    def spent(self) -> tuple[float, float]:
        """Return the seconds since the start, by the wall and of this process, without reading."""
        return stopwatch.wall() + self._wall_s, stopwatch.cpu() + self._cpu_s

    def _read(self, steps: Iterator[Step]) -> Step | None:
        wall, cpu = stopwatch.wall(), stopwatch.cpu()
        step = next(steps, None)
        self._wall_s += wall - stopwatch.wall()
        self._cpu_s += cpu - stopwatch.cpu()
        return step
