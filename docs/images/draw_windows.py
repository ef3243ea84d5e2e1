"""Draws windows.png: the windows of each kind, put out by the engine for one small stream that is out of order.

python docs/images/draw_windows.py [FILE]
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oop_engine import FOREVER, Linear, Page, Schema
from oop_engine.extend import Windows
from oop_engine.operators import Count, Max, Min, Session, Sliding, Tumbling, WindowAggregate
from oop_engine.testing import Driver
from oop_engine.windows import (
    Delimited,
    FixedBand,
    Frames,
    Global,
    Intervals,
    Landmark,
    LastRows,
    PartitionedTupleBased,
    SlideByTuple,
    TupleBased,
    UserWindows,
)

__all__ = ["KINDS", "draw", "windows_of"]

SCHEMA = Schema({"ts": pa.int64(), "load": pa.int64(), "mark": pa.bool_(), "odd": pa.bool_()}, "ts", "s")
ARRIVED = [2, 4, 3, 9, 11, 17, 14, 31, 26, 28, 33, 35, 44, 41, 52, 55]
LOADS = {9: 85, 11: 95, 14: 90, 17: 40, 33: 82, 41: 30}
MARKS = (9, 28, 44)


def odd_tens(times: Any, columns: Any, begin: int, bound: int, ended: bool) -> tuple[Any, Any]:
    """Cut 6 s around 10, 30, 50..."""
    ends = np.arange(13, 74, 20)
    some = ends[(ends > begin) & (ends <= bound)]
    return some - 6, some


KINDS: Mapping[str, Windows] = {
    "Tumbling(10)": Tumbling(10),
    "Sliding(20, 10)": Sliding(20, 10),
    "Landmark(15)": Landmark(15),
    "Global()": Global(),
    "Intervals([(5, 20), (15, 30), (40, 60)])": Intervals([(5, 20), (15, 30), (40, 60)]),
    "FixedBand(25, 15)": FixedBand(25, 15),
    "Session(5)": Session(5),
    "Session(5, most=12)": Session(5, most=12),
    "TupleBased(4, 4)": TupleBased(4, 4),
    "TupleBased(4, 4, order='time')": TupleBased(4, 4, order="time"),
    "PartitionedTupleBased(3, 3, order='time')": PartitionedTupleBased(3, 3, order="time"),
    "LastRows(3, 20)": LastRows(3, 20),
    "SlideByTuple(10, every=3, of='rank')": SlideByTuple(10, every=3, of="rank"),
    "Delimited(mark)": Delimited(pc.field("mark")),
    "Frames(load > 80, load < 50)": Frames(pc.field("load") > 80, pc.field("load") < 50),
    "UserWindows(odd_tens, back=6)": UserWindows(odd_tens, back=6),
}


def windows_of(definition: Windows) -> list[tuple[int, int, int]]:
    """Return start, end and number of tuples of every window that the engine puts out for the stream.

    Those by number of arrival are drawn from their first to their last tuple; groups are even and odd times.
    """
    by = ("odd",) if isinstance(definition, PartitionedTupleBased) else ()
    asked = {"n": Count(), "first": Min("ts"), "last": Max("ts")}
    driver = Driver(WindowAggregate(definition, asked, by), SCHEMA)
    columns = {"load": [LOADS.get(t, 60) for t in ARRIVED], "mark": [t in MARKS for t in ARRIVED]}
    odd = [t % 2 == 1 for t in ARRIVED]
    driver.feed(0, Page.of(SCHEMA, {"ts": ARRIVED, **columns, "odd": odd}))
    driver.feed(0, Linear(FOREVER))
    if isinstance(definition, TupleBased) and definition.order == "arrival":
        return sorted((row["first"], row["last"] + 1, row["n"]) for row in driver.rows())
    start = next(
        name for name in ("time_start", "window_start") if name in driver.operator.schemas_out[0].names
    )
    end = start.replace("start", "end")
    return sorted((row[start], row[end], row["n"]) for row in driver.rows())


def draw(file: Path) -> None:
    """Write the picture."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    lanes = {name: _lanes(windows_of(one)) for name, one in KINDS.items()}
    height = sum(len(some) + 0.9 for some in lanes.values()) + 2
    figure, axes = plt.subplots(figsize=(10, height * 0.25))
    top = height - 1
    late = [t < max(ARRIVED[:i], default=t) for i, t in enumerate(ARRIVED)]
    for time, is_late in zip(ARRIVED, late, strict=True):
        axes.plot(time, top, "o", color="tab:red" if is_late else "tab:blue", ms=5)
        axes.axvline(time, color="0.93", lw=0.8, zorder=0)
        if time in MARKS:
            axes.plot(time, top + 0.8, "v", color="0.3", ms=4)
    axes.text(-47, top, "tuples (red: late; v: mark)", va="center", fontsize=8)
    for name, some in lanes.items():
        top -= 0.9
        axes.text(-47, top - len(some) / 2, name, va="center", fontsize=8, family="monospace")
        for lane in some:
            top -= 1
            for start, end, n in lane:
                axes.broken_barh(
                    [(start, end - start)], (top, 0.8), color="tab:green", alpha=0.45, ec="0.3", lw=0.6
                )
                axes.text((start + end) / 2, top + 0.36, str(n), ha="center", va="center", fontsize=7)
    axes.set_xlim(-48, 72)
    axes.set_ylim(top - 0.5, height + 0.4)
    axes.set_yticks([])
    axes.set_xticks(range(0, 80, 10))
    axes.set_xlabel("time (s); numbers: tuples in the window", fontsize=8)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    plt.close(figure)


def _lanes(windows: list[tuple[int, int, int]]) -> list[list[tuple[int, int, int]]]:
    """Put windows into rows in which none overlap."""
    lanes: list[list[tuple[int, int, int]]] = []
    for window in windows:
        for lane in lanes:
            if lane[-1][1] <= window[0]:
                lane.append(window)
                break
        else:
            lanes.append([window])
    return lanes


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "windows.png")
