"""Scalar expressions of SQL, each against DuckDB."""

from __future__ import annotations

import pytest

from oop_engine import UsageError
from tests.parts.query.duck import answers, logs, same_rows, streams

TABLES = logs(0)
STREAM = streams(TABLES)["log"]

EXPRESSIONS = """
bytes > 3
bytes >= '4' AND host LIKE 'a%'
ts < '2026-01-01 00:02:02'
bytes IN (5, 6)
bytes IN (5, NULL)
bytes NOT IN (5, 6)
bytes BETWEEN 1 AND 9
CASE WHEN bytes > 3 THEN x ELSE 0 END
CASE bytes WHEN 5 THEN 'five' WHEN 0 THEN 'zero' END
coalesce(x, 0)
ifnull(host, 'none')
upper(host)
ts + INTERVAL '1 hour'
ts - INTERVAL '90' SECOND
host IS NULL
host IS NOT NULL AND ok
ok IS TRUE
NOT (host = 'a')
extract(hour FROM ts)
extract(epoch FROM ts)
date_part('minute', ts)
bytes % 3
mod(bytes, 3)
length(host)
substr(host, 1, 1)
left(host, 1)
date_trunc('minute', ts)
date_trunc('week', ts)
time_bucket(INTERVAL '30 seconds', ts)
time_bucket(INTERVAL '1 week', ts)
regexp_matches(host, '^a')
regexp_replace(host, 'b', 'c')
regexp_extract(host, '(.)', 1)
ts::DATE
x::INT
bytes::VARCHAR
(bytes > 3)::INT
(bytes > 3)::VARCHAR
bytes::DOUBLE
bytes::BOOLEAN
'5'::INT + bytes
round(x, 1)
round(x)
floor(x)
ceil(x)
sign(x)
sqrt(abs(x))
power(bytes, 2)
ln(x + 10)
log10(x + 10)
exp(x)
host || 'x'
concat(host, 'z')
concat_ws('-', host, 'q')
reverse(host)
repeat(host, 2)
replace(host, 'c', 'd')
lpad(host, 3, 'x')
trim(host)
starts_with(host, 'a')
contains(host, 'c')
instr(host, 'c')
split_part('a/b/c', '/', 2)
split_part(host, '/', 3)
1.5 * bytes
bytes + kind
bytes * bytes - bytes
-bytes
bytes // 2
bytes / 2
bytes / 0
bytes // 0
bytes % 0
x / 0
if(bytes > 0, 1, 0)
abs(bytes)
nullif(bytes, 5)
greatest(bytes, 1)
least(x, 0)
bytes IS DISTINCT FROM 5
bytes IS NOT DISTINCT FROM NULL
host ILIKE 'B%'
ts - TIMESTAMP '2026-01-01'
ok AND x > 1
ok OR x > 1
NOT ok
x = 1.25 OR host IS NULL
bytes > NULL
ts > DATE '2026-01-01'
year(ts)
month(ts)
day(ts)
dayofweek(ts)
isodow(ts)
week(ts)
quarter(ts)
monthname(ts)
strftime(ts, '%H:%M')
epoch_ms(ts)
host > 'a'
bytes != kind
TRUE
x::DECIMAL(5, 2)
bytes::DECIMAL(10, 2)
""".strip().splitlines()


@pytest.mark.slow(keep=52)
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_is_that_of_duckdb(text: str) -> None:
    ours = STREAM.select("id", e=text).run().table.select(["id", "e"])
    assert same_rows(ours, answers(f"SELECT id, {text} FROM log", TABLES))


def test_a_filter_takes_a_text() -> None:
    ours = STREAM.filter("bytes > 3 AND host = 'a'").select("id").run().table.select(["id"])
    assert same_rows(ours, answers("SELECT id FROM log WHERE bytes > 3 AND host = 'a'", TABLES))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "hots > 3",
            "column 1: no column 'hots'; there are ts, host, kind, bytes, x, ok, id, price, day; did you mean host?",
        ),
        ("bytes > 'abc'", "column 9: 'abc' cannot be read as int64"),
        ("bytes >", "column 7"),
        ("foo(bytes)", "no function 'foo' here"),
        ("bytes + host", "cannot be reckoned with"),
        ("host > 3", "string and int64 cannot be compared"),
        ("ts + 5", "an integer is no length"),
        ("ts + INTERVAL '1 month'", "no length of time"),
        ("bytes > 3; bytes > 4", "one expression is wanted"),
        ("SELECT 1", "one expression is wanted"),
        ("regexp_matches(host, host)", "a pattern must be a constant"),
        ("x::POINT", "no type"),
        ("bytes > 99999999999999999999", "beyond 64 bits"),
        ("", "an empty text"),
    ],
)
def test_a_mistake_has_its_place(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        STREAM.filter(text)
    assert words in str(caught.value)
