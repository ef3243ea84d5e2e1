"""Asked: what the parameters of a window operator must be, whatever the stream is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from oop_engine.core.errors import GraphError
from oop_engine.operators.values.describe_value import describe_value
from oop_engine.operators.windows import Windows

__all__ = ["by_name", "one_of"]


def by_name(windows: Windows | Mapping[str, Windows], place: str) -> dict[str, Windows]:
    """Return definitions by name, one alone by how it is written.

    Raises ``GraphError`` in the name of ``place`` if there is none, or a name is no text.
    """
    definitions = dict(windows) if isinstance(windows, Mapping) else {describe_value(windows): windows}
    if not definitions:
        msg = f"{place}: windows must be named definitions, such as {{'1 min': Tumbling('1 min')}}; got none"
        raise GraphError(msg)
    if not all(isinstance(name, str) for name in definitions):
        msg = f"{place}: names of windows must be strings; got {list(definitions)}"
        raise GraphError(msg)
    return definitions


def one_of(choices: Any, given: Any, place: str) -> Any:
    """Return the value given for a choice (a ``Literal``).  Raises ``GraphError`` in the name of ``place``."""
    if given not in get_args(choices):
        msg = f"{place} must be one of {', '.join(map(repr, get_args(choices)))}; got {given!r}"
        raise GraphError(msg)
    return given
