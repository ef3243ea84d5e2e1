"""Report: tables on the terminal, a plot, and files of figures."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
from rich.console import Console
from rich.table import Table

from benchmarks.targets import Target
from benchmarks.turns import Measured

__all__ = ["machine", "plot", "plot_growth", "show", "show_targets", "told", "write"]

CONSOLE = Console(width=120)
matplotlib.use("agg")  # nothing is shown, so no screen is needed
_COLUMNS = 3  # of panels
COLOURS = {"floor": "#8c8c8c", "engine": "#0b6e99", "in order": "#d98e04"}


def by_workload(found: Iterable[Measured]) -> list[list[Measured]]:
    """Return what was measured, a list a workload; the floor is the first of each."""
    return [list(some) for _, some in groupby(found, key=lambda measured: measured.workload)]


def told(found: list[Measured]) -> list[dict[str, Any]]:
    """Return the figures of all, each with its ratio to the floor of its workload."""
    return [measured.told(some[0]) for some in by_workload(found) for measured in some]


def show(some: list[Measured], question: str, absent: list[str]) -> None:
    """Print a workload's table."""
    table = Table(title=f"{some[0].workload}: {question}", title_justify="left")
    for name in ("contender", "tuples", "M tuples/s", "of floor", "spread", "of floor per CPU s", "CPU s"):
        table.add_column(
            name, justify="left" if name == "contender" else "right", no_wrap=name == "contender"
        )
    table.add_column("peak MiB (base)", justify="right")
    table.add_column("right")
    for measured in some:
        figures = measured.told(some[0])
        table.add_row(
            measured.contender,
            f"{measured.rows:,}",
            f"{figures['rows_per_s'] / 1e6:.3g}",
            f"{figures['ratio_to_floor']:.3g}",
            f"{figures['spread']:.0%}",
            f"{median(measured.ratios(some[0], 'cpu_s')):.3g}",
            f"{figures['cpu_s']:.3g}",
            f"{measured.peak_rss_mb:.0f} ({measured.base_rss_mb:.0f})",
            "yes" if measured.correct else "[bold red]NO[/]",
        )
    CONSOLE.print(table)
    if absent:
        CONSOLE.print(f"absent (make bench-peers installs them): {', '.join(absent)}", style="dim")


def show_targets(targets: list[Target]) -> None:
    """Print what was asked and what was reached."""
    table = Table(title="Targets", title_justify="left")
    for name in ("workload", "asked", "least", "measured", "by CPU s", ""):
        table.add_column(name, justify="left" if name in ("workload", "asked", "") else "right")
    for target in targets:
        least, mark = "", "told only"
        if target.least is not None:
            least, mark = f"{target.least:.3g}", "[green]reached[/]" if target.reached else "[red]missed[/]"
        cpu = "" if target.by_cpu is None else f"{target.by_cpu:.3g}"
        table.add_row(target.workload, target.asked, least, f"{target.got:.3g}", cpu, mark)
    CONSOLE.print(table)


def plot(found: list[Measured], path: Path) -> None:
    """Draw tuples a second of every contender, a panel a workload, on a logarithmic scale."""
    panels = by_workload(found)
    lines = [panels[at : at + _COLUMNS] for at in range(0, len(panels), _COLUMNS)]
    heights = [0.9 + 0.24 * max(map(len, line)) for line in lines]
    figure, axes = plt.subplots(
        len(lines), _COLUMNS, figsize=(5.4 * _COLUMNS, sum(heights)), squeeze=False, height_ratios=heights
    )
    for axis in axes.flat[len(panels) :]:
        axis.remove()
    for axis, some in zip(axes.flat, panels, strict=False):
        _draw(axis, some)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw(axis: Any, some: list[Measured]) -> None:
    for place, measured in enumerate(some):
        rates = [measured.rows / wall / 1e6 for wall in measured.wall_s]
        middle, of_floor = median(rates), median(measured.ratios(some[0]))
        colour = COLOURS.get(measured.contender, "#7f95a3")
        axis.plot([min(rates), max(rates)], [place, place], color=colour, linewidth=5, alpha=0.35)
        axis.plot([middle], [place], "o", color=colour, markersize=6)
        said = f"{middle:.3g}  ({of_floor:.2g})"
        axis.annotate(said, (max(rates), place), (7, -3), textcoords="offset points", fontsize=8)
    axis.set_yticks(range(len(some)), [measured.contender for measured in some], fontsize=9)
    axis.set_ylim(len(some) - 0.5, -0.5)
    axis.set_xscale("log")
    axis.margins(x=0.1)
    low, high = axis.get_xlim()
    axis.set_xlim(low, high * (high / low) ** 0.3)  # for what is said beside the fastest
    axis.grid(axis="x", color="#e4e8eb")
    axis.set_axisbelow(True)
    axis.set_title(f"{some[0].workload}: M tuples/s (of floor)", fontsize=10, loc="left")
    axis.spines[["top", "right", "left"]].set_visible(False)


def plot_growth(growth: dict[str, list[dict[str, float]]], path: Path) -> None:
    """Draw CPU nanoseconds a tuple over the length of the stream, and over the number of groups."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True)
    for axis, (of, runs) in zip(axes, growth.items(), strict=True):
        for who, what in (("engine", "ns_per_tuple"), ("floor", "floor_ns_per_tuple")):
            axis.plot(
                [run[of] for run in runs], [run[what] for run in runs], "o-", label=who, color=COLOURS[who]
            )
        axis.set_xscale("log")
        axis.set_xlabel("tuples of the stream" if of == "rows" else "groups")
        axis.grid(color="#e4e8eb")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylim(bottom=0)  # once both are drawn: it ends what is adapted to the data
    axes[0].set_ylabel("CPU ns a tuple")
    axes[0].legend(frameon=False, fontsize=9)
    figure.suptitle("W3", fontsize=10)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def write(path: Path, value: Any) -> None:
    """Write ``value`` as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")


def machine() -> dict[str, Any]:
    """Return on what it was measured."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load": os.getloadavg(),
        **{name: version(name) for name in ("numpy", "numba", "pyarrow")},
    }
