"""Watch: a service in the terminal: its log with a line of progress, or all of it (``--watch``)."""

from __future__ import annotations

import logging
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from oop_engine.system.shown import shown

__all__ = ["logged", "watching"]

_OFTEN_S, _SELDOM_S = 1.0, 60.0
_WIPE = "\r\x1b[K"


class _LastLine(logging.Handler):
    """Shows the last record in one line of a terminal; it is wiped off before any other line comes."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line over the one before."""
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(_WIPE + shown(record.getMessage())[:width])
        sys.stderr.flush()

    def wipe(self, record: logging.LogRecord | None = None) -> bool:
        """Remove the line; as a filter of another handler it lets all records pass."""
        sys.stderr.write(_WIPE)
        sys.stderr.flush()
        return True


@contextmanager
def logged(*, rewritten: bool) -> Iterator[float]:
    """Show the log of a service on the standard error stream; yield the seconds between two lines of progress.

    ``rewritten``: on a terminal they are one line that is rewritten each second.
    """
    logging.basicConfig(stream=sys.stderr, format="%(message)s")
    logging.getLogger("oop_engine").setLevel(logging.INFO)
    if not (rewritten and sys.stderr.isatty()):
        yield _SELDOM_S
        return
    line, progress, others = (
        _LastLine(),
        logging.getLogger("oop_engine.progress"),
        logging.getLogger().handlers,
    )
    progress.addHandler(line)
    progress.propagate = False
    for other in others:
        other.addFilter(line.wipe)
    try:
        yield _OFTEN_S
    finally:
        line.wipe()
        progress.removeHandler(line)
        progress.propagate = True
        for other in others:
            other.removeFilter(line.wipe)


@contextmanager
def watching() -> Iterator[Callable[[dict[str, Any]], None]]:
    """Show samples (``serve(watch=...)``) on the standard error stream, each in place of the last one."""
    console = Console(stderr=True)
    with Live(console=console, auto_refresh=False, transient=False) as live:

        def show(sample: dict[str, Any]) -> None:
            live.update(picture(sample), refresh=True)

        yield show
    if not console.is_terminal:
        console.line()  # where it is one, Live does


def picture(sample: dict[str, Any]) -> Group:
    """Return a sample as it is shown."""
    checkpoints = sample["checkpoints"]
    age = "none yet" if checkpoints["age_s"] is None else f"{checkpoints['age_s']:,.0f} s ago"
    kind = "checkpoint" if checkpoints["durable"] else "commit"
    head = f"{sample['graph']}: {_going(sample)}, {sample['rate']:,.0f} tuples/s, "
    head += f"last {kind} {age}"
    reasons = [Text(shown(reason["text"]), "yellow") for reason in sample["why"]] or [
        Text("nothing is held back")
    ]
    return Group(Text(shown(head), "bold"), *reasons, _sources(sample), _operators(sample))


def _going(sample: dict[str, Any]) -> str:
    away = [f"sink {sink['name']!r}" for sink in sample["sinks"] if sink["away"]]
    if away and not sample["paused"]:
        return f"waits for the server of {away[0]}"
    return "paused" if sample["paused"] else "running"


def _sources(sample: dict[str, Any]) -> Table:
    table = Table("source", "bound", "lag", "tuples/s", "tuples", "unreadable", "unknown", "silent")
    for source in sample["sources"]:
        silent = "ended" if source["ended"] else f"{source['silent_s']:,.0f} s"
        cells = [
            source["name"],
            source["bound"] or "none yet",
            source["behind"] or "",
            f"{source['rate']:,.0f}",
        ]
        cells += [f"{source['tuples']:,}", f"{source['unreadable']:,}", f"{len(source['unknown']):,}", silent]
        table.add_row(*(Text(shown(cell)) for cell in cells))
    return table


def _operators(sample: dict[str, Any]) -> Table:
    table = Table("operator", "tuples", "partials", "groups", "bytes", "late", "behind", "busy")
    for node in sample["nodes"]:
        if "state" in node:
            cells = [f"{node['state'][name]:,}" for name in ("tuples", "partials", "groups", "nbytes")]
            events = (node["counts"].get(event) for event in ("late", "behind"))
            cells += ["" if count is None else f"{count:,}" for count in events] + [
                f"{100 * node['busy']:.1f} %"
            ]
            table.add_row(Text(shown(node["name"])), *cells)
    return table
