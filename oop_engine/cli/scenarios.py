"""``oop-engine scenarios``: the list of scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from oop_engine.cli.options import complete_scenario, json_option
from oop_engine.cli.output import only_json, print_json, terminal

if TYPE_CHECKING:
    from oop_engine.lab.scenario import Scenario

__all__ = ["scenarios"]


@click.command()
@click.argument("names", nargs=-1, metavar="[SCENARIO]...", shell_complete=complete_scenario)
@json_option
def scenarios(names: tuple[str, ...], as_json: bool) -> None:
    """List the scenarios by source: their questions, their parameters with defaults, and their sweeps.

    \b
    All that come with the project:
      oop-engine scenarios
    One of them, or a file of yours:
      oop-engine scenarios nyc_flights
      oop-engine scenarios my_scenario.py
    """
    from oop_engine.lab import scenario as known
    from oop_engine.lab.report.table import scenario_table

    with only_json(as_json):
        chosen = [known.find(name) for name in names or known.names()]
    if as_json:
        print_json({"scenarios": [_plain(scenario) for scenario in chosen]})
        return
    console = terminal()
    console.print(scenario_table(chosen))
    for scenario in chosen:
        if scenario.missing():
            console.print(f"{scenario.name} cannot run here: {scenario.missing()}", markup=False)
    for scenario in chosen if names else ():
        console.print(scenario.about.strip(), markup=False)


def _plain(scenario: Scenario) -> dict[str, Any]:
    sweep = scenario.sweep
    return {
        "name": scenario.name,
        "title": scenario.title,
        "source": scenario.source,
        "about": scenario.about,
        "parameters": {n: {"default": p.default, "about": p.about} for n, p in scenario.parameters.items()},
        "missing": scenario.missing(),
        "sweep": sweep and {"parameter": sweep.parameter, "values": sweep.values, "unit": sweep.unit},
    }
