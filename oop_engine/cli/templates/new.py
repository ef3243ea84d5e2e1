"""``oop-engine new``: a file to begin with, for a part of one's own, with its test."""

from __future__ import annotations

import keyword
import re
from importlib.resources import files
from pathlib import Path

import click

from oop_engine.core.errors import UsageError
from oop_engine.system.shown import shown

__all__ = ["new"]

_KINDS = ("operator", "source", "sink", "windows")


@click.command()
@click.argument("kind", type=click.Choice(_KINDS))
@click.argument("name")
def new(kind: str, name: str) -> None:
    """Write a file to begin with: a part of your own, and its test.

    KIND is operator, source, sink or windows. NAME is that of a class; the file is called after it, in the current
    folder, and works as it is. An existing file is never replaced.

    \b
      oop-engine new operator HoldBack
      pytest hold_back.py
    """
    if not name.isidentifier() or keyword.iskeyword(name):
        msg = f"new: NAME must be the name of a class, such as HoldBack; got {name!r}"
        raise UsageError(msg)
    module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    path = Path(f"{module}.py")
    template = files("oop_engine.cli.templates").joinpath(f"{kind}.txt").read_text("utf-8")
    words = {"NAME": name, "MODULE": module, "FILE": path.name}
    text = re.sub("NAME|MODULE|FILE", lambda match: words[match[0]], template)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        msg = f"new: {path} is there already: take another name, or remove it"
        raise UsageError(msg) from None
    click.echo(shown(f"{path}: {kind} {name} and its test; try it with: pytest {path}"))
