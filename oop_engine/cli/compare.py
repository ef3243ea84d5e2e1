"""``oop-engine compare``: the same question in order and out of order, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from oop_engine.cli.options import check_output, json_option, scenario_argument, scenario_file, set_option
from oop_engine.cli.output import only_json, print_json, terminal, watching, write_whole

if TYPE_CHECKING:
    from oop_engine.lab.compare import Comparison

__all__ = ["compare"]


@click.command()
@scenario_argument
@set_option
@click.option("--report", type=click.Path(path_type=Path), help="Write an HTML report to this file.")
@json_option
def compare(scenario: str, settings: dict[str, str], report: Path | None, as_json: bool) -> int:
    """Run a scenario in order and out of order, check both against brute force, and its claims.

    A claim holds (true), fails (false), or was not checked (null): where there is no truth, nothing is called true.

    A scenario that sweeps a parameter is run for each of its values, unless --set fixes it.

    \b
    The whole sweep, and a page to look at:
      oop-engine compare links --report links.html
    At one point only:
      oop-engine compare links --set skew=5
    For a program (exit code 1: a claim fails):
      oop-engine compare nyc_flights --json | jq '.claims[] | select(.holds == false)'
    """
    from oop_engine.lab.compare import compare as run
    from oop_engine.lab.scenario import load

    check_output("--report", report, *scenario_file(scenario))
    with only_json(as_json):
        loaded = load(scenario)
        with watching() as watch:
            comparison = run(loaded, settings, on_run=watch.on_run, on_tuples=watch.on_tuples)
        if report is not None:
            _write_report(report, comparison)
    if as_json:
        print_json(comparison.to_dict())
    else:
        _show(comparison, report)
    return 0 if comparison.holds else 1


def _write_report(path: Path, comparison: Comparison) -> None:
    from oop_engine.lab.report.page import page

    write_whole(path, page(comparison))


def _show(comparison: Comparison, report: Path | None) -> None:
    from oop_engine.lab.report.headline import headline
    from oop_engine.lab.report.table import claim_lines, run_table
    from oop_engine.lab.report.words import late_in

    console = terminal()
    console.print(run_table(comparison, console.width))
    console.print("claims", style="bold")
    for line in claim_lines(comparison.claims):
        console.print(line)
    console.print()
    console.print(headline(comparison), markup=False)
    if (worst := max(comparison.runs, key=lambda run: run.late, default=None)) and worst.late:
        console.print(late_in(worst.variant, worst.late, worst.tuples), markup=False)
    if report is not None:
        console.print(f"report: {report}", markup=False)
