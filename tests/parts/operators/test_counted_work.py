"""The Python calls of a page and of a bound: they do not grow with tuples or groups, for kernels do that work."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import Linear, Page, Schema
from oop_engine.core.operator import Operator
from oop_engine.operators import Count, Max, Sliding, Sum, Tumbling, WindowAggregate
from oop_engine.system.kernel import numba
from oop_engine.windows import TupleBased
from tests.laws.test_calls import calls

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()}, "ts", "s")
ASKED = {"n": Count(), "s": Sum("v")}
MORE = 50  # calls, where a table has to grow


@pytest.fixture(autouse=True)
def by_numba() -> None:
    """Let Numba call kernels, as it does once they have been called often, in whatever order tests run."""
    numba()


def page(rows: int, groups: int) -> Page:
    times = np.random.default_rng(1).integers(0, 1000, rows)
    return Page.of(SCHEMA, {"ts": times, "k": np.arange(rows) % groups, "v": times})


def of_page(operator: Operator, given: Page) -> int:
    return len(calls(lambda: list(operator.on_page(0, given))))


def of_bound(operator: Operator, below: int) -> int:
    return len(calls(lambda: list(operator.on_punctuation(0, Linear(below)))))


def adaptive() -> Operator:
    return WindowAggregate(Sliding(100, 10), ASKED, by=("k",), strategy="adaptive").opened(SCHEMA)


def shared() -> Operator:
    return WindowAggregate({"a": Tumbling(100), "b": Tumbling(200)}, ASKED, by=("k",)).opened(SCHEMA)


def test_a_page_takes_an_adaptive_store_as_many_calls_whatever_its_rows() -> None:
    operator = adaptive()
    found = [of_page(operator, page(rows, 20)) for rows in (50, 1000, 50, 1000)]
    assert found[-1] < found[-2] + MORE


def test_a_page_takes_shared_slices_as_many_calls_whatever_its_groups() -> None:
    operators = [shared(), shared()]
    few, many = (
        [of_page(one, page(2000, n)) for _ in range(3)] for one, n in zip(operators, (10, 1000), strict=True)
    )
    assert many[-1] < few[-1] + MORE


def test_a_bound_takes_as_many_calls_whatever_the_tuples_that_it_passes() -> None:
    found = []
    for rows in (1000, 20_000, 1000, 20_000):
        operator = WindowAggregate(TupleBased(rows, rows, order="time"), ASKED).opened(SCHEMA)
        list(operator.on_page(0, page(rows, 1)))
        found.append(of_bound(operator, 1000))
    assert found[-1] < found[-2] + MORE


def test_rows_that_slide_take_as_many_calls_whatever_the_rows_of_a_page() -> None:
    found = []
    for rows in (200, 5000, 200, 5000):
        operator = WindowAggregate(TupleBased(64, 1), {"most": Max("v")}).opened(SCHEMA)
        found.append(of_page(operator, page(rows, 1)) + of_bound(operator, 1000))
    assert found[-1] < found[-2] + MORE


def test_no_bound_takes_many_more_calls_than_another_that_closes_as_many_windows() -> None:
    """Two stacks turn once in a window; the turn is in a kernel."""
    operator = WindowAggregate(Sliding(100, 1), {"most": Max("v")}, strategy="panes").opened(SCHEMA)
    list(operator.on_page(0, page(1000, 1)))
    found = list(map(partial(of_bound, operator), range(100, 1000)))[20:]
    assert max(found) < np.median(found) + MORE


def test_more_aggregates_do_not_read_the_names_of_all_columns_more_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read, names = list[Schema](), vars(Schema)["names"]

    def counted(schema: Schema) -> list[str]:
        read.append(schema)
        found: list[str] = names.fget(schema)
        return found

    monkeypatch.setattr(Schema, "names", property(counted))
    counts = []
    for many in (10, 300):
        columns = [f"v{number}" for number in range(many)]
        schema = Schema({"ts": pa.int64(), **dict.fromkeys(columns, pa.int64())}, "ts", "s")
        read.clear()
        WindowAggregate(Tumbling(10), {f"of_{name}": Sum(name) for name in columns}).opened(schema)
        counts.append(len(read))
    assert counts[0] == counts[1]
