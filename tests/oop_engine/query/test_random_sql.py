"""Random queries against DuckDB; ``python -m tests.oop_engine.query.random_sql 5000`` tries many more."""

from __future__ import annotations

import random
import string

import pytest

from oop_engine import DataStream, UsageError, sql
from tests.oop_engine.query.duck import logs, streams
from tests.oop_engine.query.random_sql import differs, query

PARTS, EACH = 10, 32


@pytest.mark.parametrize("part", range(PARTS))
def test_random_queries_have_the_answers_of_duckdb(part: int) -> None:
    found = [differs(seed) for seed in range(part * EACH, (part + 1) * EACH)]
    assert [one for one in found if one is not None] == []


def damaged(text: str, of: random.Random) -> str:
    """Return a text with some letters or words gone, doubled, exchanged, or put in."""
    words = text.split(" ")
    for _ in range(of.randint(1, 3)):
        at, other = of.randrange(len(words)), of.randrange(len(words))
        match of.randrange(5):
            case 0:
                words[at] = ""
            case 1:
                words[at], words[other] = words[other], words[at]
            case 2:
                words[at] = words[at][: of.randint(0, len(words[at]))]
            case 3:
                words[at] += of.choice(string.punctuation + " 9é\n\t")
            case _:
                words = words[: at + 1] or ["SELECT"]
    return " ".join(words)


@pytest.mark.parametrize("part", range(4))
def test_a_damaged_text_is_a_query_or_an_error_with_a_place(part: int) -> None:
    given = streams(logs(0, rows=3))
    for seed in range(part * 150, (part + 1) * 150):
        assert mistake_of(damaged(query(seed).ours, random.Random(seed)), given).startswith("sql: ")


def mistake_of(text: str, given: dict[str, DataStream]) -> str:
    """Return the message for a text; any other error than that of a mistake goes on."""
    try:
        sql(text, **given)
    except UsageError as error:
        return str(error)
    return "sql: it is a query"


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        "SELECT",
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
