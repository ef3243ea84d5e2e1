"""At rest: a graph over traces, to their end."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oop_engine.cli.options import check_folder
from oop_engine.cli.running.graph_of import (
    check_takes,
    graph_or_function,
    made_graph,
    named_nodes,
    takes_nothing,
)
from oop_engine.core.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from oop_engine.core.schema import Schema
    from oop_engine.operators.policies.running_bound import Policy

__all__ = ["at_rest"]

_SCREEN = 20


def at_rest(
    path: Path,
    traces: tuple[str, ...],
    out: Path | None,
    time: str | None,
    unit: str | None,
    policy: str | None,
) -> int:
    """Run a graph over traces to their end; print the results as JSON lines, or write them into a file."""
    from oop_engine.face import run as run_graph
    from oop_engine.traces.format_registry import format_of
    from oop_engine.traces.trace import check_writable, open_trace, write_trace

    check_folder(out)
    if out is not None:
        format_of(out)
    found = graph_or_function(path)
    names = [node.name for node in found.plan().of_kind("source")] if not callable(found) else []
    named = named_nodes("TRACE", traces, names)
    if not callable(found) or takes_nothing(found):
        built = made_graph(path, found) if callable(found) else found
        schemas = {
            node.name: node.schema for node in built.plan().of_kind("source") if node.schema is not None
        }
        named = named_nodes("TRACE", traces, list(schemas))
        _check_unused(schemas.values(), time, unit, policy)
        opened = {name: open_trace(text, schemas[name]) for name, text in named.items()}
    else:
        check_takes(path, found, {}, {})
        opened = {name: open_trace(text, time=time, unit=unit) for name, text in named.items()}
        schemas = {name: trace.schema for name, trace in opened.items()}
        built = made_graph(path, found, schemas, _policies(opened, policy))
    plan = built.plan()
    [sink, *more] = plan.of_kind("sink")
    if more and out is not None:
        msg = f"{path}: --out takes the results of one sink; the graph has {', '.join(n.name for n in (sink, *more))}"
        raise UsageError(msg)
    schema = plan.schema(plan.input(sink, 0))
    if out is not None:
        check_writable(out, schema)
    outcome = run_graph(built, opened, bad_rows="count")
    for name, table in outcome.results.items():
        print(
            f"{name}: {table.num_rows:,} rows of {outcome.tuples:,} tuples; {outcome.late}", file=sys.stderr
        )
    for name, trace in opened.items():
        if trace.refused:
            reasons = "; ".join(f"{reason}: {rows:,}" for reason, rows in trace.refused.items())
            print(f"{name}: refused rows: {reasons}", file=sys.stderr)
    if out is not None:
        from oop_engine.core.page import pages

        write_trace(out, schema, pages(schema, outcome.results[sink.name]), arrival_column=None)
        return 0
    for name, table in outcome.results.items():
        _print(table, name if more else None)
    return 0


def _check_unused(schemas: Iterable[Schema], time: str | None, unit: str | None, policy: str | None) -> None:
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
    if policy is not None:
        msg = f"--policy: the graph has policies of its own; got {policy!r}: {way}"
        raise UsageError(msg)


def _print(table: pa.Table, sink: str | None) -> None:
    """Print rows as JSON lines, by sink where there are several: all, or as many as a screen shows."""
    from oop_engine.core.groups.in_python import as_json, rows_of

    shown = table.slice(0, _SCREEN) if _on_a_screen() else table
    for row in rows_of(shown):
        print(as_json(row if sink is None else {sink: row}))
    if shown.num_rows < table.num_rows:
        print(f"and {table.num_rows - shown.num_rows:,} more: --out FILE takes them all", file=sys.stderr)


def _on_a_screen() -> bool:
    return sys.stdout.isatty()


def _policies(opened: Mapping[str, Any], policy: str | None) -> dict[str, Policy]:
    """Return the policy of each source: as given, or the one of least delay that loses no tuple."""
    from oop_engine.core.units import TIME_UNITS, to_seconds
    from oop_engine.lab.report.words import seconds
    from oop_engine.pipeline.policy import read_policy
    from oop_engine.traces.profile import profile

    found = {}
    for name, trace in opened.items():
        text = policy
        if text is None:
            candidates = [c for c in profile(trace, trace.schema).candidates if not c.late]
            best = min(candidates, key=lambda candidate: candidate.delay)
            text = best.policy
            unit = trace.schema.unit
            wait = seconds(to_seconds(best.delay, unit)) if unit in TIME_UNITS else f"{best.delay:,} {unit}"
            print(
                f"{name}: {text}, by its profile: no tuple is late, and results wait {wait} for disorder; "
                "another with --policy",
                file=sys.stderr,
            )
        found[name] = read_policy(text, "--policy", trace.schema)
    return found
