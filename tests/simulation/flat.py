"""Flat: the state of an operator does not grow with a stream whose keys come and go.

``python -m tests.simulation.flat TIMES``: each case of the contract suite gets so many times ``ROUNDS``, and may not
keep more at the end than at the beginning.  A round has rows of new keys and of some that stay, out of order,
and punctuation that is past all rows of earlier rounds (``WAYS``).  Tuples, partials, groups, bytes of the state and of
its snapshot, and the counters are looked at behind each round: numbers, not clocks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine import FOREVER, GroupWise, Linear, Page, Punctuation, Schema
from oop_engine.operators import Punctuate
from oop_engine.testing import Case, Driver
from tests.cases import all_cases

__all__ = ["MUST_STAY", "ROUNDS", "WAYS", "asked", "grown", "keys_of", "page_of", "reason"]

ROUNDS = 24
ROWS, STAY = 96, 8  # of a round and input: rows, each of a new key but for those of the keys that stay
SPAN = 400  # of event time in a round: longer than windows, gaps and bands of the cases
MARGIN = {"tuples": 800, "partials": 200, "groups": 300, "nbytes": 48_000, "snapshot": 48_000, "counters": 0}
"""Allowed on top of 1.25 times as much as before."""


class Kept(NamedTuple):
    """The state of an operator at a moment, in numbers."""

    tuples: int
    partials: int
    groups: int
    nbytes: int
    snapshot: int
    counters: int


Way = Callable[[Schema, tuple[str, ...], Page, int], Iterator[Punctuation]]


def _linear(schema: Schema, keys: tuple[str, ...], page: Page, now: int) -> Iterator[Punctuation]:
    yield Linear(now)


def _ended(schema: Schema, keys: tuple[str, ...], page: Page, now: int) -> Iterator[Punctuation]:
    """New keys are over, those that stay have come to ``now``; there is no bound of the whole stream."""
    below = np.full(len(page), FOREVER)
    below[:STAY] = now
    yield GroupWise(page.batch.select(keys), below)


def _ahead(schema: Schema, keys: tuple[str, ...], page: Page, now: int) -> Iterator[Punctuation]:
    """Each key has come to ``now``, the whole stream is two rounds behind."""
    yield GroupWise(page.batch.select(keys), np.full(len(page), now))
    yield Linear(now - 2 * SPAN)


def _own(schema: Schema, keys: tuple[str, ...], page: Page, now: int) -> Iterator[Punctuation]:
    """Each key has come to ``now``, as with ``PerGroup`` alone: no key is new, none ends."""
    yield GroupWise(page.batch.select(keys), np.full(len(page), now))


WAYS: dict[str, Way] = {"linear": _linear, "ended": _ended, "ahead": _ahead, "own": _own}

_DROPS = "it drops punctuation of groups, so no bound passes a row and no key ends"
_PER_KEY = "it stores all rows of the keys that stay"
MUST_STAY: dict[tuple[str, str], str] = {
    **{(case, "ended"): _DROPS for case in ("opob_join-as_of", "latest", "latest-few")},
    **{(case, "own"): _DROPS for case in ("latest", "latest-few")},
    **{("top_n-of_keys-ranked", way): _PER_KEY for way in ("ended", "own")},
}
"""Case and way: why its state grows, beside what ``Operator.retains`` states, which ends with its keys."""

_OTHERS = {
    "punctuate-count": "its tuples are late after so many others",
    "prune-rolled_up": "its groups are all given to the operator",
    "prune-fewer_attributes": "its groups are all given to the operator",
    "aggregates-landmark": "sums that go on for ever do not fit 64 bits",
}
"""Cases that such a stream does not suit, and why."""


def asked() -> list[tuple[Case, str]]:
    """Return the cases, each with the ways in which its streams can be punctuated."""
    return [
        (case, way)
        for case in all_cases()
        if case.id not in _OTHERS
        for way in WAYS
        if way == "linear" or keys_of(case)
    ]


def keys_of(case: Case) -> list[tuple[str, ...]]:
    """Return the columns that the groups of a case's operator are made of, each by its name on each input."""
    return list(case.operator.partition_keys(case.inputs) or ())


