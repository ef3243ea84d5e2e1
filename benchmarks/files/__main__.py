"""``python -m benchmarks.files``: whole programs from file to file, start included, and warm; see README.md."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.files.questions import QUESTIONS
from benchmarks.files.turns import FORMATS, Measured, Workload, measure
from benchmarks.names import known_names
from benchmarks.report import machine, write

__all__ = ["main"]

OUT = Path(__file__).parents[1] / "out"
CONTENDERS = ("engine", "duckdb-1", "duckdb-2", "polars-1", "polars-2", "serve")
WORKLOAD_NAMES = tuple(f"{format}-{question}" for question in QUESTIONS for format in FORMATS)
_QUICK = (
    *(f"{format}-tumbling_text" for format in FORMATS),
    "parquet-sliding_integer",
    "csv-q5",
    "jsonl-q7",
    "arrow-join",
)
_QUICK_CONTENDERS = ("engine", "duckdb-2", "polars-2")
_MOST = {"jsonl": 2_000_000}
_CONSOLE = Console(width=120)


def main(arguments: list[str] | None = None) -> int:
    """Measure what is asked for; return 0 if every answer was right."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    names = known_names(parser, "workload", asked.workloads, WORKLOAD_NAMES)
    contenders = known_names(parser, "contender", asked.contenders, CONTENDERS)
    if asked.quick:
        names, contenders = names or list(_QUICK), contenders or list(_QUICK_CONTENDERS)
    rounds = asked.rounds or (1 if asked.quick else 5)
    found: list[Measured] = []
    write(asked.out / "machine.json", machine())
    for workload in _workloads(names or WORKLOAD_NAMES, asked):
        some = measure(workload, contenders or CONTENDERS, rounds, warm=not asked.quick)
        found += some
        write(asked.out / "files.json", [measured.told() for measured in found])
        show(some)
    return 0 if all(measured.correct for measured in found) else 1


def _workloads(names: Sequence[str], asked: argparse.Namespace) -> list[Workload]:
    """Return each of ``names`` at its full length, and (``--few``) over few rows, where the start is all."""
    sizes = [
        asked.rows or (100_000 if asked.quick else 5_000_000),
        *([asked.few] if asked.few and not asked.quick else []),
    ]
    return [
        Workload(format, question, min(rows, _MOST.get(format, rows)))
        for format, question in (name.split("-", 1) for name in names)
        for rows in sizes
    ]


def show(some: list[Measured]) -> None:
    """Print the least times of a workload, and ours over each contender's; those that are wrong have none."""
    first = some[0]
    table = Table(title=f"{first.workload}, {first.rows:,} rows", title_justify="left")
    for name in (
        "contender",
        "CPU s",
        "wall s",
        "warm CPU s",
        "warm wall s",
        "peak MiB",
        "engine / it, CPU",
        "wall",
    ):
        table.add_column(name, justify="left" if name == "contender" else "right")
    for each in some:
        if not each.correct:
            table.add_row(each.contender, "[bold red]wrong[/]")
            continue
        times = [each.cpu_s, each.wall_s, each.warm_cpu_s, each.warm_wall_s]
        ratios = [
            f"{min(ours) / min(its):.2f}"
            for ours, its in ((first.cpu_s, each.cpu_s), (first.wall_s, each.wall_s))
        ]
        cells = [f"{min(some_):.2f}" if some_ else "" for some_ in times]
        table.add_row(each.contender, *cells, f"{each.peak_rss_mb:.0f}", *ratios)
    _CONSOLE.print(table)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.files", description=__doc__)
    parser.add_argument(
        "workloads", nargs="*", metavar="WORKLOAD", help=f"{', '.join(WORKLOAD_NAMES)}; none: all"
    )
    parser.add_argument("--rows", type=int, help="rows (default: 5 M, of JSON lines 2 M at most)")
    parser.add_argument(
        "--few", type=int, default=1000, help="measure over so few rows, too; 0: do not (default 1000)"
    )
    parser.add_argument("--rounds", type=int, help="turns of each contender (default 5)")
    parser.add_argument("--contenders", nargs="+", default=[], metavar="NAME", help=", ".join(CONTENDERS))
    parser.add_argument(
        "--quick", action="store_true", help="some workloads, 100,000 rows, one turn: are all answers right?"
    )
    parser.add_argument("--out", type=Path, default=OUT, help="folder for figures (default benchmarks/out)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
