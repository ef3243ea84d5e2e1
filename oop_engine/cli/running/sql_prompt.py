"""The prompt of ``oop-engine sql``: a query, its answer, the next; with history and completion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oop_engine.core.errors import EngineError, SetupError

if TYPE_CHECKING:
    from oop_engine.query.data_stream import DataStream
    from oop_engine.query.sql.file_options import FileOptions

__all__ = ["Sitting", "prompt"]

_HELP = """A query ends with ";", and runs over files: SELECT * FROM 'access.csv';
\\explain QUERY;   the plan, when it emits, its state
\\profile FILE     how late records come, and the columns
\\tables           the tables
\\q                leave"""
_WORDS = """
SELECT FROM WHERE GROUP BY ALL HAVING ORDER LIMIT JOIN LEFT FULL ASOF ON BETWEEN AND OR NOT IN EXISTS AS WITH UNION
DISTINCT QUALIFY OVER PARTITION RANGE PRECEDING TUMBLE HOP CUMULATE SESSION INTERVAL window_start window_end EMIT
CHANGES CREATE VIEW TABLE INSERT INTO CASE WHEN THEN ELSE END count sum avg min max
"""


class Sitting:
    """The statements of one sitting: views stay, each SELECT is answered."""

    def __init__(self, tables: dict[str, Any], files: FileOptions | None = None) -> None:
        self._tables, self._files, self._views = tables, files, ""

    def answer(self, text: str) -> Iterator[DataStream | str]:
        """Yield the query of a text, or lines to print."""
        from oop_engine.query.sql.entry import last_of, results_of

        command, _, rest = text.strip().partition(" ")
        if command in ("\\h", "\\help", "help", "?"):
            yield _HELP
        elif command == "\\tables":
            yield (
                "\n".join(f"{name}: {path}" for name, path in self._tables.items())
                or "no tables: FROM 'file.csv'"
            )
        elif command == "\\profile":
            yield self._profiled(rest.strip().strip("'"))
        elif command == "\\explain":
            yield last_of(self._views + rest, self._tables, self._files).explain()
        elif command.upper() == "CREATE":
            results_of(f"{self._views}{text}", self._tables, self._files)
            self._views += f"{text.rstrip().rstrip(';')};\n"
            yield "declared"
        else:
            yield last_of(self._views + text, self._tables, self._files)

    @staticmethod
    def _profiled(path: str) -> str:
        from oop_engine.query.sources import scan

        columns = scan(path)
        times = columns.times()
        if not times:
            return f"{columns!r}\nno column looks like a time"
        return f"{columns!r}\nevent time {times[0]}:\n{columns.event_time(times[0]).explain()}"


def prompt(
    tables: dict[str, Any],
    answer: Callable[[DataStream], None],
    echo: Callable[[str], None],
    files: FileOptions | None = None,
) -> None:
    """Read queries until the end of the input, and answer each; raises ``SetupError`` without prompt_toolkit.

    ``answer`` runs a query and shows its results, ``echo`` prints a line.
    """
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.history import FileHistory
    except ImportError as error:
        msg = "the prompt needs prompt_toolkit: pip install 'oop-engine[sql]'"
        raise SetupError(msg) from error
    session = Sitting(tables, files)
    history = FileHistory(str(Path.home() / ".oop_engine_sql"))
    completer = WordCompleter(
        [*_WORDS.split(), *tables, *(str(path) for path in Path().glob("*.csv"))], ignore_case=True
    )
    reader: Any = PromptSession(history=history, completer=completer)
    echo("SQL over files and streams; \\h for help, \\q to leave")
    while True:
        try:
            text = _whole(reader)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if text.strip() in ("\\q", "quit", "exit", "quit;", "exit;"):
            return
        try:
            for line in session.answer(text):
                if isinstance(line, str):
                    echo(line)
                else:
                    answer(line)
        except EngineError as error:
            echo(str(error))


def _whole(reader: Any) -> str:
    """Read lines until one ends a statement, or is a command."""
    lines = [str(reader.prompt("sql> "))]
    while lines[-1].strip() and not lines[0].startswith("\\") and not lines[-1].rstrip().endswith(";"):
        if lines[0].strip() in ("quit", "exit", "help", "?"):
            break
        lines.append(str(reader.prompt("...> ")))
    return "\n".join(lines)
