"""Levels of rows: what is looked up, dropped and taken out is that of a list, and costs no look at other rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from oop_engine import FOREVER
from oop_engine.operators.values import levels as levels_file
from oop_engine.operators.values.levels import Levels


class Numbers(NamedTuple):
    """Rows with a group, a time, and a number that no other row has."""

    groups: np.ndarray
    times: np.ndarray
    numbers: np.ndarray

    @property
    def size(self) -> int:
        return int(self.groups.size)

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self)

    def take(self, rows: np.ndarray) -> Numbers:
        return Numbers(*(column[rows] for column in self))

    def joined(self, *others: Numbers) -> Numbers:
        return Numbers(*map(np.concatenate, zip(self, *others, strict=True)))


NONE = Numbers(*(np.empty(0, np.int64) for _ in range(3)))


def rows_of(groups: np.ndarray, times: np.ndarray, since: int) -> Numbers:
    return Numbers(groups, times, np.arange(since, since + groups.size))


@pytest.mark.parametrize("many", [1, 32])
@pytest.mark.parametrize("few", [0, 64])
@pytest.mark.parametrize("share", [0, 4])
def test_levels_are_a_list(monkeypatch: pytest.MonkeyPatch, many: int, few: int, share: int) -> None:
    """Rows that are put, dropped and taken out at random, against a list in the order in which they came."""
    monkeypatch.setattr(levels_file, "_MANY", many)
    monkeypatch.setattr(levels_file, "_FEW", few)
    monkeypatch.setattr(levels_file, "_SHARE", share)
    random = np.random.default_rng(many + few)
    levels, model, serial = Levels(NONE), list[tuple[int, int, int]](), 0
    for step in range(600):
        size = int(random.integers(0, 9))
        new = rows_of(random.integers(0, 12, size), random.integers(0, 40, size), serial)
        serial += size
        levels.put(new)
        model += zip(*(column.tolist() for column in new), strict=True)
        some = random.choice(14, int(random.integers(0, 5)), replace=False)
        bound = int(random.integers(-1, 41))
        places = levels.places("groups", some)
        assert levels.take(places).numbers.tolist() == [n for group, _, n in model if group in some]
        early = levels.until("times", bound)
        assert levels.take(early).numbers.tolist() == [n for _, time, n in model if time <= bound]
        assert levels.least("times") == min((time for _, time, _ in model), default=FOREVER)
        wanted = [min((time for group, time, _ in model if group == one), default=FOREVER) for one in some]
        assert levels.least_of("groups", some, "times").tolist() == wanted
        match step % 4:
            case 0:
                levels.drop(early)
                model = [row for row in model if row[1] > bound]
            case 1:
                taken = levels.take_out("groups", some)
                assert taken.numbers.tolist() == [n for group, _, n in model if group in some]
                model = [row for row in model if row[0] not in some]
            case 2 if step % 20 == 2:
                assert levels.all().numbers.tolist() == [n for _, _, n in model]
            case 3 if step % 100 == 99:
                assert levels.take_all().numbers.tolist() == [n for _, _, n in model]
                model = []
        assert len(levels) == len(model)


def test_a_row_is_copied_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """2**14 rows that come one by one, of which one is looked up each time."""
    copied, taken, join = list[int](), Numbers.take, Numbers.joined

    def take(self: Numbers, rows: np.ndarray) -> Numbers:
        copied.append(rows.size)
        return taken(self, rows)

    def joined(self: Numbers, *others: Numbers) -> Numbers:
        copied.append(self.size + sum(map(len, (other.groups for other in others))))
        return join(self, *others)

    monkeypatch.setattr(Numbers, "take", take)
    monkeypatch.setattr(Numbers, "joined", joined)
    levels, many = Levels(NONE), 1 << 14
    for number in range(many):
        levels.put(rows_of(np.array([number]), np.array([number]), number))
        assert levels.take(levels.places("groups", np.array([number // 2]))).size == 1
    assert sum(copied) <= many * 18


def test_rows_that_were_dropped_leave_no_bytes() -> None:
    levels, sizes = Levels(NONE), []
    for step in range(200):
        levels.put(rows_of(np.arange(512), np.full(512, step), 512 * step))
        levels.take_out("groups", np.arange(step % 7, 512))
        levels.drop(levels.places("times", np.arange(step - 3)))
        sizes.append(levels.nbytes)
    assert max(sizes[100:]) <= 2 * max(sizes[:20])
