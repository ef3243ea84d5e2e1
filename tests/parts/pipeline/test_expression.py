"""Expressions: what is allowed means what it says, and nothing else reaches Spark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine.core.errors import UsageError
from oop_engine.pipeline.expression import FUNCTIONS, checked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = ("ts", "link", "minute", "date", "Time_hour")


def check(text: str) -> str:
    return checked(text, COLUMNS, "events.toml: [computed] x")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("java_method('java.lang.System', 'load', 'x.so')", "function 'java_method' may not be used"),
        ("REFLECT('java.lang.System', 'getenv', 'HOME')", "function 'REFLECT' may not be used"),
        ("try_reflect('java.lang.System', 'getenv')", "function 'try_reflect'"),
        ("`reflect`('java.lang.System', 'getenv')", "'reflect' is no column"),
        ("(SELECT max(value) FROM text.`/etc/hostname`)", "'SELECT' is no column"),
        ("ts IN (TABLE `ts`)", "'TABLE' is no column"),
        ("ts IN (FROM ts)", "'FROM' is no column"),
        ("EXISTS(SELECT 1)", "function 'EXISTS'"),
        ("input_file_name()", "function 'input_file_name'"),
        ("current_user()", "function 'current_user'"),
        ("rand()", "function 'rand'"),
        ("current_timestamp", "'current_timestamp' is no column"),
        ("raise_error('no')", "function 'raise_error'"),
        ("spark_catalog.default.mine(ts)", "'spark_catalog' is no column"),
        ("link.mine(ts)", "'.' is not understood"),
        ("transform(split(link, ','), x -> x)", "function 'transform'"),
        ("sum(ts) OVER (ORDER BY ts)", "function 'sum'"),
        ("'${spark:spark.authenticate.secret}'", "'${' in a text"),
        ("concat('$', '{env:HOME}') || \"${env:HOME}\"", "'${' in a text"),
        ("ts -- 1", "'--' is not understood"),
        ("ts /*+ BROADCAST(ts) */ + 1", "'/*' is not understood"),
        ("_misfit", "'_misfit' is no column"),
        ("_cell_0", "'_cell_0' is no column"),
        ("`_raw`", "'_raw' is no column"),
        ("lnik + 1", "'lnik' is no column that stands above; did you mean link?"),
        ("CAST(link AS struct<a int>)", "type 'struct' may not be used"),
        ("link::xml", "type 'xml' may not be used"),
        ("sqr(ts)", "did you mean sqrt?"),
        ("'open", '"\'" is not understood'),
        (":x", "':' is not understood"),
        ("ts; DROP", "';' is not understood"),
        ("12ab", "'1' is not understood"),
        ("lpad(link, 2000000000, '0')", "must be a number up to 1000: got '2000000000'"),
        ("rpad(concat(link, 'a'), ts, '0')", "must be a number up to 1000: got 'ts'"),
        ("lpad(link, 9 * 99999999)", "must be a number up to 1000"),
        ("lpad(", "must be a number up to 1000"),
        (" \n", "is empty"),
        ("1" * 20_000, "20000 characters, 10000 at most"),
    ],
)
def test_what_is_not_known_is_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(UsageError) as told:
        check(text)
    assert words in str(told.value)
    assert str(told.value).startswith("events.toml: [computed] x: ")
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 500


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("2*TS", "(2 * `ts`)"),
        ("`link` = 'a''b'", "(`link` = 'a''b')"),
        ("timestampadd(MINUTE, minute + 1, time_hour)", "(timestampadd ( MINUTE , `minute` + 1 , `Time_hour` ))"),
        ("extract(minute FROM time_hour)", "(extract ( MINUTE FROM `Time_hour` ))"),
        ("date > DATE '2020-01-01'", "(`date` > DATE '2020-01-01')"),
        ("INTERVAL '1 2' day to hour", "(INTERVAL '1 2' DAY TO HOUR)"),
        ("cast(link AS decimal(10, 2))", "(cast ( `link` AS decimal ( 10 , 2 ) ))"),
        ("link::int is not null", "(`link` :: int IS NOT NULL)"),
        ("1.5e-3 + .5 - 5L", "(1.5e-3 + .5 - 5L)"),
        (r"link rlike r'\d$'", r"(`link` RLIKE r'\d$')"),
    ],
)  # fmt: skip
def test_what_is_known_is_put_together_anew(text: str, spelled: str) -> None:
    assert check(text) == spelled


QUERY = {"SELECT", "FROM", "TABLE", "VALUES", "WITH", "MAP", "REDUCE", "LATERAL", "OVER", "REFLECT"}
PIECES = st.sampled_from(
    [*"ts'\"`()[],.-/*+ \\${}:;\n", "select ", "from ", "table ", "reflect", "'x'", "r'"]
)


@given(st.lists(PIECES).map("".join))
def test_no_word_of_a_query_gets_through(text: str) -> None:
    try:
        spelled = check(text)
    except UsageError:
        return
    outside = _unquoted(spelled)
    assert not QUERY & set(outside.upper().replace("(", " ").split())
    assert not any(sign in outside for sign in ("--", "/*", ";", ":=", "->"))
    assert "${" not in spelled


def _unquoted(text: str) -> str:
    """Return what stands outside of quotes and backticks, as Spark's lexer would see it."""
    found, at = [], 0
    while at < len(text):
        if text[at] in "'\"`":
            raw, quote = text[at - 1] in "rR", text[at]
            at += 1
            while text[at] != quote:
                at += 2 if text[at] == "\\" and not raw and quote != "`" else 1
        else:
            found.append(text[at])
        at += 1
    return "".join(found)


