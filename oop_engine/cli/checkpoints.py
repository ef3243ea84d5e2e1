"""``oop-engine checkpoints``: the states of a service that can be restored."""

from __future__ import annotations

from typing import Any

import click

from oop_engine.cli.options import json_option
from oop_engine.cli.output import print_json, terminal

__all__ = ["checkpoints", "why"]


@click.command()
@click.argument("folder", type=click.Path(), metavar="DIR")
@json_option
def checkpoints(folder: str, as_json: bool) -> None:
    """List the checkpoints of a service: their age, their bytes, and the bounds of its edges.

    Rows are those that the process of a checkpoint (column "by") has read since its start.  Nothing is changed; the
    service may run meanwhile.

    \b
      oop-engine checkpoints state
      oop-engine checkpoints state --json
    """
    from oop_engine.service.listing import checkpoints as listed

    found = listed(folder)
    if as_json:
        print_json({"folder": folder, "entries": found})
        return
    _show(found)


@click.command()
@click.argument("folder", type=click.Path(), metavar="DIR")
@json_option
def why(folder: str, as_json: bool) -> None:
    """Print which input held back the results of a service, at its last checkpoint in DIR.

    \b
      oop-engine why state
    """
    from oop_engine.service.listing import reasons

    found = reasons(folder)
    if as_json:
        print_json({"folder": folder, "why": found})
        return
    click.echo("\n".join(found) or "nothing is held back")


def _show(entries: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table("epoch", "kind", "age", "bytes", "written", "rows since its start", "not readable", "by")
    for entry in entries:
        counts = entry.get("counts", {}).values()
        cells = [
            str(entry["epoch"]),
            "the end" if entry.get("over") else entry["kind"],
            f"{entry['age_s']:,.0f} s" if "age_s" in entry else "",
            f"{sum(entry['bytes'].values()):,}" if "bytes" in entry else entry.get("problem", ""),
            f"{entry['written']:,}" if "written" in entry else "",
            f"{sum(count['tuples'] for count in counts):,}" if counts else "",
            f"{sum(count['unreadable'] for count in counts):,}" if counts else "",
            entry.get("owner", ""),
        ]
        table.add_row(*cells)
    console = terminal()
    console.print(table)
    last = next((entry for entry in reversed(entries) if entry.get("bounds")), None)
    if last is not None:
        edges = Table("edge", "bound")
        for edge, below in last["bounds_as_times"].items():
            edges.add_row(edge, below or "none yet")
        console.print(edges)
