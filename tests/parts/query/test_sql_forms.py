"""Forms of other engines' SQL, many of them unusual: each has the answer of DuckDB, or is refused with its place.

``forms.sql`` and ``forms_of_types.sql`` have a query a line, ``refused_forms.txt`` a query and words of its refusal.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from oop_engine import UsageError, sql
from tests.parts.query.duck import answers, logs, same_rows, streams
from tests.parts.query.typed_tables import typed

TABLES = {**logs(3), **typed(3)}
STREAMS = streams(TABLES)
HERE = Path(__file__).parent
PART = 25


PLAIN, TYPED, REFUSED = (
    (HERE / name).read_text().splitlines()
    for name in ("forms.sql", "forms_of_types.sql", "refused_forms.txt")
)
FORMS = PLAIN + TYPED


@pytest.mark.parametrize("part", range(0, len(FORMS), PART))
def test_forms_have_the_answers_of_duckdb(part: int) -> None:
    for text in FORMS[part : part + PART]:
        assert same_rows(sql(text, **STREAMS).run().table, answers(text, TABLES)), text


@pytest.mark.parametrize("text", REFUSED)
def test_a_form_that_is_not_known_is_refused_with_its_place(text: str) -> None:
    query, words = text.split(" | ")
    with pytest.raises(UsageError) as caught:
        sql(query, **STREAMS)
    assert words in str(caught.value)
    assert "line 1, column " in str(caught.value)
