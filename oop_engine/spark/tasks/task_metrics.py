"""Notes: what a task tells the driver beside results: tuples, state and counts of its operators.

Figures are totals since the start of the query, or what is held now, so the last note of a copy holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgpack

from oop_engine.core.operator import State
from oop_engine.core.statistics import OperatorStatistics, Statistics
from oop_engine.runners.inline import Inline
from oop_engine.spark.tasks.record import NOTE, Letter

__all__ = ["Totals", "frame_note", "head_name", "note", "state_note"]

_HEAD = "head of "


def head_name(source: str) -> str:
    """Return the name under which the head of a source tells."""
    return f"{_HEAD}{source}"


def note(
    of: str,
    copy: int,
    tuples: int,
    inline: Inline,
    spent_s: float = 0.0,
    loads: Mapping[int, list[int]] | None = None,
) -> Letter:
    """Return a note on what ``inline`` has done and holds.

    ``of``: the component or head; ``copy``: its key group; ``tuples``: how many came in so far.
    Of this micro-batch alone: ``spent_s``, CPU seconds of the task, and ``loads``, the tuples that it sent to
    each key group of components with a map.
    """
    operators = {
        name: {
            "held": op.state()._asdict(),
            "counts": op.counts(),
            "busy_s": inline.statistics.operators[name].busy_s,
        }
        for name, op in inline.operators.items()
    }
    body = {
        "of": of,
        "copy": copy,
        "tuples": tuples,
        "spent_s": spent_s,
        "loads": loads or {},
        "peak": inline.statistics.peak._asdict(),
        "operators": operators,
    }
    return Letter(NOTE, NOTE, copy, 0, 0, bytes(msgpack.packb(body)))


def frame_note(source: str, partition: int, tuples: int, refused: int) -> Letter:
    """Return a note on the rows of a DataFrame in one micro-batch: these are added up."""
    body = {"frame": source, "tuples": tuples, "refused": refused}
    return Letter(NOTE, NOTE, partition, 0, 0, bytes(msgpack.packb(body)))


def state_note(owner: str, name: str) -> Letter:
    """Return a note that the state of a head or copy is in the file ``name``."""
    return Letter(NOTE, NOTE, 0, 0, 0, bytes(msgpack.packb({"owner": owner, "state": name})))


class Totals:
    """What all notes together say: the last one of each copy holds."""

    def __init__(self) -> None:
        self._notes: dict[tuple[str, int], dict[str, Any]] = {}
        self._peak = State()
        self._last: list[dict[str, Any]] = []
        self._frames: dict[str, dict[str, int]] = {}
        self.states: dict[str, str] = {}
        """The file with the state of each head and copy that had work in the last micro-batch."""

    def take(self, notes: Iterable[Letter]) -> None:
        """Take the notes of a micro-batch."""
        self._last, self.states = [], {}
        for letter in notes:
            said = msgpack.unpackb(letter.body, strict_map_key=False)
            if "state" in said:
                self.states[said["owner"]] = said["state"]
            elif "frame" in said:
                told = self._frames.setdefault(said["frame"], {"tuples": 0, "refused": 0})
                told["tuples"] += said["tuples"]
                told["refused"] += said["refused"]
            else:
                self._notes[said["of"], said["copy"]] = said
                self._last.append(said)
        held = sum((State(**said["peak"]) for said in self._notes.values()), State())
        if held.nbytes >= self._peak.nbytes:
            self._peak = held

    @property
    def tuples(self) -> int:
        """How many tuples the sources have given (DataFrames: since this start)."""
        from_heads: int = sum(said["tuples"] for (of, _), said in self._notes.items() if of.startswith(_HEAD))
        return from_heads + sum(told["tuples"] for told in self._frames.values())

    def spent(self) -> dict[tuple[str, int], tuple[int, float]]:
        """Return the tuples so far and the CPU seconds of each copy that had work in the last micro-batch."""
        return {(said["of"], said["copy"]): (said["tuples"], said["spent_s"]) for said in self._last}

    def loads(self) -> dict[int, list[int]]:
        """Return the tuples of each key group in the last micro-batch, by component with a map."""
        found: dict[int, list[int]] = {}
        for said in self._last:
            for component, counts in said["loads"].items():
                before = found.get(component, [0] * len(counts))
                found[component] = [a + b for a, b in zip(before, counts, strict=True)]
        return found

    def by_copy(self) -> dict[tuple[str, int], dict[str, Any]]:
        """Return the last note of each copy, by component and key group."""
        return dict(self._notes)

    def statistics(self) -> Statistics:
        """Return state and counts, summed over copies.  The peak is that of the fullest micro-batch."""
        found = Statistics(peak=self._peak)
        for source, rows in self._frames.items():
            found.operators[source] = OperatorStatistics(counts={"refused": rows["refused"]})
        for said in self._notes.values():
            for name, told in said["operators"].items():
                operator = found.operators.setdefault(name, OperatorStatistics())
                operator.state += State(**told["held"])
                operator.busy_s += told["busy_s"]
                for what, number in told["counts"].items():
                    operator.counts[what] = operator.counts.get(what, 0) + number
        found.state = sum((operator.state for operator in found.operators.values()), State())
        return found
