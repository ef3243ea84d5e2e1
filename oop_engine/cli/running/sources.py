"""``oop-engine sources``: the parts that are known by name."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import click

from oop_engine.cli.options import json_option
from oop_engine.cli.output import only_json, print_json, terminal

__all__ = ["sources"]


@click.command()
@json_option
def sources(as_json: bool) -> None:
    """List sources, sinks, formats, and the windows and aggregates of SQL, by name, with who brings each.

    Packages that are installed beside this one add their own.

    \b
    All that there are:
      oop-engine sources
    For a program:
      oop-engine sources --json
    """
    from oop_engine.connectors.by_name import WITH_REGISTRY
    from oop_engine.lab.report.table import grid

    with only_json(as_json):
        registered = {
            kind: {name: known.home(name) for name in known} for kind, known in _registries().items()
        }
        registered["formats of messages"] |= dict.fromkeys(WITH_REGISTRY, WITH_REGISTRY["avro"].__module__)
    if as_json:
        print_json(registered)
        return
    console = terminal()
    for kind, homes in registered.items():
        packages: dict[str, list[str]] = {}
        for name, home in homes.items():
            packages.setdefault(home.partition(".")[0], []).append(name)
        rows = [(package, ", ".join(names)) for package, names in packages.items()]
        words = ("from", "names")
        console.print(grid(kind, words, rows, words=words, fold=("names",)))


def _registries() -> dict[str, Any]:
    from oop_engine.connectors.by_name import SINKS, SOURCES
    from oop_engine.connectors.formats import MESSAGE_FORMATS
    from oop_engine.query import registered
    from oop_engine.traces.format_registry import FORMATS

    registries = {
        "sources": SOURCES,
        "sinks": SINKS,
        "formats of messages": MESSAGE_FORMATS,
        "formats of traces": FORMATS,
    }
    if find_spec("sqlglot"):  # which brings the built-in ones
        import oop_engine.query.sql.aggregates
        import oop_engine.query.sql.windows.calls  # noqa: F401

        registries |= {"windows of SQL": registered.WINDOWS, "aggregates of SQL": registered.AGGREGATES}
    return registries
