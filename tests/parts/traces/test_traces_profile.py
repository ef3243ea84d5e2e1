"""What a profile says of a trace is what counting one by one says."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import GraphError, Linear, Page, Schema
from oop_engine.traces import Disorder, Link, blocks
from oop_engine.traces.blocks import Blocks
from oop_engine.traces.lateness import Histogram
from oop_engine.traces.lengths import length_text, rounded_up
from oop_engine.traces.profiling import Lateness, profile
from tests.naive import traces as naive

SCHEMA = Schema({"ts": pa.int64(), "key": pa.string()}, "ts", "ms")
ROWS = st.lists(st.tuples(st.integers(-50, 60), st.sampled_from([*"abc", None])), max_size=60)
CUTS = st.lists(st.integers(0, 60), max_size=5)


def cut(page: Page, cuts: list[int]) -> list[Page]:
    edges = [0, *sorted(min(c, len(page)) for c in cuts), len(page)]
    return [page.slice(a, b) for a, b in itertools.pairwise(edges)]


def exact(values: list[int]) -> Lateness:
    ordered = sorted(values)
    quantiles = [ordered[math.ceil(p * len(values)) - 1] if values else 0 for p in (0.5, 0.99, 0.999, 1)]
    return Lateness(sum(v > 0 for v in values), *quantiles)


@settings(deadline=None)
@given(ROWS, CUTS)
def test_profile_counts_right(rows, cuts):
    times, keys = [t for t, _ in rows], [k for _, k in rows]
    found = profile(cut(Page.of(SCHEMA, {"ts": times, "key": keys}), cuts), SCHEMA, by=["key"])
    late, own = naive.lateness(times), naive.own_lateness(times, keys)
    assert found.tuples == len(rows)
    assert found.lateness == exact(late)
    assert found.own_lateness == exact(own)
    assert found.larger_before == exact(naive.larger_before(times))
    assert {(g.group["key"], g.tuples, g.out_of_order, g.most) for g in found.groups} == {
        (k, keys.count(k), sum(o > 0 for o in mine), max(mine))
        for k in set(keys)
        for mine in [[o for o, key in zip(own, keys, strict=True) if key == k]]
    }
    for candidate in found.candidates:
        behind = own if "PerGroup" in candidate.policy else late
        assert candidate.late == sum(b > candidate.delay for b in behind)
    json.dumps(found.to_dict())


@settings(deadline=None)
@given(st.lists(st.integers(0, 40), max_size=80), CUTS, st.booleans())
def test_parts_are_found_across_pages(jumps, cuts, ascending):
    times = [jump + (3 * i if ascending else 0) for i, jump in enumerate(jumps)]
    found = Blocks()
    for part in np.split(np.array(times, np.int64), sorted(min(c, len(times)) for c in cuts)):
        found.add(part)
    found.end()
    large = [p for p in naive.parts(times) if len(p) >= 8]
    assert (found.tuples, found.parts, found.in_parts) == (len(times), len(large), sum(map(len, large)))
    assert found.span == sum(max(p) - min(p) for p in large)
    filled = [p for p in large if 2 * max(naive.lateness(p)) >= max(p) - min(p) > 0]
    assert found.filled == sum(map(len, filled))


def test_only_so_many_parts_stay_open(monkeypatch):
    monkeypatch.setattr(blocks, "_OPEN", 5)
    found = Blocks()
    for start in range(0, 1000, 100):
        found.add(np.arange(start, start + 100))
        assert found._open.shape[1] <= 5


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**62) | st.integers(0, 1000), min_size=1), st.floats(0.01, 1))
def test_quantiles_are_never_too_small_and_little_too_large(values, share):
    seen = Histogram()
    seen.add(np.array(values, np.int64))
    true = sorted(values)[max(math.ceil(share * len(values)), 1) - 1]
    found = seen.quantile(share)
    assert true <= found <= true + true // 64
    assert seen.above(found) == sum(v > found for v in values)
    assert seen.most == max(values)


TRACE = Disorder((Link("a", 500), Link("b", 500)), duration="60 s", seed=3)
SHAPES = [
    (TRACE, "ordered"),
    (replace(TRACE, band="2 s"), "band"),
    (replace(TRACE, band=20), "band"),
    (replace(TRACE, block="10 s"), "block"),
    (replace(TRACE, block=50), "block"),
    (replace(TRACE, late=0.002, late_by="30 s", band=100), "tail"),
]


@pytest.mark.parametrize(("trace", "shape"), SHAPES)
def test_shapes_are_told_apart(trace, shape):
    assert profile(trace.messages(5000), trace.schema).shape == shape


def test_blocks_are_measured():
    found = profile(SHAPES[3][0].messages(5000), TRACE.schema)
    assert found.block_tuples == 10_000
    assert 9_900 < found.block_length < 10_000


def test_skew_is_lateness_of_the_stream_but_not_of_its_groups():
    trace = replace(TRACE, links=(Link("a", 500), Link("b", 500, skew="5 s")))
    found = profile(trace.messages(), trace.schema, by=["link"])
    assert 4_900 < found.lateness.most <= 5_000
    assert found.own_lateness is not None
    assert found.own_lateness.most == 0
    behind = {g.group["link"]: g.behind for g in found.groups}
    assert behind["a"] == 0
    assert abs(behind["b"] - 5_000) < 250
    last = found.candidates[-1]
    assert (last.policy, last.late) == ("PerGroup(Ordered(), by=('link',))", 0)


def test_costs_follow_from_the_slack():
    found = profile(SHAPES[1][0].messages(), TRACE.schema)
    names = [c.policy for c in found.candidates]
    assert names[0] == "Ordered()"
    most = rounded_up(found.lateness.most, "ms")
    assert found.lateness.most <= most <= 1.1 * found.lateness.most
    assert names[-1] == f'BoundedDisorder("{length_text(most, "ms")}")'
    assert found.candidates[-1].late == 0
    late = [c.late for c in found.candidates]
    assert late == sorted(late, reverse=True)
    assert abs(found.candidates[-1].state - most) < 20  # 1000 tuples a second


def test_groups_are_reported_up_to_a_number_and_promises_counted():
    page = Page.of(SCHEMA, {"ts": range(100), "key": [str(i % 30) for i in range(100)]})
    found = profile([page, Linear(7), Page.empty(SCHEMA)], SCHEMA, by=["key"], most_groups=10)
    assert (found.groups_known, len(found.groups), found.promises) == (30, 10, 1)
    assert {g.tuples for g in found.groups} == {4}


def test_nothing_has_a_profile_and_unknown_columns_have_none():
    assert profile([], SCHEMA, by=["key"]).shape == "ordered"
    with pytest.raises(GraphError, match="profile: no column 'link'"):
        profile([], SCHEMA, by=["link"])
