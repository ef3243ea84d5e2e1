"""``oop-engine sql``: a query in SQL over files, or a prompt for several."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from oop_engine.cli.options import check_output, csv_option
from oop_engine.cli.output import terminal
from oop_engine.core.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from oop_engine.query.data_stream import DataStream
    from oop_engine.query.sql.file_options import FileOptions
    from oop_engine.traces.csv_format import CsvFormat

__all__ = ["answer", "sql"]

_ROWS = 20
"""The first and last so many results are shown."""


@click.command()
@click.argument("text", required=False, metavar="[QUERY]")
@click.option(
    "--table", "tables", multiple=True, metavar="NAME=FILE", help="A table of this name. Repeat for several."
)
@click.option(
    "--unit", default="", metavar="UNIT", help="The unit of event times that are integers: s, ms, us, ns."
)
@click.option(
    "--time", default="", metavar="COL", help="The event time of files with several columns of times."
)
@csv_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write them into this file: .csv, .json, .parquet, ...",
)
@click.option("--json", "as_json", is_flag=True, help="Print each result as a line of JSON, and no table.")
@click.option("--explain", is_flag=True, help="Show the plan, when it emits and its state; nothing is run.")
@click.option(
    "--on", "runner", type=click.Choice(["inline", "spark"]), default="inline", help="Where it runs."
)
def sql(
    text: str | None,
    tables: tuple[str, ...],
    unit: str,
    time: str,
    csv: CsvFormat | None,
    out: Path | None,
    as_json: bool,
    explain: bool,
    runner: str,
) -> None:
    """Answer a query in SQL over files; without QUERY, a prompt.

    A table is a file in quotes, or one of --table. QUERY is also a file that ends in .sql. How late records come is
    measured on the files, so that none is late. docs/sql.md has all forms.

    \b
      oop-engine sql "SELECT host, count(*) AS n FROM 'access.csv' GROUP BY host ORDER BY n DESC"
      oop-engine sql \\
        "SELECT host, window_start, count(*) AS n FROM TUMBLE('access.csv', ts, INTERVAL '1 minute') GROUP BY ALL"
      oop-engine sql --table a=ads.csv --table c=clicks.csv \\
        "SELECT * FROM a JOIN c ON a.ad = c.ad AND c.ts BETWEEN a.ts AND a.ts + INTERVAL '10 minutes'"
      oop-engine sql query.sql --out result.parquet
      oop-engine sql --explain "SELECT count(*) FROM TUMBLE('access.csv', ts, INTERVAL '1 hour') GROUP BY window_end"
    """
    named = dict(_named(table) for table in tables)
    if text is None:
        if out or as_json or explain or not sys.stdin.isatty():
            msg = "sql: give a query, such as \"SELECT * FROM 'access.csv'\"; the prompt needs a terminal"
            raise UsageError(msg)
        from oop_engine.cli.running.sql_prompt import prompt

        prompt(named, answer, click.echo, _files(unit, time, csv))
        return
    if out is not None and out.suffix != ".json":
        from oop_engine.traces.format_registry import format_of

        format_of(out, None)
    check_output("--out", out, *[(f"--table {name}", path) for name, path in named.items()])
    text = Path(text).read_text("utf-8") if text.endswith(".sql") and Path(text).is_file() else text
    with _notes():
        query = _query(text, named, _files(unit, time, csv))
        if out is not None:
            _check_columns(out, query)
        if explain:
            click.echo(query.explain())
            return
        answer(query, out, as_json=as_json, runner=runner)


def _check_columns(out: Path, query: DataStream) -> None:
    """Raise ``UsageError`` before the run where a file of texts cannot have a column of the results."""
    from oop_engine.traces.format import is_textual, plain
    from oop_engine.traces.format_registry import format_of

    if out.suffix == ".json" or format_of(out) not in ("csv", "jsonl"):
        return
    for field in plain(query.schema.fields):
        if field.name in query.columns and not is_textual(field.type):
            way_out = f"write .parquet, .arrow or .json, or SELECT * EXCLUDE ({field.name})"
            msg = f"--out {out}: column {field.name!r}, {field.type}, has no text form: {way_out}"
            raise UsageError(msg)


def _named(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not equals or not name.isidentifier():
        msg = f"--table {text!r}: must be NAME=FILE, such as log=access.csv"
        raise UsageError(msg)
    return name, path


def _files(unit: str, time: str, csv: CsvFormat | None) -> FileOptions:
    from oop_engine.query.sql.file_options import FileOptions

    return FileOptions(unit, time, csv)


def _query(text: str, tables: dict[str, str], files: FileOptions) -> DataStream:
    from oop_engine.cli.running.fewer_collections import keep_loaded
    from oop_engine.query.sql.entry import last_of

    keep_loaded()
    return last_of(text, tables, files)


def answer(
    query: DataStream, out: Path | None = None, *, as_json: bool = False, runner: str = "inline"
) -> None:
    """Run a query; show its results, print them as JSON, or write them into a file."""
    outcome = query.run(on=runner)
    table: pa.Table = outcome.results["result"]
    print(f"{outcome.tuples:,} rows read, {table.num_rows:,} results; {outcome.late}", file=sys.stderr)
    for source, reasons in outcome.refused.items():
        print(
            f"{source}: refused rows: {'; '.join(f'{why}: {n:,}' for why, n in reasons.items())}",
            file=sys.stderr,
        )
    if out is not None:
        print(f"{_written(out, table):,} rows in {out}", file=sys.stderr)
    elif as_json:
        for line in _lines(table):
            print(line)
    else:
        from oop_engine.lab.report.table import result_table

        terminal().print(result_table("result", table, _ROWS))


def _lines(table: pa.Table) -> Iterator[str]:
    """Yield each row as JSON."""
    from oop_engine.core.groups.in_python import as_json, rows_of
    from oop_engine.core.values.rfc3339 import for_texts

    return map(as_json, rows_of(for_texts(table)))


def _written(out: Path, table: pa.Table) -> int:
    """Write results by the suffix of a file, ``.json`` as one list; return the rows."""
    from oop_engine.traces.table_writing import write_table

    if out.suffix != ".json":
        return write_table(out, table)
    from oop_engine.system.whole_file import whole_file

    with whole_file(out) as file:
        file.write(("[" + ",\n ".join(_lines(table)) + "]\n").encode())
    return int(table.num_rows)


@contextmanager
def _notes() -> Iterator[None]:
    """Print the assumptions of a query on stderr: how late records come, which texts are times."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    log = logging.getLogger("oop_engine")
    before, propagates = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
        log.propagate = propagates
