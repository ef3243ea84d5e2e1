"""DuckDB: SQL over tables of its own, on two threads; results are fetched as NumPy columns."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.contender import Contender
from benchmarks.data import SECOND, Columns

__all__ = ["contender"]

MINUTE = 60 * SECOND


def contender(name: str, workload: str, columns: Columns) -> Contender:
    """Return the query of ``workload`` over ``columns``."""
    base = duckdb.connect()
    base.execute("set threads = 2")
    base.execute("set preserve_insertion_order = false")
    given = pa.table(columns)  # noqa: F841  DuckDB finds it by its name
    base.execute("create table tuples as select * from given")
    query = QUERIES[workload]

    def run(_: Any) -> Columns:
        found: Columns = base.execute(query).fetchnumpy()
        return found

    return Contender(lambda: None, run, lambda found: {n: np.asarray(c) for n, c in found.items()})


def sliding(width: int, slide: int, value: str, by: str = "") -> str:
    """Return panes of ``slide`` put into the ``width`` windows that each is in."""
    return f"""
        select (pane - back) * {slide} as window_start, {by} sum(part)::bigint as {value[:5]}
        from (select ts // {slide} as pane, {by} {value[5:]} as part from tuples group by all),
             (select unnest(range({width})) as back)
        group by all"""


def last_tuples(kind: str, slide: int) -> str:
    """Return a window frame; rows after the last one make its incomplete windows."""
    value = "min(v)" if kind == "min" else "avg(f::double)"
    return f"""
        with longer as (
            select row + 1 as window_end, v, f from tuples
            union all select (select count(*) from tuples) + unnest(range(1, 1024)), null, null)
        select window_end, value
        from (select window_end,
                     {value} over (order by window_end rows between 1023 preceding and current row) as value
              from longer)
        where window_end % {slide} = 0"""


QUERIES = {
    "W1": sliding(5, MINUTE, "count count(*)"),
    "W2": sliding(10, SECOND, "total sum(len)", "src,"),
    "W3": f"select ts // {SECOND} * {SECOND} as window_start, src, count(*) as count from tuples group by all",
    "W4": f"""
        select l.ts // {MINUTE} * {MINUTE} as window_start, count(*) as count
        from (from tuples where side = 0) as l join (from tuples where side = 1) as r
          on l.flow = r.flow and l.ts between r.ts - {SECOND} and r.ts + {SECOND}
        group by all""",
    "W5": f"""
        with seconds as (select ts // {SECOND} as second, sum(v) as v from tuples group by all)
        select length::bigint as length, second // length * length * {SECOND} as window_start,
               sum(v)::bigint as total
        from seconds, (select unnest(range(1, 21)) as length)
        group by all""",
} | {f"W6-{kind}-{slide}": last_tuples(kind, slide) for kind in ("min", "avg") for slide in (1, 64, 1024)}
