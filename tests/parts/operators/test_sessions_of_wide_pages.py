"""Pages of sessions that span many gaps, of many and of few keys, against the definition.

Times are at the borders of cells, which are as long as the least gap: neighbours a gap apart, or one more.  Keys end on
their own, and snapshots are taken in between.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import FOREVER, GroupWise, Linear, Page, Schema
from oop_engine.core.saved import Saved
from oop_engine.operators import Count, Session, Sum, WindowAggregate
from tests.naive.sessions import sessions

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()}, "ts", "s")
GAP = 10
NAMED = {"wide": Session(3 * GAP), "least": Session(GAP)}
AGGREGATES = {"n": Count(), "s": Sum("v")}


def store_of(operator):
    [store] = operator._closing.stores
    return store


def ended(key, bound=FOREVER):
    return GroupWise(pa.RecordBatch.from_pydict({"k": [key]}), np.array([bound]))


def page_of(rows):
    return Page.of(SCHEMA, {name: [row[name] for row in rows] for name in ("ts", "k", "v")})


def sessions_of(rows, named):
    """Return all sessions of some rows, as the operator emits them, in one order."""
    functions = {"n": len, "s": lambda some: sum(row["v"] for row in some)}
    found = [
        {"window": name, **row}
        for name, one in named.items()
        for row in sessions(rows, "ts", ("k",), functions, one.gap)
    ]
    return in_order(row if len(named) > 1 else {k: row[k] for k in row if k != "window"} for row in found)


def in_order(rows):
    return sorted(tuple(sorted(row.items())) for row in rows)


@pytest.mark.parametrize("named", [NAMED, {"least": Session(GAP)}], ids=["two gaps", "one gap"])
@pytest.mark.parametrize("cells", [3, 13, 60, 200])
@pytest.mark.parametrize("keys", [1, 30])
@pytest.mark.parametrize("seed", range(2))
def test_sessions_of_pages_that_span_many_gaps(named, cells, keys, seed):
    rng = np.random.default_rng(seed)
    make = WindowAggregate(named if len(named) > 1 else named["least"], AGGREGATES, ("k",)).opened
    operator, given, found, bound, over, forms = make(SCHEMA), [], [], 0, set(), set()

    def emitted(messages):
        found.extend(row for _, page in messages if isinstance(page, Page) for row in page.to_pylist())

    for _ in range(12):
        alive = [k for k in range(keys) if k not in over] or [keys + len(over)]
        steps = rng.choice([0, GAP - 1, GAP, GAP + 1, 3 * GAP, 3 * GAP + 1], 40).cumsum()
        times = bound + (steps - steps[0]) % (cells * GAP)
        rows = [{"ts": int(t), "k": int(rng.choice(alive)), "v": int(rng.integers(9))} for t in times]
        emitted(operator.on_page(0, page_of(rows)))
        given += rows
        forms.add("cells" if "cells" in store_of(operator).save() else "lists")
        if rng.random() < 0.3:
            saved = Saved.of(operator.save())
            operator = make(SCHEMA)
            operator.load(saved)
        if rng.random() < 0.4:
            emitted(operator.on_punctuation(0, ended(alive[0])))
            over.add(alive[0])
        bound += int(rng.choice([0, 1, GAP, cells * GAP // 2, cells * GAP]))
        emitted(operator.on_punctuation(0, Linear(bound)))
    emitted(operator.on_punctuation(0, Linear(FOREVER)))
    assert in_order(found) == sessions_of(given, named)
    assert operator.state().in_use == (0, 0, 0)
    assert forms == {"cells"} if cells < 60 else "lists" in forms or cells == 60


@pytest.mark.parametrize("gaps_of_page", [1, 8, 40])
def test_a_tuple_a_gap_behind_goes_on_wherever_cells_begin(gaps_of_page):
    for apart, many in ((GAP, 1), (GAP + 1, 2)):
        for begin in range(GAP):
            operator = WindowAggregate(Session(GAP), AGGREGATES, ("k",)).opened(SCHEMA)
            times = [begin, begin + apart, begin + apart + GAP * gaps_of_page + 1]
            list(operator.on_page(0, page_of([{"ts": t, "k": 1, "v": 1} for t in times])))
            [page, *_] = [m for _, m in operator.on_punctuation(0, Linear(begin + apart + GAP + 1))]
            assert page.rows == many


def test_cells_that_are_nearly_all_empty_are_not_kept():
    """A tuple far ahead does not make room for all the time in between, nor do tuples of few among very many keys."""
    operator = WindowAggregate(Session(GAP), AGGREGATES, ("k",)).opened(SCHEMA)
    list(operator.on_page(0, page_of([{"ts": t, "k": 1, "v": 1} for t in (0, 10**9)])))
    assert "runs" in store_of(operator).save()
    assert operator.state().nbytes < 10_000
    operator = WindowAggregate(Session(GAP), AGGREGATES, ("k",)).opened(SCHEMA)
    keys = np.arange(20_000)
    list(operator.on_page(0, Page.of(SCHEMA, {"ts": keys % 400, "k": keys, "v": keys})))
    assert "runs" in store_of(operator).save()  # 40 cells of 20,000 groups, one in 40 in use
    operator = WindowAggregate(Session(GAP), AGGREGATES, ("k",)).opened(SCHEMA)
    list(operator.on_page(0, Page.of(SCHEMA, {"ts": keys % 400, "k": keys % 1000, "v": keys})))
    assert "cells" in store_of(operator).save()
