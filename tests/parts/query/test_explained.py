"""EXPLAIN is true: the state of each node and its end, and the clause that a query over live sources lacks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from oop_engine import UsageError, sql, stream

GIVEN = {
    name: stream(name, {"ts": "timestamp[us]", "k": "string", "v": "int64"}).event_time("ts", "5 s")
    for name in ("a", "b")
}
TUMBLED = "FROM TUMBLE(a, ts, INTERVAL '1' MINUTE)"

STATES = [
    ("SELECT k, window_end, count(*) AS n FROM SESSION(a, ts, INTERVAL '5' MINUTE) GROUP BY k, window_end",
     "agg  bounded: a partial aggregate of each k in each open window"),
    ("SELECT k, count(*) AS n FROM a GROUP BY k EMIT CHANGES", "agg  grows with the keys"),
    ("SELECT k, window_end, count(*) AS n FROM CUMULATE(a, ts, INTERVAL '1' HOUR) GROUP BY k, window_end",
     "agg  grows with the keys"),
    ("SELECT sum(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS s FROM a",
     "over  grows with the keys: the last records of each k"),
    ("SELECT lag(v) OVER (PARTITION BY k ORDER BY ts) AS s FROM a",
     "over  grows with the keys: the last records of each k"),
    ("SELECT date_trunc('week', ts) AS w, k, count(*) AS n FROM a GROUP BY ALL",
     "agg  bounded: a partial aggregate of each k in each open window"),
    ("SELECT lag(v) OVER (ORDER BY ts) AS s FROM a", "over  bounded: the last records"),
    ("SELECT a.k FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL '1' SECOND AND a.ts + INTERVAL '5' MINUTE",
     "left records until the right bound is 300 s behind them, right ones until the left bound is 1 s behind them"),
    ("SELECT a.k, b.v FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts", "join  grows with the keys: the latest right"),
    ("SELECT a.k, b.v FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts", "each left record with its match once"),
    ("SELECT a.k, b.v FROM a LEFT JOIN b ON a.k = b.k AND a.ts = b.ts", "a record without a match once the bounds of"),
    ("SELECT DISTINCT ts, k FROM a", "distinct  bounded: the key of each record, until the bound passes"),
    (f"SELECT k, window_end, count(*) AS n {TUMBLED} GROUP BY k, window_end "
     "QUALIFY row_number() OVER (PARTITION BY window_end ORDER BY n DESC) <= 2", "rank  bounded: the first records"),
    ("SELECT a.k, b.v FROM a JOIN b ON a.k = b.k AND a.ts = b.ts WHERE a.v > 3", "filter  before 'join'"),
    ("SELECT k, v FROM a", "pushed down to the sources\n  a  reads ts, k, v"),
    ("SELECT k, count(*) AS n FROM a GROUP BY k", "agg  without an end: a GROUP BY without a window"),
]  # fmt: skip

BAND = "add the band AND b.ts BETWEEN"
JOINED = "join results of windows ON a.window_end = b.window_end, or read sources that end"
IN_SUBQUERY = ("add a band of time to its WHERE", "a.window_end = b.window_end", "read a source that ends")
RANKED = ("add window_end to PARTITION BY", "max or arg_max", "read a source that ends")
GROUPED = ("group by a window", "EMIT CHANGES", "read a source that ends")
UNBOUNDED = [
    *((f"SELECT {items} FROM a{tail}", GROUPED) for items, tail in [
        ("k, count(*) AS n", " GROUP BY k"), ("count(*) AS n", ""), ("k, sum(v) AS s", " GROUP BY k HAVING sum(v) > 3"),
        ("date_trunc('month', ts) AS m, count(*) AS n", " GROUP BY m"), ("max(v) AS m", " WHERE k = 'x'"),
    ]),
    *((f"SELECT {items}", ("DISTINCT", "event time", "or read a source that ends")) for items in [
        "DISTINCT k FROM a", "DISTINCT k, v FROM a", "k FROM a UNION SELECT k FROM b",
    ]),
    *((f"SELECT sum(v) OVER ({frame}) AS s FROM a", ("ROWS BETWEEN 9 PRECEDING", "RANGE", "read a source that ends"))
      for frame in ["", "PARTITION BY k", "PARTITION BY k ORDER BY ts", "ORDER BY ts ROWS UNBOUNDED PRECEDING",
                    "ORDER BY ts ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"]),
    *((f"SELECT a.k FROM a {join}", (BAND, JOINED)) for join in [
        "JOIN b ON a.k = b.k", "LEFT JOIN b ON a.k = b.k", "FULL JOIN b ON a.k = b.k", "RIGHT JOIN b ON a.k = b.k",
        "SEMI JOIN b ON a.k = b.k", "ANTI JOIN b ON a.k = b.k", "WHERE k IN (SELECT k FROM b)",
        "WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)", "WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    ]),
    *((f"SELECT a.k FROM a JOIN b ON a.k = b.k AND {half}", ("has one end alone", BAND, JOINED)) for half in [
        "b.ts >= a.ts", "b.ts < a.ts + INTERVAL '5' SECOND",
    ]),
    *((f"SELECT {query}", IN_SUBQUERY) for query in [
        "k FROM a WHERE v > (SELECT avg(v) FROM b)", "(SELECT max(b.v) FROM b WHERE b.k = a.k) AS m FROM a",
        "k FROM a WHERE k NOT IN (SELECT k FROM b)",
    ]),
    *((f"SELECT {query}", RANKED) for query in [
        "k FROM a QUALIFY row_number() OVER (PARTITION BY k ORDER BY v) = 1",
        "rank() OVER (ORDER BY v) AS r FROM a",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("query", "words"), STATES)
def test_the_plan_names_the_state_of_each_node_and_its_end(query: str, words: str) -> None:
    assert words in sql(query, **GIVEN).explain()


@pytest.mark.parametrize(("query", "words"), UNBOUNDED)
def test_a_state_without_an_end_over_live_sources_is_refused_with_three_ways_out(
    query: str, words: tuple[str, ...]
) -> None:
    made = sql(query, **GIVEN)
    sources: dict[str, Any] = {name: object() for name in GIVEN if name in made.graph.nodes}
    with pytest.raises(UsageError) as caught:
        asyncio.run(made.serve(to=lambda _: None, **sources))
    assert "has a state without an end over a live source" in str(caught.value)
    assert all(one in str(caught.value) for one in words), str(caught.value)
