"""The play-by-play: a stretch of the run, as it was recorded, for one slider over the time of the arrivals.

Tuples are dots, arrival against event time; the bound of each plan is a line below which no tuple comes any more,
so it closes the windows it passes; an answer is a mark where it left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.units import TIME_UNITS, to_seconds
from oop_engine.lab.recording import Recording
from oop_engine.lab.report.headline import headline_runs
from oop_engine.lab.report.plots import Style, styles
from oop_engine.lab.report.words import count
from oop_engine.lab.run import Run

__all__ = ["Play", "played"]

Integers = NDArray[np.int64]
_TUPLES = 1_500
_LATE = 300
_STEPS = 600  # of a line
_ANSWERS = 1_200
_WINDOWS = 8  # slides that a stretch shows at least
_DELAYS = 3  # median delays that it shows at least
_YEAR_S = 366 * 86_400


@dataclass(frozen=True)
class Play:
    """``data``: input of the page's script, plain values; ``caption``: which part of the run is shown."""

    data: dict[str, Any]
    caption: str


def played(runs: Sequence[Run]) -> Play | None:
    """Return the most interesting stretch of ``runs`` (of one point of the sweep); None: nothing was recorded."""
    known = [(run, run.recording) for run in runs if run.recording is not None]
    if not known or not known[0][1].arrivals.size:
        return None
    came = known[0][1]
    times, arrivals = came.times, came.arrivals
    late = {id(run): recording.late() for run, recording in known}
    first, last = _stretch(known, arrivals, np.concatenate([arrivals[rows] for rows in late.values()]))
    inside = np.flatnonzero((arrivals >= first) & (arrivals <= last))
    every = max(1, -(-inside.size // _TUPLES))
    dots = inside[::every]
    drawn, ends = styles(runs), np.unique(np.concatenate([_ends(run) for run, _ in known]))
    pair = headline_runs(runs) or runs
    data = {
        "first": first, "last": last, "base": int(arrivals[0]), "scale": to_seconds(1, runs[0].unit),
        "unit": runs[0].unit, "instants": _instants(runs[0], first), "every": every,
        "time": runs[0].unit in TIME_UNITS, "slide": _slide(ends), "origin": int(ends[0]) if ends.size else 0,
        "shown": [i for i, (run, _) in enumerate(known) if any(run is member for member in pair)],
        "dots": {"x": (arrivals[dots] - first).tolist(), "y": (times[dots] - first).tolist()},
        "plans": [_plan(run, rec, first, last, late[id(run)], drawn[run.order, run.variant]) for run, rec in known],
    }  # fmt: skip
    return Play(data, _caption(inside.size, every, arrivals.size, whole=came.whole))


def _caption(tuples: int, every: int, total: int, *, whole: bool) -> str:
    text = (
        f"A stretch of the run with {count(tuples)} of its {'' if whole else 'first '}{count(total)} tuples"
    )
    if every > 1:
        text += f", one in {count(every)} of them drawn"
    return f"{text}. Nothing is simulated: dots, lines and marks are what the runs recorded."


def _stretch(known: Sequence[tuple[Run, Recording]], arrivals: Integers, late: Integers) -> tuple[int, int]:
    """Return from when to when: some windows and some delays long, around the late tuples or the middle."""
    first, last = int(arrivals[0]), int(arrivals[-1])
    length = 0.0
    for run, _ in known:
        slide = _slide(np.unique(_ends(run)))
        delay = np.nan_to_num(run.delay_p50_s) / to_seconds(1, run.unit)
        length = max(length, _WINDOWS * slide, _DELAYS * delay)
    length = int(min(length or last - first, last - first))
    middle = int(np.median(late)) if late.size else first + (last - first) // 2
    start = min(max(middle - length // 2, first), last - length)
    return start, start + length


def _plan(
    run: Run, recording: Recording, first: int, last: int, late: Integers, style: Style
) -> dict[str, Any]:
    """Return the events of one plan, moments and times counted from ``first``."""
    moments, states = recording.states[:, 0], recording.states[:, 1:]
    thinned = _thinned(moments, states, first, last)
    arrivals, times = recording.arrivals[late], recording.times[late]
    shown = np.flatnonzero((arrivals >= first) & (arrivals <= last))
    lost = shown.size
    shown = shown[:: max(1, -(-lost // _LATE))]
    return {
        "label": style.label,
        "dash": list(style.dash),
        "order": run.order,
        "late": {
            "x": (arrivals[shown] - first).tolist(),
            "y": (times[shown] - first).tolist(),
            "of": int(lost),
        },
        "linear": _line(recording.bounds, first, last),
        "middle": _line(recording.middle, first, last),
        "kept": {
            "x": thinned[0].tolist(),
            "tuples": thinned[1][:, 0].tolist(),
            "partials": thinned[1][:, 1].tolist(),
            "bytes": thinned[1][:, 2].tolist(),
        },
        "answers": _answers(run, first, last),
    }


def _line(steps: Integers, first: int, last: int) -> dict[str, list[int]]:
    """Return a line of steps within the stretch, and the step that was there before it."""
    start = max(int(np.searchsorted(steps[:, 0], first, "right")) - 1, 0)
    part = steps[start : np.searchsorted(steps[:, 0], last, "right")]
    part = part[np.unique(np.linspace(0, len(part) - 1, min(len(part), _STEPS)).astype(int))]
    return {"x": (np.maximum(part[:, 0], first) - first).tolist(), "y": (part[:, 1] - first).tolist()}


def _thinned(moments: Integers, states: Integers, first: int, last: int) -> tuple[Integers, Integers]:
    """Return states within the stretch; where there are too many, the peaks of bins."""
    start = max(int(np.searchsorted(moments, first, "right")) - 1, 0)
    stop = int(np.searchsorted(moments, last, "right"))
    moments, states = np.maximum(moments[start:stop], first) - first, states[start:stop]
    if moments.size <= _STEPS:
        return moments, states
    starts = np.unique(np.linspace(0, moments.size, _STEPS, endpoint=False).astype(int))
    return moments[starts], np.maximum.reduceat(states, starts, axis=0)


def _answers(run: Run, first: int, last: int) -> dict[str, list[int]]:
    """Return the moments of answers, the ends of their windows, and how many left at once."""
    emitted, ends = run.emitted, _ends(run)
    shown = np.flatnonzero((emitted >= first) & (emitted <= last))
    if not shown.size:
        return {"x": [], "y": [], "n": []}
    pairs, number = np.unique(np.stack([emitted[shown], ends[shown]]), axis=1, return_counts=True)
    chosen = np.unique(np.linspace(0, number.size - 1, min(number.size, _ANSWERS)).astype(int))
    x, y = pairs[:, chosen] - first
    return {"x": x.tolist(), "y": y.tolist(), "n": number[chosen].tolist()}


def _slide(ends: Integers) -> int:
    """Return how far apart the ends of windows mostly are, 0 where that is unknown."""
    return int(np.median(np.diff(ends))) if ends.size > 1 else 0


def _ends(run: Run) -> Integers:
    ends: Integers = run.table.column(run.progressing).cast(pa.int64()).to_numpy()
    return ends


def _instants(run: Run, moment: int) -> bool:
    """Return whether times are instants that have a date: those of made traces begin in 1970."""
    dated = moment * to_seconds(1, run.unit) > _YEAR_S
    return dated and bool(
        run.unit in TIME_UNITS and pa.types.is_timestamp(run.table.schema.field(run.progressing).type)
    )
