"""Arguments and options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from oop_engine.core.errors import UsageError
from oop_engine.system.apart import check_apart
from oop_engine.system.python_file import file_and_name

if TYPE_CHECKING:
    import pyarrow as pa

    from oop_engine.traces.csv_format import CsvFormat

__all__ = [
    "check_output",
    "complete_scenario",
    "csv_option",
    "is_graph",
    "json_option",
    "order_option",
    "scenario_argument",
    "scenario_file",
    "set_option",
    "type_option",
    "with_options",
]

F = TypeVar("F", bound=Callable[..., Any])


def scenario_argument(command: F) -> F:
    """Add SCENARIO: a name, or the path of a file."""
    return click.argument("scenario", metavar="SCENARIO", shell_complete=complete_scenario)(command)


def scenario_or_none_argument(command: F) -> F:
    """Add SCENARIO, which an option may stand for."""
    made = click.argument("scenario", metavar="[SCENARIO]", required=False, shell_complete=complete_scenario)
    return made(command)


def scenario_file(scenario: str) -> list[tuple[str, Path]]:
    """Return the file of a scenario or graph that was given by its path, and its reader: the command."""
    path = file_and_name(Path(scenario))[0]
    return [("the command", path)] if path.is_file() else []


def is_graph(name: str) -> bool:
    """Return whether a name is that of a file without a scenario; such a file is not run for that."""
    path, _ = file_and_name(Path(name))
    if path.suffix == ".sql" and path.is_file():
        return True
    return path.suffix == ".py" and path.is_file() and "\nSCENARIO" not in path.read_text("utf-8", "replace")


def with_options(message: str) -> str:
    """Return a message of the library with options of the program in place of its parameters."""
    return message.replace("Give time='...'", "Give --time COL").replace(
        "give unit='ms', 'rows', ...", "give --unit ms, s, ..."
    )


def complete_scenario(ctx: click.Context, option: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the scenarios whose names begin so, found without loading them; or let the shell look for files."""
    folders = getattr(find_spec("oop_engine.scenarios"), "submodule_search_locations", None) or ()
    files = (file for folder in folders for file in Path(folder).rglob(f"{begun}*.py"))
    names = sorted(file.stem for file in files if "\nSCENARIO = " in file.read_text("utf-8"))
    return [CompletionItem(name) for name in names] or [CompletionItem(begun, type="file")]


def _complete_setting(ctx: click.Context, option: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the parameters of the scenario that was named; a file of the user is not run for that."""
    from oop_engine.lab.scenario import find, names

    given = [ctx.params.get("scenario"), *ctx.args]
    known = next((find(name).parameters for name in names() if name in given), {})
    return [
        CompletionItem(f"{name}=", help=parameter.about)
        for name, parameter in known.items()
        if name.startswith(begun)
    ]


def set_option(command: F) -> F:
    """Add ``--set NAME=VALUE``, any number of times."""
    words = "Set a parameter of the scenario (see: oop-engine scenarios). Repeat for several."
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="NAME=VALUE",
        callback=_settings,
        help=words,
        shell_complete=_complete_setting,
    )(command)


def json_option(command: F) -> F:
    """Add ``--json``."""
    words = "Print one JSON object on stdout and nothing else."
    return click.option("--json", "as_json", is_flag=True, help=words)(command)


def csv_option(command: F) -> F:
    """Add ``--csv``."""
    words = 'How CSV is written: --csv "delimiter=;,decimal=,,dates=%d.%m.%Y"; else it is sniffed. See docs/traces.md.'
    return click.option("--csv", metavar="NAME=VALUE[,...]", callback=_csv, help=words)(command)


def type_option(command: F) -> F:
    """Add ``--type``, any number of times."""
    words = "Traces of text: the type of a column, in place of a guess: bytes=int64. Repeat for several."
    return click.option("--type", "types", multiple=True, metavar="COL=TYPE", callback=_types, help=words)(
        command
    )


def _csv(ctx: click.Context, option: click.Parameter, given: str | None) -> CsvFormat | None:
    from oop_engine.traces.csv_format import CsvFormat

    return None if given is None else CsvFormat.of(given)


def _types(ctx: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, pa.DataType]:
    from oop_engine.core.values.type_names import type_named

    return {name: type_named(text, "--type") for name, text in _settings(ctx, option, given).items()}


def order_option(command: F) -> F:
    """Add ``--order in|out``."""
    return click.option("--order", type=click.Choice(["in", "out"]), help="Only plans of this order.")(
        command
    )


def check_output(option: str, path: Path | None, *reads: tuple[str, str | Path]) -> None:
    """Raise ``UsageError`` before any work if a file cannot come to be at ``path``, or is one of those that are read.

    ``reads``: readers by name, and the path of a file or folder that each reads.
    """
    if path is None:
        return
    check_apart(reads, [(option, path)])
    if path.is_dir():
        msg = f"{path} is a folder: give the path of a file in it"
        raise UsageError(msg)
    if not path.parent.is_dir():
        msg = f"{path}: there is no folder {str(path.parent)!r}: make it first"
        raise UsageError(msg)


def _settings(ctx: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (equals and name):
            msg = f"must read like name=value; got {text!r}"
            raise click.BadParameter(msg, ctx, option)
        settings[name.strip()] = value.strip()
    return settings
