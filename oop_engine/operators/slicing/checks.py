"""Checks: of the parameters of window operators, and of how many windows there would be.

A range of a day with a slide of a nanosecond, or one clock that is a century ahead where windows without
tuples are asked for: either would give results for ever.  A definition is refused when the graph is built, a
gap when a punctuation would complete it.  Whatever stays below leaves in pages, however much it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import GraphError
from oop_engine.operators.aggregates import Aggregation
from oop_engine.operators.triggers import Emit
from oop_engine.operators.values.columns import Integers
from oop_engine.operators.values.describe_value import describe_value
from oop_engine.operators.windows import Extents, Windows
from oop_engine.system.knobs import knob

__all__ = [
    "AT_ONCE",
    "MOST_PARTIALS",
    "MOST_WINDOWS",
    "LongGapError",
    "by_name",
    "check_gap",
    "check_overlap",
    "checked",
    "checked_emit",
    "one_of",
]

MOST_WINDOWS = 10_000_000
"""Windows a tuple may be in, and windows without a tuple that one punctuation may complete for a group."""
MOST_PARTIALS = 1_000_000
"""Windows a tuple may be in where each of them has a partial aggregate of its own: 150 MB a tuple."""
AT_ONCE = knob(__name__, "AT_ONCE", 1 << 20)
"""Results, about, that are put together before the first of them leaves."""


def checked(aggregates: Mapping[str, object], by: Sequence[str], stamp: str, place: str) -> tuple[str, ...]:
    """Return ``by`` as a tuple; raise ``GraphError`` if the parameters are wrong in themselves."""
    if not isinstance(aggregates, Mapping) or not aggregates:
        msg = f"{place}: needs at least one aggregate by name, such as {{'n': Count()}}; got {aggregates!r}"
        raise GraphError(msg)
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, Aggregation):
            msg = f"{place}: {name!r} must be an aggregate such as Sum('x'); got {aggregate!r}"
            raise GraphError(msg)
    if stamp not in ("start", "end"):
        msg = f"{place}: stamp must be 'start' or 'end'; got {stamp!r}"
        raise GraphError(msg)
    return tuple(by)


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


def checked_emit(emit: object, place: str) -> Emit | None:
    """Return which versions leave, None: none.  Raises ``GraphError`` in the name of ``place`` for anything else."""
    if isinstance(emit, Emit | None):
        return emit
    msg = f"{place}: emit must be an Emit(...), or left out; got {emit!r}"
    raise GraphError(msg)


def one_of(choices: Any, given: Any, place: str) -> Any:
    """Return the value given for a choice (a ``Literal``).  Raises ``GraphError`` in the name of ``place``."""
    if given not in get_args(choices):
        hint = did_you_mean(given, get_args(choices))
        msg = f"{place} must be one of {', '.join(map(repr, get_args(choices)))}; got {given!r}{hint}"
        raise GraphError(msg)
    return given


def check_overlap(extents: Extents, place: str, *, in_table: bool = False) -> None:
    """Raise ``GraphError`` if a tuple would be in too many windows; ``in_table``: for a partial aggregate each."""
    most = MOST_PARTIALS if in_table else MOST_WINDOWS
    if extents.overlap > most:
        way_out = "take a longer slide or a shorter range"
        if in_table and extents.overlap <= MOST_WINDOWS:
            way_out += (
                ", or a strategy that keeps panes or tuples (Tumbling or Sliding windows, strategy='auto')"
            )
        each = ", each with a partial aggregate of its own" if in_table else ""
        msg = (
            f"{place}: a tuple must be in at most {most:,} windows{each}; with range={extents.range} and "
            f"slide={extents.slide} it is in {extents.overlap:,}: {way_out}"
        )
        raise GraphError(msg)


class LongGapError(Exception):
    """Windows ``low`` to ``stop`` (exclusive) of group ``slot`` are too many without a tuple."""

    def __init__(self, extents: Extents, slot: int, low: int, stop: int) -> None:
        super().__init__(extents, slot, low, stop)
        self.extents, self.slot, self.low, self.stop = extents, int(slot), int(low), int(stop)


def check_gap(extents: Extents, slots: Integers, low: Integers, stop: Integers, held: int) -> None:
    """Raise ``LongGapError`` if one of the groups would put out too many windows without a tuple.

    They put out the windows ``low[i]`` to ``stop[i]`` (exclusive), of which ``held``, of all groups, have tuples.
    """
    windows = stop.astype(float) - low.astype(float)  # may be more than fits 64 bits
    if windows.size and windows.max() - held > MOST_WINDOWS:
        most = int(np.argmax(windows))
        raise LongGapError(extents, slots[most], low[most], stop[most])
