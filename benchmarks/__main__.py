"""``python -m benchmarks``: the workloads, in turns, and the targets; see README.md."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.field import contenders_of, entries
from benchmarks.names import known_names
from benchmarks.report import CONSOLE, machine, plot, plot_growth, show, show_targets, told, write
from benchmarks.studies.all import studied
from benchmarks.targets import Target, of_studies, of_workloads
from benchmarks.turns import Measured, measure
from benchmarks.workloads import WORKLOADS

OUT = Path(__file__).parent / "out"


def main(arguments: list[str] | None = None) -> int:
    """Measure what is asked for; return 0 if every result was right."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    names = known_names(parser, "workload", asked.workloads, WORKLOADS)
    asked.contenders = known_names(parser, "contender", asked.contenders, contenders_of(WORKLOADS.values()))
    found: list[Measured] = []
    write(asked.out / "machine.json", machine())
    for name in names or WORKLOADS:
        found += _measured(name, asked)
        write(asked.out / "bench.json", told(found))
    plot(found, asked.out / "bench.png")
    targets = list(of_workloads(found))
    if not asked.workloads:
        targets += _of_studies(asked)
    show_targets(targets)
    CONSOLE.print(f"written: {', '.join(sorted(str(path) for path in asked.out.iterdir()))}", style="dim")
    return 0 if all(measured.correct for measured in found) else 1


def _measured(name: str, asked: argparse.Namespace) -> list[Measured]:
    workload = WORKLOADS[name]
    field = entries(workload, tuple(asked.contenders))
    present = [entry for entry in field if entry.python and not (asked.quick and entry.rows)]
    rows, seconds = min(asked.rows, workload.rows), asked.seconds
    some = measure(workload, present, rows, asked.rounds, seconds)
    names = {measured.contender for measured in some}
    show(some, workload.question, [entry.name for entry in field if entry.name not in names])
    return some


def _of_studies(asked: argparse.Namespace) -> list[Target]:
    studies = studied(asked.rows)
    write(asked.out / "studies.json", studies)
    plot_growth(studies["growth"], asked.out / "growth.png")
    return list(of_studies(studies))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument(
        "workloads", nargs="*", metavar="WORKLOAD", help=f"{', '.join(WORKLOADS)}; none: all, and the studies"
    )
    parser.add_argument("--rows", type=int, default=5_000_000, help="tuples at most (default 5 M)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contender (default 5)")
    parser.add_argument("--seconds", type=float, default=0.5, help="least length of a turn (default 0.5)")
    parser.add_argument("--contenders", nargs="+", default=[], metavar="NAME", help="these and the floor")
    parser.add_argument("--quick", action="store_true", help="leave out who gets only a part of the tuples")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for figures (default benchmarks/out)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
