"""``oop-engine checkpoints``, ``why``, ``dead-letters``: the folders that a service has written."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from oop_engine.cli.options import json_option
from oop_engine.cli.output import print_json, terminal
from oop_engine.core.errors import UsageError

__all__ = ["checkpoints", "dead_letters", "why"]


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

    entries = listed(folder)
    if as_json:
        print_json({"folder": folder, "entries": entries})
        return
    _show(entries)


@click.command()
@click.argument("folder", type=click.Path(), metavar="DIR")
@json_option
def why(folder: str, as_json: bool) -> None:
    """Print which input held back the results of a service, at its last checkpoint in DIR.

    \b
      oop-engine why state
    """
    from oop_engine.service.listing import reasons

    lines = reasons(folder)
    if as_json:
        print_json({"folder": folder, "why": lines})
        return
    click.echo("\n".join(lines) or "nothing is held back")


@click.command("dead-letters")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--source", metavar="NAME", help="Only the letters of this source.")
@click.option("--sink", metavar="NAME", help="Only the letters of this sink: rows that its server refused.")
@click.option("--show", is_flag=True, help="Print those not fed again as JSON lines, to be mended.")
@click.option("--retry", is_flag=True, help="Feed them again: as they came, or as they are in --mended.")
@click.option("--mended", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE",
              help="Lines of --show, with records that were mended.")  # fmt: skip
@json_option
def dead_letters(
    folder: Path,
    source: str | None,
    sink: str | None,
    show: bool,
    retry: bool,
    mended: Path | None,
    as_json: bool,
) -> None:
    """List the dead letters in DIR, show them, or feed them again.

    DIR is the folder that `run --dead-letters jsonl:DIR` has written. A service with these dead letters takes those
    that are fed again within a second, or at its next start: each of them once, whenever this command or the service
    is killed. Records whose windows are closed are late then. A row of a sink goes to that sink alone.

    \b
      oop-engine dead-letters dead
      oop-engine dead-letters dead --source log --show > mended.jsonl
      oop-engine dead-letters dead --source log --retry --mended mended.jsonl
      oop-engine dead-letters dead --sink per-minute --retry
    """
    from oop_engine.service.letters.letter_folder import LetterFolder, letters_of_sink

    letter_folder = LetterFolder(folder)
    if sink is not None:
        if source is not None:
            msg = "dead-letters: takes --source or --sink, not both"
            raise UsageError(msg)
        source = letters_of_sink(sink)
    if mended is not None and not retry:
        msg = "dead-letters: --mended is for --retry"
        raise UsageError(msg)
    if retry:
        count, path = letter_folder.retry(source, None if mended is None else _mended(mended))
        if as_json:
            print_json({"retried": count, "order": None if path is None else str(path)})
        else:
            click.echo(
                f"{count:,} letters are fed again: {path}" if path else "there are no letters to feed again"
            )
        return
    letters = letter_folder.letters(source)
    if show:
        for letter in letters:
            if not letter.retried:
                click.echo(
                    json.dumps(
                        {k: v for k, v in asdict(letter).items() if k != "retried"}, ensure_ascii=False
                    )
                )
    elif as_json:
        print_json({"folder": str(folder), "letters": [asdict(letter) for letter in letters]})
    elif letters:
        _list(letters)
    else:
        click.echo(letter_folder.without(source))


def _mended(path: Path) -> dict[str, dict[str, Any]]:
    """Return the lines of --show by their letters."""
    try:
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
        return {line["letter"]: line for line in lines}
    except (ValueError, KeyError, TypeError) as error:
        msg = f"{path}: must have lines as --show prints them ({error}): begin with those"
        raise UsageError(msg) from error


def _list(letters: list[Any]) -> None:
    from rich.table import Table

    table, counts = (
        Table("source", "reason", "letters", "fed again", "first at"),
        dict[tuple[str, str], list[Any]](),
    )
    for letter in letters:
        counts.setdefault((letter.source, letter.reason), []).append(letter)
    for (source, reason), alike in counts.items():
        again = sum(letter.retried for letter in alike)
        table.add_row(source, reason, f"{len(alike):,}", f"{again:,}", alike[0].at)
    terminal().print(table)


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
