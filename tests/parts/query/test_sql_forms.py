"""Forms of other engines' SQL, many of them unusual: each has the answer of DuckDB, or is refused with its place.

``forms.sql`` and two files beside it have a query a line, ``pairs_of_forms.txt`` one for us and one for DuckDB,
``refused_forms.txt`` a query and words of its refusal.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from oop_engine import ContractError, UsageError, scan, sql
from tests.parts.query.duck import answers, logs, same_rows, streams
from tests.parts.query.typed_tables import typed

TABLES = {**logs(3), **typed(3)}
STREAMS = streams(TABLES)
HERE = Path(__file__).parent
PART = 25


PLAIN, TYPED, BESIDE, PAIRS, REFUSED = (
    (HERE / name).read_text().splitlines()
    for name in (
        "forms.sql", "forms_of_types.sql", "forms_beside.sql", "pairs_of_forms.txt", "refused_forms.txt",
    )
)  # fmt: skip
FORMS = [*PLAIN, *TYPED, *BESIDE, *PAIRS]


@pytest.mark.slow(keep=2)
@pytest.mark.parametrize("part", range(0, len(FORMS), PART))
def test_forms_have_the_answers_of_duckdb(part: int) -> None:
    for form in FORMS[part : part + PART]:
        text, _, theirs = form.partition(" ||| ")
        assert same_rows(sql(text, **STREAMS).run().table, answers(theirs or text, TABLES)), text


@pytest.mark.parametrize("text", REFUSED)
def test_a_form_that_is_not_known_is_refused_with_its_place(text: str) -> None:
    query, words = text.split(" | ")
    with pytest.raises(UsageError) as caught:
        sql(query, **STREAMS)
    assert words in str(caught.value)
    assert "line 1, column " in str(caught.value)


def test_a_text_that_is_not_of_the_format_ends_the_query_with_its_words() -> None:
    with pytest.raises(ContractError, match="strptime: abc is not %Y"):
        sql("SELECT strptime(s, '%Y') AS t FROM txt WHERE s = 'abc'", **STREAMS).run()


def test_string_agg_ends_the_query_beyond_its_bound_and_cuts_nothing() -> None:
    rows = pa.table({"ts": pa.array(range(32_768), pa.timestamp("s")), "x": ["a"] * 32_768})
    log = scan(rows, "log").event_time("ts", "ordered")
    most = sql("SELECT length(string_agg(x, '')) AS n FROM log WHERE ts > TIMESTAMP '1970-01-01'", log=log)
    assert most.run().table.to_pylist() == [{"n": 32_767}]
    with pytest.raises(ContractError, match="more than 32,767 texts"):
        sql("SELECT string_agg(x, '') AS s FROM log", log=log).run()
