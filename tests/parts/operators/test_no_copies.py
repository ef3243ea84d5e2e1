"""Columns that an operator does not change are passed on, not copied: their buffers are the same memory."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import Operator, Page, Schema
from oop_engine.operators import Filter, Meld, Project
from oop_engine.testing import Driver
from oop_engine.thesis import Merge

SCHEMA = Schema(
    {"ts": pa.int64(), "k": pa.string(), "x": pa.float64(), "d": pa.dictionary(pa.int8(), pa.string())},
    "ts",
    "s",
)
ROWS = {"ts": [1, 2, 3, 4], "k": ["a", None, "b", "c"], "x": [1.5, 2, None, 4], "d": ["u", "v", "u", "v"]}
WHOLE = Page.of(SCHEMA, ROWS)
PART = WHOLE.slice(1, 3)


def places(column: pa.Array) -> list[tuple[int, int] | None]:
    dictionary = column.dictionary.buffers() if pa.types.is_dictionary(column.type) else []
    return [buffer and (buffer.address, buffer.size) for buffer in (*column.buffers(), *dictionary)]


@pytest.mark.parametrize("page", [WHOLE, PART], ids=["a page", "a slice"])
@pytest.mark.parametrize(
    ("operator", "kept"),
    [
        (Meld(1), {name: name for name in SCHEMA.names}),
        (Filter(pc.field("ts") > 0), {name: name for name in SCHEMA.names}),
        (Project(["d", "ts", "k"]), {"d": "d", "ts": "ts", "k": "k"}),
        (Project({"at": "ts", "key": "k", "twice": pc.field("x") * 2}), {"at": "ts", "key": "k"}),
        (
            Project({"ts": "ts", "half": lambda batch: pc.divide(batch["x"], 2.0), "x": "x"}),
            {"ts": "ts", "x": "x"},
        ),
        (Merge(1), {name: name for name in SCHEMA.names}),
    ],
    ids=["Meld", "Filter", "Project", "Project, computed", "Project, by a function", "Merge"],
)
def test_buffers_are_passed_on(operator: Operator, kept: dict[str, str], page: Page) -> None:
    said = Driver(operator, SCHEMA).feed(0, page)
    [out] = [message for _, message in said if isinstance(message, Page)]
    assert len(out) == len(page)
    for name, source in kept.items():
        assert places(out.column(name)) == places(page.column(source)), name
        assert out.column(name).offset == page.column(source).offset
