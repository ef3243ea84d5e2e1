"""``oop-engine replay``: one plan over its trace, its results, and its state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from oop_engine.cli.on_spark import Compared, OnSpark, spark_options
from oop_engine.cli.options import (
    check_output,
    json_option,
    order_option,
    scenario_argument,
    scenario_file,
    set_option,
)
from oop_engine.cli.output import only_json, print_json, terminal, watching
from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from oop_engine.core.operator import Message
    from oop_engine.core.schema import Schema
    from oop_engine.lab.scenario import Scenario, Variant
    from oop_engine.runners.outcome import Outcome

__all__ = ["choose", "limited", "replay"]


@click.command()
@scenario_argument
@set_option
@click.option("--variant", metavar="NAME", help="The plan to run; default: the first one out of order.")
@order_option
@click.option(
    "--on", "runner", type=click.Choice(["inline", "local", "spark"]), default="inline", show_default=True,
    help="inline: a plain loop. local: a task per operator and bounded queues. spark: Apache Spark.",
)  # fmt: skip
@spark_options
@click.option(
    "--speed", type=click.FloatRange(min=0, min_open=True), metavar="X", help="In real time, X times faster."
)
@click.option("--flat-out", is_flag=True, help="Without a clock, as fast as it goes: no delays, only speed.")
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N tuples of each source."
)
@click.option("--check", is_flag=True, help="Check every edge against its bounds (slower).")
@click.option(
    "--rows", type=click.IntRange(min=0), default=5, show_default=True, help="First and last results shown."
)
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="FILE",
    help="Write the results: .parquet, .arrow, .csv, .jsonl or .msgpack.",
)  # fmt: skip
@json_option
def replay(
    scenario: str,
    settings: dict[str, str],
    variant: str | None,
    order: str | None,
    runner: Literal["inline", "local", "spark"],
    on_spark: OnSpark,
    speed: float | None,
    flat_out: bool,
    limit: int | None,
    check: bool,
    rows: int,
    output: Path | None,
    as_json: bool,
) -> int:
    """Run one plan of a scenario and show its results, and the work and state of each operator.

    \b
    The first plan out of order, in virtual time:
      oop-engine replay nyc_flights
    Its in-order twin; results to a file:
      oop-engine replay nyc_flights --order in --output delays.parquet
    As it happened, but an hour in a minute:
      oop-engine replay nyc_flights --speed 60 --on local
    How fast it is:
      oop-engine replay links --flat-out --limit 5000000
    On Spark, and beside it in this process; results must be equal:
      oop-engine replay nyc_flights --on spark --compare
    """
    from oop_engine.lab.scenario import load
    from oop_engine.runners.replay import replay as run

    if flat_out and speed is not None:
        msg = "--flat-out has no clock, so it has no --speed: leave one of them out"
        raise UsageError(msg)
    _check_output(output, *scenario_file(scenario))
    on_spark.check(
        runner, clock="--speed" if speed else "--flat-out" if flat_out else "--check" if check else ""
    )
    with only_json(as_json):
        loaded = load(scenario)
        values = loaded.values(settings)
        chosen = choose(loaded, loaded.plans(values), variant, order)

        def feeds() -> dict[str, Iterator[Message]]:
            given_feeds = loaded.feeds(values)
            _check_output(output, *_traces_of(given_feeds))
            return {name: limited(feed, limit) for name, feed in given_feeds.items()}

        compared: Compared | None = None
        if runner == "spark":
            tell = _silent if as_json else partial(click.echo, err=True)
            compared = on_spark.run(loaded, chosen, feeds, tell)
        else:
            with watching() as watch:
                watch.on_run(chosen.name, 0, 1)
                outcome = run(
                    chosen.graph, feeds(), on=runner, speed=speed, flat_out=flat_out, check=check,
                    on_tuples=watch.on_tuples,
                )  # fmt: skip
        _write_results(output, chosen, outcome.results if compared is None else compared.results)
    if compared is not None:
        return compared.show(loaded, values, rows, output, as_json=as_json)
    if as_json:
        print_json(_plain(loaded, values, chosen, outcome))
    else:
        _show(chosen, outcome, rows, output)
    return 0


def _silent(line: str) -> None:
    """Show nothing."""


def choose(scenario: Scenario, variants: list[Variant], name: str | None, order: str | None) -> Variant:
    """Return the plan asked for; without a name the first one, out of order if there is such.

    Raises ``UsageError`` if there is none.
    """
    there = [v for v in variants if (name is None or v.name == name) and (order is None or v.order == order)]
    if not there:
        wanted = " ".join(word for word in (name and repr(name), order and f"of order {order!r}") if word)
        known = ", ".join(f"{v.name!r} ({v.order})" for v in variants)
        hint = did_you_mean(name, (v.name for v in variants)) if name is not None else ""
        msg = f"scenario {scenario.name!r} has no variant {wanted}; there are {known}{hint}"
        raise UsageError(msg)
    return min(there, key=lambda v: v.order != "out")


def limited(feed: Iterable[Message], limit: int | None) -> Iterator[Message]:
    """Yield the messages up to the tuple number ``limit``."""
    from oop_engine.core.page import Page

    left = limit
    for message in feed:
        if left is not None and isinstance(message, Page):
            message = message.slice(0, min(left, len(message)))
            left -= len(message)
        yield message
        if left == 0:
            return


def _check_output(output: Path | None, *reads: tuple[str, str | Path]) -> None:
    if output is not None:
        from oop_engine.traces.format_registry import format_of

        format_of(output)
        check_output("--output", output, *reads)


def _traces_of(feeds: Mapping[str, Any]) -> list[tuple[str, Path]]:
    """Return the files of those feeds that are traces."""
    from oop_engine.traces.trace import Trace

    return [(f"source {name!r}", feed.path) for name, feed in feeds.items() if isinstance(feed, Trace)]


def _write_results(output: Path | None, variant: Variant, results: dict[str, pa.Table]) -> None:
    if output is None:
        return
    from oop_engine.core.page import Page
    from oop_engine.traces.trace_writing import write_trace

    plan = variant.graph.plan()
    sink = plan.of_kind("sink")[0]
    schema = plan.schema(sink.inputs[0])
    batches = results[sink.name].to_batches()
    write_trace(output, schema, (Page(schema, batch) for batch in batches))


def _show(variant: Variant, outcome: Outcome, rows: int, output: Path | None) -> None:
    from oop_engine.lab.report.table import operator_table, result_table
    from oop_engine.lab.report.words import advised, count, seconds, size
    from oop_engine.system.memory import peak_rss

    console = terminal()
    for name, results in outcome.results.items():
        console.print(result_table(name, results, rows))
    console.print(operator_table(outcome.statistics))
    peak = outcome.statistics.peak
    console.print(
        f"{variant.graph.name}: {count(outcome.tuples)} tuples in {seconds(outcome.wall_s)}, "
        f"{count(_rate(outcome))} tuples/s, {seconds(outcome.cpu_s)} CPU (without reading the trace)",
        markup=False,
    )
    console.print(
        f"kept at most {count(peak.tuples)} tuples, {count(peak.partials)} partial aggregates, "
        f"{size(peak.nbytes)}; peak RSS of the process {size(peak_rss())}"
    )
    if outcome.late.total:
        console.print(advised(outcome.late), markup=False)
    if outcome.behind.total:
        console.print(
            f"{outcome.behind}: an operator upstream emits bounds that are too large; --check finds it",
            markup=False,
        )
    if output is not None:
        console.print(f"results: {output}", markup=False)


def _plain(scenario: Scenario, values: dict[str, Any], variant: Variant, outcome: Outcome) -> dict[str, Any]:
    from oop_engine.runners.dispatch import edge_schemas
    from oop_engine.system.memory import peak_rss

    statistics = outcome.statistics
    operators = {
        name: {"peak": operator.peak._asdict(), "busy_s": operator.busy_s, "counts": operator.counts}
        for name, operator in statistics.operators.items()
    }
    schemas = edge_schemas(variant.graph.plan())
    return {
        "scenario": scenario.name,
        "parameters": values,
        "variant": variant.name,
        "order": variant.order,
        "tuples": outcome.tuples,
        "results": {name: table.num_rows for name, table in outcome.results.items()},
        "late": statistics.count("late"),
        "peak": statistics.peak._asdict(),
        "wall_s": outcome.wall_s,
        "cpu_s": outcome.cpu_s,
        "tuples_per_s": _rate(outcome),
        "peak_rss_bytes": peak_rss(),
        "operators": operators,
        "edges": {
            name: {**asdict(edge), "below": _below(schemas[name], edge.below)}
            for name, edge in statistics.edges.items()
        },
    }


def _below(schema: Schema, below: int) -> str | int | None:
    from oop_engine.core.punctuation import FOREVER, NEVER

    return {NEVER: None, FOREVER: "ended"}.get(below) if below in (NEVER, FOREVER) else schema.in_json(below)


def _rate(outcome: Outcome) -> float:
    return outcome.tuples / outcome.wall_s if outcome.wall_s > 0 else 0.0
