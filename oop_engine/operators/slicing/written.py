"""Written: definitions of windows as plain values, and back, to be kept or sent: never by pickle.

Only definitions of this library are read, whose parameters are plain values themselves, so that bytes from anywhere
make nothing else.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from oop_engine.core.errors import SnapshotError
from oop_engine.operators import windows
from oop_engine.operators.windows import Windows

__all__ = ["definition_of", "written"]

_PLAIN = (bool, int, float, str, type(None))


def written(definition: object) -> list[Any]:
    """Return a definition as its kind and parameters.  Raises ``SnapshotError`` if these are no plain values.

    >>> from oop_engine.operators.windows import Sliding
    >>> written(Sliding("3 h", "15 min"))
    ['Sliding', {'range': '3 h', 'slide': '15 min', 'origin': 0}]
    """
    kind = type(definition)
    if _kinds().get(kind.__name__) is kind and is_dataclass(definition):
        given = {f.name: getattr(definition, f.name) for f in fields(definition) if f.init}
        if all(map(_is_plain, given.values())):
            return [kind.__name__, given]
    msg = (
        f"windows: {definition!r} cannot be written down: a definition of this library can whose parameters are "
        "numbers and texts; give such a one to a query that changes and is kept"
    )
    raise SnapshotError(msg)


def definition_of(value: Any) -> Windows:
    """Return the definition that ``written`` returned.  Raises ``SnapshotError`` if it is none."""
    match value:
        case [str(name), {**given}] if name in _kinds():
            definition: Windows = _kinds()[name](**{str(key): _as_tuples(one) for key, one in given.items()})
            return definition
    msg = f"windows: must be the name of a definition and its parameters; got {value!r}"
    raise SnapshotError(msg)


def _kinds() -> dict[str, Any]:
    """Return the kinds of definitions, by name."""
    kinds = {name: getattr(windows, name) for name in dir(windows)}
    return {name: kind for name, kind in kinds.items() if is_dataclass(kind) and hasattr(kind, "bound")}


def _is_plain(value: Any) -> bool:
    return isinstance(value, _PLAIN) or (isinstance(value, list | tuple) and all(map(_is_plain, value)))


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list | tuple) else value
