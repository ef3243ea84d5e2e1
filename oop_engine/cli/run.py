"""``oop-engine run``: a graph of yours, over files at rest, or live for as long as it is wanted."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from oop_engine.cli.options import check_folder
from oop_engine.core.errors import UsageError

if TYPE_CHECKING:
    from oop_engine.core.graphs.graph import Graph
    from oop_engine.operators.policies.running_bound import Policy

__all__ = ["run"]

_NAME = re.compile(r"[\w-]+")


@click.command()
@click.argument("graph", type=click.Path(path_type=Path), metavar="GRAPH")
@click.argument("traces", nargs=-1, metavar="[TRACE]...")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Write the results into this file."
)
@click.option("--time", metavar="COL", help="Traces: the column that makes progress.")
@click.option(
    "--unit", metavar="UNIT", help="Traces: its unit, if it is an integer: s, ms, us, ns, or another word."
)
@click.option(
    "--policy", metavar="POLICY", help="Traces: of all sources; default: the best by their profile."
)
@click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="NAME=KIND:ADDRESS",
    help="A live source. Repeat for several.",
)
@click.option(
    "--sink",
    "sinks",
    multiple=True,
    metavar="NAME=KIND:ADDRESS",
    help="Where results go. Repeat for several.",
)
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep the state here, and go on from it.",
)
@click.option(
    "--every",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    metavar="SECONDS",
    help="Between two checkpoints; default: 10.",
)
@click.option("--drain", is_flag=True, help="When stopped, end the streams: all that is there comes out.")
@click.option("--dead-letters", metavar="KIND:ADDRESS", help="Where rows go that cannot be read.")
@click.option(
    "--without-state-of",
    "anew",
    multiple=True,
    metavar="NODE",
    help="Begin this operator anew. Repeat for several.",
)
def run(
    graph: Path,
    traces: tuple[str, ...],
    out: Path | None,
    time: str | None,
    unit: str | None,
    policy: str | None,
    sources: tuple[str, ...],
    sinks: tuple[str, ...],
    checkpoint: Path | None,
    every: float,
    drain: bool,
    dead_letters: str | None,
    anew: tuple[str, ...],
) -> int:
    """Run a graph of yours: over traces to their end, or live, until Ctrl-C or SIGTERM.

    GRAPH is a Python file that has "graph", a Graph or a function that returns one. Over traces the function may be
    graph(schemas, policies): it is given a schema and a policy for each trace, by the name of its source.

    \b
    Over a file at rest; the policy is chosen by its disorder:
      oop-engine run graph.py requests=logs.csv --time ts --out result.parquet
    Live, and again from where it was:
      oop-engine run graph.py --source requests=tail:access.jsonl --sink counts=parquet:out --checkpoint state

    \b
    Sources: tail:PATH, folder:PATH, tcp:HOST:PORT; with ?format=csv, ?follow=no.
    Sinks: parquet:DIR, jsonl:DIR, csv:DIR, arrow:DIR, print:
    """
    if bool(traces) == bool(sources):
        msg = "run: give traces, or live sources with --source; not both, and not none"
        raise UsageError(msg)
    if sources:
        if out or time or unit or policy:
            msg = "run: --out, --time, --unit and --policy are for traces; live, give --sink NAME=parquet:DIR"
            raise UsageError(msg)
        return _live(graph, sources, sinks, checkpoint, every, dead_letters, anew, drain=drain)
    if sinks or checkpoint or drain or dead_letters or anew:
        msg = "run: traces have an end, and no checkpoint: leave out the options of live sources, and give --out FILE"
        raise UsageError(msg)
    return _at_rest(graph, traces, out, time, unit, policy)


def _live(
    path: Path,
    sources: tuple[str, ...],
    sinks: tuple[str, ...],
    checkpoint: Path | None,
    every: float,
    dead_letters: str | None,
    anew: tuple[str, ...],
    *,
    drain: bool,
) -> int:
    from oop_engine.connectors.by_name import sink_of, source_of
    from oop_engine.core.graphs.graph import Stream
    from oop_engine.runners.event_loop import run_async
    from oop_engine.service.serve import serve

    built = _graph(path)
    plan = built.plan()
    named = _named("--source", sources, [node.name for node in plan.of_kind("source")])
    into = _named("--sink", sinks, [node.name for node in plan.of_kind("sink")])
    logging.basicConfig(stream=sys.stderr, format="%(message)s")
    served = run_async(
        serve(
            built,
            {name: source_of(text, plan.schema(Stream(name))) for name, text in named.items()},
            {name: sink_of(text) for name, text in into.items()},
            checkpoint=checkpoint,
            every_s=every,
            drain=drain,
            dead_letters=None if dead_letters is None else sink_of(dead_letters),
            without_state_of=anew,
        )
    )
    rows = ", ".join(f"{count:,} rows of {name}" for name, count in served.tuples.items())
    how = (
        "all streams have ended"
        if served.over
        else "stopped; windows that are not complete are in the checkpoint"
    )
    if not served.over and checkpoint is None:
        how = "stopped; windows that were not complete are lost, for there is no --checkpoint"
    plural = "" if served.epochs == 1 else "s"
    print(f"{rows}; {served.epochs:,} checkpoint{plural}; {how}", file=sys.stderr)
    return 0


def _at_rest(
    path: Path,
    traces: tuple[str, ...],
    out: Path | None,
    time: str | None,
    unit: str | None,
    policy: str | None,
) -> int:
    from oop_engine.face import run as run_graph
    from oop_engine.traces.trace import open_trace, write_trace

    check_folder(out)
    found = _function(path)
    names = [node.name for node in found.plan().of_kind("source")] if not callable(found) else []
    named = _named("TRACE", traces, names)
    if not callable(found) or _takes_nothing(found):
        built = _graph(path)
        schemas = {node.name: node.schema for node in built.plan().of_kind("source")}
        named = _named("TRACE", traces, list(schemas))
        opened = {name: open_trace(text, schemas[name]) for name, text in named.items()}
    else:
        opened = {name: open_trace(text, time=time, unit=unit) for name, text in named.items()}
        built = _checked(
            path, found({name: t.schema for name, t in opened.items()}, _policies(opened, policy))
        )
    plan = built.plan()
    [sink, *more] = plan.of_kind("sink")
    if more and out is not None:
        msg = f"{path}: --out takes the results of one sink; the graph has {', '.join(n.name for n in (sink, *more))}"
        raise UsageError(msg)
    outcome = run_graph(built, opened)
    for name, table in outcome.results.items():
        print(
            f"{name}: {table.num_rows:,} rows of {outcome.tuples:,} tuples; {outcome.late}", file=sys.stderr
        )
    for name, trace in opened.items():
        if trace.refused:
            print(f"{name}: refused rows: {trace.refused}", file=sys.stderr)
    if out is not None:
        from oop_engine.core.page import pages

        schema = plan.schema(plan.input(sink, 0))
        write_trace(out, schema, pages(schema, outcome.results[sink.name]), arrival_column=None)
        return 0
    from oop_engine.cli.output import terminal

    for table in outcome.results.values():
        terminal().print("\n".join(map(str, table.slice(0, 20).to_pylist())), markup=False)
    return 0


def _policies(opened: Mapping[str, Any], policy: str | None) -> dict[str, Policy]:
    """Return the policy of each source: as given, or the one of least delay that loses no tuple."""
    from oop_engine.pipeline.policy import read_policy
    from oop_engine.traces.profile import profile

    found = {}
    for name, trace in opened.items():
        text = policy
        if text is None:
            candidates = [c for c in profile(trace, trace.schema).candidates if not c.late]
            best = min(candidates, key=lambda candidate: candidate.delay)
            text = best.policy
            print(
                f"{name}: {text}, by its profile: no tuple is late, and results wait {best.delay:,} "
                f"{trace.schema.unit} for disorder; another with --policy",
                file=sys.stderr,
            )
        found[name] = read_policy(text, "--policy", trace.schema)
    return found


def _named(option: str, given: tuple[str, ...], names: list[str]) -> dict[str, str]:
    """Return texts by the names before their ``=``; a single one needs none."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, rest = text.partition("=")
        meant = equals and ":" in rest and _NAME.fullmatch(name)  # a name, and no part of an address
        if not equals or (len(names) == 1 and name not in names and not meant):
            if len(names) != 1:
                msg = f"{option} {text!r}: must begin with the name of its node: {', '.join(names) or 'NAME'}={text}"
                raise UsageError(msg)
            name, rest = names[0], text
        if name in found:
            msg = f"{option}: {name!r} is given twice"
            raise UsageError(msg)
        found[name] = rest
    if names and {*names} != {*found}:
        msg = f"{option}: the graph has {', '.join(names)}; got {', '.join(found) or 'none'}"
        raise UsageError(msg)
    return found


def _function(path: Path) -> Any:
    """Return the value of ``graph`` in a file."""
    from oop_engine.core.graphs.graph import Graph
    from oop_engine.system.python_file import load_file

    found = getattr(load_file(path, "Python"), "graph", None)
    if not callable(found) and not isinstance(found, Graph):
        msg = f"{path}: must have graph, a Graph or a function that returns one; got {found!r}"
        raise UsageError(msg)
    return found


def _takes_nothing(found: Any) -> bool:
    import inspect

    return not inspect.signature(found).parameters


def _graph(path: Path) -> Graph:
    """Return the graph in a file, which needs no schemas."""
    found = _function(path)
    if not callable(found):
        return _checked(path, found)
    if not _takes_nothing(found):
        msg = f"{path}: graph(schemas, policies) is for traces; live, it must be a Graph, or graph() without parameters"
        raise UsageError(msg)
    return _checked(path, found())


def _checked(path: Path, graph: Any) -> Graph:
    from oop_engine.core.graphs.graph import Graph

    if not isinstance(graph, Graph):
        msg = f"{path}: graph() must return a Graph; got {graph!r}"
        raise UsageError(msg)
    return graph
