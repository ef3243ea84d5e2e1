"""Sums of integers and decimals are exact: a result or an error, the same in any order of arrival and for any cut."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import ContractError, Graph, Linear, Page, Schema, replay
from oop_engine.aggregates import Collect
from oop_engine.operators import Avg, Ordered, Punctuate, Session, Sliding, Sum, Tumbling, WindowAggregate
from oop_engine.rewrites import consolidated
from oop_engine.testing import Driver
from oop_engine.thesis import BufferingAggregate
from oop_engine.windows import Global, Landmark, LastRows

TOP, MOST = 2**63 - 1, 10**38 - 1
COLUMNS: dict[str, tuple[pa.DataType, list[int], range]] = {
    "int64": (pa.int64(), [TOP, -TOP - 1, TOP - 3, -5, 2**62, -(2**62), 7], range(-TOP - 1, TOP + 1)),
    "duration": (pa.duration("ns"), [TOP, 1 - TOP, 1, -5, 2**62], range(-TOP - 1, TOP + 1)),
    "uint64": (pa.uint64(), [2**64 - 1, 2**63, 1, 0], range(2**64)),
    "decimal": (pa.decimal128(38, 0), [MOST, -MOST, MOST - 3, -5, MOST // 2], range(-MOST, MOST + 1)),
    "short decimal": (pa.decimal128(20, 0), [10**20 - 1, 1 - 10**20, 3], range(-MOST, MOST + 1)),
}
SEVERAL = {str(length): Sliding(length, 4) for length in (4, 12, 40)}
AGGREGATES: dict[str, Any] = {
    "tumbling": lambda asked: WindowAggregate(Tumbling(10), asked),
    "tumbling by key": lambda asked: WindowAggregate(Tumbling(10), asked, by=("k",)),
    "by windows": lambda asked: WindowAggregate(Sliding(20, 5), asked, by=("k",), strategy="windows"),
    "by panes": lambda asked: WindowAggregate(Sliding(20, 5), asked, by=("k",), strategy="panes"),
    "overlapping": lambda asked: WindowAggregate(Sliding(40, 4), asked),
    "several": lambda asked: WindowAggregate(SEVERAL, asked),
    "several by key": lambda asked: WindowAggregate(SEVERAL, asked, by=("k",)),
    "tree": lambda asked: WindowAggregate(SEVERAL, asked, assembly="tree"),
    "landmark": lambda asked: WindowAggregate(Landmark(10), asked, by=("k",)),
    "whole": lambda asked: WindowAggregate(Global(), asked),
    "session": lambda asked: WindowAggregate(Session(6), asked, by=("k",)),
    "sessions": lambda asked: WindowAggregate({"a": Session(3), "b": Session(9)}, asked),
    "last rows": lambda asked: WindowAggregate(LastRows(5, 4), asked, by=("k",)),
}
Row = tuple[int, str, int]


def page_of(kind: pa.DataType, rows: list[Row]) -> Page:
    schema = Schema({"ts": pa.int64(), "k": pa.string(), "v": kind}, "ts", "s")
    times, keys, values = map(list, zip(*rows, strict=True))
    given = [Decimal(value) for value in values] if pa.types.is_decimal(kind) else values
    return Page.of(schema, {"ts": times, "k": keys, "v": pa.array(given, kind)})


def rows_of(
    operator: Any, kind: pa.DataType, rows: list[Row], draw: random.Random
) -> list[dict[str, Any]] | str:
    """Return the results, by everything but the sum; the word "error" where a sum does not fit."""
    driver, at = Driver(operator, page_of(kind, rows).schema), 0
    try:
        while at < len(rows):
            step = draw.randint(1, 7)
            driver.feed(0, page_of(kind, rows[at : at + step]))
            if draw.random() < 0.3:
                driver.move()
            at += step
        driver.feed(0, "end")
    except ContractError as error:
        return "error" if "must fit" in str(error) else str(error)
    names = [
        name for name in operator.opened(*driver.operator.schemas_in).schemas_out[0].names if name != "v"
    ]
    columns = driver.pages()[0].batch.schema
    table = pa.Table.from_batches([page.batch for page in driver.pages()], columns)
    values = table.column("v")
    if pa.types.is_struct(values.type):
        lists = [one.field("values") for one in values.chunks]
        number = pa.int64() if pa.types.is_duration(kind) else kind
        sums = [sum(map(int, one.as_py())) for some in lists for one in some.cast(pa.list_(number))]
        values = pa.array(map(str, sums))
    elif pa.types.is_duration(values.type):
        values = values.cast(pa.int64())
    table = table.set_column(table.column_names.index("v"), "v", values)
    return sorted(table.to_pylist(), key=lambda row: str([row[name] for name in names]))


@pytest.mark.slow(keep=12)
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_a_sum_is_that_of_the_values_or_an_error_in_any_order(aggregate: str, column: str) -> None:
    kind, values, fitting = COLUMNS[column]
    seen = set[bool]()
    for seed in range(8):
        draw = random.Random(f"{aggregate} {column} {seed}")
        some = values if seed % 2 else [2, 3, 4, 5, 6, 8]
        rows = [
            (draw.randint(0, 35), draw.choice("ab"), draw.choice(some)) for _ in range(draw.randint(2, 12))
        ]
        rows += [] if seed % 2 else [(9, "a", values[0] - 200)]
        of_lists = "several" if aggregate == "tree" else aggregate  # which takes no lists
        collected = rows_of(AGGREGATES[of_lists]({"v": Collect("v", 100)}), kind, rows, draw)
        assert isinstance(collected, list)
        fits = all(int(row["v"]) in fitting for row in collected)
        seen.add(fits)
        for _ in range(3):
            found = rows_of(AGGREGATES[aggregate]({"v": Sum("v")}), kind, rows, draw)
            if not fits:
                assert found == "error"
            else:
                assert isinstance(found, list)
                assert [{**row, "v": str(row["v"])} for row in found] == collected
            if aggregate != "last rows":  # there arrival decides between rows of one time
                draw.shuffle(rows)
    assert True in seen


@pytest.mark.parametrize("column", ["int64", "decimal"])
def test_in_order_twins_and_halves_add_up_the_same(column: str) -> None:
    kind, _, _ = COLUMNS[column]
    top = TOP if column == "int64" else MOST
    rows = [(1, "a", top), (2, "a", top), (3, "a", -top), (4, "a", -5), (14, "a", 1)]
    page = page_of(kind, rows)
    twin = Driver(BufferingAggregate(Tumbling(10), {"v": Sum("v")}), page.schema).run([(0, page)])
    assert [int(row["v"]) for row in twin.rows()] == [top - 5, 1]
    graph = Graph("g")
    edge = graph.add("edge", Punctuate(Ordered()), graph.source("in", page.schema))
    graph.sink("out", graph.add("sums", WindowAggregate(Tumbling(10), {"v": Sum("v")}, by=("k",)), edge))
    pages = [page.slice(at, at + 1) for at in range(page.rows)]
    for of in (graph, consolidated(graph)):
        assert [int(v) for v in replay(of, {"in": pages}).results["out"].column("v").to_pylist()] == [
            top - 5,
            1,
        ]


def test_a_mean_of_decimals_is_exact_where_their_sum_has_no_room() -> None:
    page = page_of(pa.decimal128(38, 0), [(1, "a", MOST)] * 5 + [(2, "a", MOST - 5)])
    driver = Driver(WindowAggregate(Tumbling(10), {"v": Avg("v")}), page.schema).run([(0, page)])
    assert driver.rows()[0]["v"] == MOST - 1


def test_sliding_sums_take_wide_ones_away_again() -> None:
    """Windows of panes follow by subtraction: of two words, of three, and of a sum that wraps."""
    for column, top in (("int64", TOP), ("decimal", MOST)):
        kind, _, _ = COLUMNS[column]
        rows = [(at, "a", value) for at, value in enumerate([top, -top, top, -top, 3, -top, top, -2] * 6)]
        driver = Driver(
            WindowAggregate(Sliding(8, 1), {"v": Sum("v")}, by=("k",)), page_of(kind, rows).schema
        )
        driver.feed(0, page_of(kind, rows))
        driver.feed(0, Linear(40))
        ends = [(row["window_end"], int(row["v"])) for row in driver.rows()]
        assert ends == [(end, sum(v for at, _, v in rows if end - 8 <= at < end)) for end in range(1, 41)]
