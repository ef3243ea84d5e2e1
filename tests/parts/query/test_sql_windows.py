"""Windows in the writings of several engines, with offsets, against the same windows spelt out for DuckDB.

Records come in two orders, with nulls among the keys; revision streams have the same net content.
"""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from oop_engine import sql
from tests.parts.query.duck import answers, logs, same_rows, streams

TABLES = logs(3)
AGGREGATES = "count(*) AS n, sum(bytes) AS s, min(x) AS a, max(host) AS b"


def seconds(many: int) -> str:
    return f"INTERVAL '{many}' SECOND"


def bucket(size: int, offset: int) -> str:
    return f"time_bucket({seconds(size)}, ts, TIMESTAMP '1970-01-01' + {seconds(offset)})"


def starts(slide: int, size: int, offset: int) -> str:
    """Return the rows with the start of each sliding window that they are in."""
    first = f"{bucket(slide, offset)} - {seconds(size // slide * slide)}"
    all_starts = f"range({first}, ts + INTERVAL '1 microsecond', {seconds(slide)})"
    spread = f"SELECT *, unnest({all_starts}) AS window_start FROM log"
    ended = f"SELECT *, window_start + {seconds(size)} AS window_end FROM ({spread})"
    return f"(SELECT * FROM ({ended}) WHERE window_end > ts)"


def growing(step: int, size: int, offset: int) -> str:
    """Return the rows with each growing window that they are in."""
    start = bucket(size, offset)
    first, last = f"{bucket(step, offset)} + {seconds(step)}", f"{start} + {seconds(size)}"
    end = f"range({first}, {last} + INTERVAL '1 microsecond', {seconds(step)})"
    return f"(SELECT *, {start} AS window_start, unnest({end}) AS window_end FROM log)"


def sessions(gap: int, keys: list[str]) -> str:
    """Return the rows with their session; a record just ``gap`` behind another is in its session."""
    of = f"PARTITION BY {', '.join(keys)}" if keys else ""
    new = f"CASE WHEN ts - lag(ts) OVER ({of} ORDER BY ts) <= {seconds(gap)} THEN 0 ELSE 1 END"
    number = f"sum(new) OVER ({of} ORDER BY ts ROWS UNBOUNDED PRECEDING)"
    one = f"OVER (PARTITION BY {', '.join([*keys, 'number'])})"
    rows = f"SELECT *, {number} AS number FROM (SELECT *, {new} AS new FROM log)"
    ends = f"min(ts) {one} AS window_start, max(ts) {one} + {seconds(gap)} AS window_end"
    return f"(SELECT *, {ends} FROM ({rows}))"


def forms(name: str, *lengths: int) -> list[str]:
    """Return a call as RisingWave and as Flink write it; an offset of 0 is left out."""
    given = ", ".join(seconds(one) for i, one in enumerate(lengths) if one or i < len(lengths) - 1)
    return [f"{name}(log, ts, {given})", f"TABLE({name}(TABLE log, DESCRIPTOR(ts), {given}))"]


CALLS = [
    *((forms("TUMBLE", size, off), starts(size, size, off)) for size, off in [(30, 0), (45, 20), (10, -3)]),
    *(
        (forms("HOP", slide, size, off), starts(slide, size, off))
        for slide, size, off in [(10, 30, 0), (20, 60, 5), (7, 20, 0), (7, 20, 3), (20, 10, 0)]
    ),
    *(
        (forms("CUMULATE", step, size, off), growing(step, size, off))
        for step, size, off in [(10, 60, 0), (15, 60, 4), (30, 30, -5)]
    ),
    (forms("SESSION", 3), sessions(3, [])),
]


def check(ours: str, theirs: str) -> None:
    wanted = answers(theirs, TABLES)
    mixed = {
        name: table.take(pa.array(random.Random(1).sample(range(table.num_rows), table.num_rows)))
        for name, table in TABLES.items()
    }
    for tables in (TABLES, mixed):
        assert same_rows(sql(ours, **streams(tables)).run().table, wanted), ours
    changes = sql(f"{ours} EMIT CHANGES", **streams(mixed)).run().final("result")
    assert same_rows(changes, wanted), ours


@pytest.mark.parametrize("at", range(len(CALLS)))
def test_windows_of_all_writings_equal_those_spelt_out(at: int) -> None:
    (call, of_flink), rows = CALLS[at]
    if call.startswith("SESSION"):
        items, tail = "window_start, window_end, count(*) AS n", "GROUP BY window_start, window_end"
    else:
        items = f"host, window_start, window_end, {AGGREGATES}, count(DISTINCT ok) AS d"
        tail = "WHERE bytes > 2 OR ok GROUP BY host, window_start, window_end HAVING count(*) > 1"
    ours = f"SELECT {items} FROM {call} {tail}"
    check(ours, f"SELECT {items} FROM {rows} {tail}")
    given = streams(TABLES)
    assert sql(ours.replace(call, of_flink), **given).explain() == sql(ours, **given).explain()


@pytest.mark.parametrize("keys", [["host"], ["host", "kind"], ["kind", "ok", "host"]])
@pytest.mark.parametrize("gap", [3, 20])
def test_sessions_of_several_keys(gap: int, keys: list[str]) -> None:
    named = ", ".join(keys)
    tail = f"GROUP BY {named}, window_start, window_end"
    theirs = f"SELECT {named}, window_start, window_end, {AGGREGATES} FROM {sessions(gap, keys)} {tail}"
    written = (
        f"SELECT {named}, window_start, window_end, {AGGREGATES} FROM SESSION(log, ts, {seconds(gap)}) {tail}"
    )
    check(written, theirs)
    given = streams(TABLES)
    for call in (
        f"SESSION(log PARTITION BY {named}, ts, {seconds(gap)})",
        f"TABLE(SESSION(TABLE log PARTITION BY ({named}), DESCRIPTOR(ts), {seconds(gap)}))",
    ):
        other = written.replace(f"SESSION(log, ts, {seconds(gap)})", call)
        assert sql(other, **given).explain() == sql(written, **given).explain()
    of_arroyo = f"SELECT {named}, count(*) AS n FROM log GROUP BY {named}, session(INTERVAL '{gap} seconds')"
    found = sql(of_arroyo, **given).run().table
    assert same_rows(
        found, answers(f"SELECT {named}, count(*) AS n FROM {sessions(gap, keys)} {tail}", TABLES)
    )


@pytest.mark.parametrize(
    "frame", ["PARTITION BY host ORDER BY window_end ROWS 1 PRECEDING", "PARTITION BY window_end"]
)
def test_a_frame_reads_the_final_rows_of_changes(frame: str) -> None:
    ours = (
        f"SELECT host, window_end, sum(count(*)) OVER ({frame}) AS s FROM TUMBLE(log, ts, INTERVAL '30' SECOND) "
        "GROUP BY host, window_end EMIT CHANGES"
    )
    bucket = "time_bucket(INTERVAL '30 seconds', ts) + INTERVAL '30 seconds' AS window_end"
    groups = f"SELECT host, {bucket}, count(*) AS n FROM log GROUP BY ALL"
    wanted = answers(f"SELECT host, window_end, sum(n) OVER ({frame}) AS s FROM ({groups})", TABLES)
    assert same_rows(sql(ours, **streams(TABLES)).run().table, wanted)
