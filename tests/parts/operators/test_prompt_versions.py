"""Versions where each late tuple is answered: no window is in the table of versions, and the rows are the same."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import FOREVER, GroupWise, Linear, Page, Schema, Watermark
from oop_engine.extend import Message
from oop_engine.operators import (
    Avg,
    Count,
    Emit,
    Max,
    Min,
    Sliding,
    Sum,
    Tumbling,
    WindowAggregate,
)
from oop_engine.testing import Driver, multiset

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()}, "ts", "s")
WINDOWS: dict[str, Any] = {
    "tumbling": Tumbling(10),
    "hops": Sliding(5, 10),
    "sliding": Sliding(20, 10),
    "parts": Sliding(15, 10),
    "several": {"ten": Tumbling(10), "twenty": Sliding(20, 5), "four": Tumbling(4)},
}
ASKED: dict[str, dict[str, Any]] = {
    "counts": {"n": Count(), "s": Sum("v")},
    "extremes": {"m": Max("v"), "l": Min("v")},
    "means": {"a": Avg("v")},
    "values": {"c": Count("v"), "n": Count()},
}


def messages(rng: random.Random) -> list[Message]:
    """Pages, watermarks and punctuation, of which some are of groups; some tuples come behind everything."""
    found: list[Message] = []
    soft = hard = 0
    for _ in range(30):
        match rng.randrange(8):
            case 0:
                soft = max(soft, hard) + rng.randrange(12)
                found.append(Watermark(Linear(soft)))
            case 1:
                group = {"k": [rng.randrange(4)]}
                found.append(
                    Watermark(GroupWise.of(group, [rng.choice([soft + rng.randrange(20), FOREVER])]))
                )
            case 2:
                hard += rng.randrange(9)
                found.append(Linear(hard))
            case 3:
                found.append(GroupWise.of({"k": [rng.randrange(4)]}, [hard + rng.randrange(15)]))
            case _:
                found.append(tuples(rng, hard + rng.choice([-4, 0, 0, 0]), soft + 15))
    return [*found, Linear(FOREVER)]


def tuples(rng: random.Random, least: int, most: int) -> Page:
    times = [rng.randint(least, max(least, most)) for _ in range(rng.randint(1, 12))]
    values = [rng.choice([None, 1, -5, 9]) for _ in times]
    return Page.of(SCHEMA, {"ts": times, "k": [rng.randrange(4) for _ in times], "v": values})


@pytest.mark.slow(keep=3)
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("windows", WINDOWS)
def test_rows_are_those_of_a_table_of_versions(windows: str, asked: str) -> None:
    """With ``info`` versions have numbers, so they are in the table until they are final."""
    rng = random.Random(f"{windows}, {asked}")
    modes: list[Any] = ["retracting", "accumulating", *(["discarding"] if asked == "counts" else [])]
    for mode in 2 * modes:
        prompt, noted = (
            Driver(
                WindowAggregate(WINDOWS[windows], ASKED[asked], ("k",), emit=Emit(mode=mode, info=info)),
                SCHEMA,
            )
            for info in (False, True)
        )
        for message in messages(rng):
            found, wanted = rows(prompt, message), rows(noted, message)
            for row in wanted:
                del row["version"], row["timing"]
            assert multiset(found) == multiset(wanted)
            assert prompt.operator.state().partials <= noted.operator.state().partials
            prompt.move()
        assert prompt.operator.state().in_use == (0, 0, 0)


def test_a_state_with_a_table_goes_on() -> None:
    """So did a program write it that kept each version behind a late tuple."""
    noted, prompt = (
        Driver(WindowAggregate(Tumbling(10), {"n": Count()}, ("k",), emit=Emit(info=info)), SCHEMA)
        for info in (True, False)
    )
    one = Page.of(SCHEMA, {"ts": [3, 3], "k": [1, 2], "v": [0, 0]})
    for message in (one, Watermark(Linear(10)), one.slice(0, 1)):
        noted.feed(0, message)
    prompt.operator.restore(noted.operator.snapshot())
    assert prompt.operator.state().partials == 3  # two windows, and a version
    assert [(row["k"], row["n"], row["change"]) for row in rows(prompt, one)] == [
        (1, 2, -1), (2, 1, -1), (1, 3, 1), (2, 2, 1),
    ]  # fmt: skip
    assert prompt.operator.state().partials == 2
    assert rows(prompt, Linear(10)) == []


def test_a_group_without_panes_is_forgotten_in_the_table_alone() -> None:
    """So sparse are the groups that new ones go to a table: no cell in the panes of the others is theirs."""
    rng, asked = random.Random(1), {"n": Count(), "m": Max("v"), "s": Sum("v")}
    driver = Driver(WindowAggregate(Tumbling(1), asked, ("k",), emit=Emit()), SCHEMA)
    for groups in (1000, 3000):
        times, keys = ([rng.randrange(most) for _ in range(3000)] for most in (400, groups))
        driver.feed(0, Page.of(SCHEMA, {"ts": times, "k": keys, "v": [1] * 3000}))
    for message in (Watermark(Linear(200)), Linear(FOREVER)):
        driver.feed(0, message)
    assert sum(row["n"] for row in driver.content()) == 6000


@pytest.mark.parametrize("asked", [{"n": Count()}, {"c": Count("v")}, {"c": Count("v"), "n": Count()}])
def test_the_first_null_comes_late(asked: dict[str, Any]) -> None:
    """From then on values are counted apart from tuples, and a window was as it was before that."""
    driver = Driver(WindowAggregate(Tumbling(10), asked, ("k",), emit=Emit()), SCHEMA)
    for message in (Page.of(SCHEMA, {"ts": [3, 3], "k": [1, 2], "v": [7, 7]}), Watermark(Linear(10))):
        driver.feed(0, message)
    late = Page.of(SCHEMA, {"ts": [4, 4, 4], "k": [1, 2, 3], "v": [None, 8, None]})
    found = [(row["change"], row["k"], *(row[name] for name in asked)) for row in rows(driver, late)]
    results = {1: {"n": (1, 2), "c": (1, 1)}, 2: {"n": (1, 2), "c": (1, 2)}, 3: {"n": (0, 1), "c": (0, 0)}}
    expected = []
    for at, change in enumerate((-1, 1)):
        for k, of in results.items():
            was, now = ([of[name][i] for name in asked] for i in (0, 1))
            if (k < 3 and was != now) or (k == 3 and change == 1):
                expected.append((change, k, *(was, now)[at]))
    assert found == expected


def rows(driver: Driver, message: Message) -> list[dict[str, Any]]:
    return [row for _, out in driver.feed(0, message) if isinstance(out, Page) for row in out.to_pylist()]
