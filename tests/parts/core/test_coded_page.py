"""A page of codes is the page of its texts, whatever is done with it."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import Page, Schema
from oop_engine.core.late.coded_page import CodedPage
from oop_engine.core.page import concat
from oop_engine.operators import Count, Filter, Sum, Tumbling, WindowAggregate
from oop_engine.testing import END, Driver

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64(), "t": pa.string()}, "ts", "s")
ROWS = st.lists(
    st.tuples(st.integers(-3, 40), st.sampled_from(["a", "b", "", "ü", None]), st.sampled_from(["x", None])),
    min_size=1,
    max_size=20,
)


def both(
    rows: list[tuple[int, str | None, str | None]], arrival: np.ndarray[tuple[int], np.dtype[np.int64]] | None
) -> tuple[Page, CodedPage]:
    times, keys, texts = zip(*rows, strict=True)
    columns = {"ts": times, "k": keys, "v": range(len(rows)), "t": texts}
    plain = Page.of(SCHEMA, {name: list(column) for name, column in columns.items()}, arrival)
    coded = [c.dictionary_encode() if c.type == pa.string() else c for c in plain.batch.columns]
    return plain, CodedPage(SCHEMA, pa.RecordBatch.from_arrays(coded, names=SCHEMA.names), plain.arrival)


@given(ROWS, st.booleans(), st.data())
def test_it_is_the_page_of_its_texts(
    rows: list[tuple[int, str | None, str | None]], arrives: bool, data: st.DataObject
) -> None:
    plain, coded = both(rows, np.arange(len(rows)) if arrives else None)
    start = data.draw(st.integers(0, len(rows)))
    stop = data.draw(st.integers(start, len(rows)))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), np.bool_)
    steps: dict[str, Callable[[Page], Page]] = {
        "slice": lambda page: page.slice(start, stop),
        "filter": lambda page: page.filter(mask),
        "take": lambda page: page.take(np.flatnonzero(mask)[::-1]),
        "inside": lambda page: page.without_arrival(),
        "owned": lambda page: page.owned(),
        "copied": lambda page: page.copied(),
        "settled": lambda page: page.settled(),
        "pickled": lambda page: pickle.loads(pickle.dumps(page)),
        "twice": lambda page: concat(SCHEMA, [page, page]),
        "looked at": lambda page: page.slice(0, len(page)) if page.times.size >= 0 else page,
    }
    for name in data.draw(st.lists(st.sampled_from(sorted(steps)), max_size=4)):
        if len(plain) == len(mask) or name not in ("slice", "filter", "take"):
            plain, coded = steps[name](plain), steps[name](coded)  # type: ignore[assignment]
    assert coded.times.tolist() == plain.times.tolist()
    assert (coded.arrival is None) == (plain.arrival is None)
    assert coded.arrival is None or coded.arrival.tolist() == plain.arrival.tolist()  # type: ignore[union-attr]
    assert [coded.key(name).null_count for name in SCHEMA.names] == [
        plain.column(name).null_count for name in SCHEMA.names
    ]
    assert all(coded.column(name).equals(plain.column(name)) for name in SCHEMA.names)
    assert coded == plain
    assert coded.batch.schema == SCHEMA.fields
    assert len(coded) == len(plain)
    assert coded.nbytes == plain.nbytes


@pytest.mark.parametrize("by", [("k",), ("k", "t"), ("v", "k"), ()])
@given(rows=ROWS)
def test_operators_answer_as_for_texts(
    by: tuple[str, ...], rows: list[tuple[int, str | None, str | None]]
) -> None:
    asked = {"n": Count(), "s": Sum("v")}
    plain, coded = both(rows, None)
    for make in (
        lambda: WindowAggregate(Tumbling(7), asked, by=by),
        lambda: Filter(pc.field("t") == "x"),
    ):
        found = []
        for page in (plain, coded):
            driver = Driver(make(), SCHEMA)
            out = [driver.feed(0, page), driver.feed(0, page.slice(0, 1)), driver.feed(0, END)]
            found.append(
                [[(port, m.to_pylist() if isinstance(m, Page) else m) for port, m in each] for each in out]
            )
        assert found[0] == found[1]
