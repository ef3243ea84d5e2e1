"""Times that claims rest on: measured without a fault, and the same again for a fault that slows nothing.

Measuring takes most of what a scenario with claims on times takes, and a fault that only changes answers, bytes or
delays moves none of them but by chance.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

__all__ = ["Times"]

Measure = Callable[..., Any]
Told = tuple[tuple[str, ...], Any]
"""The names that were measured, and what was returned."""


class Times:
    """What functions that measure returned for each scenario, in the order of their calls."""

    def __init__(self) -> None:
        self._of = dict[str, list[Told]]()
        self._recorded: list[Told] = []
        self._left = deque[Told]()
        self._once = False

    def watch(self, module: Any, function: str) -> None:
        """Put a function that measures what its first argument names, so many turns, behind this record."""
        setattr(module, function, partial(self._called, getattr(module, function)))

    def __contains__(self, scenario: str) -> bool:
        return scenario in self._of

    def record(self, scenario: str) -> None:
        """Measure from now on, and record the times of ``scenario``."""
        self._recorded = self._of[scenario] = []
        self._left.clear()

    def repeat(self, scenario: str) -> None:
        """Return the recorded times from now on, as long as the same is asked in the same order."""
        self._left = deque(self._of.get(scenario, ()))

    def once(self) -> None:
        """Measure one turn from now on: a fault that slows makes a time many times as long."""
        self._once = True

    def _called(self, measure: Measure, asked: Mapping[str, Any], *more: Any) -> Any:
        names = tuple(asked)
        if self._left and self._left[0][0] == names:
            return self._left.popleft()[1]
        self._left.clear()
        found = measure(asked, *(1 if self._once else turns for turns in more))
        self._recorded.append((names, found))
        return found
