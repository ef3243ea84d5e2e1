"""Which tuples are late: by the definition of each policy, wherever pages end, and the same in both architectures."""

from __future__ import annotations

import itertools
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import FOREVER, Graph, GroupWise, Linear, Page, Schema, replay
from oop_engine.operators.aggregates import Count
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.in_order.sort import Sort
from oop_engine.operators.policies.late import Late, Slack
from oop_engine.operators.policies.policies import (
    BoundedCount,
    BoundedDisorder,
    Heartbeat,
    Ordered,
    PerGroup,
    Upstream,
)
from oop_engine.operators.policies.running_bound import Policy
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Sliding
from oop_engine.testing import END, Driver, multiset
from oop_engine.traces.profiling import profile
from tests.naive.progress import Keeps, bounded_count, bounded_disorder, ordered

Row = dict[str, Any]
SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "id": pa.int64()}, "ts", "s")
KEEPS: dict[Policy, Keeps] = {
    Ordered(): ordered,
    BoundedDisorder(7): bounded_disorder(7),
    BoundedDisorder(20): bounded_disorder(20),
    BoundedCount(3): bounded_count(3),
}
LAGS = [Ordered(), BoundedDisorder(7), BoundedCount(3)]
OF_GROUPS = [PerGroup(policy, ("k",), linear) for policy in LAGS for linear in (None, BoundedDisorder(20))]
OF_GROUPS += [PerGroup(BoundedDisorder(7), ("k",), linear=BoundedCount(3))]
ROWS = st.lists(st.tuples(st.integers(0, 60), st.sampled_from("abc")), max_size=25).map(
    lambda rows: [{"ts": ts, "k": k, "id": i} for i, (ts, k) in enumerate(rows)]
)
CUTS = st.lists(st.integers(1, 12), min_size=1, max_size=25)


def late(rows: list[Row], policy: Policy) -> list[Row]:
    """Return the rows that do not keep to the policy, after those before them."""
    found = []
    for i, row in enumerate(rows):
        before = rows[:i]
        kept = True
        if isinstance(policy, PerGroup):
            kept = KEEPS[policy.policy]([r["ts"] for r in before if r["k"] == row["k"]], row["ts"])
        linear = policy.linear if isinstance(policy, PerGroup) else policy
        if linear is not None:
            kept = kept and KEEPS[linear]([r["ts"] for r in before], row["ts"])
        if not kept:
            found.append(row)
    return found


def paged(rows: list[Row], cuts: list[int], *, arrivals: bool) -> list[Page]:
    pages, start = [], 0
    for size in itertools.cycle(cuts):
        if start >= len(rows):
            return pages
        part = rows[start : start + size]
        came = [3 * row["id"] for row in part] if arrivals else None
        pages.append(Page.of(SCHEMA, {n: [row[n] for row in part] for n in SCHEMA.names}, came))
        start += size
    raise AssertionError


def fed(operator: Punctuate | Sort, messages: list[Any]) -> Driver:
    driver = Driver(operator, SCHEMA)
    for message in [*messages, END]:
        if isinstance(message, int):
            driver.clock(message)
        else:
            driver.feed(0, message)
    return driver


@pytest.mark.parametrize("policy", [*LAGS, *OF_GROUPS], ids=str)
def test_a_tuple_is_late_if_it_does_not_keep_to_the_policy(policy: Policy):
    @settings(max_examples=40)
    @given(ROWS, CUTS, st.booleans())
    def holds(rows, cuts, arrivals):
        messages, expected = paged(rows, cuts, arrivals=arrivals), late(rows, policy)
        punctuate = fed(Punctuate(policy, late=Late.DIVERT), messages)
        assert punctuate.rows(1) == expected
        assert punctuate.rows(0) == [row for row in rows if row not in expected]
        assert punctuate.operator.counts() == {"late": len(expected)}
        assert fed(Punctuate(policy), messages).operator.counts() == {"late": len(expected)}
        if not (isinstance(policy, PerGroup) and policy.linear is None):
            for slack in Slack:
                sort = fed(Sort(policy, late=slack), messages)
                assert sort.operator.counts() == {"late": len(expected)}
                assert sort.rows(0) == sorted(punctuate.rows(0), key=lambda row: row["ts"])
            assert sort.rows(1) == expected

    holds()


