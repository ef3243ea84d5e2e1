"""Runs of a join: matches are those of the definition, however keys and times lie, and rows are taken as Arrow does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine.core.punctuation import FOREVER
from oop_engine.operators.joining.run import SortedRun
from oop_engine.operators.joining.taking import taken

MANY = 3000
NUMBERS = np.random.default_rng(7).integers(-(2**62), 2**62, MANY)
COLUMNS = {
    "int8": pa.array((NUMBERS % 100).astype(np.int8)),
    "uint16": pa.array((NUMBERS % 1000).astype(np.uint16)),
    "float32": pa.array(NUMBERS.astype(np.float32)),
    "int64": pa.array(NUMBERS),
    "date": pa.array((NUMBERS % 9999).astype(np.int32), pa.date32()),
    "moment": pa.array(NUMBERS % 10**12, pa.timestamp("ms", "UTC")),
    "bool": pa.array(NUMBERS % 2 == 0),
    "decimal": pa.array((NUMBERS % 99).tolist(), pa.decimal128(9, 2)),
    "text": pa.array(NUMBERS.astype(str)),
    "words": pa.array((NUMBERS % 3).astype(str)).dictionary_encode(),
    "nulls": pa.array(NUMBERS, mask=NUMBERS % 3 == 0),
    "list": pa.array([[n] for n in range(MANY)]),
}


def run_of(codes: Any, times: Any) -> SortedRun:
    codes, times = np.array(codes, np.int64), np.array(times, np.int64)
    batch = pa.record_batch({"code": codes, "time": times})
    return SortedRun(batch, np.arange(codes.size, dtype=np.int32), codes, times)


@pytest.mark.parametrize("rows", [0, 5, MANY])
@pytest.mark.parametrize("begin", [0, 17])
def test_rows_are_taken_as_arrow_takes_them(rows: int, begin: int) -> None:
    batch = pa.record_batch(COLUMNS).slice(begin)
    places = np.random.default_rng(rows).integers(0, batch.num_rows, rows).astype(np.int32)
    assert taken(batch, places).equals(batch.take(pa.array(places)))
    twice = places[::-1].copy()
    at = np.arange(rows, dtype=np.int32)[::-1].copy()
    assert taken(batch, twice, at).equals(batch.take(pa.array(places)))


@given(
    st.sampled_from([1, 2**20, 2**31, 2**40]),
    st.sampled_from([0, -(2**62), 2**62]),
    st.sampled_from([1, 2**31, 2**36]),
    st.lists(st.tuples(st.integers(0, 3), st.integers(-20, 20)), min_size=1, max_size=70),
    st.integers(-25, 25),
    st.integers(0, 30),
    st.integers(-22, 22),
)
def test_matches_are_those_of_the_definition(
    apart: int,
    since: int,
    unit: int,
    tuples: list[tuple[int, int]],
    low: int,
    span: int,
    keep_from: int,
) -> None:
    """Keys are ``apart``, times ``unit``, from ``since`` on: of 32 bits or not, few keys or many tuples of a key."""
    codes = [(code - 1) * apart for code, _ in tuples]
    times = [since + time * unit for _, time in tuples]
    run, asked = run_of(codes, times), sorted({*codes, 5})
    probes = np.array(asked)
    from_, to = (np.full(probes.size, since + side * unit) for side in (low, low + span))
    found = list(run.matches(probes, from_, to, 4 * 70 + 16))
    pairs = sorted(
        (asked[p], *run.keys(np.array([e], np.int32))[0].tolist())
        for of, entries in found
        for p, e in zip(of, entries, strict=True)
    )
    inside = range(since + low * unit, since + (low + span) * unit + 1)
    assert pairs == sorted((c, c, t) for c, t in zip(codes, times, strict=True) if t in inside)
    assert run.take(run.alive()).to_pylist() == [
        {"code": c, "time": t} for c, t in run.keys(run.alive()).tolist()
    ]
    bound = since + keep_from * unit
    living = sorted((c, t) for c, t in zip(codes, times, strict=True) if t >= bound)
    assert sorted(run.times(run.before(bound)).tolist()) == sorted(t for t in times if t < bound)
    run.bury_before(bound)
    assert run.live == len(living)
    if living:
        assert sorted(map(tuple, run.keys(run.alive()).tolist())) == living
        same = run.compacted()
        assert sorted(map(tuple, same.keys(same.alive()).tolist())) == living
    run.bury_before(FOREVER)
    assert run.live == 0


@pytest.mark.parametrize("most", [20, 117, 1000])
def test_a_key_with_more_tuples_than_there_is_room_goes_on_where_it_stopped(most: int) -> None:
    run = run_of([1] * 90 + [2] * 3, [*range(90), 5, 6, 7])
    probes, low = np.array([1, 2, 1]), np.array([10, 0, 80])
    parts = list(run.matches(probes, low, low + 60, most))
    assert all(len(entries) <= most for _, entries in parts)
    found = [(p, t) for of, e in parts for p, t in zip(of.tolist(), run.times(e).tolist(), strict=True)]
    assert found == [(0, t) for t in range(10, 71)] + [(1, t) for t in (5, 6, 7)] + [
        (2, t) for t in range(80, 90)
    ]


def test_keys_and_spans_that_fit_take_half_of_the_bytes() -> None:
    near, far = run_of(range(1000), range(1000)), run_of(range(1000), [*range(999), 2**40])
    assert far.nbytes - near.nbytes == 8 * 1000
