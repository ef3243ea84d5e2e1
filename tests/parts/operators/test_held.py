"""Held tuples: each bound takes those that it has passed, by group and time, however they lie."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import FOREVER, Page, Schema
from oop_engine.core.saved import Saved
from oop_engine.operators.slicing.ordered.group_buffer import GroupBuffer
from oop_engine.operators.slicing.ordered.held import Held, Taken
from oop_engine.operators.windows import Over

SCHEMA = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "s")
SECONDS = Schema({"ts": pa.timestamp("s"), "v": pa.int64()}, "ts")
NARROW = Schema({"ts": pa.int16(), "v": pa.int64()}, "ts", "s")
SLOTS, TIMES = 6, 12


class Row(NamedTuple):
    slot: int
    time: int
    tag: int


slots, times = st.integers(0, SLOTS - 1), st.integers(-2, TIMES)
bounds = st.one_of(times, st.just(FOREVER))
steps = st.one_of(
    st.tuples(st.just("add"), st.lists(st.builds(Row, slots, times, st.integers(0, 1)), max_size=9)),
    st.tuples(st.just("all"), bounds),
    st.tuples(st.just("some"), st.dictionaries(slots, bounds, min_size=1)),
    st.tuples(st.just("restore"), st.none()),
    st.tuples(st.just("rename"), st.sets(slots)),
)


def held_of(schema: Schema, readers: int) -> Held:
    held = Held(schema, ["v"], Over.ATTRIBUTE, tagged=True, grouped=True)
    assert [held.reader() for _ in range(readers)] == [*range(readers)]
    return held


class Model:
    """The rows as they came, each with its number as value."""

    def __init__(self) -> None:
        self.rows: list[tuple[Row, int]] = []
        self.came = 0

    def add(self, rows: list[Row]) -> list[int]:
        numbers = [*range(self.came, self.came + len(rows))]
        self.rows += zip(rows, numbers, strict=True)
        self.came += len(rows)
        return numbers

    def take(self, below: dict[int, int]) -> dict[int, list[tuple[int, int, int]]]:
        """Take out the rows below the bounds of their groups: of each group time, number and tag."""
        gone = [(row, number) for row, number in self.rows if self._passed(row, below)]
        self.rows = [one for one in self.rows if not self._passed(one[0], below)]
        found = dict[int, list[tuple[int, int, int]]]()
        for row, number in sorted(gone, key=lambda one: one[0].time):
            found.setdefault(row.slot, []).append((row.time, number, row.tag))
        return found

    def _passed(self, row: Row, below: dict[int, int]) -> bool:
        return row.slot in below and (row.time < below[row.slot] or below[row.slot] == FOREVER)

    def tagged(self, bounds: dict[int, int]) -> list[int]:
        return sorted(row.slot for row, _ in self.rows if row.tag and row.time == bounds.get(row.slot))


def content(taken: Taken | None) -> dict[int, list[tuple[int, int, int]]]:
    found = dict[int, list[tuple[int, int, int]]]()
    if taken is not None:
        values = taken.page.column("v").to_pylist()
        for slot, *row in zip(
            taken.slots.tolist(), taken.page.times.tolist(), values, taken.tags.tolist(), strict=True
        ):
            found.setdefault(slot, []).append(tuple(row))
    return found


@pytest.mark.parametrize("schema", [SCHEMA, SECONDS, NARROW], ids=["integers", "instants", "narrow"])
@given(script=st.lists(steps, max_size=25), readers=st.integers(1, 2))
def test_each_bound_takes_the_tuples_that_it_has_passed(
    schema: Schema, script: list[tuple[str, Any]], readers: int
) -> None:
    held, model = held_of(schema, readers), Model()
    for step, value in script:
        match step:
            case "add":
                rows, numbers = value, model.add(value)
                instants = pa.array([row.time for row in rows], pa.int64()).cast(schema.type_of("ts"))
                page = Page.of(schema, {"ts": instants, "v": numbers})
                of = np.array([row.slot for row in rows], np.int64)
                held.add(page, page.times, of, np.array([row.tag for row in rows], np.int8), SLOTS)
            case "all":
                wanted = model.take(dict.fromkeys(range(SLOTS), value))
                assert [content(held.take(reader, value)) for reader in range(readers)] == [wanted] * readers
                if value < FOREVER:
                    found = sorted(held.tagged_at(value).tolist())
                    assert found == model.tagged(dict.fromkeys(range(SLOTS), value))
            case "some":
                some = np.array(sorted(value))
                below = np.array([value[slot] for slot in some.tolist()])
                assert sorted(held.tagged_of(some, below).tolist()) == model.tagged(value)
                wanted = model.take(value)
                found_by = [content(held.take_some(reader, some, below)) for reader in range(readers)]
                assert found_by == [wanted] * readers
            case "restore":
                saved, held = held.save(), held_of(schema, readers)
                held.load(Saved.of(saved), SLOTS)
            case "rename":
                kept = np.array(sorted(value | {row.slot for row, _ in model.rows}), np.int64)
                new = np.full(SLOTS, -1)
                new[kept] = np.arange(kept.size)
                held.rename(kept, new)
                model.rows = [(row._replace(slot=int(new[row.slot])), number) for row, number in model.rows]
        assert len(held) == len(model.rows)
        assert held.of(SLOTS).tolist() == [
            sum(row.slot == slot for row, _ in model.rows) for slot in range(SLOTS)
        ]


def test_groups_that_end_leave_no_bytes() -> None:
    buffer, sizes = GroupBuffer(schema_of_slots()), []
    for step in range(400):
        buffer.add(rows_of(np.arange(64), np.full(64, -step)))
        for slot in range(64):
            buffer.take(np.array([slot]), np.array([FOREVER if slot % 2 else 1]))
        assert buffer.tuples == 0
        sizes.append(buffer.nbytes)
    assert max(sizes[200:]) <= max(sizes[:200])


def test_a_group_of_which_half_has_left_takes_the_bytes_of_the_other_half() -> None:
    buffer = GroupBuffer(schema_of_slots())
    buffer.add(rows_of(np.arange(10_000) % 100, np.arange(10_000)))
    before = buffer.nbytes
    buffer.take(np.arange(100), np.full(100, 9000))
    assert (buffer.tuples, buffer.nbytes < before / 5) == (1000, True)


def schema_of_slots() -> Schema:
    return Schema({"ts": pa.int64(), "\0slot": pa.int32()}, "ts", "s")


def rows_of(slots: Any, times: Any) -> Page:
    return Page.of(schema_of_slots(), {"ts": times, "\0slot": slots})
