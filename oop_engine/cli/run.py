"""``oop-engine run``: a graph of yours, over files at rest, or live for as long as it is wanted."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from oop_engine.cli.options import csv_option, type_option
from oop_engine.cli.running.rows_read import rows_read
from oop_engine.core.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from oop_engine.service.served import Served
    from oop_engine.traces.csv_format import CsvFormat

__all__ = ["run"]


@click.command()
@click.argument("graph", type=click.Path(path_type=Path), metavar="GRAPH")
@click.argument("traces", nargs=-1, metavar="[TRACE]...")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Write the results into this file."
)
@click.option(
    "--json", "as_json", is_flag=True, help="Traces: print each result as a line of JSON, and no table."
)
@click.option("--time", metavar="COL", help="Traces: the column that makes progress.")
@click.option(
    "--unit", metavar="UNIT", help="Traces: its unit, if it is an integer: s, ms, us, ns, or another word."
)
@click.option(
    "--policy", metavar="POLICY", help="Traces: of all sources; default: the best by their profile."
)
@csv_option
@type_option
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
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write checkpoints here, and restore the last one at the start; also s3://BUCKET/FOLDER.",
)
@click.option(
    "--every",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    metavar="SECONDS",
    help="Between two checkpoints; default: 10.",
)
@click.option("--drain", is_flag=True, help="When stopped, end the streams: all that is there comes out.")
@click.option(
    "--page",
    type=click.IntRange(0, 65_535),
    is_flag=False,
    flag_value=8470,
    metavar="[PORT]",
    help="Show how it is doing at http://127.0.0.1:PORT; default: 8470; 0: any that is free.",
)
@click.option("--watch", is_flag=True, help="Show the same in the terminal.")
@click.option("--dead-letters", metavar="KIND:ADDRESS", help="Where rows go that cannot be read.")
@click.option(
    "--without-state-of",
    "anew",
    multiple=True,
    metavar="NODE",
    help="This node has changed, or is gone: discard its state. Repeat for several; new nodes need no option.",
)
@click.option(
    "--from",
    "starts",
    multiple=True,
    metavar="[NAME=]earliest|latest|POSITION",
    help="Read a source from here at this start, not from its position in the checkpoint. Repeat for several.",
)
@click.option(
    "--after-drain",
    is_flag=True,
    help="After --drain: resume from the same positions, with empty operators.",
)
def run(
    graph: Path,
    traces: tuple[str, ...],
    out: Path | None,
    as_json: bool,
    time: str | None,
    unit: str | None,
    policy: str | None,
    csv: CsvFormat | None,
    types: dict[str, pa.DataType],
    sources: tuple[str, ...],
    sinks: tuple[str, ...],
    checkpoint: str | None,
    every: float,
    drain: bool,
    page: int | None,
    watch: bool,
    dead_letters: str | None,
    anew: tuple[str, ...],
    starts: tuple[str, ...],
    after_drain: bool,
) -> int:
    """Run a graph of yours: over traces to their end, or live, until Ctrl-C or SIGTERM.

    GRAPH is a Python file that has "graph", a Graph or a function that returns one; FILE.py:NAME is one of another
    name. Over traces the function may be graph(schemas, policies): it is given a schema and a policy for each trace, by
    the name of its source.  `oop-engine explain GRAPH` shows graphs.

    \b
    Over a file at rest, results on the screen; one source needs no name:
      oop-engine run graph.py logs.csv
    The same for a graph(schemas, policies); the policy is chosen by the disorder of the file:
      oop-engine run graph.py requests=logs.csv --time ts --out result.parquet
    Several files, results for another program:
      oop-engine run join.py clicks=clicks.csv ads=ads.parquet --json | jq .
    Live, and again from where it was:
      oop-engine run graph.py --source requests=tail:access.jsonl --sink counts=parquet:out --checkpoint state
    The same, and a page that shows why a window is still open:
      oop-engine run graph.py --source tail:access.jsonl --sink parquet:out --checkpoint state --page=8470

    \b
    Sources: tail:PATH, folder:PATH, tcp:HOST:PORT, kafka:, redis: or nats:HOST:PORT/NAME, wss://..., sse:https://...,
      mqtt:HOST:PORT/TOPIC?client=ID, postgres:HOST:PORT/DB?publication=NAME; with ?format=csv, ?follow=no;
      ?format=avro&registry=http://HOST:PORT, or protobuf (docs/formats.md);
      ?user=NAME&tls=yes (docs/servers.md).
    Sinks: parquet:DIR, jsonl:DIR, csv:DIR, arrow:DIR, delta:DIR, print:, kafka:, redis: or nats:HOST:PORT/NAME,
      postgres:HOST:PORT/DB?table=NAME; messages with ?format=msgpack; postgres: and delta: with ?key=COLUMNS
    """
    if bool(traces) == bool(sources):
        msg = "run: give traces, or live sources with --source; not both, and not none"
        raise UsageError(msg)
    if sources:
        if out or time or unit or policy or as_json or types:
            msg = "run: --out, --json, --time, --unit and --policy, --type are for traces; give --sink NAME=parquet:DIR"
            raise UsageError(msg)
        return _live(
            graph,
            sources,
            sinks,
            checkpoint,
            every,
            dead_letters,
            anew,
            starts,
            page,
            drain=drain,
            watch=watch,
            after_drain=after_drain,
            csv=csv,
        )
    if (
        sinks
        or checkpoint
        or drain
        or after_drain
        or dead_letters
        or anew
        or starts
        or page is not None
        or watch
    ):
        msg = "run: traces have an end, and no checkpoint: leave out the options of live sources, and give --out FILE"
        raise UsageError(msg)
    from oop_engine.cli.running.at_rest import at_rest

    return at_rest(graph, traces, out, time, unit, policy, as_json=as_json, csv=csv, types=types)


def _live(
    path: Path,
    sources: tuple[str, ...],
    sinks: tuple[str, ...],
    checkpoint: str | None,
    every: float,
    dead_letters: str | None,
    anew: tuple[str, ...],
    starts: tuple[str, ...],
    page: int | None,
    *,
    drain: bool,
    watch: bool,
    after_drain: bool,
    csv: CsvFormat | None,
) -> int:
    from oop_engine.cli.running.fewer_collections import keep_loaded
    from oop_engine.cli.running.graph_of import graph_of, named_nodes
    from oop_engine.cli.running.positions import positions_of
    from oop_engine.cli.running.watch import logged
    from oop_engine.connectors.by_name import sink_of, source_of
    from oop_engine.core.graphs.graph import Stream
    from oop_engine.runners.event_loop import run_async
    from oop_engine.service.serve import serve

    keep_loaded()
    built = graph_of(path)
    plan = built.plan()
    named = named_nodes("--source", sources, [node.name for node in plan.of_kind("source")])
    into = named_nodes("--sink", sinks, [node.name for node in plan.of_kind("sink")])
    printed = sys.stdout.isatty() and any(text.startswith("print:") for text in into.values())
    with (
        logged(rewritten=not (watch or printed)) as every_s,
        _watching(watch) as show,
        _state_is_safe(checkpoint),
    ):
        served = run_async(
            serve(
                built,
                {name: source_of(text, plan.schema(Stream(name)), csv) for name, text in named.items()},
                {name: sink_of(text) for name, text in into.items()},
                checkpoint=checkpoint,
                every_s=every,
                drain=drain,
                dead_letters=None if dead_letters is None else sink_of(dead_letters),
                without_state_of=anew,
                after_drain=after_drain,
                start_from=positions_of(starts, list(named)),
                page=page,
                signals=True,
                watch=show,
                progress_every_s=None if watch else every_s,
            )
        )
    print(_summary(served, checkpoint), file=sys.stderr)
    return 0


def _summary(served: Served, checkpoint: str | None) -> str:
    """Return the work of a service in a line: rows, those left out, checkpoints, and how it ended."""
    parts = [
        rows_read(
            name,
            count,
            served.unreadable.get(name, {}),
            served.nulls.get(name, {}),
            served.unknown.get(name, {}),
        )
        for name, count in served.tuples.items()
    ]
    parts = [", ".join(parts)]
    for name, reasons in served.refused.items():
        if reasons:
            parts.append(f"sink {name!r} refused {sum(reasons.values()):,} results ({next(iter(reasons))})")
    parts.append(str(served.statistics.late))
    if checkpoint is not None:
        parts.append(f"{served.epochs:,} checkpoint{'' if served.epochs == 1 else 's'}")
    if served.over:
        parts.append("all streams have ended")
    elif checkpoint is not None:
        parts.append("stopped; windows that are not complete are in the checkpoint")
    else:
        parts.append("stopped; windows that were not complete are lost, for there is no --checkpoint")
    return "; ".join(parts)


@contextmanager
def _state_is_safe(checkpoint: str | None) -> Iterator[None]:
    """Print, at a second Ctrl-C, where the next start resumes."""
    from oop_engine.system.addresses import printable

    try:
        yield
    except KeyboardInterrupt:
        words = (
            "there is no --checkpoint, so windows that were not complete are lost"
            if checkpoint is None
            else f"the state is safe: the next start restores the last checkpoint in {printable(checkpoint)}"
        )
        print(f"ended at once; {words}", file=sys.stderr)
        raise


def _watching(wanted: bool) -> AbstractContextManager[Any]:
    if not wanted:
        return nullcontext()
    from oop_engine.cli.running.watch import watching

    return watching()
