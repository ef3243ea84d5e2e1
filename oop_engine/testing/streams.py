"""Hypothesis strategies for grammatical streams: rows, arrival orders, page cuts, punctuation that holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from oop_engine.core.errors import ContractError, UsageError
from oop_engine.core.graphs.contract import EdgeContract
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, GroupWise, Linear, Punctuation, Watermark
from oop_engine.core.schema import Schema
from oop_engine.testing.case import Row, typed

__all__ = ["Event", "Script", "as_messages", "row_lists", "rows_of", "scripts"]

T = TypeVar("T")

_TIMES = st.integers(0, 30)
_AFTER = [0, 15, 31, 60, FOREVER]  # bounds, where nothing is to come
_PER_TYPE: list[tuple[Any, list[Any]]] = [
    (pa.types.is_boolean, [True, False, None]),
    (pa.types.is_unsigned_integer, [0, 1, 2, 7, None]),
    (pa.types.is_integer, [0, 1, 2, -7, None]),
    (pa.types.is_floating, [0.5, -2.25, 3.0, None]),
    (pa.types.is_string, ["a", "b", "c", None]),
    (pa.types.is_large_string, ["a", "b", "c", None]),
    (pa.types.is_binary, [b"a", b"b", b"", None]),
    (pa.types.is_decimal, [Decimal(0), Decimal(3), None]),
    (pa.types.is_timestamp, [0, 7, None]),
    (pa.types.is_date, [0, 3, None]),
    (pa.types.is_duration, [0, 7, None]),
]


@dataclass(frozen=True)
class Event:
    """An event on a port: a row, a punctuation, or a page cut (None)."""

    port: int
    content: Row | Punctuation | None


Script = list[Event]


def _values_of(schema: Schema, name: str, domains: dict[str, list[Any]]) -> st.SearchStrategy[Any]:
    if name == schema.progressing:
        return st.sampled_from(domains[name]) if name in domains else _TIMES
    if name in domains:
        return st.sampled_from(domains[name])
    kind = schema.type_of(name)
    values = next((values for fits, values in _PER_TYPE if fits(kind)), None)
    if values is None:
        msg = f"column {name!r} is {kind}, of which no values are known: give the case domains={{{name!r}: [...]}}"
        raise UsageError(msg)
    return st.sampled_from(values)


def row_lists(
    schema: Schema, domains: dict[str, list[Any]] | None = None, most: int = 10
) -> st.SearchStrategy[list[Row]]:
    """Draw at most ``most`` tuples of ``schema``; ``domains``: values of a column, where the default will not do.

    Times are from 0 to 30, other columns have a few values each and null, so that they meet.
    Raises ``UsageError`` for a column of a type without default values.
    """
    row = st.fixed_dictionaries({n: _values_of(schema, n, domains or {}) for n in schema.names})
    return st.lists(row, max_size=most)


@st.composite
def scripts(
    draw: st.DrawFn,
    schemas: Sequence[Schema],
    rows: Sequence[list[Row]],
    *,
    ordered: bool = False,
    grouped: bool = True,
    keys: Sequence[Sequence[str]] = (),
) -> Script:
    """Draw an arrival order of the ``rows`` of each port, with page cuts and punctuation that holds.

    ``ordered``: each port by its progressing attribute, for operators that need order; ``grouped``: with group-wise
    punctuation.  ``keys``: of each port the columns that this is mostly about; none: any.
    """
    per_port = [
        _one_port(draw, port, _Port(schemas[port], rows[port], keys[port] if keys else ()), ordered, grouped)
        for port in range(len(rows))
    ]
    script: Script = []
    while any(per_port):
        port = _one_of(draw, [p for p, events in enumerate(per_port) if events])
        take = draw(_integers(1, 3))
        script += per_port[port][:take]
        per_port[port] = per_port[port][take:]
    return script


@dataclass(frozen=True)
class _Port:
    """The rows of a port, in their order of arrival, and the ``keys`` that punctuation is mostly about."""

    schema: Schema
    rows: list[Row]
    keys: Sequence[str]

    @property
    def others(self) -> list[str]:
        """The columns that can make groups; the keys more often."""
        return [*self.keys, *self.keys, *(n for n in self.schema.names if n != self.schema.progressing)]

    def times(self, since: int, group: Row | None = None) -> list[int]:
        """Return the times of the rows from ``since`` on, of a group."""
        inside = [r for r in self.rows[since:] if not group or all(r[n] == v for n, v in group.items())]
        return [r[self.schema.progressing] for r in inside]


def _one_port(draw: st.DrawFn, number: int, port: _Port, ordered: bool, grouped: bool) -> Script:
    port = replace(port, rows=_arrivals(draw, port, ordered))
    script: Script = []
    contract = EdgeContract("drawn")
    for i in range(len(port.rows) + 1):
        for _ in range(_one_of(draw, [0, 0, 1, 1, 2])):
            for event in _between(draw, port, i, grouped):
                if event is None or _is_kept(contract, event):
                    script.append(Event(number, event))
        if i < len(port.rows):
            script.append(Event(number, port.rows[i]))
    return script


def _arrivals(draw: st.DrawFn, port: _Port, ordered: bool) -> list[Row]:
    """Draw in which order rows come: any; or each value of a key behind by something, so that bounds can be high."""
    if not port.rows:
        return []
    time, rows = port.schema.progressing, draw(st.permutations(port.rows))
    if ordered:
        return sorted(rows, key=lambda r: r[time])
    key = _one_of(draw, [None, *port.others])
    if key is None:
        return rows
    delays = {value: _one_of(draw, [0, 10, 30]) for value in dict.fromkeys(str(r[key]) for r in rows)}
    return sorted(rows, key=lambda r: r[time] + delays[str(r[key])])


def _is_kept(contract: EdgeContract, punctuation: Punctuation) -> bool:
    """Return whether a punctuation lowers no bound, and note it."""
    try:
        contract.check(punctuation)
    except ContractError:
        return False
    return True


def _between(draw: st.DrawFn, port: _Port, done: int, grouped: bool) -> list[Punctuation | None]:
    """Draw the events before row ``done``: a page cut (None), punctuation that holds, a watermark, which need not."""
    grouped = grouped and bool(port.others)
    kind = _one_of(draw, ["cut", "linear", "soft", *(["groups", "race"] if grouped else [])])
    if kind == "cut":
        return [None]
    if kind == "soft":
        bounds = _group_wise(draw, port, done) if grouped and _one_of(draw, [False, True]) else Linear(0)
        return [Watermark(bounds).with_bounds(bounds.below + _one_of(draw, [0, 5, 20, 31]))]
    if kind == "linear":
        return [Linear(_at_most(draw, port.times(done), _AFTER))]
    ahead = _group_wise(draw, port, done)
    if kind == "groups" or not len(ahead):
        return [ahead]
    # The stream follows behind groups that are ahead by less than a window is long, and then goes on.
    fastest = min(int(ahead.below.max()), max(port.times(0), default=0) + 20)
    first = min([fastest - draw(_TIMES), *port.times(done)])
    goes_on = [Linear(min([fastest, *port.times(done)]))]
    return [ahead, Linear(first), *_one_of(draw, [[], goes_on])]


def _group_wise(draw: st.DrawFn, port: _Port, done: int) -> GroupWise:
    names = _some(draw, port.others, least=1, most=2)
    keys = [tuple(r[n] for n in names) for r in port.rows]
    groups = list({str(key): key for key in keys}.values())  # a list is a key too, and has no hash
    groups = _some(draw, groups, least=0, most=3)
    latest = max(port.times(0), default=0)
    after = [latest - 30, latest - 5, latest, latest + 20, *_AFTER]
    below = [
        _at_most(draw, port.times(done, dict(zip(names, group, strict=True))), after) for group in groups
    ]
    batch = pa.RecordBatch.from_arrays(
        [pa.array([g[i] for g in groups], port.schema.type_of(n)) for i, n in enumerate(names)], names
    )
    return GroupWise(batch, np.array(below, np.int64))


def _at_most(draw: st.DrawFn, to_come: list[int], after: list[int]) -> int:
    """Draw a bound that holds; one of ``after`` where nothing is to come."""
    return min(to_come) - _one_of(draw, [0, 0, 1, 7]) if to_come else _one_of(draw, after)


# Most of the time of a law goes into drawing, and most of that into making strategies; so these are made once.
_integers = cache(st.integers)


def _one_of(draw: st.DrawFn, values: Sequence[T]) -> T:
    """Draw one of some values."""
    return values[draw(_integers(0, len(values) - 1))]


def _some(draw: st.DrawFn, values: Sequence[T], least: int, most: int) -> list[T]:
    """Draw ``least`` to ``most`` different ones of some values, as far as there are as many."""
    left, chosen = list(values), list[T]()
    for _ in range(draw(_integers(least, most))):
        if left:
            chosen.append(_one_of(draw, left))
            left = [value for value in left if str(value) != str(chosen[-1])]
    return chosen


def rows_of(script: Script, ports: int) -> list[list[Row]]:
    """Return the rows of each port, in arrival order."""
    return [[e.content for e in script if e.port == p and isinstance(e.content, dict)] for p in range(ports)]


def as_messages(
    script: Script, schemas: Sequence[Schema], *, page_rows: int = 1_000
) -> list[tuple[int, Message]]:
    """Return the script as messages; neighbouring rows of a port make a page."""
    messages: list[tuple[int, Message]] = []
    waiting: list[Row] = []
    clock = 0

    def ship(port: int) -> None:
        nonlocal clock
        if waiting:
            schema = schemas[port]
            arrival = range(clock, clock + len(waiting))
            columns = {n: typed([r[n] for r in waiting], schema.type_of(n)) for n in schema.names}
            messages.append((port, Page.of(schema, columns, list(arrival))))
            clock += len(waiting)
            waiting.clear()

    port = 0
    for event in script:
        if event.port != port or not isinstance(event.content, dict) or len(waiting) >= page_rows:
            ship(port)
        port = event.port
        if isinstance(event.content, dict):
            waiting.append(event.content)
        elif event.content is not None:
            messages.append((port, event.content))
    ship(port)
    return messages
