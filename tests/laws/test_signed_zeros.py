"""A key of -0.0 is emitted as 0.0 by every operator that has keys, whichever zero came first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import GroupWise, Linear, Operator, Page, Schema
from oop_engine.aggregates import TopK
from oop_engine.core.groups.zeros import unsigned_zeros
from oop_engine.operators import (
    AsOf,
    Band,
    BoundedDisorder,
    Count,
    Distinct,
    Emit,
    Finalize,
    Latest,
    Max,
    MultiJoin,
    OAJoin,
    PerGroup,
    Punctuate,
    Session,
    Sliding,
    Tumbling,
    WindowAggregate,
)
from oop_engine.testing import Driver
from oop_engine.thesis import (
    BufferingAggregate,
    Consolidate,
    LowLevelAggregate,
    OPIBJoin,
    OPOBJoin,
    PartialAggregate,
)
from oop_engine.triggers import AfterCount
from oop_engine.windows import LastRows, SlideByTuple, TupleBased

KINDS: dict[str, tuple[pa.DataType, Callable[[float], Any]]] = {
    "float64": (pa.float64(), float),
    "float32": (pa.float32(), float),
    "float16": (pa.float16(), float),
    "dictionary": (pa.dictionary(pa.int32(), pa.float64()), float),
    "struct": (pa.struct([("a", pa.float64()), ("b", pa.int8())]), lambda x: {"a": x, "b": 1}),
    "list": (pa.list_(pa.float32()), lambda x: [1.0, x]),
    "map": (pa.map_(pa.string(), pa.float64()), lambda x: [("a", x)]),
}
COUNT, BY = {"n": Count()}, ("x",)
KEY, BAND = [("x", "x")], Band(5, 5)
ONE: dict[str, Operator] = {
    "tumbling": WindowAggregate(Tumbling(10), COUNT, BY),
    "two keys": WindowAggregate(Sliding(10, 5), COUNT, ("x", "k")),
    "sessions": WindowAggregate(Session(5), COUNT, BY),
    "rows": WindowAggregate(TupleBased(1, 1, order="time"), COUNT, BY),
    "slides": WindowAggregate(SlideByTuple(5), COUNT, BY),
    "last rows": WindowAggregate(LastRows(2, 5), COUNT, BY),
    "lists": WindowAggregate(Tumbling(10), {"top": TopK("k", 2)}, BY),
    "versions": WindowAggregate(Tumbling(10), COUNT, BY, emit=Emit(early=AfterCount(1))),
    "in order": BufferingAggregate(Tumbling(10), COUNT, BY),
    "low level": LowLevelAggregate(Tumbling(10), COUNT, BY, slots=4),
    "partial": PartialAggregate(Tumbling(10), COUNT, BY),
    "distinct": Distinct(BY),
    "latest": Latest(BY, where=pc.field("k") == 1),
}
SEVERAL: dict[str, tuple[Operator, int]] = {
    "join": (OAJoin(KEY, BAND), 2),
    "outer join": (OAJoin(KEY, BAND, how="full"), 2),
    "as of": (OAJoin(KEY, AsOf(), how="left"), 2),
    "ordered join": (OPIBJoin(KEY, BAND), 2),
    "sorted join": (OPOBJoin(KEY, BAND), 2),
    "three streams": (MultiJoin("one", {"two": BAND, "three": BAND}, [("x", "x", "x")]), 3),
}


def schema_of(kind: pa.DataType, change: str | None = None) -> Schema:
    columns = {"ts": pa.int64(), "k": pa.int64(), "x": kind} | ({change: pa.int8()} if change else {})
    return Schema(columns, "ts", "s", change)


def page_of(schema: Schema, values: list[Any]) -> Page:
    columns: dict[str, Any] = {"ts": [1] * len(values), "k": [1] * len(values), "change": [1] * len(values)}
    kind = schema.type_of("x")
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    columns["x"] = pa.array(values, plain) if plain is kind else pa.array(values, plain).dictionary_encode()
    return Page.of(schema, columns)


def floats(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict):
        yield from floats(list(value.values()))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from floats(one)


def check(driver: Driver) -> list[str]:
    """Return the results as texts, after a look at all the zeros in them."""
    rows = [row for port in range(len(driver.out)) for row in driver.rows(port)]
    groups = [one.groups.to_pylist() for one in driver.punctuation() if isinstance(one, GroupWise)]
    keys = [value for row in rows for name, value in row.items() if name.startswith("x")]
    assert not any(math.copysign(1, x) < 0 for x in floats([keys if len(rows) else [], groups]))
    return sorted(map(str, rows))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ONE)
def test_an_operator_of_one_input(name: str, kind: str) -> None:
    of, value = KINDS[kind]
    schema = schema_of(of)
    answers = [
        check(driver_of(ONE[name], page_of(schema, [value(x) for x in order])))
        for order in ([0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0])
    ]
    assert answers[0] == answers[1] == answers[2] != []


def driver_of(operator: Operator, *pages: Page) -> Driver:
    driver = Driver(operator, *(page.schema for page in pages))
    return driver.run([*enumerate(pages)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SEVERAL)
def test_an_operator_of_several_inputs(name: str, kind: str) -> None:
    (operator, inputs), (of, value) = SEVERAL[name], KINDS[kind]
    pages = [page_of(schema_of(of), [value(x)]) for x in (-0.0, 0.0, -0.0)][:inputs]
    answers = [check(driver_of(operator, *order)) for order in (pages, pages[::-1])]
    assert answers[0] == answers[1] != []


@pytest.mark.parametrize("name", ["distinct", "finalize", "aggregate"])
def test_rows_of_a_revision_stream(name: str) -> None:
    made: dict[str, Operator] = {
        "distinct": Distinct(BY),
        "finalize": Finalize(),
        "aggregate": WindowAggregate(Tumbling(10), {"most": Max("k")}, BY),
    }
    page = page_of(schema_of(pa.float64(), "change"), [-0.0, 0.0, -0.0])
    assert check(driver_of(made[name], page))


def test_punctuation_of_an_edge() -> None:
    driver = driver_of(
        Punctuate(PerGroup(BoundedDisorder(0), by=BY)), page_of(schema_of(pa.float64()), [-0.0])
    )
    found = [one.groups.to_pylist() for one in driver.punctuation() if isinstance(one, GroupWise)]
    assert [math.copysign(1, x) for x in floats(found)] == [1.0] * len(found) != []


def test_halves_and_punctuation_of_one_key() -> None:
    schema = schema_of(pa.float64())
    first = Driver(PartialAggregate(Tumbling(10), COUNT, BY), schema)
    second = Driver(Consolidate(Tumbling(10), COUNT, BY, tuples=schema), *first.operator.schemas_out)
    for message in (
        page_of(schema, [-0.0]),
        page_of(schema, [0.0]),
        GroupWise.of({"x": [-0.0]}, [10]),
        Linear(10),
    ):
        for _, emitted in first.feed(0, message):
            second.feed(0, emitted)
    assert [row["n"] for row in second.rows()] == [2]
    assert check(second)


def test_a_column_without_one_stays_as_it_is() -> None:
    for values in ([1.5, 0.0, None, float("nan")], [[0.0]], [{"a": 1.0}], ["-0.0"], [-0]):
        column = pa.array(values)
        assert unsigned_zeros(column) is column
    assert str(unsigned_zeros(pa.array([-0.0, None, float("nan")])).to_pylist()) == "[0.0, None, nan]"
