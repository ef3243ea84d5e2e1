"""ISTREAM, DSTREAM and RSTREAM against their definition: the relation's rows, moment by moment."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from oop_engine import Page, UsageError, replay, scan, sql, stream
from oop_engine.rewrites import in_order

Row = tuple[Any, ...]
Relation = Callable[[list[dict[str, Any]], int], Counter[Row]]
LAST = 60
LOG = stream("log", {"ts": "int64", "host": "string", "bytes": "int64"}).event_time("ts", "40 s", unit="s")


def records(seed: int) -> list[dict[str, Any]]:
    of = random.Random(seed)
    return [
        {"ts": of.randint(0, 30), "host": of.choice(["a", "b", None]), "bytes": of.choice([1, 2, None])}
        for _ in range(of.choice([0, 1, 12, 40]))
    ]


def rows_of(length: int, *columns: str) -> Relation:
    """Return the relation of a window without a slide: the records of the last ``length``."""
    return lambda given, now: Counter(
        tuple(row[name] for name in columns) for row in given if now - length < row["ts"] <= now
    )


def counts_of(length: int, slide: int) -> Relation:
    """Return the relation of counts by host of the last window that has ended."""

    def relation(given: list[dict[str, Any]], now: int) -> Counter[Row]:
        end = now // slide * slide
        hosts = Counter(row["host"] for row in given if end - length <= row["ts"] < end)
        return Counter(hosts.items())

    return relation


def differences(relation: Relation, given: list[dict[str, Any]], kind: str) -> list[Row]:
    found = []
    for now in range(-LAST, LAST + 30):
        before, after = relation(given, now - 1), relation(given, now)
        rows = after - before if kind == "ISTREAM" else before - after
        found += [(*row, now) for row in rows.elements()]
    return sorted(found, key=repr)


FORMS = {
    "[RANGE 5]": ("host", rows_of(5, "host"), ""),
    "[RANGE 7, ts]": ("host, bytes", rows_of(7, "host", "bytes"), ""),
    "[NOW]": ("host", rows_of(1, "host"), ""),
    "[RANGE 6 SLIDE 2]": ("host, count(*) AS n", counts_of(6, 2), "GROUP BY host, window_start, window_end"),
    "[RANGE 4 SLIDE 4]": ("host, count(*) AS n", counts_of(4, 4), "GROUP BY host, window_start, window_end"),
}
WRITTEN = {
    "a function": "SELECT {kind}({items}) FROM log {window} {group}",
    "around": "{kind}(SELECT {items} FROM log {window} {group})",
    "a word": "SELECT {kind} {items} FROM log {window} {group}",
}


@pytest.mark.parametrize("kind", ["ISTREAM", "DSTREAM"])
@pytest.mark.parametrize("window", FORMS)
def test_a_stream_has_the_differences_of_its_relation(window: str, kind: str) -> None:
    items, relation, group = FORMS[window]
    for seed in range(4):
        given = records(seed)
        for form in WRITTEN.values():
            query = sql(form.format(kind=kind, items=items, window=window, group=group), log=LOG)
            assert query.columns[-1] == "stream_time"
        wanted = differences(relation, given, kind)
        columns = {name: [row[name] for row in given] for name in ("ts", "host", "bytes")}
        feed = Page.of(LOG.schema, columns)
        for graph in (query.graph, in_order(query.graph)):
            found = replay(graph, {"log": [feed]}).results["result"].select(query.columns)
            assert sorted((tuple(row.values()) for row in found.to_pylist()), key=repr) == wanted


def test_all_rows_of_each_moment_are_the_results_themselves() -> None:
    log = scan(records(3), "log").event_time("ts", "40 s", unit="s")
    text = "SELECT {} FROM log [RANGE 6 SLIDE 2] GROUP BY host, window_end"
    items = "host, window_end, count(*) AS n"
    assert (
        sql(text.format(f"RSTREAM({items})"), log=log)
        .run()
        .table.equals(sql(text.format(items), log=log).run().table)
    )
    assert sql("SELECT RSTREAM(*) FROM log [NOW]", log=log).run().table.num_rows == len(records(3))
    assert sql("SELECT ISTREAM(*) FROM log", log=log).run().table.num_rows == len(records(3))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT DSTREAM(*) FROM log", "rows stay"),
        ("SELECT DSTREAM(*) FROM log [RANGE UNBOUNDED]", "rows stay"),
        ("SELECT RSTREAM(*) FROM log [RANGE 5]", "RSTREAM of rows at each moment is not supported: [NOW]"),
        ("SELECT ISTREAM(*) FROM log [RANGE 5 SLIDE 2]", "leave SLIDE out"),
        ("SELECT ISTREAM(*) FROM log [ROWS 5]", "leave SLIDE out"),
        ("SELECT ISTREAM(count(*)) FROM log [ROWS 5] GROUP BY window_end", "give a length and a SLIDE"),
        ("SELECT bytes, ISTREAM(host) FROM log [NOW]", "ISTREAM(a, b) of all of it"),
        (
            "SELECT ISTREAM(count(*)) FROM log [RANGE 4 SLIDE 4] GROUP BY window_end EMIT CHANGES",
            "without EMIT",
        ),
    ],
)
def test_what_has_no_moments_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        sql(text, log=LOG)
    assert words in str(caught.value)
    assert "line 1, column" in str(caught.value)
