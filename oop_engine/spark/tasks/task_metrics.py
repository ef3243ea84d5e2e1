"""Task metrics: records with the tuples, state and counts of operators, from tasks to the driver.

Figures are totals since the start of the query, or of the state now, so the last metrics of a subtask hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgpack

from oop_engine.core.graphs.statistics import OperatorStatistics, Statistics
from oop_engine.core.operator import State
from oop_engine.runners.faults import counts_of, place_of
from oop_engine.runners.inline import Inline
from oop_engine.spark.tasks.record import METRICS, Record

__all__ = ["Totals", "chain_name", "frame_record", "metrics_of", "state_record"]

_CHAIN = "source chain of "


def chain_name(source: str) -> str:
    """Return the name of the source chain of a source in task metrics."""
    return f"{_CHAIN}{source}"


def metrics_of(
    of: str,
    subtask: int,
    tuples: int,
    inline: Inline,
    spent_s: float = 0.0,
    loads: Mapping[int, list[int]] | None = None,
) -> Record:
    """Return the record with the work and the state of ``inline``.

    ``of``: the component or source chain; ``subtask``: its key group; ``tuples``: how many came in so far.
    Of this micro-batch alone: ``spent_s``, CPU seconds of the task, and ``loads``, the tuples that it sent to
    each key group of components with an assignment.
    """
    operators = {
        name: {
            "held": op.state()._asdict(),
            "counts": counts_of(place_of(inline.plan.name, name, op), op),
            "busy_s": inline.statistics.operators[name].busy_s,
        }
        for name, op in inline.operators.items()
    }
    body = {
        "of": of,
        "subtask": subtask,
        "tuples": tuples,
        "spent_s": spent_s,
        "loads": loads or {},
        "peak": inline.statistics.peak._asdict(),
        "operators": operators,
    }
    return Record(METRICS, METRICS, subtask, 0, 0, bytes(msgpack.packb(body)))


def frame_record(source: str, partition: int, tuples: int, refused: int) -> Record:
    """Return the record with the rows of a DataFrame in one micro-batch: these are added up."""
    body = {"frame": source, "tuples": tuples, "refused": refused}
    return Record(METRICS, METRICS, partition, 0, 0, bytes(msgpack.packb(body)))


def state_record(owner: str, name: str) -> Record:
    """Return the record that names the file with the state of a source chain or subtask."""
    return Record(METRICS, METRICS, 0, 0, 0, bytes(msgpack.packb({"owner": owner, "state": name})))


class Totals:
    """The sum of all task metrics: of each subtask the last ones hold."""

    def __init__(self) -> None:
        self._metrics: dict[tuple[str, int], dict[str, Any]] = {}
        self._peak = State()
        self._last: list[dict[str, Any]] = []
        self._frames: dict[str, dict[str, int]] = {}
        self.states: dict[str, str] = {}
        """The file with the state of each source chain and subtask that had work in the last micro-batch."""

    def take(self, metrics: Iterable[Record]) -> None:
        """Take the metrics of a micro-batch."""
        self._last, self.states = [], {}
        for record in metrics:
            figures = msgpack.unpackb(record.body, strict_map_key=False)
            if "state" in figures:
                self.states[figures["owner"]] = figures["state"]
            elif "frame" in figures:
                totals = self._frames.setdefault(figures["frame"], {"tuples": 0, "refused": 0})
                totals["tuples"] += figures["tuples"]
                totals["refused"] += figures["refused"]
            else:
                self._metrics[figures["of"], figures["subtask"]] = figures
                self._last.append(figures)
        state = sum((State(**figures["peak"]) for figures in self._metrics.values()), State())
        if state.nbytes >= self._peak.nbytes:
            self._peak = state

    @property
    def tuples(self) -> int:
        """How many tuples the sources have given (DataFrames: since this start)."""
        from_chains: int = sum(
            figures["tuples"] for (owner, _), figures in self._metrics.items() if owner.startswith(_CHAIN)
        )
        return from_chains + sum(frame["tuples"] for frame in self._frames.values())

    def spent(self) -> dict[tuple[str, int], tuple[int, float]]:
        """Return the tuples so far and the CPU seconds of each subtask that had work in the last micro-batch."""
        return {
            (figures["of"], figures["subtask"]): (figures["tuples"], figures["spent_s"])
            for figures in self._last
        }

    def loads(self) -> dict[int, list[int]]:
        """Return the tuples of each key group in the last micro-batch, by component with an assignment."""
        loads: dict[int, list[int]] = {}
        for figures in self._last:
            for component, counts in figures["loads"].items():
                before = loads.get(component, [0] * len(counts))
                loads[component] = [a + b for a, b in zip(before, counts, strict=True)]
        return loads

    def by_subtask(self) -> dict[tuple[str, int], dict[str, Any]]:
        """Return the last metrics of each subtask, by component and key group."""
        return dict(self._metrics)

    def statistics(self) -> Statistics:
        """Return state and counts, summed over subtasks.  The peak is that of the fullest micro-batch."""
        statistics = Statistics(peak=self._peak)
        for source, rows in self._frames.items():
            statistics.operators[source] = OperatorStatistics(counts={"refused": rows["refused"]})
        for figures in self._metrics.values():
            for name, operator_figures in figures["operators"].items():
                operator = statistics.operators.setdefault(name, OperatorStatistics())
                operator.state += State(**operator_figures["held"])
                operator.busy_s += operator_figures["busy_s"]
                for count, number in operator_figures["counts"].items():
                    operator.counts[count] = operator.counts.get(count, 0) + number
        statistics.state = sum((operator.state for operator in statistics.operators.values()), State())
        return statistics
