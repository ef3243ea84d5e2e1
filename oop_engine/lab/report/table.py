"""Tables for a terminal: as many columns as it has room for, the least telling go first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from oop_engine.core.graphs.statistics import EdgeStatistics, Statistics
from oop_engine.core.groups.in_python import rows_of
from oop_engine.core.values.rfc3339 import rfc3339
from oop_engine.lab.report.columns import Figure, columns
from oop_engine.lab.report.words import count, seconds, size, text
from oop_engine.system.shown import shown

if TYPE_CHECKING:
    from oop_engine.lab.comparison import Comparison
    from oop_engine.lab.run import Run
    from oop_engine.lab.scenario import Claim, Scenario

__all__ = ["claim_lines", "grid", "operator_table", "result_table", "run_table", "scenario_table"]

_MARKS = {"holds": ("✓", "bold green"), "fails": ("✗", "bold red"), "not checked": ("?", "bold yellow")}
_PAINT = {"in order": "yellow", "out of order": "cyan"}


def grid(
    title: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    words: Sequence[str] = (),
    fold: Sequence[str] = (),
) -> Group:
    """Return a plain table under a title.

    ``words``: columns that are not figures and so stand left; ``fold``: those of them that
    may take several lines.
    """
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        justify: Literal["left", "right"] = "left" if heading in words else "right"
        table.add_column(Text(shown(heading)), justify=justify, no_wrap=heading not in fold, overflow="fold")
    for row in rows:
        table.add_row(*(Text(shown(cell), style=_PAINT.get(cell, "")) for cell in row))
    return Group(Text(shown(title), style="bold"), table)


def run_table(comparison: Comparison, width: int) -> Group:
    """Return the runs side by side, in a table that fits ``width``."""
    runs = comparison.runs
    chosen, left_out = _fitting(columns(comparison), runs, width)
    rows = [[column.show(run) for column in chosen] for run in runs]
    table = grid(comparison.scenario.title, [c.heading for c in chosen], rows, words=("order", "plan"))
    if not left_out:
        return table
    without = f"without {', '.join(left_out)}, for want of room; --json and --report have them\n"
    return Group(table, Text(without, style="dim"))


def claim_lines(claims: Sequence[Claim]) -> list[Text]:
    """Return each claim with its verdict, and the figures that it rests on."""
    lines = []
    for claim in claims:
        mark, paint = _MARKS[claim.verdict]
        open_ = " (not checked)" if claim.verdict == "not checked" else ""
        lines.append(Text.assemble((mark, paint), " ", claim.claim, open_))
        if claim.figures:
            lines.append(Text(f"  {text(claim.figures)}", style="dim"))
    return lines


def operator_table(statistics: Statistics) -> Group:
    """Return the input, output, peak state and counts of each operator."""
    rows = []
    for name, operator in statistics.operators.items():
        came = _sum(edge for title, edge in statistics.edges.items() if title.endswith(f" -> {name}"))
        streams = {title.partition(" -> ")[0]: edge for title, edge in statistics.edges.items()}
        went = _sum(edge for stream, edge in streams.items() if stream.partition(".")[0] == name)
        counted = ", ".join(f"{name} {count(n)}" for name, n in operator.counts.items())
        rows.append(
            [
                name, count(came.tuples), count(went.tuples), count(went.punctuations), count(operator.peak.tuples),
                count(operator.peak.partials), count(operator.peak.groups), size(operator.peak.nbytes),
                seconds(operator.busy_s), counted,
            ]
        )  # fmt: skip
    headings = [
        "operator", "tuples in", "tuples out", "punctuation", "peak tuples", "partials", "groups", "state", "busy",
        "counted",
    ]  # fmt: skip
    return grid("operators", headings, rows, words=("operator", "counted"), fold=("counted",))


def result_table(title: str, results: pa.Table, rows: int) -> Group:
    """Return the first and the last ``rows`` of ``results``, in the order in which they came."""
    whole = results.num_rows <= 2 * rows
    first = results if whole else results.slice(0, rows)
    shown = [_cells(row) for row in rows_of(first)]
    if not whole:
        shown.append(["…"] * results.num_columns)
        shown += [_cells(row) for row in rows_of(results.slice(results.num_rows - rows))]
    words = [
        f.name for f in results.schema if not (pa.types.is_integer(f.type) or pa.types.is_floating(f.type))
    ]
    return grid(f"{title}: {count(results.num_rows)} results", results.schema.names, shown, words=words)


def scenario_table(scenarios: Sequence[Scenario]) -> Group:
    """Return the scenarios, their parameters with defaults, and their sweeps: a table for each source."""
    by_source: dict[str, list[Scenario]] = {}
    for scenario in scenarios:
        by_source.setdefault(scenario.source or "of no publication", []).append(scenario)
    return Group(*(_scenarios_of(*item) for item in sorted(by_source.items())))


def _scenarios_of(source: str, scenarios: Sequence[Scenario]) -> Group:
    rows = []
    for scenario in scenarios:
        sweep = scenario.sweep
        values = (
            "" if sweep is None else f"{sweep.parameter}: {', '.join(map(str, sweep.values))} {sweep.unit}"
        )
        knobs = [f"{name}={p.default}  {p.about}" for name, p in scenario.parameters.items()]
        rows.append([scenario.name, scenario.title, "\n".join(knobs), values.rstrip()])
    headings = ["name", "question", "parameters", "sweep"]
    return grid(source, headings, rows, words=headings, fold=headings[1:])


def _cells(row: dict[str, Any]) -> list[str]:
    return [f"{v:.6g}" if isinstance(v, float) else "null" if v is None else rfc3339(v) for v in row.values()]


def _fitting(candidates: list[Figure], runs: Sequence[Run], width: int) -> tuple[list[Figure], list[str]]:
    chosen, left_out = list(candidates), []
    widths = {c.heading: max(len(c.heading), *(len(c.show(run)) for run in runs)) + 3 for c in chosen}
    while sum(widths[c.heading] for c in chosen) > width and any(c.rank for c in chosen):
        last = max(reversed(chosen), key=lambda c: c.rank)
        chosen.remove(last)
        left_out.append(last.heading)
    return chosen, left_out


def _sum(edges: Iterable[EdgeStatistics]) -> EdgeStatistics:
    total = EdgeStatistics()
    for edge in edges:
        total.pages, total.tuples = total.pages + edge.pages, total.tuples + edge.tuples
        total.punctuations += edge.punctuations
    return total