CALLS = r"""
abs(ts); acos(x); asin(x); atan(x); atan2(x, 2); bround(x, 1); cbrt(x); ceil(x); ceiling(x); cos(x); cosh(x)
degrees(x); e(); exp(x); expm1(x); factorial(5); floor(x); greatest(ts, 3); hypot(x, 3); least(ts, 3); ln(x)
log(2, x); log10(x); log1p(x); log2(x); mod(ts, 3); negative(ts); pi(); pmod(ts, 3); positive(ts); pow(x, 2)
power(x, 2); radians(x); rint(x); round(x, 1); sign(x); signum(x); sin(x); sinh(x); sqrt(x); tan(x); tanh(x)
try_add(ts, 1); try_divide(ts, 0); try_mod(ts, 0); try_multiply(ts, 2); try_subtract(ts, 1)
width_bucket(x, 0, 10, 5); bit_count(ts); bit_get(ts, 0); shiftleft(ts, 1); shiftright(ts, 1)
shiftrightunsigned(ts, 1); coalesce(NULL, ts); if(ts > 1, 'a', "b"); ifnull(NULL, ts); isnan(x); isnotnull(x)
isnull(x); nanvl(x, 1); nullif(ts, 2); nullifzero(ts); nvl(ts, 1); nvl2(ts, 1, 2); zeroifnull(ts); ascii(link)
base64('abc'); bin(ts); bit_length(link); btrim(link); char(65); char_length(link); character_length(link); chr(65)
concat(link, 'x', r'\d'); concat_ws('-', link, 'x'); contains(link, 'b'); conv('ff', 16, 10)
decode(encode(link, 'utf-8'), 'utf-8'); elt(1, link); endswith(link, 'c'); find_in_set('a', link); hex(ts)
initcap(link); instr(link, 'b'); is_valid_utf8(link); lcase(link); left(link, 1); len(link); length(link)
levenshtein(link, 'x'); locate('b', link); lower(link); lpad(link, 5, '0'); ltrim(link); make_valid_utf8(link)
octet_length(link); position('b' IN link); regexp_count(link, 'b'); regexp_extract(link, '(b)', 1)
regexp_instr(link, 'b'); regexp_like(link, '^a.*$'); regexp_replace(link, 'b', 'x'); regexp_substr(link, 'b')
replace(link, 'b', 'x'); reverse(link); right(link, 1); rpad(link, 5, '0'); rtrim(link); soundex(link)
split(link, ',')[0]; split_part(link, ',', 1); startswith(link, 'a'); substr(link, 1, 1); substring(link, 1, 1)
substring_index(link, ',', 1); to_char(ts, '999'); to_number('12', '99'); translate(link, 'a', 'x'); trim(link)
try_to_number('12', '99'); ucase(link); unbase64('YWJj'); unhex('41'); upper(link)
get_json_object('{"a": 1}', '$.a'); json_array_length('[1]'); parse_url('http://a.b/c', 'HOST')
try_parse_url('http://a.b/c', 'PATH'); try_url_decode('%41'); url_decode('%41'); url_encode('a b'); crc32(link)
hash(link); md5(link); sha(link); sha1(link); sha2(link, 256); xxhash64(link); array_contains(split(link, ','), 'a')
element_at(split(link, ','), 1); size(split(link, ',')); try_element_at(split(link, ','), 9); bigint('1')
boolean('true'); cast('1' AS int); date('2020-01-02'); double('1'); float('1'); int('1'); smallint('1'); string(1)
timestamp('2020-01-02'); tinyint('1'); try_cast('x' AS decimal(10, 2)); '7'::bigint; add_months(at, 1)
date_add(at, 1); date_diff(at, DATE '2020-01-01'); date_format(at, 'yyyy'); date_from_unix_date(1)
date_part('DAY', at); date_sub(at, 1); date_trunc('HOUR', at); dateadd(DAY, 1, at)
datediff(MINUTE, TIMESTAMP '2020-01-01 00:00:00', at); datepart('DAY', at); day(at); dayname(at); dayofmonth(at)
dayofweek(at); dayofyear(at); extract(HOUR FROM at); from_unixtime(1); from_utc_timestamp(at, 'Europe/Berlin')
hour(at); last_day(at); make_date(2020, 1, 2); at+make_dt_interval(1); make_timestamp(2020, 1, 2, 3, 4, 5)
at+make_ym_interval(1); minute(at); month(at); monthname(at); months_between(at, at); next_day(at, 'MO')
quarter(at); second(at); timestamp_micros(1); timestamp_millis(1); timestamp_seconds(1)
timestampadd(MINUTE, minute + 1, at); timestampdiff(MINUTE, at, at); to_date('2020-01-02')
to_timestamp('2020', 'yyyy'); to_unix_timestamp(at); to_utc_timestamp(at, 'Europe/Berlin'); trunc(at, 'MM')
try_make_timestamp(2020, 13, 2, 3, 4, 5); try_to_date('x'); try_to_timestamp('x'); unix_date(date(at))
unix_micros(at); unix_millis(at); unix_seconds(at); weekday(at); weekofyear(at); year(at)
CASE WHEN ts>1 THEN 'a' ELSE 'b' END; NOT(ts = 1 OR ts <> 2 AND link LIKE 'a%'); ts IN (1, 2); ts BETWEEN 1 AND 3
link ILIKE 'A%'; link RLIKE '^a'; ts IS NOT NULL; ts<=>NULL; ts % 2; ts DIV 2; -ts; ~ts; ts&1|2^3; ts<<1; 1.50; 2e3; 5L
.5D; 'it''s' 'a' 'b'; link||'x'
at+INTERVAL '1 2' DAY TO HOUR; at-INTERVAL 5 minutes; ts==2; !true; 7BD/2; "a'b"; 1 - -1
"""


@pytest.mark.slow
@pytest.mark.spark
def test_each_function_gives_on_spark_what_it_gives_there_by_itself(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    row = "2L AS ts, 'a,bc' AS link, 0.5D AS x, 3 AS minute, TIMESTAMP '2020-02-03 04:05:06' AS at"
    rows = spark.range(1).selectExpr(*row.split(", ", 4))
    calls = [text.strip() for text in re.split(r"[;\n]", CALLS) if text.strip()]
    assert not FUNCTIONS - {name.lower() for text in calls for name in re.findall(r"(\w+)\(", text)}
    ours = rows.select(*(F.expr(checked(text, rows.columns, text)).alias("_") for text in calls))
    theirs = rows.select(*(F.expr(text).alias("_") for text in calls))
    assert ours.schema == theirs.schema
    for text, one, other in zip(calls, ours.collect()[0], theirs.collect()[0], strict=True):
        assert one == other, text
