"""A query is changed: nodes come and go beside those of a checkpoint, which go on exactly once."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Graph, Page, Schema, UsageError, serve
from oop_engine.extend import LiveSink
from oop_engine.operators import BoundedDisorder, Count, Meld, Punctuate, Sum, Tumbling, WindowAggregate
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import Gathered
from oop_engine.sources import Replayed

SCHEMA = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "s")


def graph(*more: str) -> Graph:
    """Counts in windows of ten; each name adds a part: a second query, a sink, a source."""
    made = Graph("g")
    edge = made.add("edge", Punctuate(BoundedDisorder(5)), made.source("in", SCHEMA))
    counts = made.add("count", WindowAggregate(Tumbling(10), {"n": Count()}), edge)
    made.sink("n", counts)
    if "query" in more:
        made.sink("v", made.add("total", WindowAggregate(Tumbling(10), {"v": Sum("v")}), edge))
    if "sink" in more:
        made.sink("copy", counts)
    if "source" in more:
        other = made.add("other-edge", Punctuate(BoundedDisorder(5)), made.source("other", SCHEMA))
        made.sink("others", made.add("count-others", WindowAggregate(Tumbling(10), {"n": Count()}), other))
    if "changing" in more:
        made.sink(
            "c",
            made.add("may-change", WindowAggregate({"w": Tumbling(10)}, {"n": Count()}, changing=True), edge),
        )
    if "both" in more:
        done = made.source("done", SCHEMA)
        made.sink("first", done)
        if "join" in more:
            melded = made.add("meld", Meld(2), done, edge)
            made.sink("melded", made.add("of-both", WindowAggregate(Tumbling(10), {"n": Count()}), melded))
    return made


SINKS = {
    "query": ["v"],
    "sink": ["copy"],
    "source": ["others"],
    "changing": ["c"],
    "both": ["first"],
    "join": ["melded"],
}


class Life:
    """A service that is started again and again over one checkpoint, into sinks that stay."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sinks: dict[str, LiveSink] = {}

    def __call__(self, *more: str, last: int, **options: Any) -> Any:
        names = ["n", *(name for each in more for name in SINKS[each])]
        sinks = {name: self.sinks.setdefault(name, Gathered()) for name in names}
        stop = asyncio.Event()
        lasts = {"in": last} | ({"other": last} if "source" in more else {})
        still = {*lasts}

        def up_to(name: str) -> Replayed:
            async def feed(start: int) -> AsyncIterator[Any]:
                for ts in range(start, lasts[name]):
                    yield {"ts": ts, "v": 1}
                still.discard(name)
                if not still:
                    stop.set()
                await asyncio.Event().wait()

            return Replayed(feed)

        async def done(start: int) -> AsyncIterator[Any]:
            for ts in range(start, 3):
                yield {"ts": ts, "v": 1}

        sources = {name: up_to(name) for name in lasts}
        sources |= {"done": Replayed(done)} if "both" in more else {}
        options = {"checkpoint": self.folder, "stop": stop, "signals": False, **options}
        return run_async(serve(graph(*more), sources, sinks, **options))

    def found(self, sink: str, column: str = "n") -> dict[int, int]:
        rows = self.sinks[sink].rows  # type: ignore[attr-defined]
        assert len({row["window_end"] for row in rows}) == len(rows)
        return {row["window_end"]: row[column] for row in rows}


def whole(*ends: int) -> dict[int, int]:
    return dict.fromkeys(ends, 10)