def rounds(case: Case, way: str, count: int) -> Iterator[Kept]:
    """Run so many rounds; yield the state after each of the first and of the last quarter."""
    driver = Driver(case.operator, *case.inputs)
    keys = keys_of(case)
    for number in range(count):
        pages = [_page(case, port, number, way) for port in range(len(case.inputs))]
        for port, page in enumerate(pages):
            driver.feed(port, page)
        for port, page in enumerate(pages):
            names = tuple(dict.fromkeys(key[port] for key in keys))
            for punctuation in WAYS[way](case.inputs[port], names, page, (number + 1) * SPAN):
                driver.feed(port, punctuation)
        for messages in driver.out:
            messages.clear()
        operator = driver.operator
        if not count // 4 <= number < count - count // 4:
            yield Kept(*operator.state(), len(operator.snapshot()), len(operator.counts()))


def _page(case: Case, port: int, number: int, way: str) -> Page:
    new = np.arange(ROWS) + 1000 + (0 if way == "own" else number * ROWS)
    new[:STAY] = np.arange(STAY)
    return page_of(case, port, number, new, SPAN)


def page_of(case: Case, port: int, number: int, keys: NDArray[np.int64], span: int) -> Page:
    """Return page ``number`` of an input: a row for each of ``keys``, at random times of its part of ``span`` units."""
    schema, rows = case.inputs[port], len(keys)
    times = number * span + np.random.default_rng([number, port]).integers(0, span, rows)
    if case.operator.needs_order:
        times.sort()
    known = {key[port] for key in keys_of(case)}
    columns = {name: _column(case, schema, name, keys, name in known) for name in schema.names}
    columns[schema.progressing] = pa.array(times).cast(pa.int64()).cast(schema.type_of(schema.progressing))
    if schema.change is not None:
        columns[schema.change] = pa.array(np.ones(rows, np.int64)).cast(schema.type_of(schema.change))
    return Page.of(schema, columns, np.arange(number * rows, (number + 1) * rows))


def _column(case: Case, schema: Schema, name: str, keys: Any, is_key: bool) -> pa.Array:
    kind = schema.type_of(name)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.array([f"key {key}" for key in keys.tolist()], kind)
    if name in case.domains and not (is_key and pa.types.is_integer(kind)):
        values = case.domains[name]
        return pa.array([values[key % len(values)] for key in keys.tolist()], kind)
    return pa.array(keys % 100 if kind.bit_width == 8 else keys).cast(kind)


def grown(case: Case, way: str, times: int) -> list[str]:
    """Return a line for each number that in all of the last quarter of so many times ``ROUNDS`` is above the first.

    A number that goes up and down, as what is over goes in batches, comes down to what it was.
    """
    kept = list(rounds(case, way, times * ROUNDS))
    found, quarter = [], len(kept) // 2
    for at, name in enumerate(Kept._fields):
        before, after = max(of[at] for of in kept[:quarter]), min(of[at] for of in kept[-quarter:])
        if 4 * after > 5 * before + 4 * MARGIN[name]:
            found.append(
                f"{name} grow: {before:,} at most in the first {quarter} rounds, {after:,} at least in the last"
            )
    return found


def reason(case: Case, way: str) -> str | None:
    """Return why the state of a case may grow with such a stream; None: it may not."""
    if way not in ("ended", "own") and not isinstance(case.operator, Punctuate):
        return case.operator.retains(case.inputs)
    return MUST_STAY.get((case.id, way))


def main() -> int:
    wrong = 0
    for case, way in asked():
        why, times = reason(case, way), int(sys.argv[1])
        found = grown(case, way, times if why is None else min(times, 3))
        wrong += bool(found) and why is None
        print(
            f"{case.id}, {way}: {'; '.join(found) or 'flat'}{'' if why is None else f' ({why})'}", flush=True
        )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
