"""``oop-engine compare``: the same question in order and out of order, side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from oop_engine.cli.options import (
    check_output,
    csv_option,
    is_graph,
    json_option,
    scenario_file,
    scenario_or_none_argument,
    set_option,
    type_option,
)
from oop_engine.cli.output import only_json, print_json, terminal, watching, write_whole
from oop_engine.core.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from oop_engine.lab.comparison import Comparison
    from oop_engine.lab.scenario import Scenario
    from oop_engine.traces.csv_format import CsvFormat

__all__ = ["compare"]


@click.command()
@scenario_or_none_argument
@click.argument("traces", nargs=-1, metavar="[TRACE]...")
@set_option
@click.option("--time", metavar="COL", help="Traces: the column that makes progress.")
@click.option("--unit", metavar="UNIT", help="Traces: its unit, if it is an integer: s, ms, us, ns.")
@click.option(
    "--policy", metavar="POLICY", help="Traces: of all sources; default: the best by their profile."
)
@click.option("--sink", metavar="NAME", help="Of a graph: the sink that is compared; default: its first.")
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a report: HTML, or .csv with a row for each run.",
)
@click.option(
    "--again",
    type=click.Path(path_type=Path),
    metavar="REPORT.json",
    help="Repeat a comparison of --json, and show the figures that differ.",
)
@csv_option
@type_option
@json_option
def compare(
    scenario: str | None,
    traces: tuple[str, ...],
    settings: dict[str, str],
    time: str | None,
    unit: str | None,
    policy: str | None,
    sink: str | None,
    report: Path | None,
    again: Path | None,
    csv: CsvFormat | None,
    types: dict[str, pa.DataType],
    as_json: bool,
) -> int:
    """Run a scenario, or a graph of yours over traces, in order and out of order, and check both.

    SCENARIO is also a Python file with a "graph", as for `oop-engine run`: it and its in-order twin run over the
    TRACEs, and both are checked against brute force, where the definitions of its operators are known.

    A claim holds (true), fails (false), or was not checked (null): where there is no truth, nothing is called true.

    A scenario that sweeps a parameter is run for each of its values, unless --set fixes it.

    \b
    A graph of your own over your own trace; several sources as NAME=TRACE:
      oop-engine compare graph.py requests.csv --report requests.html
      oop-engine compare join.py ads=ads.csv clicks=clicks.csv
    A whole sweep, and a page to look at:
      oop-engine compare links --report links.html
    At one point only:
      oop-engine compare links --set skew=5
    The same comparison again, on another machine or version (exit code 1: figures differ):
      oop-engine compare --again links.json
      oop-engine compare graph.py requests.csv --again requests.json
    For a program (exit code 1: a claim fails):
      oop-engine compare nyc_flights --json | jq '.claims[] | select(.holds == false)'
    """
    from oop_engine.lab.comparison import compare as run

    before = None if again is None else _report_of(again, scenario)
    if before is not None:
        scenario, settings = scenario or before["scenario"], _fixed(before)
    if scenario is None:
        msg = "compare: give a scenario, such as links, a file with a graph, or --again REPORT.json"
        raise UsageError(msg)
    check_output("--report", report, *scenario_file(scenario))
    with only_json(as_json):
        if is_graph(scenario):
            if settings:
                msg = f"{scenario}: a graph has no parameters: leave --set out"
                raise UsageError(msg)
            loaded = _of_graph(Path(scenario), traces, time, unit, policy, sink, report, csv, types)
        else:
            loaded = _of_scenario(
                scenario,
                traces,
                time or unit or policy or sink or (csv and "--csv") or next(iter(types), None),
            )
        with watching() as watch:
            comparison = run(loaded, settings, on_run=watch.on_run, on_tuples=watch.on_tuples)
        if report is not None:
            _write_report(report, comparison)
    if as_json:
        print_json(comparison.to_dict())
    else:
        _show(comparison, report)
    if before is not None:
        return _differences(before, comparison)
    return 0 if comparison.holds else 1


def _report_of(path: Path, scenario: str | None) -> dict[str, Any]:
    """Return a report of ``--json``."""
    from oop_engine.lab.scenario import names

    try:
        content = json.loads(path.read_text("utf-8"))
        known = {"scenario", "parameters", "runs"} <= set(content)
    except (OSError, ValueError, TypeError) as error:
        msg = f"--again {path}: cannot be read as a report of --json: {error}"
        raise UsageError(msg) from error
    if not known:
        msg = f"--again {path}: is no report of `oop-engine compare --json`"
        raise UsageError(msg)
    own, name = content["scenario"] not in names(), content["scenario"]
    if own and (scenario is None or Path(scenario).name != name):
        msg = f"--again {path}: {name!r} is a file of yours: give it, and its traces, as in the first comparison"
        raise UsageError(msg)
    if not own and scenario is not None:
        msg = f"--again {path}: names its scenario itself: leave the other out"
        raise UsageError(msg)
    return dict(content)


def _fixed(report: dict[str, Any]) -> dict[str, str]:
    """Return the parameters of a report that were not swept."""
    points = [run["parameters"] for run in report["runs"]]
    parameters: dict[str, Any] = report["parameters"]
    return {
        name: str(value)
        for name, value in parameters.items()
        if len({str(point.get(name)) for point in points}) < 2
    }


def _differences(before: dict[str, Any], comparison: Comparison) -> int:
    """Show the figures that differ; return the exit code."""
    from oop_engine.lab.origin import changed_figures
    from oop_engine.lab.report.words import plain

    lines = changed_figures(before, json.loads(json.dumps(plain(comparison.to_dict()))))
    for line in lines:
        click.echo(line, err=True)
    differ = "1 figure differs" if len(lines) == 1 else f"{len(lines)} figures differ"
    click.echo(differ if lines else "all figures are as they were", err=True)
    return 1 if lines else 0


def _of_graph(
    path: Path,
    traces: tuple[str, ...],
    time: str | None,
    unit: str | None,
    policy: str | None,
    sink: str | None,
    report: Path | None,
    csv: CsvFormat | None,
    types: dict[str, pa.DataType],
) -> Scenario:
    from oop_engine.cli.running.at_rest import opened
    from oop_engine.lab.own_graph import scenario_of

    graph, feeds = opened(path, traces, time, unit, policy, ("--report", report), csv, types)
    return scenario_of(graph, feeds, sink=sink, name=path.name)


def _of_scenario(name: str, traces: tuple[str, ...], option: str | None) -> Scenario:
    from oop_engine.lab.scenario import load

    loaded = load(name)
    if traces or option:
        got = traces[0] if traces else option
        msg = f"{name}: a scenario has traces of its own; got {got!r}: leave it out, or give a file with a graph"
        raise UsageError(msg)
    return loaded


def _write_report(path: Path, comparison: Comparison) -> None:
    from oop_engine.lab.report.page import page
    from oop_engine.lab.report.sheet import sheet

    write_whole(path, sheet(comparison) if path.suffix == ".csv" else page(comparison))


def _show(comparison: Comparison, report: Path | None) -> None:
    from oop_engine.lab.report.columns import EXCESS
    from oop_engine.lab.report.headline import headline
    from oop_engine.lab.report.opponent import FAIR
    from oop_engine.lab.report.table import claim_lines, run_table
    from oop_engine.lab.report.words import late_in, size

    console = terminal()
    console.print(run_table(comparison, console.width))
    if any(run.excess_s.size for run in comparison.runs):
        console.print(f"excess: {EXCESS}\n", style="dim", markup=False)
    if any(run.order == "in" for run in comparison.runs):
        console.print(f"in order: {FAIR}\n", style="dim", markup=False)
    console.print("claims", style="bold")
    for line in claim_lines(comparison.claims):
        console.print(line)
    console.print()
    console.print(headline(comparison), markup=False)
    if (worst := max(comparison.runs, key=lambda run: run.late, default=None)) and worst.late:
        console.print(late_in(worst.variant, worst.late, worst.tuples), markup=False)
    console.print(f"peak RSS of the process: {size(comparison.peak_rss_bytes)}", markup=False)
    if report is not None:
        console.print(f"report: {report}", markup=False)