def test_what_is_added_begins_empty_and_the_rest_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    life = Life(tmp_path)
    life("both", last=33)
    life("both", "query", "sink", "source", "changing", "join", last=63)
    assert "new sources, read from their beginning: 'other'" in caplog.text
    assert (
        "'v', 'copy', 'others', 'c', 'of-both', 'melded'; their first windows lack the rows before"
        in caplog.text
    )
    life("both", "query", "sink", "source", "changing", "join", last=80, drain=True)
    assert life.found("n") == whole(10, 20, 30, 40, 50, 60, 70, 80)
    assert life.found("copy") == whole(30, 40, 50, 60, 70, 80)
    assert life.found("v", "v") == {40: 7, **whole(50, 60, 70, 80)}
    assert life.found("c") == {40: 7, **whole(50, 60, 70, 80)}
    assert life.found("melded") == {40: 7, **whole(50, 60, 70, 80)}  # its other source had ended before
    assert life.found("others") == whole(10, 20, 30, 40, 50, 60, 70, 80)
    assert len(life.sinks["first"].rows) == 3  # type: ignore[attr-defined]


def test_what_is_taken_away_is_named_with_what_it_keeps(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    life = Life(tmp_path)
    life("query", "sink", "source", last=33)
    with pytest.raises(UsageError, match=r"--without-state-of total .* which discards .* of 'total'") as told:
        life(last=63)
    kept = r"2 partial aggregates, 1 group \([\d,]+ bytes\) in 2 open windows from 20 s to 40 s of 'total'"
    assert re.search(kept, str(told.value))
    gone = ["total", "v", "copy", "other", "other-edge", "count-others", "others"]
    life(last=63, without_state_of=gone)
    assert re.search(kept, caplog.text)
    with pytest.raises(UsageError, match="no node 'total' to restart"):
        life(last=70, without_state_of=["total"])
    life(last=80, drain=True)
    assert life.found("n") == whole(10, 20, 30, 40, 50, 60, 70, 80)


def test_a_sink_is_taken_away_after_a_kill_only_when_its_results_may_be_lost(tmp_path: Path) -> None:
    class Dies(Gathered):
        async def commit(self, prepared: Any) -> None:
            raise ConnectionAbortedError

    life = Life(tmp_path)
    life.sinks["copy"] = Dies()
    with pytest.raises(ConnectionAbortedError):
        life("sink", last=33)
    with pytest.raises(
        UsageError, match="discards the last results of sink 'copy', which may not be visible yet"
    ):
        life(last=63, without_state_of=[])
    life(last=80, without_state_of=["copy"], drain=True)
    assert life.found("n") == whole(10, 20, 30, 40, 50, 60, 70, 80)


def test_a_drained_service_goes_on_from_its_positions(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    life = Life(tmp_path)
    life("sink", last=33, drain=True)
    with pytest.raises(
        UsageError, match=r"resume from the same positions.*--after-drain \(after_drain=True\)"
    ):
        life("sink", last=63)
    caplog.set_level(logging.WARNING)
    assert life(last=63, after_drain=True).tuples == {
        "in": 30
    }  # also another graph: nothing is kept of the first
    assert "resumes after its drain" in caplog.text
    with pytest.raises(UsageError, match="was not drained"):
        life(last=70, after_drain=True)
    life(last=70, drain=True)
    ends = [row["window_end"] for row in life.sinks["n"].rows]  # type: ignore[attr-defined]
    assert ends == [10, 20, 30, 40, 40, 50, 60, 70]  # the window that the drain cut has two parts


def test_each_life_without_a_checkpoint_has_a_name_of_its_own() -> None:
    """Else a sink that keeps the number of an epoch under a name takes the epochs of a second life for done."""
    runs = []

    class Named(Gathered):
        async def open(self, schema: Schema, run: str, prepared: Any) -> None:
            runs.append(run)
            await super().open(schema, run, prepared)

        async def forget(self) -> None:
            runs.append(f"forget {self._run}")

    async def feed() -> AsyncIterator[Page]:
        yield Page.of(SCHEMA, {"ts": [1], "v": [1]})

    for _ in range(2):
        run_async(serve(graph(), {"in": feed()}, {"n": Named()}, signals=False))
    first, forgotten, second, _ = runs
    assert first != second
    assert forgotten == f"forget {first}"
