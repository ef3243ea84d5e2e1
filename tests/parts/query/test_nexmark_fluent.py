"""Nexmark q0 to q22 by methods, over generated events up to 5 s late: DuckDB's answers to the texts in SQL."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pyarrow as pa
import pytest

from oop_engine import scan
from oop_engine.operators import Avg, Count, Max, Session
from oop_engine.query import DataStream
from oop_engine.windows import PartitionedTupleBased
from tests.parts.query.duck import answers, same_rows
from tests.parts.query.nexmark import MORE
from tests.parts.query.nexmark_data import START, events, of_duckdb, shuffled

Streams = dict[str, DataStream]
IN_TIME = "date_time_right BETWEEN date_time AND expires"
SIZES = ("price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000")
TOTALS = {"total": "count(*)"} | {f"r{i}": f"count(*) FILTER (WHERE {one})" for i, one in enumerate(SIZES)}
PEOPLE, AUCTIONS = (
    {f"{of}": f"count(DISTINCT {of})"}
    | {f"{of}{i}": f"count(DISTINCT {of}) FILTER (WHERE {one})" for i, one in enumerate(SIZES)}
    for of in ("bidder", "auction")
)
DAY = "strftime(date_time, '%Y-%m-%d')"
CHANNEL = (
    "CASE WHEN lower(channel) = 'apple' THEN '0' WHEN lower(channel) = 'google' THEN '1' WHEN lower(channel) = "
    "'facebook' THEN '2' WHEN lower(channel) = 'baidu' THEN '3' ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) "
    "END"
)
KNOWN = (
    "regexp_matches(url, '(&|^)channel_id=') OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')"
)
KIND = (
    "CASE WHEN hour(date_time) >= 8 AND hour(date_time) <= 18 THEN 'dayTime' WHEN hour(date_time) <= 6 OR "
    "hour(date_time) >= 20 THEN 'nightTime' ELSE 'otherTime' END"
)
BID = "auction bidder price channel url date_time extra"


def bids_in_time(of: Streams) -> DataStream:
    """Return the auctions with the bids before they expired."""
    return of["auction"].join(of["bid"], on=[("id", "auction")], where=IN_TIME)


def finals(of: Streams) -> DataStream:
    return bids_in_time(of).group_by("id", "category").agg(final=Max("price"))


def counted(of: Streams) -> DataStream:
    return of["bid"].group_by("auction").window("10 s", every="2 s").agg(num=Count())


def cheapest(of: Streams) -> DataStream:
    """Return the first of each auction's cheapest bids, by the time of bids."""
    pairs = of["bid"].join(
        of["auction"], on=[("auction", "id")], where="date_time BETWEEN date_time_right AND expires"
    )
    return pairs.top(1, by=["price", "date_time"], per="auction", timed=False)


def last_prices(of: Streams) -> DataStream:
    last = cheapest(of).group_by("seller").window(PartitionedTupleBased(11, 1, "time"))
    return last.agg(mean=Avg("price"), rows=Count()).filter("rows = window_end - greatest(window_start, 0)")


def highest(of: Streams) -> DataStream:
    most = of["bid"].window("10 s").agg(most=Max("price"))
    return of["bid"].join(most, on=[("price", "most")], within=("0 s", "10 s"))


def new_sellers(of: Streams) -> DataStream:
    people = of["person"].group_by("id", "name").window("10 s").agg(n=Count())
    return people.join(
        of["auction"].group_by("seller").window("10 s").agg(m=Count()), [("id", "seller")], "0 s"
    )


def by_day(of: Streams, *keys: str, **more: str) -> DataStream:
    days = of["bid"].with_columns(day=DAY, minute="strftime(date_time, '%I:%m')")
    return days.group_by(*keys).agg(**more)


