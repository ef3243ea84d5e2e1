"""Queries in SQL on Spark: the rows of DuckDB, in their order where the text gives one."""

from __future__ import annotations

import pytest

from oop_engine import scan, sql
from tests.parts.query.duck import answers, same_rows
from tests.parts.query.nexmark import QUERIES
from tests.parts.query.nexmark_data import events, of_duckdb, shuffled

pytestmark = pytest.mark.spark


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", ["q5", "q105"])
def test_a_query_has_the_answers_of_duckdb(name: str) -> None:
    tables = events(500)
    given = {of: scan(shuffled(table, 5), of).event_time("date_time", "5 s") for of, table in tables.items()}
    found = sql(QUERIES[name], **given).run(on="spark").table
    wanted = answers(of_duckdb(name), tables)
    assert same_rows(found, wanted)
    if "ORDER BY" in QUERIES[name]:
        assert [row["id"] for row in found.to_pylist()] == [row[0] for row in wanted]
