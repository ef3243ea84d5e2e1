"""``oop-engine pipeline``: raw events become segments, a profile, a policy and results, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from oop_engine.cli.options import json_option
from oop_engine.cli.output import only_json, print_json, terminal

if TYPE_CHECKING:
    from oop_engine.spark.run import BatchDone

__all__ = ["pipeline"]

_STEPS = ("parse", "order", "profile", "policy", "run")


@click.command()
@click.argument("declaration", type=click.Path(path_type=Path), metavar="DECLARATION")
@click.argument("inputs", type=click.Path(path_type=Path), metavar="INPUT...", nargs=-1, required=True)
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, metavar="FOLDER", help="A folder of its own."
)
@click.option(
    "--until", type=click.Choice(_STEPS), default="run", show_default=True, help="The last step to do."
)
@click.option(
    "--graph", type=click.Path(path_type=Path), metavar="FILE", help="A .py file with def graph(...)."
)
@click.option(
    "--policy", default="", metavar="POLICY", help="The policy of all sources; default: chosen by profile."
)
@click.option(
    "--in-time", type=click.FloatRange(0, 1, min_open=True), default=1.0, show_default=True, metavar="SHARE",
    help="The least share of tuples that the chosen policy lets be in time.",
)  # fmt: skip
@click.option("--by-window", default="", metavar="LENGTH", help="How much time is in a folder of results.")
@click.option("--batch", is_flag=True, help="Run the graph in one batch, without micro-batches.")
@click.option(
    "--slice-rows", type=click.IntRange(min=1000), default=1 << 18, show_default=True, metavar="N",
    help="About how many rows a segment has.",
)  # fmt: skip
@click.option("--master", metavar="URL", help="Where Spark runs; default: all cores of this machine.")
@json_option
def pipeline(
    declaration: Path,
    inputs: tuple[Path, ...],
    out: Path,
    until: str,
    graph: Path | None,
    policy: str,
    in_time: float,
    by_window: str,
    batch: bool,
    slice_rows: int,
    master: str | None,
    as_json: bool,
) -> None:
    """Make raw events ready to run, on Spark, and run a graph on them.

    DECLARATION is a .toml or .py file that describes the files: columns and their types, which is
    the time, the arrival, the source.  INPUT are files or folders of CSV, JSON lines or Parquet.  Every row is
    used, late, or in quarantine with a reason: manifest.json has the number of each.

    A step that is done is not done again: run the same command to go on after a failure.

    \b
    The flights, from their CSV file to results by window, in a clone of the repository:
      oop-engine pipeline scenarios/pipelines/nyc_flights.toml flights.csv --out out/flights
    Only their disorder, and a policy for it:
      oop-engine pipeline events.toml logs/ --out out/logs --until policy
    A policy of your own, or one that may lose one tuple in a thousand:
      oop-engine pipeline events.toml logs/ --out out/logs --policy 'BoundedDisorder("5 s")'
      oop-engine pipeline events.toml logs/ --out out/logs --in-time 0.999
    """
    from oop_engine.pipeline.declaration import load_declaration
    from oop_engine.pipeline.job import Wanted, run_pipeline

    with only_json(as_json):
        wanted = Wanted(
            load_declaration(declaration), inputs, out, graph, policy, in_time, by_window, until, batch, slice_rows,
            master,
        )  # fmt: skip
        progress = _Progress(quiet=as_json)
        manifest = run_pipeline(wanted, on_step=progress.step, on_batch=progress.batch)
    if as_json:
        print_json(manifest)
    else:
        _show(manifest, out)


class _Progress:
    """Prints on stderr which step runs, and how far the graph is."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def step(self, name: str) -> None:
        """Print that a step begins."""
        if not self._quiet:
            click.echo(f"{name} ...", err=True)

    def batch(self, done: BatchDone) -> None:
        """Print that a micro-batch is done."""
        if not self._quiet:
            click.echo(
                f"  batch {done.number}: {done.tuples:,} tuples in, {done.results:,} results, {done.wall_s:.2f} s",
                err=True,
            )


def _show(manifest: dict[str, Any], out: Path) -> None:
    """Print the account of rows, their disorder, the policies chosen, and the results."""
    from rich.text import Text

    from oop_engine.lab.report.table import grid
    from oop_engine.lab.report.words import count, seconds, size

    console = terminal()
    files = manifest["in"]["files"]
    console.print(
        f"{manifest['name']}: {count(manifest['in']['rows'])} rows of {len(files)} file{'s' * (len(files) != 1)}, "
        f"{size(manifest['in']['bytes'])}",
        markup=False,
    )
    console.print(grid("rows in = used + late + quarantined", _ROWS, _rows(manifest), words=_ROWS[:1]))
    if manifest["quarantined"]:
        refused = [[reason, count(rows)] for reason, rows in manifest["quarantined"].items()]
        console.print(grid("in quarantine", ["reason", "rows"], refused, words=["reason"]))
    for reason, hint in manifest["hints"].items():
        console.print(f"{reason}; {hint}", markup=False)
    if manifest["profile"]:
        console.print(grid("how late a tuple is", _LATE, _lateness(manifest), words=_LATE[:2]))
    for name, choice in manifest["policy"].items():
        console.print(Text.assemble((name, "bold"), f": {choice['policy']}: {choice['reason']}"))
    for name, made in manifest["run"].get("results", {}).items():
        console.print(
            f"{name}: {count(made['rows'])} results in {made['files']:,} files of {made['partitions']:,} folders: "
            f"{made['folder']}",
            markup=False,
        )
    spent = ", ".join(
        f"{step} {'done before' if step in manifest['done_before'] else seconds(took)}"
        for step, took in manifest["seconds"].items()
    )
    console.print(f"{spent}; {out / 'manifest.json'} has it all", markup=False)


_ROWS = ["source", "rows", "used", "late", "quarantined"]
_LATE = ["source", "behind the largest", "out of order", "p50", "p99", "p99.9", "most"]


def _rows(manifest: dict[str, Any]) -> list[list[str]]:
    from oop_engine.lab.report.words import count

    rows = [
        [name, count(s["rows"]), count(s["used"]), count(s["late"]), count(sum(s["quarantined"].values()))]
        for name, s in manifest["sources"].items()
    ]
    total = manifest["rows"]
    return rows if len(rows) == 1 else [*rows, ["all", *(count(total[what]) for what in _ROWS[1:])]]


def _lateness(manifest: dict[str, Any]) -> list[list[str]]:
    rows = []
    for name, profile in manifest["profile"].items():
        rows.append([name, "before it", *_quantiles(profile, profile["lateness"])])
        if profile["own_lateness"]:
            rows.append(
                ["", f"of its {', '.join(profile['by'])}", *_quantiles(profile, profile["own_lateness"])]
            )
    return rows


def _quantiles(profile: dict[str, Any], late: dict[str, int]) -> list[str]:
    from oop_engine.core.units import TIME_UNITS, to_seconds
    from oop_engine.lab.report.words import count, seconds

    def span(value: int) -> str:
        unit = profile["unit"]
        return seconds(to_seconds(value, unit)) if unit in TIME_UNITS else f"{count(value)} {unit}"

    share = f"{late['out_of_order'] / max(profile['tuples'], 1):.2%}"
    return [share, *(span(late[key]) for key in ("p50", "p99", "p999", "most"))]
