"""At rest: a graph over traces, to their end."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from oop_engine.cli.options import check_output, scenario_file, with_options
from oop_engine.cli.output import ProgressLine, terminal, watching
from oop_engine.cli.running.fewer_collections import keep_loaded
from oop_engine.cli.running.graph_of import (
    check_takes,
    graph_or_function,
    made_graph,
    named_nodes,
    named_or_alone,
    of_any_name,
    takes_nothing,
)
from oop_engine.cli.running.rows_read import rows_read
from oop_engine.core.errors import TraceError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from oop_engine.core.graphs.graph import Graph
    from oop_engine.core.graphs.stream import Stream
    from oop_engine.core.operator import Message, State
    from oop_engine.core.schema import Schema
    from oop_engine.operators.policies.running_bound import Policy
    from oop_engine.traces.csv_format import CsvFormat
    from oop_engine.traces.trace import Trace

__all__ = ["Opened", "at_rest", "opened"]

_ROWS = 10
"""Of the results of a sink, the first and last so many are shown."""


class Opened(NamedTuple):
    """A graph, and the trace of each of its sources."""

    graph: Graph
    traces: dict[str, Trace]


def opened(
    path: Path,
    texts: tuple[str, ...],
    time: str | None,
    unit: str | None,
    policy: str | None,
    out: tuple[str, Path | None] = ("--out", None),
    csv: CsvFormat | None = None,
    types: Mapping[str, pa.DataType] | None = None,
) -> Opened:
    """Return the graph in a file, and its traces; a single one needs no name.

    ``out``: an option, and a file that is to be written, and so must be none of them.
    A function ``graph(schemas, policies)`` is given the schemas of the traces, and a policy for each.
    Raises ``UsageError`` where they do not belong together.
    """
    from oop_engine.traces.trace import open_trace

    made = graph_or_function(path)
    if not callable(made) or takes_nothing(made):
        graph = made_graph(path, made) if callable(made) else made
        schemas = {
            node.name: node.schema for node in graph.plan().of_kind("source") if node.schema is not None
        }
        named = named_nodes("TRACE", texts, list(schemas))
        check_output(*out, *named.items())
        _check_unused(schemas.values(), time, unit, policy, types)
        traces = {
            name: open_trace(text, schemas[name], csv=_csv_of(text, csv)) for name, text in named.items()
        }
        _print_notes(traces)
        return Opened(graph, traces)
    check_takes(path, made, {}, {})
    if not texts:
        msg = f"{path}: give a trace for each source of the graph: NAME=TRACE, or TRACE where there is one source"
        raise UsageError(msg)
    named = named_or_alone("TRACE", texts)
    check_output(*out, *((name or "the graph", text) for name, text in named.items()))
    try:
        traces = {
            name: open_trace(text, time=time, unit=unit, csv=_csv_of(text, csv), types=types)
            for name, text in named.items()
        }
    except TraceError as error:
        raise TraceError(with_options(str(error))) from error
    _print_notes(traces)
    alone = traces[""].path if "" in traces else None
    schemas = of_any_name({name: trace.schema for name, trace in traces.items()}, alone)
    graph = made_graph(path, made, schemas, of_any_name(_policies(traces, policy), alone))
    names = [node.name for node in graph.plan().of_kind("source")]
    named = named_nodes("TRACE", texts, names)
    return Opened(graph, {name: traces[name if name in traces else ""] for name in named})


def _csv_of(path: str, csv: CsvFormat | None) -> CsvFormat | None:
    """Return how a trace is written, if it is CSV: one option is for all traces."""
    from oop_engine.traces.format_registry import format_of, is_format

    return csv if csv is not None and (not is_format(path) or format_of(path) == "csv") else None


def _print_notes(traces: Mapping[str, Trace]) -> None:
    for name, trace in traces.items():
        for note in trace.notes:
            print(f"{name or trace.path.name}: {note}", file=sys.stderr)


def at_rest(
    path: Path,
    texts: tuple[str, ...],
    out: Path | None,
    time: str | None,
    unit: str | None,
    policy: str | None,
    *,
    as_json: bool,
    csv: CsvFormat | None = None,
    types: Mapping[str, pa.DataType] | None = None,
) -> int:
    """Run a graph over traces to their end; show the results, or write them into a file."""
    from oop_engine.runners.replay import replay
    from oop_engine.runners.schedule import by_order_alone
    from oop_engine.traces.format_registry import format_of
    from oop_engine.traces.trace_writing import check_writable, write_trace

    keep_loaded()
    if out is not None and as_json:
        msg = "run: --out writes results into a file, and --json prints them: leave one of them out"
        raise UsageError(msg)
    check_output("--out", out, *scenario_file(str(path)))
    if out is not None:
        format_of(out)
    graph, traces = opened(path, texts, time, unit, policy, ("--out", out), csv, types)
    graph = _narrowed(graph, traces)
    plan = graph.plan()
    for trace in traces.values():
        trace.made_up = not by_order_alone(plan)
    [sink, *more] = plan.of_kind("sink")
    if more and out is not None:
        msg = f"{path}: --out takes the results of one sink; the graph has {', '.join(n.name for n in (sink, *more))}"
        raise UsageError(msg)
    schema = plan.schema(plan.input(sink, 0))
    if out is not None:
        check_writable(out, schema)
    rows = dict.fromkeys(traces, 0)
    with watching() as watch:
        watch.on_run(str(path), 0, 1)
        outcome = replay(
            graph,
            {name: _watched(name, trace, watch, rows) for name, trace in traces.items()},
            watch=_BoundShown(watch, sink.name, schema) if watch.visible else None,
            flat_out=None,  # nobody asks here when a result came
        )
    read = [
        rows_read(name, rows[name], trace.refused, trace.nulls, trace.unknown)
        for name, trace in traces.items()
    ]
    print(f"{', '.join(read)}; {outcome.late}", file=sys.stderr)
    for name, trace in traces.items():
        if trace.refused:
            reasons = "; ".join(f"{reason}: {rows:,}" for reason, rows in trace.refused.items())
            print(f"{name}: refused rows: {reasons}", file=sys.stderr)
    if out is not None:
        from oop_engine.core.page import pages

        table = outcome.results[sink.name]
        write_trace(out, schema, pages(schema, table), arrival_column=None)
        print(f"{sink.name}: {table.num_rows:,} rows in {out}", file=sys.stderr)
        return 0
    for name, table in outcome.results.items():
        if as_json:
            _print(table, name if more else None)
        else:
            _show(table, name)
    return 0


def _narrowed(graph: Graph, traces: Mapping[str, Trace]) -> Graph:
    """Return ``graph`` without the columns that it does not use and that its traces can spare; they read no others."""
    from oop_engine.core.errors import GraphError
    from oop_engine.operators.rewrites.narrow_sources import narrow_sources

    spare = {name: columns for name, trace in traces.items() if (columns := trace.spare())}
    if not spare:
        return graph
    try:
        narrow = narrow_sources(graph, spare)
        plan = narrow.plan()
    except GraphError:  # inputs of one operator that must be alike, and only some of which can spare a column
        return graph
    for node in plan.of_kind("source"):
        if node.schema is not None and node.schema.names != traces[node.name].schema.names:
            traces[node.name].narrow(node.schema)
    return narrow


class _BoundShown:
    """Shows the bound of the results of one sink: those before it are complete."""

    def __init__(self, watch: ProgressLine, sink: str, schema: Schema) -> None:
        self._watch, self._sink, self._schema = watch, sink, schema

    def passed(self, stream: Stream, node: str, message: Message, now: int) -> None:
        """Show the bound of a punctuation that reaches the sink."""
        from oop_engine.core.punctuation import Linear

        if node == self._sink and isinstance(message, Linear):
            self._watch.on_bound(str(self._schema.in_json(message.below)))

    def kept(self, now: int, state: State) -> None:
        """Leave the state alone."""


def _watched(name: str, trace: Trace, watch: ProgressLine, rows: dict[str, int]) -> Iterator[Message]:
    """Yield the messages of a trace; count its rows, and its columns that the schema does not have."""
    from oop_engine.core.page import Page

    trace.counts_unknown = True
    for message in trace:
        yield message
        if isinstance(message, Page):
            rows[name] += len(message)
            watch.on_tuples(len(message))
            watch.on_share(name, trace.share)


def _check_unused(
    schemas: Iterable[Schema],
    time: str | None,
    unit: str | None,
    policy: str | None,
    types: Mapping[str, pa.DataType] | None,
) -> None:
    """Refuse options that a graph with schemas and policies of its own would not follow."""
    way = "leave it out, or write the graph as graph(schemas, policies)"
    for schema in schemas:
        for option, word, given, own in (
            ("--time", "time", time, schema.progressing),
            ("--unit", "unit", unit, schema.unit),
        ):
            if given not in {None, own}:
                msg = f"{option}: the graph has a schema of its own, whose {word} is {own!r}; got {given!r}: {way}"
                raise UsageError(msg)
    if types:
        msg = f"--type: the graph has a schema of its own; got {', '.join(types)}: {way}"
        raise UsageError(msg)
    if policy is not None:
        msg = f"--policy: the graph has policies of its own; got {policy!r}: {way}"
        raise UsageError(msg)


def _print(table: pa.Table, sink: str | None) -> None:
    """Print rows as JSON lines, by sink where there are several."""
    from oop_engine.core.groups.in_python import as_json, rows_of
    from oop_engine.core.values.rfc3339 import for_texts

    for row in rows_of(for_texts(table)):
        print(as_json(row if sink is None else {sink: row}))


def _show(table: pa.Table, sink: str) -> None:
    """Show the first and last rows as a table."""
    from oop_engine.lab.report.table import result_table

    terminal().print(result_table(sink, table, _ROWS))
    if table.num_rows > 2 * _ROWS:
        print(f"{sink}: all {table.num_rows:,} rows: --out FILE, or --json", file=sys.stderr)


def _policies(opened: Mapping[str, Any], policy: str | None) -> dict[str, Policy]:
    """Return the policy of each source: as given, or the one of least delay that loses no tuple."""
    from oop_engine.core.units import TIME_UNITS, to_seconds
    from oop_engine.lab.report.words import seconds
    from oop_engine.pipeline.policy import read_policy
    from oop_engine.traces.profiling import profile

    policies = {}
    for name, trace in opened.items():
        text = policy
        if text is None:
            candidates = [c for c in profile(trace, trace.schema).candidates if not c.late]
            best = min(candidates, key=lambda candidate: candidate.delay)
            text = best.policy
            unit = trace.schema.unit
            wait = seconds(to_seconds(best.delay, unit)) if unit in TIME_UNITS else f"{best.delay:,} {unit}"
            print(
                f"{name or trace.path}: {text}, by its profile: no tuple is late, and results wait {wait} for "
                "disorder; another with --policy",
                file=sys.stderr,
            )
        policies[name] = read_policy(text, "--policy", trace.schema)
    return policies
