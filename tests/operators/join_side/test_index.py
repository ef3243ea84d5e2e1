from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import FOREVER, NEVER
from oop_engine.snapshot import pack, unpack
from operators.join_side.index import PAGE_ROWS, JoinIndex
from operators.join_side.run import Run
from operators.kernels import join_index as kernels
from operators.kernels.join_index import CROWD

ROWS = st.lists(st.tuples(st.integers(-2, 3), st.integers(0, 12)), max_size=40)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), ROWS),
        st.tuples(st.just("purge"), st.integers(0, 14)),
        st.tuples(st.just("bury"), st.integers(-2, 3)),
        st.tuples(st.just("move"), st.none()),
    ),
    max_size=12,
)
PROBES = [(code, low, low + width) for code in range(-2, 4) for low in (-3, 2, 7) for width in (0, 4, 20)]


def ints(values: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(list(values), np.int64)


def batch_of(first: int, rows: int) -> pa.RecordBatch:
    return pa.record_batch({"id": range(first, first + rows)})


def found(index: JoinIndex, probes: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    columns = [ints(column) for column in zip(*probes, strict=True)]
    return sorted(
        (probe, tuple_id)
        for numbers, stored in index.matches(*columns)
        for probe, tuple_id in zip(numbers.tolist(), stored.column(0).to_pylist(), strict=True)
    )


def moved(index: JoinIndex) -> JoinIndex:
    fresh = JoinIndex()
    runs = unpack("test", pack("test", {"runs": index.save()})).parts("runs")
    fresh.load(runs, batch_of(0, 1).schema)
    return fresh


@given(STEPS, st.integers(1, 3))
def test_finds_what_the_definition_says_and_counts_what_lives(steps: list[Any], repeat: int) -> None:
    index, held, fed = JoinIndex(), {}, 0  # type: ignore[var-annotated]
    dead: set[int] = set()
    for what, with_what in steps:
        if what == "add":
            rows = [row for row in with_what for _ in range(repeat * 6 if row[0] == 3 else 1)]
            stays = np.arange(0, len(rows), 1 + fed % 3, dtype=np.int32)
            codes, times = (ints(row[i] for row in rows)[stays] for i in (0, 1))
            index.add(batch_of(fed, len(rows)), stays, codes, times)
            held |= {fed + row: rows[row] for row in stays.tolist()}
            fed += len(rows)
        elif what == "purge":
            index.purge(with_what)
            dead |= {i for i, (_, time) in held.items() if time < with_what}
        elif what == "bury":
            index.purge_entries(lambda run, code=with_what: entries_of(run, code))  # type: ignore[misc]
            dead |= {i for i, (code, _) in held.items() if code == with_what}
        else:
            before = index.nbytes, index.tuples, index.groups
            index = moved(index)
            assert (index.nbytes, index.tuples, index.groups) == before
        alive = {i: row for i, row in held.items() if i not in dead}
        assert index.tuples == len(alive)
        matches = [
            (n, i)
            for n, (c, low, high) in enumerate(PROBES)
            for i, (code, time) in held.items()
            if c == code and low <= time <= high
        ]
        got = found(index, PROBES)
        assert {pair for pair in matches if pair[1] in alive} <= set(got) <= set(matches)
        assert len(got) == len(set(got))
    index.purge(FOREVER)
    assert (index.tuples, index.groups, index.nbytes) == (0, 0, 0)


def entries_of(run: Run, code: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.concatenate([e for _, e in run.matches(ints([code]), ints([NEVER]), ints([FOREVER]), 64)])


def test_ends_of_int64() -> None:
    index = JoinIndex()
    times = ints([NEVER, NEVER + 1, 0, FOREVER - 1, FOREVER] * 5)
    index.add(batch_of(0, 25), np.arange(25, dtype=np.int32), ints([9] * 25), times)
    assert len(found(index, [(9, NEVER, FOREVER)])) == 25
    assert len(found(index, [(9, NEVER, NEVER), (9, FOREVER, FOREVER), (8, NEVER, FOREVER)])) == 10


@pytest.mark.parametrize("rows", [CROWD, CROWD + 1, 3 * PAGE_ROWS])
def test_many_matches_come_in_bounded_blocks(rows: int) -> None:
    index = JoinIndex()
    index.add(batch_of(0, rows), np.arange(rows, dtype=np.int32), ints([7] * rows), np.arange(rows))
    blocks = [stored for _, stored in index.matches(ints([7, 7]), ints([0, 0]), ints([rows, rows]))]
    assert max(block.num_rows for block in blocks) <= PAGE_ROWS
    ids = np.concatenate([block.column(0).to_numpy() for block in blocks])
    assert np.bincount(ids).tolist() == [2] * rows


class Counted:
    """An array that counts how often somebody looks."""

    def __init__(self, values: Any) -> None:
        self.values, self.looks = values, 0

    def __getitem__(self, at: Any) -> Any:
        self.looks += 1
        return self.values[at]


@pytest.mark.parametrize("codes", [[7], [7, 7, 7, 7, 7, 7, 7, 7, 7, 8]], ids=["one key", "two in a bucket"])
def test_looks_grow_with_the_logarithm_of_a_crowd_and_with_matches(
    monkeypatch: pytest.MonkeyPatch, codes: list[int]
) -> None:
    for name in ("_bucket", "_lower"):
        monkeypatch.setattr(kernels, name, getattr(kernels, name).py_func)
    looks = []
    for rows in (1_000, 16_000):
        held = ints((codes * rows)[:rows])
        first, entries, tuples = kernels.scatter(held, np.arange(rows)[::-1].copy(), 0)
        kernels.settle(first, entries, tuples)
        counted, times = Counted(entries), np.arange(0, rows, rows // 50)
        probes = [ints([code] * len(times)) for code in (7, 8)]
        for probe in probes:
            arrays = np.zeros(2, np.int64), *np.empty((2, 1_000), np.int32)
            extent = ints([0, rows])
            with np.errstate(over="ignore"):
                kernels.match.py_func(probe, times, times + 2, first, counted, 0, extent, *arrays)
        looks.append(counted.looks)
    assert looks[1] < 1.5 * looks[0]


def test_few_runs_however_small_and_uneven_the_pages() -> None:
    index, rng = JoinIndex(), np.random.default_rng(5)
    for step in range(600):
        rows = (1, 300)[step % 2]
        codes, times = rng.integers(0, 90, rows), rng.integers(0, 10**6, rows)
        index.add(batch_of(0, rows), np.arange(rows, dtype=np.int32), codes, times)
    assert index.tuples == 300 * 301
    assert len(index.save()) <= 3 * 9  # 3 of each size, and sizes grow fourfold


def test_what_is_held_is_what_is_counted() -> None:
    rows = 40_000
    wide = pa.record_batch({"id": np.arange(8 * rows), "x": np.zeros(8 * rows)})
    index = JoinIndex()
    index.add(wide.slice(rows, rows), np.arange(rows, dtype=np.int32), np.arange(rows), np.arange(rows))
    (run,) = index.save()
    assert run["batch"].get_total_buffer_size() <= 2 * 16 * rows
    index.purge(rows - 100)
    (run,) = index.save()
    assert run["batch"].get_total_buffer_size() <= 2 * 16 * 100
    assert index.nbytes <= 100 * (16 + 16 + 4 + 2 * 4) + 8


def test_a_page_that_stays_is_not_copied() -> None:
    batch = batch_of(0, 5_000)
    index = JoinIndex()
    index.add(batch, np.arange(0, 4_000, dtype=np.int32), np.arange(4_000), np.arange(4_000))
    (run,) = index.save()
    assert run["batch"].column(0).buffers()[1].address == batch.column(0).buffers()[1].address
