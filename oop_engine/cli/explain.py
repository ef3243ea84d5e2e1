"""``oop-engine explain``: the plans of a scenario, or a graph of yours, in words or as a picture."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

import click

from oop_engine.cli.options import (
    check_output,
    is_graph,
    json_option,
    order_option,
    scenario_argument,
    scenario_file,
    set_option,
)
from oop_engine.cli.output import only_json, print_json, write_whole
from oop_engine.core.errors import UsageError
from oop_engine.lab.report.contract import HEADINGS, contract
from oop_engine.runners.feeds.forms import RING

if TYPE_CHECKING:
    from oop_engine.core.graphs.graph import Plan
    from oop_engine.core.operator import Operator
    from oop_engine.lab.scenario import Variant

__all__ = ["contract", "explain"]

_SHOWN = HEADINGS[:3]
GROUPS, SHARDS = 8, 2
_ROWS = (
    f"All that wait at a source enter as one page, {RING:,} rows at most, when the source has nothing more:\n"
    "  no timer, no operator with a way of its own for single rows."
)


@click.command()
@scenario_argument
@set_option
@order_option
@click.option(
    "--on", "runner", type=click.Choice(["spark"]), help="How the plans are cut up to run on Spark."
)
@click.option("--groups", type=click.IntRange(min=1), help=f"Spark: key groups a stage; default: {GROUPS}.")
@click.option("--balance", is_flag=True, help="Spark: as with replay --balance.")
@click.option("--svg", type=click.Path(path_type=Path), metavar="FILE", help="Draw the plans into this file.")
@click.option("--long", is_flag=True, help="Also streams, single rows, and the contract of each operator.")
@json_option
def explain(
    scenario: str,
    settings: dict[str, str],
    order: str | None,
    runner: str | None,
    groups: int | None,
    balance: bool,
    svg: Path | None,
    long: bool,
    as_json: bool,
) -> None:
    """Show each plan of a scenario: its graph, when it emits, its state, and which tuples are late.

    SCENARIO is also a Python file with a "graph", as for `oop-engine run` without traces. Nothing is run.

    \b
      oop-engine explain nyc_flights
      oop-engine explain graph.py
      oop-engine explain graph.py --long
      oop-engine explain packet_join --order out --set band=3
      oop-engine explain links --svg links.svg
      oop-engine explain packet_join --on spark
      oop-engine explain skew --on spark --balance
    """
    if runner is None and (balance or groups):
        msg = f"--{'balance' if balance else 'groups'} is for Spark: add --on spark, or leave it out"
        raise UsageError(msg)
    check_output("--svg", svg, *scenario_file(scenario))
    with only_json(as_json):
        description, variants = (
            _of_graph(scenario) if is_graph(scenario) else _of_scenario(scenario, settings)
        )
        if is_graph(scenario) and (settings or order):
            msg = f"{scenario}: a graph has one plan and no parameters: leave --{'set' if settings else 'order'} out"
            raise UsageError(msg)
        variants = [v for v in variants if order in (None, v.order)]
        if not variants:
            msg = f"scenario {description['scenario']!r} has no plan of order {order!r}: leave --order out"
            raise UsageError(msg)
        if svg is not None:
            from oop_engine.lab.report.drawing import draw

            write_whole(svg, draw(variants))
    if runner == "spark":
        _show_cuts(description, variants, groups or GROUPS, balance=balance, as_json=as_json)
    elif as_json:
        plans = [_plain(variant) for variant in variants]
        contracts = {name: contract(operator) for name, operator in _kinds(variants).items()}
        print_json({**description, "variants": plans, "operators": contracts})
    else:
        _show(variants, long=long)
    if svg is not None and not as_json:
        click.echo(f"\npicture: {svg}")


def _of_graph(name: str) -> tuple[dict[str, Any], list[Variant]]:
    """Return the name of a file, and its graph as the only plan."""
    from oop_engine.cli.running.graph_of import graph_of
    from oop_engine.lab.scenario import Variant

    return {"graph": name}, [Variant(name, "out", graph_of(Path(name)))]


def _of_scenario(name: str, settings: dict[str, str]) -> tuple[dict[str, Any], list[Variant]]:
    """Return the name and parameters of a scenario, and its plans."""
    from oop_engine.lab.scenario import load

    loaded = load(name)
    values = loaded.values(settings)
    return {"scenario": loaded.name, "parameters": values}, loaded.plans(values)


def _kinds(variants: list[Variant]) -> dict[str, Operator]:
    """Return one operator of each kind in the plans, by the name of its kind."""
    nodes = [node for variant in variants for node in variant.graph.plan().nodes]
    return {type(node.operator).__name__: node.operator for node in nodes if node.operator is not None}


def _show(variants: list[Variant], *, long: bool) -> None:
    from oop_engine.core.graphs.lengths import doubtful_lengths
    from oop_engine.core.graphs.waiting import waiting
    from oop_engine.lab.report.answering import answering

    for variant in variants:
        click.secho(_heading(variant), bold=True)
        click.echo(variant.graph.text())
        for title, lines in answering(variant.graph.plan(), contract):
            click.echo(f"\n{title}")
            click.echo("\n".join(f"  {name}  {words}" for name, words in lines))
        if how := _how(variant.graph.plan()):
            click.echo("\nhow")
            click.echo("\n".join(f"  {name}  {why}" for name, why in how.items()))
        for line in [*waiting(variant.graph.plan()).values(), *doubtful_lengths(variant.graph.plan())]:
            click.echo(f"\n{line}")
        if not long:
            click.echo()
            continue
        click.echo("\nstreams (+ marks the progressing attribute)")
        for schema, streams in _by_schema(variant.graph.plan()).items():
            click.echo(f"  {', '.join(streams)}\n    {schema}")
        click.echo()
    if not long:
        click.echo("streams, and the contract of each operator: --long")
        return
    click.secho("rows that come one by one (push_row, messages of a service)", bold=True)
    click.echo(f"  {_ROWS}\n")
    click.secho("operators: output, state, punctuation", bold=True)
    for name, operator in _kinds(variants).items():
        click.echo(f"  {name}")
        sections = contract(operator)
        for heading in [h for h in (*_SHOWN, "About") if h in sections]:
            click.echo(indent(f"{heading}\n{indent(sections[heading], '  ')}", "    "))


def _heading(variant: Variant, *, answer: bool = True) -> str:
    if is_graph(variant.name):
        return variant.name
    order = "in order" if variant.order == "in" else "out of order"
    exact = "gives the exact answer" if variant.exact else "may drop late tuples"
    return f"{order}: {variant.name}" + (f" ({exact})" if answer else "")


def _show_cuts(
    description: dict[str, Any],
    variants: list[Variant],
    groups: int,
    *,
    balance: bool,
    as_json: bool,
) -> None:
    from oop_engine.spark.plan.explained import explained, plain
    from oop_engine.spark.run import pieces_of

    shards = SHARDS if balance else 1
    cuts = [(v, pieces_of(v.graph, groups, balance=balance, shards=shards)) for v in variants]
    if as_json:
        plans = [{"name": v.name, "order": v.order, **plain(cut)} for v, cut in cuts]
        print_json({**description, "variants": plans})
        return
    for variant, cut in cuts:
        click.secho(_heading(variant, answer=False), bold=True)
        click.echo(f"{explained(cut)}\n")


def _how(plan: Plan) -> dict[str, str]:
    """Return for each operator that has several strategies the one it takes, and why."""
    reasons = {
        node.name: node.operator.explain(tuple(plan.schema(stream) for stream in node.inputs))
        for node in plan.nodes
        if node.operator is not None
    }
    return {name: why for name, why in reasons.items() if why is not None}


def _by_schema(plan: Plan) -> dict[str, list[str]]:
    by_schema: dict[str, list[str]] = {}
    for stream, schema in plan.schemas.items():
        by_schema.setdefault(str(schema), []).append(stream.node if stream.port == "out" else str(stream))
    return by_schema


def _plain(variant: Variant) -> dict[str, Any]:
    plan = variant.graph.plan()
    how = _how(plan)
    nodes = [
        {
            "name": node.name,
            "kind": node.kind,
            "does": node.describe(),
            "how": how.get(node.name),
            "retains": None if node.operator is None else node.operator.retains(tuple(plan.inputs(node.name))),
            "inputs": [str(stream) for stream in node.inputs],
            "outputs": {port: str(plan.schemas[stream]) for stream in plan.schemas if stream.node == node.name
                        for port in [stream.port]},
        }
        for node in plan.nodes
    ]  # fmt: skip
    return {"name": variant.name, "order": variant.order, "exact": variant.exact, "nodes": nodes}
