"""A bound of few groups among many leaves the others alone, and has the results of one that looks at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import GroupWise, Linear, Operator, Page, Schema
from oop_engine.aggregates import Median
from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.snapshot import pack, unpack
from oop_engine.extend import Message
from oop_engine.operators import (
    Avg,
    Count,
    Distinct,
    Finalize,
    Latest,
    Max,
    Session,
    Sliding,
    Sum,
    TopN,
    Tumbling,
    WindowAggregate,
)
from oop_engine.operators.keys.group_match import GroupMatch
from oop_engine.operators.slicing.panes import open_spans
from oop_engine.runners.dispatch import handle
from oop_engine.thesis import LowLevelAggregate, PartialAggregate
from oop_engine.windows import Global, Landmark, PartitionedTupleBased

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64(), "j": pa.string(), "v": pa.int64()}, "ts", "ms")
REVISED = Schema(pa.schema([*SCHEMA.fields, pa.field("change", pa.int8())]), "ts", "ms", change="change")
GROUPS, ROUNDS = 60, 60
ASKED = {"n": Count(), "sum": Sum("v"), "most": Max("v"), "mean": Avg("v")}


def _windows(windows: Any, asked: Any = None, schema: Schema = SCHEMA, **more: Any) -> Callable[[], Operator]:
    return lambda: WindowAggregate(windows, asked or ASKED, by=("k", "j"), **more).opened(schema)


CASES: dict[str, Callable[[], Operator]] = {
    "tumbling": _windows(Tumbling(20)),
    "sliding": _windows(Sliding(40, 10)),
    "WID": _windows(Sliding(40, 10), strategy="windows"),
    "adaptive": _windows(Sliding(40, 10), strategy="adaptive"),
    "slices": _windows({"a": Tumbling(20), "b": Sliding(60, 30)}),
    "sessions": _windows(Session(7)),
    "global": _windows(Global()),
    "landmark": _windows(Landmark(15)),
    "rows of a group": _windows(PartitionedTupleBased(4, 1)),
    "median": _windows(Sliding(40, 10), {"m": Median("v")}),
    "of changes": _windows(Tumbling(20), schema=REVISED),
    "distinct": lambda: Distinct(by=("k", "j")).opened(SCHEMA),
    "distinct of changes": lambda: Distinct(by=("k", "j")).opened(REVISED),
    "finalize": lambda: Finalize().opened(REVISED),
    "ranks": lambda: TopN(2, ["-v"], by=("k",)).opened(REVISED),
    "latest": lambda: Latest(by=("k", "j"), where=pc.field("v") >= 0).opened(SCHEMA),
    "low level": lambda: LowLevelAggregate(Tumbling(20), ASKED, by=("k", "j"), slots=16).opened(SCHEMA),
    "partial": lambda: PartialAggregate(Tumbling(20), ASKED, by=("k", "j")).opened(SCHEMA),
}


def _messages(seed: int, *, revised: bool) -> list[Message]:
    """Return pages and bounds of a few keys, of both columns or one, or of the stream; some keys end and come again."""
    random, bounds, stream = np.random.default_rng(seed), np.full(GROUPS, -100), -100
    found, out = list[Message](), list[tuple[int, int, int]]()
    for number in range(ROUNDS):
        rows = int(random.integers(1, 40)) if number else 4 * GROUPS
        keys = random.integers(0, GROUPS, rows) if number else np.arange(rows) % GROUPS
        times = np.maximum(bounds[keys], number) + random.integers(0, 60, rows)
        values, changes = random.integers(0, 9, rows), np.ones(rows, np.int8)
        if revised and out:
            back = [row for row in out[-5:] if row[1] >= max(int(bounds[row[0]]), stream)]
            keys, times, values = (
                np.append(of, [row[at] for row in back]).astype(np.int64)
                for at, of in enumerate((keys, times, values))
            )
            changes = np.append(changes, np.full(len(back), -1, np.int8))
            out = [row for row in out if row not in back]
        rows_now = zip(keys.tolist(), times.tolist(), values.tolist(), changes.tolist(), strict=True)
        out += [row[:3] for row in rows_now if row[3] == 1 and row[:3] not in out]
        columns = {"ts": times, "k": keys, "j": [f"j{key % 7}" for key in keys], "v": values}
        found.append(
            Page.of(REVISED, {**columns, "change": changes}) if revised else Page.of(SCHEMA, columns)
        )
        some = random.choice(GROUPS, int(random.integers(1, 3)), replace=False)
        below = number + random.integers(0, 50, some.size)
        bounds[some] = np.maximum(bounds[some], below)
        if number % 9 == 8:
            below[0] = FOREVER
            out = [row for row in out if row[0] != some[0]]
        both = {"k": some, "j": [f"j{key % 7}" for key in some]}
        named = both if number % 2 else {"k": some}
        found.append(GroupWise(pa.RecordBatch.from_pydict(named), below))
        if number % 13 == 12:
            stream = number + 10
            bounds = np.maximum(bounds, stream)
            found.append(Linear(stream))
    return [*found, Linear(FOREVER)]


def _answers(make: Callable[[], Operator], messages: list[Message]) -> list[Any]:
    """Return for each message the rows that leave, sorted, and the bounds behind them."""
    operator, found = make(), []
    for message in messages:
        out = [one for _, one in handle(operator, 0, message, NEVER)]
        rows = [str(row) for page in out if isinstance(page, Page) for row in page.to_pylist()]
        bounds = [
            str((one.below.tolist(), one.groups.to_pylist())) if isinstance(one, GroupWise) else str(one)
            for one in out
            if not isinstance(one, Page)
        ]
        found.append((sorted(rows), bounds))
    return found


@pytest.mark.slow(keep=9)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(2))
def test_few_groups_have_the_results_of_a_look_at_all(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    revised = CASES[name]().schemas_in[0].change is not None
    messages = _messages(seed, revised=revised)
    found = []
    for apart in (1, 1 << 40):  # a group each is few; none is
        monkeypatch.setattr(open_spans, "_APART", apart)
        found.append(_answers(CASES[name], messages))
    few, every = found
    assert sum(len(rows) for rows, _ in every) >= GROUPS
    assert few == every


@pytest.mark.slow(keep=5)
@pytest.mark.parametrize("name", CASES)
def test_few_groups_have_the_same_results_from_a_snapshot_on(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_spans, "_APART", 1)
    revised = CASES[name]().schemas_in[0].change is not None
    messages = _messages(7, revised=revised)
    begun = CASES[name]()
    _ = _answers(lambda: begun, messages[:60])
    again = CASES[name]()
    again.load(unpack("few", pack("few", begun.save())))
    assert _answers(lambda: begun, messages[60:]) == _answers(lambda: again, messages[60:])


def test_coarser_groups_are_found_as_groups_come_leave_and_move() -> None:
    random = np.random.default_rng(1)
    groups = GroupIndex([pa.int64(), pa.string()])
    match, gone = GroupMatch(groups, ("k", "j")), set[int]()
    known: list[tuple[int, str]] = []
    for number in range(200):
        keys = random.integers(0, 20, 6)
        texts = [f"j{one}" for one in random.integers(0, 9, 6)]
        slots = groups.encode([pa.array(keys), pa.array(texts)])
        known += [pair for pair in dict.fromkeys(zip(keys.tolist(), texts, strict=True)) if pair not in known]
        match.again(slots)
        gone -= set(slots.tolist())
        some = random.choice(22, 3, replace=False)
        asked = GroupWise(pa.RecordBatch.from_pydict({"k": some}), np.arange(3))
        found, of = match.of(asked)
        right = [
            (slot, some.tolist().index(k))
            for slot, (k, _) in enumerate(known)
            if k in some and slot not in gone
        ]
        assert list(zip(found.tolist(), of.tolist(), strict=True)) == right
        left = random.choice(len(known), 2)
        match.leave(left)
        gone |= set(left.tolist())
        if number % 40 == 39:
            kept = np.flatnonzero(random.random(len(known)) < 0.5)
            groups.keep(kept)
            known, gone = [known[slot] for slot in kept], set()
