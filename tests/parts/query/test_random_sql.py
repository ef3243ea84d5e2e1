"""Random queries against DuckDB; ``make queries COUNT=5000`` tries many more."""

from __future__ import annotations

import pytest

from oop_engine import UsageError, sql
from tests.parts.query.duck import logs, streams
from tests.parts.query.random_sql import changes_differ, damaged, differs, mistake_of

PARTS, EACH = 10, 32


@pytest.mark.slow(keep=3)
@pytest.mark.parametrize("part", range(PARTS))
def test_random_queries_have_the_answers_of_duckdb(part: int) -> None:
    found = [differs(seed) for seed in range(part * EACH, (part + 1) * EACH)]
    assert [one for one in found if one is not None] == []


def test_changes_come_to_the_answers_of_duckdb() -> None:
    assert [found for seed in range(15) if (found := changes_differ(seed)) is not None] == []


@pytest.mark.parametrize("part", range(4))
def test_a_damaged_text_is_a_query_or_an_error_with_a_place(part: int) -> None:
    given = streams(logs(0, rows=3))
    for seed in range(part * 150, (part + 1) * 150):
        assert mistake_of(damaged(seed), given).startswith("sql: ")


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        "SELECT",
        "AS",
        "(((((",
        "SELECT * FROM",
        "'",
        '"',
        "/*",
        "--",
        "😀",
        "SELECT " + "(" * 3000,
    ],
)
def test_nonsense_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="sql: "):
        sql(text, **streams(logs(0, rows=1)))