EVENTS = st.lists(
    st.one_of(
        ROWS,
        st.sampled_from([*range(0, 61, 7), FOREVER]).map(Linear),
        st.tuples(st.sampled_from("abc"), st.sampled_from([10, 30, 50, FOREVER])).map(
            lambda said: GroupWise.of({"k": [said[0]]}, [said[1]])
        ),
        st.integers(0, 90),
    ),
    max_size=6,
)
WITH_CLOCK = [
    Upstream(),
    Heartbeat(BoundedDisorder(7), 10, 3),
    PerGroup(Ordered(), ("k",), linear=Heartbeat(BoundedDisorder(20), 2, 10)),
]


@pytest.mark.slow(keep=9)
@pytest.mark.parametrize("granularity", [None, 1, 10])
@pytest.mark.parametrize("policy", [*LAGS, *OF_GROUPS[1::2], *WITH_CLOCK], ids=str)
def test_late_in_one_architecture_is_late_in_the_other(policy: Policy, granularity: int | None):
    @settings(max_examples=25)
    @given(EVENTS, CUTS, st.booleans())
    def holds(events, cuts, arrivals):
        found = []
        for sizes in (cuts, [1], [25]):
            messages = []
            for event in events:
                messages += paged(event, sizes, arrivals=arrivals) if isinstance(event, list) else [event]
            found.append(fed(Punctuate(policy, granularity, Late.DIVERT), messages).rows(1))
            found.append(fed(Sort(policy, granularity, "generous"), messages).rows(1))
            count = fed(Sort(policy, granularity), messages).operator.counts()["late"]
            assert count == len(found[0])
        assert found[1:] == found[:1] * (len(found) - 1)

    holds()


def counted(policy: Policy) -> Graph:
    graph = Graph("counted")
    edge = graph.add("edge", Punctuate(policy), graph.source("in", SCHEMA))
    graph.sink("out", graph.add("count", WindowAggregate(Sliding(9, 5), {"rows": Count()}, ("k",)), edge))
    return graph


@pytest.mark.parametrize("policy", [*LAGS, *OF_GROUPS[1::2], WITH_CLOCK[1]], ids=str)
def test_results_depend_on_the_tuples_alone(policy: Policy):
    rng = np.random.default_rng(3)
    times = (np.arange(400) // 3 - rng.integers(0, 25, 400)).tolist()
    rows = [{"ts": t, "k": "abc"[t % 3], "id": i} for i, t in enumerate(times)]
    runs: list[tuple[Graph, int, bool, Literal["inline", "local"]]] = [
        (counted(policy), 1, True, "inline"),
        (counted(policy), 17, True, "local"),
        (counted(policy), 400, True, "inline"),
        (in_order(counted(policy)), 3, True, "local"),
        (in_order(counted(policy)), 400, True, "inline"),
    ]
    if policy != WITH_CLOCK[1]:  # which asks when
        runs += [(counted(policy), 1, False, "local"), (in_order(counted(policy)), 90, False, "inline")]
    found = []
    for graph, size, arrivals, on in runs:
        outcome = replay(graph, {"in": paged(rows, [size], arrivals=arrivals)}, on=on, check=True)
        found.append((outcome.late.total, multiset(outcome.results["out"].to_pylist())))
        assert outcome.late.by_operator == {"edge": outcome.late.total}
        assert str(outcome.late).startswith(f"{outcome.late.total} of 400 tuples were late at 'edge' (")
    assert found[0][0] > 0
    assert found[1:] == found[:1] * (len(runs) - 1)


@pytest.mark.parametrize("size", [50, 5000])
def test_the_forecast_of_a_profile_holds(size: int):
    rng = np.random.default_rng(11)
    times = np.arange(5000) - (rng.pareto(1.1, 5000) * 9).astype(np.int64)
    rows = [{"ts": t, "k": "abc"[t % 3], "id": i} for i, t in enumerate(times.tolist())]
    pages = paged(rows, [size], arrivals=False)
    values = {"Ordered": Ordered, "BoundedDisorder": BoundedDisorder, "PerGroup": PerGroup}
    forecasts = {c.policy: c.late for c in profile(pages, SCHEMA, by=("k",)).candidates}
    assert len(forecasts) == 9
    assert max(forecasts.values()) > 3000
    for policy, forecast in forecasts.items():
        counted = fed(Punctuate(eval(policy, values)), pages).operator.counts()
        assert counted == {"late": forecast}, policy
