"""Output of commands: tables, one JSON object, progress while one waits, whole files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

from oop_engine.system.shown import shown
from oop_engine.system.whole_file import whole_file

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

__all__ = ["ProgressLine", "only_json", "print_json", "terminal", "watching", "write_whole"]

_WIDE = 120  # of lines that go to a file or another program


def terminal() -> Console:
    """Return where tables go: as wide as the terminal, or 120 columns if there is none."""
    from rich.console import Console
    from rich.segment import Segment

    class Shown(Console):
        """Shows control characters in names and values; those of its own pass."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # it would end the program with 1

        def render(self, *args: Any, **options: Any) -> Iterator[Segment]:
            for text, style, control in super().render(*args, **options):
                yield Segment(text if control else shown(text), style, control)

    return Shown(width=None if sys.stdout.isatty() else _WIDE, highlight=False)


def print_json(value: Any) -> None:
    """Print ``value`` as JSON that every reader takes: numbers that are not finite are null."""
    import json

    from oop_engine.lab.report.words import plain

    print(json.dumps(plain(value), indent=2, allow_nan=False))


@contextmanager
def only_json(as_json: bool) -> Iterator[None]:
    """Send to stderr whatever a scenario prints, if stdout is to hold JSON and nothing else."""
    if not as_json:
        yield
        return
    with redirect_stdout(sys.stderr):
        yield


def write_whole(path: Path, text: str) -> None:
    """Write a file that appears under its name when it is whole, or not at all."""
    try:
        with whole_file(path) as file:
            file.write(text.encode())
    except OSError as error:
        error.filename = str(path)
        raise


class ProgressLine:
    """A line of progress; silent if nobody watches."""

    def __init__(self, progress: Any = None) -> None:
        self._progress = progress
        self._shares: dict[str, float | None] = {}
        self._task = progress.add_task("", total=None, tuples=0, bound="") if progress is not None else None

    @property
    def visible(self) -> bool:
        """Whether somebody watches."""
        return self._progress is not None

    def on_run(self, title: str, number: int, runs: int) -> None:
        """Show that run ``number`` (from 0) of ``runs`` begins; a single run needs no title."""
        if self._progress is not None:
            title = shown(f"run {number + 1} of {runs}: {title}") if runs > 1 else ""
            self._progress.reset(
                self._task, description=title, completed=number, total=runs, tuples=0, bound=""
            )

    def on_tuples(self, more: int) -> None:
        """Show that ``more`` tuples went in."""
        if self._progress is not None:
            task = self._progress.tasks[self._task]
            self._progress.update(self._task, tuples=task.fields["tuples"] + more)

    def on_bound(self, bound: str) -> None:
        """Show up to where the results are complete."""
        if self._progress is not None:
            self._progress.update(self._task, bound=shown(bound))

    def on_share(self, source: str, share: float | None) -> None:
        """Show which part of a source (0 to 1) is read; the time that is left is that of the one with the least."""
        self._shares[source] = share
        known = [each for each in self._shares.values() if each is not None]
        if self._progress is not None and len(known) == len(self._shares):
            self._progress.update(self._task, total=1.0, completed=min(known))


@contextmanager
def watching() -> Iterator[ProgressLine]:
    """Give a ``ProgressLine`` that draws on stderr, if that is a terminal, and wipes itself off."""
    if not sys.stderr.isatty():
        yield ProgressLine()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        SpinnerColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.table import Column
    from rich.text import Text

    class Tuples(ProgressColumn):
        """How many tuples went in, and how many a second."""

        def render(self, task: Task) -> Text:
            return Text(_pace(task.fields, task.elapsed, task.total, task.completed), style="dim")

    one_line = Column(no_wrap=True, overflow="ellipsis")
    title = TextColumn("{task.description}", markup=False, table_column=one_line)
    console = Console(stderr=True)
    wide = console.width >= _WIDE
    columns = SpinnerColumn(), title, BarColumn(24 if wide else 6), Tuples(Column(no_wrap=True))
    more = (TimeElapsedColumn(),) if wide else ()
    shown = Progress(*columns, *more, console=console, transient=True, refresh_per_second=5)
    with shown:
        yield ProgressLine(shown)


def _pace(fields: dict[str, Any], elapsed: float | None, total: float | None, completed: float) -> str:
    """Return how many tuples went in, how many a second, the time left where a part is known, and the bound."""
    seconds = max(elapsed or 0, 0.1)
    parts = [f"{fields['tuples']:,} tuples", f"{fields['tuples'] / seconds:,.0f}/s"]
    if total and 0 < completed <= total:
        parts.append(f"{seconds * (total - completed) / completed:,.0f} s left")
    if fields["bound"]:
        parts.append(f"bound {fields['bound']}")
    return ", ".join(parts)
