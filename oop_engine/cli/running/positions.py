"""Positions: where sources start, as the texts of ``--from`` have it."""

from __future__ import annotations

import json
from typing import Any

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import UsageError

__all__ = ["positions_of"]


def positions_of(given: tuple[str, ...], sources: list[str]) -> dict[str, Any]:
    """Return the start of each source that ``--from NAME=WHERE`` gives; a graph of one source needs no name.

    WHERE is ``earliest``, ``latest``, a position as JSON, or the text of one.  Raises ``UsageError`` for another name.

    >>> positions_of(("east=latest", 'west={"0": 17}'), ["east", "west"])
    {'east': 'latest', 'west': {'0': 17}}
    >>> positions_of(("1700000000000-0",), ["in"])
    {'in': '1700000000000-0'}
    """
    positions = dict[str, Any]()
    for text in given:
        name, equals, where = text.partition("=")
        if not equals or name not in sources:
            if len(sources) != 1:
                msg = f"--from {text!r}: must begin with the name of a source, {' or '.join(sources)}: NAME={text}"
                msg += did_you_mean(name, sources) if equals else ""
                raise UsageError(msg)
            name, where = sources[0], text
        if name in positions:
            msg = f"--from: {name!r} is given twice"
            raise UsageError(msg)
        positions[name] = _value(where)
    return positions


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
