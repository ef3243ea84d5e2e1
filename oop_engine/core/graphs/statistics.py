"""Statistics of a run: messages per edge, state per operator and over time."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import add, gt, sub

from oop_engine.core.change import Change
from oop_engine.core.errors import ContractError
from oop_engine.core.operator import Message, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER, Linear

__all__ = ["EdgeStatistics", "LateTuples", "OperatorStatistics", "Sample", "Statistics"]

_SAMPLES = 2_000


@dataclass
class EdgeStatistics:
    """Messages that passed along one edge, and the bound that its linear punctuation has come to."""

    pages: int = 0
    tuples: int = 0
    punctuations: int = 0
    below: int = NEVER

    def count(self, message: Message) -> None:
        """Count one message; a change is neither a tuple nor a punctuation."""
        if message.__class__ is Linear:  # no call: this is on the way of each message
            self.punctuations += 1
            self.below = message.below
        elif isinstance(message, Page):
            self.pages += 1
            self.tuples += message.rows
        elif not isinstance(message, Change):
            self.punctuations += 1


@dataclass
class OperatorStatistics:
    """The state of one operator, how long it was busy, and its counts (late tuples...).

    ``before``: the counts of a snapshot that the run went on from; ``Statistics.late`` is without them.
    ``burst``: the most rows that left it for one message.  Of generators of punctuation, which let go of a page
    part by part, and of operators that pass pages on unseen, it is 0.
    """

    state: State = State()
    peak: State = State()
    busy_s: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    before: dict[str, int] = field(default_factory=dict)
    burst: int = 0


@dataclass(frozen=True)
class Sample:
    """The state of the whole graph at one moment of virtual time."""

    now: int
    state: State


@dataclass(frozen=True)
class LateTuples:
    """Tuples that were late: ``by_operator`` that looks out for them, of how many that ``came`` (0: not known).

    ``verb``: words for that; tuples that came behind punctuation inside the graph break a bound.

    >>> late = LateTuples({"east": 3, "west": 0}, {"east": 2_000, "west": 900})
    >>> late.total, str(late)
    (3, "3 of 2,000 tuples were late at 'east' (0.15 %)")
    """

    by_operator: dict[str, int]
    came: dict[str, int]
    verb: str = "were late"

    @property
    def total(self) -> int:
        """How many there were in all."""
        return sum(self.by_operator.values())

    def __str__(self) -> str:
        """Return where tuples were late, in one line."""
        lines = [self._at(name, late) for name, late in self.by_operator.items() if late]
        return "; ".join(lines) or f"no tuples {self.verb}"

    def _at(self, name: str, late: int) -> str:
        if not (came := self.came.get(name, 0)):
            return f"{late:,} tuples {self.verb} at {name!r}"
        return f"{late:,} of {came:,} tuples {self.verb} at {name!r} ({100 * late / came:.2g} %)"


@dataclass
class Statistics:
    """Everything a run measures; ``peak`` and ``series`` are of the whole graph.

    The series keeps at most 2 000 samples: when it is full, neighbours are merged and the
    one with more bytes stays, so that no peak is lost.
    """

    edges: dict[str, EdgeStatistics] = field(default_factory=dict)
    operators: dict[str, OperatorStatistics] = field(default_factory=dict)
    state: State = State()
    peak: State = State()
    series: list[Sample] = field(default_factory=list, repr=False)
    _apart: int = 0

    def observe(self, name: str, state: State, now: int, busy_s: float) -> None:
        """Note the state of operator ``name`` at ``now`` after being busy for ``busy_s``.  O(1)."""
        operator = self.operators[name]
        operator.busy_s += busy_s
        if state == operator.state:
            return
        given: object = state
        if not isinstance(given, State):
            form = "State(tuples=3, nbytes=24)"
            msg = f"operator {name!r}: state() must return a State, such as {form}; got {given!r:.80}"
            raise ContractError(msg)
        self.state = State(*map(sub, map(add, self.state, state), operator.state))
        operator.state = state
        if any(map(gt, state, operator.peak)):
            operator.peak = State(*map(max, state, operator.peak))
        if any(map(gt, self.state, self.peak)):
            self.peak = State(*map(max, self.state, self.peak))
        if now != NEVER:
            self._sample(Sample(now, self.state))

    def count(self, name: str) -> int:
        """Return a count (``"late"``...) summed over the operators."""
        return sum(operator.counts.get(name, 0) for operator in self.operators.values())

    @property
    def late(self) -> LateTuples:
        """The tuples that were late so far, by operator.  O(operators x edges)."""
        return self._counted("late", "were late")

    @property
    def behind(self) -> LateTuples:
        """The tuples that came behind punctuation inside the graph, likewise: final results are without them."""
        return self._counted("behind", "came behind a bound")

    def _counted(self, count: str, verb: str) -> LateTuples:
        known = {name: operator for name, operator in self.operators.items() if count in operator.counts}
        late = {
            name: operator.counts[count] - operator.before.get(count, 0) for name, operator in known.items()
        }
        return LateTuples(late, {name: self._came(name) for name in late}, verb)

    def _came(self, name: str) -> int:
        return sum(edge.tuples for way, edge in self.edges.items() if way.endswith(f" -> {name}"))

    def _sample(self, sample: Sample) -> None:
        series = self.series
        if series and sample.now - series[-1].now <= self._apart:
            if sample.state.nbytes >= series[-1].state.nbytes:
                series[-1] = Sample(series[-1].now, sample.state)
            return
        series.append(sample)
        if len(series) > _SAMPLES:
            pairs = (series[i : i + 2] for i in range(0, len(series), 2))
            self.series = [max(pair, key=lambda s: s.state.nbytes) for pair in pairs]
            self._apart = max(2 * self._apart, (series[-1].now - series[0].now) // _SAMPLES * 2)
