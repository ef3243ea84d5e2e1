"""Disorder measured in runs, side by side: what the embedded profile measures in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import Page, Schema, write_trace
from oop_engine.pipeline.measure import measure
from oop_engine.pipeline.segmented import Segmented, segment_name
from oop_engine.traces import profile

SCHEMA = Schema({"ts": pa.int64(), "link": pa.string(), "key": pa.int64()}, "ts", "ms")
Rows = list[tuple[int, str | None, int]]


def here(jobs: Sequence[Any], work: Callable[[Any], Any]) -> list[Any]:
    return [work(job) for job in jobs]


def sliced(folder: Path, slices: list[Rows]) -> tuple[Segmented, list[Page]]:
    pages = [
        Page.of(SCHEMA, dict(zip(SCHEMA.names, zip(*rows, strict=True), strict=True)))
        for rows in slices
        if rows
    ]
    for number, rows in enumerate(slices):
        if rows:
            page = Page.of(SCHEMA, dict(zip(SCHEMA.names, map(list, zip(*rows, strict=True)), strict=True)))
            write_trace(folder / segment_name(number), SCHEMA, [page])
    return Segmented(str(folder), SCHEMA, None, (None,) * len(slices)), pages


row = st.tuples(st.integers(-50, 5000), st.sampled_from(["a", "b", None]), st.integers(0, 3))


@settings(max_examples=40)
@given(st.lists(st.lists(row, max_size=12), min_size=1, max_size=7), st.integers(1, 5), st.booleans())
def test_runs_put_together_are_the_embedded_profile(slices: list[Rows], tasks: int, grouped: bool) -> None:
    by = ("link", "key") if grouped else ()
    with TemporaryDirectory() as name:
        source, pages = sliced(Path(name), slices)
        found = measure(here, {"all": source}, by, Path(name) / "left", tasks)["all"].profile
    whole = profile(pages, SCHEMA, by)
    for what in ("tuples", "unit", "lateness", "by", "own_lateness", "groups_known", "groups"):
        assert getattr(found, what) == getattr(whole, what), what
    if whole.tuples:
        assert (found.first, found.last, found.rate) == (whole.first, whole.last, whole.rate)
