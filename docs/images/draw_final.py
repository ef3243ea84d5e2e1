"""Draws final.png: tuples, both bounds and the versions of results over the time of arrival, as the engine had them.

python docs/images/draw_final.py [FILE]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import pyarrow as pa

from oop_engine import Linear, Page, Schema, Watermark
from oop_engine.extend import Message
from oop_engine.operators import BoundedDisorder, Count, Emit, Punctuate, Tumbling, WindowAggregate
from oop_engine.testing import Driver

__all__ = ["Version", "draw", "run"]

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")
WIDTH = 20
ARRIVED = [3, 8, 14, 11, 19, 24, 27, 12, 33, 31, 38, 45, 26, 49, 56, 62, 58, 66, 71, 55, 78, 84, 90, 97, 103]
COLORS = {"on_time": "tab:orange", "late": "tab:red", "final": "tab:green"}


class Version(NamedTuple):
    """A version of a window that was put out: when, the end of the window, its tuples, and why."""

    at: int
    end: int
    n: int
    timing: str


def run() -> tuple[dict[str, list[tuple[int, int]]], list[Version]]:
    """Return the steps of both bounds, as moments and bounds, and all versions; tuple ``i`` arrives at ``4 * i``."""
    edge = Driver(Punctuate(BoundedDisorder(30), granularity=5, watermark=BoundedDisorder(6)), SCHEMA)
    counted = Driver(WindowAggregate(Tumbling(WIDTH), {"n": Count()}, emit=Emit(info=True)), SCHEMA)
    bounds: dict[str, list[tuple[int, int]]] = {"watermark": [], "punctuation": []}
    versions: list[Version] = []
    for number, time in enumerate(ARRIVED):
        now = 4 * number
        for port, message in edge.feed(0, Page.of(SCHEMA, {"ts": [time]})):
            if port == 0:
                _note(bounds, message, now)
                out = [page for _, page in counted.feed(0, message) if isinstance(page, Page)]
                rows = [row for page in out for row in page.to_pylist() if row["change"] > 0]
                versions += [Version(now, row["window_end"], row["n"], row["timing"]) for row in rows]
    return bounds, versions


def _note(bounds: dict[str, list[tuple[int, int]]], message: Message, now: int) -> None:
    match message:
        case Watermark(Linear(below)):
            bounds["watermark"].append((now, below))
        case Linear(below):
            bounds["punctuation"].append((now, below))


def draw(file: Path) -> None:
    """Write the picture."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    bounds, versions = run()
    figure, axes = plt.subplots(figsize=(10, 5))
    last = 4 * len(ARRIVED)
    axes.plot(range(0, last, 4), ARRIVED, "o", color="tab:blue", ms=4, label="tuple")
    for (name, steps), style in zip(bounds.items(), ("--", "-"), strict=True):
        moments, below = zip(*steps, (last, steps[-1][1]), strict=True)
        axes.step(moments, below, style, where="post", color="0.35", label=name)
    for end in range(WIDTH, max(ARRIVED), WIDTH):
        axes.axhline(end, color="0.9", lw=0.8, zorder=0)
        passed = next((at for at, below in bounds["punctuation"] if below >= end), None)
        if passed is not None:
            axes.plot(passed, end, "s", ms=11, mfc="none", color=COLORS["final"])
    for at, end, n, timing in versions:
        axes.plot(at, end, "D", ms=6, color=COLORS[timing])
        axes.annotate(f"n={n}", (at, end), (4, 5), textcoords="offset points", fontsize=8)
    for timing in dict.fromkeys(version.timing for version in versions):
        axes.plot([], [], "D", ms=6, color=COLORS[timing], label=f"version: {timing}")
    axes.plot([], [], "s", ms=11, mfc="none", color=COLORS["final"], label="final from here on")
    axes.set_xlabel("arrival (s)")
    axes.set_ylabel("time of tuples, end of windows (s)")
    axes.legend(fontsize=8, loc="upper left")
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "final.png")
