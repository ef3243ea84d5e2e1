"""CPU times of operators by themselves, side by side.

The best of some turns, so that other work of the machine does not count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from oop_engine import Message, Page
from oop_engine.core.operator import Operator
from oop_engine.system import stopwatch

__all__ = ["cpu_s"]

TURNS = 3


def cpu_s(
    operators: Mapping[str, Callable[[], Sequence[Operator]]], messages: Sequence[Message], turns: int = TURNS
) -> dict[str, float]:
    """Return the CPU seconds that opened operators of one input take over ``messages`` and the end of the stream.

    By name: the operators made for a turn each see all messages.  Turns go round by name, and the best one counts.
    """
    best = dict.fromkeys(operators, float("inf"))
    for _ in range(turns):
        for name, made in operators.items():
            best[name] = min(best[name], sum(_spent(operator, messages) for operator in made()))
    return best


def _spent(operator: Operator, messages: Sequence[Message]) -> float:
    start = stopwatch.cpu()
    for message in messages:
        emissions = (
            operator.on_page(0, message) if isinstance(message, Page) else operator.on_punctuation(0, message)
        )
        deque(emissions, maxlen=0)  # results are made, and not kept
    deque(operator.on_end(0), maxlen=0)
    return stopwatch.cpu() - start
