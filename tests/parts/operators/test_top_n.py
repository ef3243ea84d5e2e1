"""TopN: of keys without times, only the rows that can be among the first are stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import GroupWise, Page, Schema
from oop_engine.core.punctuation import FOREVER
from oop_engine.operators import TopN
from oop_engine.operators import top_n as module
from oop_engine.testing import Driver
from tests.cases.revisions import ranked

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "s")


def pages(count: int, values: int) -> list[Page]:
    random = np.random.default_rng([count, values])
    made = []
    for number in range(count):
        rows: dict[str, Any] = {
            "ts": random.integers(0, 5, 50) + number,
            "k": random.choice(["a", "b"], 50),
            "v": random.integers(0, values, 50),
        }
        made.append(Page.of(SCHEMA, rows))
    return made


@pytest.mark.parametrize("ties", ["row_number", "rank", "dense_rank"])
@pytest.mark.parametrize("values", [4, 100_000])
def test_the_first_of_a_key_are_those_of_all_its_rows(
    monkeypatch: pytest.MonkeyPatch, ties: str, values: int
) -> None:
    monkeypatch.setattr(module, "_FEW", 5)
    driver = Driver(TopN(3, "-v", by="k", timed=False, rank="place", ties=ties), SCHEMA)
    given = pages(12, values)
    for number, page in enumerate(given):
        driver.feed(0, page)
        if number == 6:
            driver.move()
    driver.feed(0, GroupWise.of({"k": ["a", "b"]}, [FOREVER, FOREVER]))
    rows = [row for page in given for row in page.to_pylist()]
    found = sorted(map(repr, driver.rows()))
    assert found == sorted(map(repr, ranked(rows, 3, ("k",), ties)))


def test_a_key_has_as_many_rows_after_ten_times_as_many() -> None:
    driver = Driver(TopN(3, "-v", by="k", timed=False), SCHEMA)
    most = 0
    for page in pages(400, 1_000_000):
        driver.feed(0, page)
        most = max(most, driver.operator.state().tuples)
    assert most < 1200


def test_all_rows_are_stored_where_all_may_be_first() -> None:
    changes = Schema(
        {"ts": pa.int64(), "k": pa.string(), "v": pa.int64(), "c": pa.int8()}, "ts", "s", change="c"
    )
    for top, schema in (
        (TopN(None, "-v", by="k", timed=False, rank="r"), SCHEMA),
        (TopN(1, "v", timed=False), changes),
    ):
        words = top.retains((schema,))
        assert words is not None
        assert words.startswith("all rows of each key")