QUERIES: dict[str, tuple[Callable[[Streams], DataStream], str]] = {
    "q0": (lambda of: of["bid"].select("auction", "bidder", "price"), "auction bidder price date_time"),
    "q1": (lambda of: of["bid"].with_columns(price="0.908 * price"), "auction bidder price date_time"),
    "q2": (lambda of: of["bid"].filter("auction IN (1007, 1020, 2001, 2019, 2087)"), "auction price"),
    "q3": (
        lambda of: (
            of["auction"]
            .filter("category = 10")
            .join(of["person"].filter("state IN ('or', 'id', 'ca')"), on=[("seller", "id")])
        ),
        "name city state id",
    ),
    "q4": (lambda of: finals(of).group_by("category").agg(mean=Avg("final")), "category mean"),
    "q5": (lambda of: counted(of).top(1, by="-num", ties="rank"), "auction num"),
    "q6": (last_prices, "seller mean"),
    "q7": (highest, "auction price bidder date_time"),
    "q8": (new_sellers, "id name window_start"),
    "q9": (
        lambda of: bids_in_time(of).top(1, by=["-price", "date_time_right"], per="id", timed=False),
        "id item_name description initial_bid reserve date_time expires seller category auction bidder price "
        "date_time_right",
    ),
    "q10": (
        lambda of: of["bid"].with_columns(day=DAY, minute="strftime(date_time, '%I:%M')"),
        "auction bidder price date_time day minute",
    ),
    "q11": (
        lambda of: of["bid"].group_by("bidder").window(Session("10 s")).agg(n=Count()),
        "bidder window_start window_end n",
    ),
    "q12": (lambda of: of["bid"].group_by("bidder").window("10 s").agg(n=Count()), "bidder window_start n"),
    "q13": (
        lambda of: of["bid"].with_columns(part="auction % 100").join(of["side"], on=[("part", "key")]),
        "auction bidder price date_time value",
    ),
    "q14": (
        lambda of: (
            of["bid"]
            .filter("0.908 * price > 1000000 AND 0.908 * price < 50000000")
            .with_columns(
                price="0.908 * price", kind=KIND, c="length(regexp_replace(extra, '[^c]', '', 'g'))"
            )
        ),
        "auction bidder price kind date_time c",
    ),
    "q15": (
        lambda of: by_day(of, "day", **TOTALS, **PEOPLE, **AUCTIONS),
        f"day {' '.join([*TOTALS, *PEOPLE, *AUCTIONS])}",
    ),
    "q16": (
        lambda of: by_day(of, "channel", "day", minute="max(minute)", **TOTALS, **PEOPLE, **AUCTIONS),
        f"channel day minute {' '.join([*TOTALS, *PEOPLE, *AUCTIONS])}",
    ),
    "q17": (
        lambda of: by_day(
            of, "auction", "day", **TOTALS, a="min(price)", b="max(price)", c="avg(price)", d="sum(price)"
        ),
        f"auction day {' '.join(TOTALS)} a b c d",
    ),
    "q18": (
        lambda of: of["bid"].top(1, ["-date_time", "extra"], ["bidder", "auction"], timed=False),
        "auction bidder price channel url date_time extra",
    ),
    "q19": (
        lambda of: of["bid"].top(10, ["-price", "date_time"], "auction", rank="r", timed=False),
        f"{BID} r",
    ),
    "q20": (
        lambda of: of["bid"].join(of["auction"].filter("category = 10"), on=[("auction", "id")]),
        f"{BID} item_name description initial_bid reserve date_time_right expires seller category extra_right",
    ),
    "q21": (
        lambda of: of["bid"].filter(KNOWN).with_columns(channel_id=CHANNEL),
        "auction bidder price channel channel_id",
    ),
    "q22": (
        lambda of: of["bid"].with_columns(**{f"dir{i}": f"split_part(url, '/', {i + 3})" for i in (1, 2, 3)}),
        "auction bidder price channel dir1 dir2 dir3",
    ),
}


@cache
def tables() -> dict[str, pa.Table]:
    keys = range(0, 100, 3)
    moments = pa.array([int(START) + key for key in keys], pa.timestamp("us"))
    names = [f"v{key}" for key in keys]
    return {
        **events(2_000),
        "side": pa.table({"date_time": moments, "key": pa.array(keys, pa.int64()), "value": names}),
    }


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_has_the_answers_of_duckdb(name: str) -> None:
    late = {of: shuffled(table, 5) for of, table in tables().items()}
    given = {of: scan(table, of).event_time("date_time", "5 s") for of, table in late.items()}
    made, columns = QUERIES[name]
    wanted = answers(MORE[name][1] if name in MORE else of_duckdb(name), tables())
    found = made(given).run().table
    assert same_rows(found.select(columns.split()), wanted)
