"""SQL: the questions for DuckDB and Polars alike, with panes by hand where windows overlap: that is faster."""

from __future__ import annotations

__all__ = ["SQL"]

_LONG_MS = 10_000


def _by_host(slide_ms: int) -> str:
    panes = f"""select ts // {slide_ms} * {slide_ms} as pane, host, count(*) as n,
        cast(sum(size) as bigint) as total, max(size) as most from requests group by pane, host"""
    if slide_ms == _LONG_MS:
        return f"""select pane as window_start, host, n as requests, total as bytes, most as largest
            from ({panes}) as p"""
    starts = " union all ".join(f"select {back} as back" for back in range(0, _LONG_MS, slide_ms))
    return f"""select pane - back as window_start, host, cast(sum(n) as bigint) as requests,
        cast(sum(total) as bigint) as bytes, max(most) as largest
        from ({panes}) as p cross join ({starts}) as b group by window_start, host"""


_FIRST = """select window_start, auction as {0}, {1} from (select *, row_number() over (partition by window_start
    order by {1} desc, auction desc) as place from ({2}) as c) as r where place = 1"""
_PANES = """select ts // 2000000 * 2000000 as pane, auction, count(*) as n from tuples where kind = 2
    group by pane, auction"""
_BACK = " union all ".join(f"select {back * 1_000_000} as back" for back in range(0, 10, 2))
SQL = {
    "tumbling_text": _by_host(10_000),
    "tumbling_integer": _by_host(10_000),
    "sliding_text": _by_host(2000),
    "sliding_integer": _by_host(2000),
    "q5": _FIRST.format(
        "hottest",
        "most",
        f"""select pane + 10000000 - back as window_start, auction, cast(sum(n) as bigint) as most
        from ({_PANES}) as p cross join ({_BACK}) as b group by window_start, auction""",
    ),
    "q7": _FIRST.format(
        "auction",
        "price",
        """select ts // 10000000 * 10000000 as window_start, auction, max(price) as price from tuples
        where kind = 2 group by window_start, auction""",
    ),
    "join": """select l.ts // 60000000 * 60000000 as window_start, count(*) as count
        from lefts as l join rights as r on l.flow = r.flow
        where l.ts - r.ts between -1000000 and 1000000 group by window_start""",
}
"""A query by the name of its question; its sources are tables."""
