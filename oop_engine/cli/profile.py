"""``oop-engine profile``: how disordered a trace is, and the cost of each policy of punctuation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from oop_engine.cli.options import csv_option, json_option, type_option, with_options
from oop_engine.cli.output import ProgressLine, print_json, terminal, watching
from oop_engine.core.errors import TraceError

if TYPE_CHECKING:
    import pyarrow as pa

    from oop_engine.core.operator import Message
    from oop_engine.traces.csv_format import CsvFormat
    from oop_engine.traces.profiling import Profile
    from oop_engine.traces.trace import Trace

__all__ = ["profile"]


@click.command()
@click.argument("trace", type=click.Path(path_type=Path), metavar="TRACE")
@click.option("--time", metavar="COL", help="The column that makes progress, an integer or a timestamp.")
@click.option("--unit", metavar="UNIT", help="Its unit, if it is an integer: s, ms, us, ns, or another word.")
@click.option("--arrival", metavar="COL", help="The column of arrival times; default: rows are in order.")
@click.option("--by", metavar="COL[,COL]...", help="Columns that make a group, such as the link.")
@click.option("--format", "form", metavar="FORMAT", help="Format of the trace; default: by its suffix.")
@csv_option
@type_option
@json_option
def profile(
    trace: Path,
    time: str | None,
    unit: str | None,
    arrival: str | None,
    by: str | None,
    form: str | None,
    csv: CsvFormat | None,
    types: dict[str, pa.DataType],
    as_json: bool,
) -> None:
    """Measure the disorder of a trace, and print the cost of each policy of punctuation.

    The trace is read once, in the order of its rows, with bounded memory.  Its format is
    .parquet, .arrow, .csv, .jsonl or .msgpack; a file that "generate" wrote in a binary format
    knows its own time column.  Without --time the only column of moments is it.

    \b
      oop-engine profile packets.parquet --time ts
      oop-engine profile packets.csv --time ts --unit ms --arrival seen --by link
      oop-engine profile flows.msgpack --by link,key --json
    """
    from oop_engine.lab.report.disorder_table import verdict
    from oop_engine.lab.report.proposal import in_python, in_sql
    from oop_engine.traces.profiling import profile as measure
    from oop_engine.traces.trace import open_trace

    time = time or _only_moment(trace, form, csv, types)
    try:
        opened = open_trace(trace, time=time, unit=unit, arrival=arrival, format=form, csv=csv, types=types)
    except TraceError as error:
        raise TraceError(with_options(str(error))) from error
    columns = tuple(name.strip() for name in by.split(",")) if by else ()
    with watching() as watch:
        watch.on_run(str(trace), 0, 1)
        measured = measure(_watched(opened, watch), opened.schema, columns)
    if as_json:
        print_json(
            {
                "trace": str(trace),
                "schema": str(opened.schema),
                "refused": opened.refused,
                "notes": _notes(opened, measured),
                "verdict": verdict(measured),
                "python": in_python(trace, opened.schema, measured),
                "sql": in_sql(trace, opened.schema, measured),
                **measured.to_dict(),
                "first": opened.schema.in_json(measured.first),
                "last": opened.schema.in_json(measured.last),
            }
        )
    else:
        _show(opened, measured)


def _only_moment(
    trace: Path, form: str | None, csv: CsvFormat | None, types: dict[str, pa.DataType]
) -> str | None:
    """Return the only column of moments of a plain file; None: it has its own event time, none, or several."""
    import pyarrow as pa

    from oop_engine.core.errors import EngineError
    from oop_engine.query.sources import scan

    if form is not None or csv is not None:
        return None
    try:
        columns = scan(trace, types=types)
    except EngineError:
        return None  # opening the trace names the mistake
    times = columns.times()
    is_moment = len(times) == 1 and pa.types.is_timestamp(columns.fields.field(times[0]).type)
    return times[0] if is_moment and not columns.knows_unit() else None


def _watched(trace: Trace, watch: ProgressLine) -> Iterator[Message]:
    from oop_engine.core.page import Page

    for message in trace:
        yield message
        if isinstance(message, Page):
            watch.on_tuples(len(message))


def _show(trace: Trace, measured: Profile) -> None:
    from oop_engine.lab.report.disorder_table import profile_tables
    from oop_engine.lab.report.words import count, text

    console = terminal()
    for note in _notes(trace, measured):
        console.print(note, markup=False, soft_wrap=True)
    console.print(f"{trace.path}: {count(measured.tuples)} tuples {trace.schema}", markup=False)
    punctuation = f"{count(measured.promises)} punctuations" if measured.promises else "no punctuation"
    refused = f"refused rows: {text(trace.refused)}" if trace.refused else "no row refused"
    console.print(f"{punctuation} in the trace; {refused}", markup=False)
    console.print(profile_tables(measured))
    if measured.tuples:
        _propose(trace, measured)


def _notes(trace: Trace, measured: Profile) -> list[str]:
    """Return lines for the user: on the form of the file, and times that are too far."""
    from oop_engine.runners.feeds.far_times import far_times

    far = far_times(trace.schema, measured.first, measured.last) if measured.tuples else None
    return [*trace.notes, *([f"{trace.path}: {far}"] if far is not None else [])]


def _propose(trace: Trace, measured: Profile) -> None:
    """Print the lines of Python and of SQL to start from, whole, so that they can be copied."""
    from oop_engine.lab.report.proposal import in_python, in_sql

    console = terminal()
    lines = [
        "in Python",
        "  from oop_engine import scan; from oop_engine.operators import Count",
        f"  {in_python(trace.path, trace.schema, measured)}",
    ]
    if (text := in_sql(trace.path, trace.schema, measured)) is not None:
        in_quotes = re.sub(r'([\\"$`])', r"\\\1", text)  # as a shell reads it
        lines += ["in SQL", f'  oop-engine sql "{in_quotes}"']
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
