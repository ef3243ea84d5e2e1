"""Nexmark whole: the answers that RisingWave publishes for its small data, where that data is beside the clone.

Rows come in order, shuffled within the disorder, and in the in-order twin.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import open_trace, replay, scan, sql
from oop_engine.rewrites import in_order
from tests.parts.query.nexmark import QUERIES

DATA = Path(__file__).parents[4] / "shared" / "suites" / "nexmark_small"
FILES = {"q6": "q6_group_top1"}

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the data of the suite is not beside the clone")


def tables() -> dict[str, pa.Table]:
    found = {}
    for name in ("bid", "auction", "person"):
        trace = open_trace(DATA / f"{name}.jsonl", time="date_time")
        found[name] = pa.Table.from_batches([page.batch for page in trace.pages()])
    return found


def shuffled(table: pa.Table, seconds: int) -> pa.Table:
    """Return the rows of a table, each up to so many seconds late."""
    of = random.Random(1)
    moments = [
        moment + dt.timedelta(seconds=of.uniform(0, seconds)) for moment in table["date_time"].to_pylist()
    ]
    return table.take(sorted(range(table.num_rows), key=lambda row: moments[row]))


def cell(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case dt.datetime():
            text = value.strftime("%Y-%m-%d %H:%M:%S")
            return f"{text}.{value.microsecond // 1000:03d}" if value.microsecond else text
    return str(value)


def plain(rows: list[list[str]]) -> list[list[str]]:
    """Return rows in one order, numbers to nine digits."""
    is_number = re.compile(r"-?[0-9]+([.][0-9]+)?")
    return sorted([f"{float(one):.9g}" if is_number.fullmatch(one) else one for one in row] for row in rows)


def wanted(name: str) -> list[list[str]]:
    lines = (DATA / "answers" / f"{FILES.get(name, name)}.txt").read_text().splitlines()
    return plain([re.split(r"[\t ]+", line) for line in lines if line.strip()])


def found(table: pa.Table) -> list[list[str]]:
    lines = ["\t".join(map(cell, row.values())) for row in table.to_pylist()]
    return plain([re.split(r"[\t ]+", line) for line in lines])


@pytest.mark.slow(keep=8)
@pytest.mark.parametrize("name", QUERIES)
def test_a_query_has_the_published_answers(name: str) -> None:
    data = tables()
    given = {of: scan(table, of).event_time("date_time", "ordered") for of, table in data.items()}
    assert found(sql(QUERIES[name], **given).run().table) == wanted(name)
    late = {of: shuffled(table, 5) for of, table in data.items()}
    given = {of: scan(table, of).event_time("date_time", "5 s") for of, table in late.items()}
    query = sql(QUERIES[name], **given)
    assert found(query.run().table) == wanted(name)
    if not query.finish.needs_all:
        feeds = {of: table for of, table in late.items() if of in query.graph.nodes}
        twin = replay(in_order(query.graph), feeds).results["result"]
        assert found(twin.select(query.columns)) == wanted(name)
