"""Spark: batch queries in its own windows over a cached data frame, on two threads; results as Arrow.
It needs a Java, 17 or later, on the path.

How the engine does inside of Spark's streaming is another suite, ``benchmarks.spark``.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from benchmarks.contender import Contender
from benchmarks.data import SECOND, Columns

__all__ = ["contender"]

MINUTE = 60 * SECOND
SETTINGS = {
    "spark.driver.memory": "6g",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def contender(name: str, workload: str, columns: Columns) -> Contender:
    """Return the query of ``workload`` over ``columns``."""
    spark = _session()
    time = pa.array(columns["ts"], pa.timestamp("us", "UTC"))
    frame: DataFrame = spark.createDataFrame(pa.table({**columns, "t": time})).cache()
    frame.createOrReplaceTempView("tuples")
    frame.count()

    def run(_: object) -> pa.Table:
        return spark.sql(QUERIES[workload]).toArrow()

    return Contender(lambda: None, run, lambda found: {n: found[n].to_numpy() for n in found.column_names})


def _session() -> SparkSession:
    found: SparkSession = SparkSession.builder.master("local[2]").config(map=SETTINGS).getOrCreate()
    return found


def sliding(length: str, slide: str, value: str, by: str = "") -> str:
    """Return Spark's own windows; starts are microseconds."""
    return f"""
        select unix_micros(w.start) as window_start, {by} {value}
        from (select window(t, '{length}', '{slide}') as w, * from tuples)
        group by {by} w"""


QUERIES = {
    "W1": sliding("5 minutes", "1 minute", "count(*) as count"),
    "W2": sliding("10 seconds", "1 second", "sum(len) as total", "src,"),
    "W3": sliding("1 second", "1 second", "count(*) as count", "src,"),
    "W4": f"""
        select l.ts div {MINUTE} * {MINUTE} as window_start, count(*) as count
        from tuples as l join tuples as r
          on l.flow = r.flow and l.side = 0 and r.side = 1 and abs(l.ts - r.ts) <= {SECOND}
        group by 1""",
    "W5": f"""
        with seconds as (select ts div {SECOND} as second, sum(v) as v from tuples group by 1)
        select length, second div length * length * {SECOND} as window_start, sum(v) as total
        from seconds lateral view explode(sequence(1L, 20L)) as length
        group by 1, 2""",
    "Q5": """
        with counts as (
          select unix_micros(w.start) as window_start, auction, count(*) as bids
          from (select window(t, '10 seconds', '2 seconds') as w, auction from tuples where kind = 2)
          group by auction, w)
        select window_start, most.auction as auction, most.bids as bids
        from (select window_start, max(struct(bids, auction)) as most from counts group by window_start)""",
    "Q7": """
        select unix_micros(w.start) as window_start, most.auction as auction, most.price as price
        from (select window(t, '10 seconds') as w, max(struct(price, auction)) as most
              from tuples where kind = 2 group by 1)""",
    "Q11": """
        select bidder, unix_micros(w.start) as window_start, unix_micros(w.end) as window_end, bids
        from (select bidder, session_window(t, '10 seconds') as w, count(*) as bids
              from tuples where kind = 2 group by 1, 2)""",
}
