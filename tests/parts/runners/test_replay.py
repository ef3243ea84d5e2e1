from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import NEVER, ContractError, Linear, Operator, Page, Schema, UsageError
from oop_engine.core.graphs.graph import Graph
from oop_engine.extend import Message
from oop_engine.runners.dispatch import Result
from oop_engine.runners.outcome import Outcome
from oop_engine.runners.replay import replay
from tests.parts.toys import Hold, Promise, chain, merged, page_of

Arrivals = list[tuple[int, int, int]]
"""Time, id and arrival of each tuple, in order of arrival."""


def pages(rows: Arrivals, size: int) -> list[Message]:
    parts = [rows[i : i + size] for i in range(0, len(rows), size)]
    return [page_of([(ts, number) for ts, number, _ in part], [at for *_, at in part]) for part in parts]


def emitted(outcome: Outcome, sink: str = "sink") -> dict[int, int]:
    """When each tuple came out, by its id."""
    ids = outcome.results[sink].column("id").to_pylist()
    return dict(zip(ids, outcome.emitted[sink].tolist(), strict=True))


@st.composite
def traces(draw: st.DrawFn) -> Arrivals:
    now, rows = 100, []
    for number in range(draw(st.integers(0, 14))):
        now += draw(st.sampled_from([0, 1, 3, 17]))
        rows.append((now - draw(st.integers(0, 8)), number, now))
    return rows


def released(rows: Arrivals, slack: int, every: int) -> dict[int, int]:
    """By definition: a tuple comes out with the first arrival whose promise is past it, or at the end."""
    end = max((at for *_, at in rows), default=NEVER)
    out = {}
    for ts, number, at in rows:
        out[number] = min(
            (later for later, bound in _bounds(rows, slack, every) if later >= at and bound > ts), default=end
        )
    return out


def _bounds(rows: Arrivals, slack: int, every: int) -> Iterator[tuple[int, int]]:
    highest = NEVER
    for ts, _, at in rows:
        highest = max(highest, ts)
        yield at, (highest - slack) // every * every


@given(traces(), st.integers(1, 20))
def test_a_tuple_comes_out_with_the_arrival_that_releases_it(rows: Arrivals, size: int) -> None:
    outcome = replay(chain(Promise(8, 5), Hold()), {"source": pages(rows, size)}, check=True)
    assert emitted(outcome) == released(rows, 8, 5)
    assert outcome.tuples == len(rows)


@given(traces(), st.integers(1, 5), st.integers(1, 5), st.randoms(use_true_random=False))
def test_moments_do_not_depend_on_pages_or_sources(rows: Arrivals, one: int, other: int, random: Any) -> None:
    side = [random.random() < 0.5 for _ in rows]
    split = [[row for row, left in zip(rows, side, strict=True) if left is which] for which in (True, False)]

    def run(*sizes: int) -> Outcome:
        feeds = {name: pages(part, size) for name, part, size in zip("ab", split, sizes, strict=True)}
        return replay(merged(8, 5), feeds, check=True)

    whole = run(1000, 1000)
    for cut in (run(one, other), run(1, 1), run(1, 1000)):
        assert emitted(cut) == emitted(whole)
        assert cut.statistics.state == whole.statistics.state
    expected = {}
    for part, others in (split, split[::-1]):
        expected |= _of_both(part, others)
    assert emitted(whole) == expected


def _of_both(part: Arrivals, others: Arrivals) -> dict[int, int]:
    """The later of the two releases: of the own source, and of the other source's promise past it."""
    own = released(part, 8, 5)
    end = max((at for *_, at in others), default=NEVER)
    found = {}
    for ts, number, _ in part:
        theirs = min((at for at, bound in _bounds(others, 8, 5) if bound > ts), default=end)
        found[number] = max(own[number], theirs)
    return found


def test_ticks_come_on_the_grid_also_in_a_lull() -> None:
    rows = [(100, 0, 100), (101, 1, 101), (160, 2, 160)]
    outcome = replay(
        chain(Promise(50, 10, clock_every=20, lull=15), Hold()), {"source": pages(rows, 10)}, check=True
    )
    assert emitted(outcome) == {0: 140, 1: 140, 2: 160}  # 140 - 15 is past both, rounded to 120


@given(traces(), st.integers(1, 20), st.sampled_from([3, 20]))
def test_ticks_do_not_depend_on_pages(rows: Arrivals, size: int, every: int) -> None:
    def run(size: int) -> Outcome:
        return replay(chain(Promise(30, 5, clock_every=every, lull=9), Hold()), {"source": pages(rows, size)})

    assert emitted(run(size)) == emitted(run(1))


@pytest.mark.parametrize("on", ["inline", "local"])
def test_an_outcome_tells_everything(on: Literal["inline", "local"]) -> None:
    rows = [(ts, ts, ts + 3) for ts in range(100, 150)]
    counted: list[int] = []
    outcome = replay(chain(Promise(0), Hold()), {"source": pages(rows, 20)}, on=on, on_tuples=counted.append)
    assert counted == [20, 20, 10]
    assert outcome.tuples == 50
    assert outcome.results["sink"].schema.names == ["ts", "id"]
    assert sorted(outcome.results["sink"].column("id").to_pylist()) == list(range(100, 150))
    assert outcome.emitted["sink"].dtype == np.int64
    assert outcome.waited_s["sink"].dtype == np.float64
    assert len(outcome.waited_s["sink"]) == len(outcome.emitted["sink"]) == 50
    assert (outcome.waited_s["sink"] >= 0).all()
    assert outcome.statistics.edges["source -> o0"].tuples == 50
    assert outcome.statistics.operators["o1"].counts == {"held": 50}
    assert outcome.wall_s > 0
    assert outcome.cpu_s >= 0


def test_runners_agree_on_moments_of_one_source() -> None:
    rows = [(ts - ts % 7, ts, ts) for ts in range(100, 300)]
    found = [
        replay(chain(Promise(7), Hold()), {"source": pages(rows, 33)}, on=on) for on in ("inline", "local")
    ]  # type: ignore[arg-type]
    assert emitted(found[0]) == emitted(found[1])


def test_results_can_be_taken_as_they_come() -> None:
    results: list[Result] = []
    outcome = replay(chain(Promise(0), Hold()), {"source": pages([(1, 1, 1)], 1)}, on_result=results.append)
    assert outcome.results["sink"].num_rows == 0
    assert any(isinstance(r.message, Page) for r in results)


def test_nothing_in_nothing_out() -> None:
    outcome = replay(chain(Promise(0), Hold()), {"source": []})
    assert (outcome.tuples, outcome.results["sink"].num_rows) == (0, 0)
    assert outcome.emitted["sink"].tolist() == outcome.waited_s["sink"].tolist() == []


def test_a_promise_of_the_trace_comes_with_the_tuple_before_it() -> None:
    feed = [Linear(1), *pages([(5, 0, 10), (6, 1, 20)], 10), Linear(7), *pages([(9, 2, 90)], 1)]
    outcome = replay(chain(Promise(1000), Hold()), {"source": feed}, check=True)
    assert emitted(outcome) == {0: 20, 1: 20, 2: 90}


def test_a_feed_that_lies_is_caught() -> None:
    feed = [*pages([(5, 0, 10)], 1), Linear(7), *pages([(6, 1, 20)], 1)]
    with pytest.raises(ContractError, match="edge 'source -> o0': tuple"):
        replay(chain(Promise(0)), {"source": feed}, check=True)


@pytest.mark.parametrize(
    ("feeds", "got"),
    [([], "list"), ({"a": "log.csv", "b": []}, "log.csv"), ({"a": [], "b": Path("x")}, "PosixPath")],
)
def test_a_feed_is_no_file_and_feeds_have_names(feeds: Any, got: str) -> None:
    with pytest.raises(
        UsageError, match=rf"feeds must be rows by source, such as .*open_trace.*; got {got}$"
    ):
        replay(merged(0), feeds)


@pytest.mark.parametrize("feeds", [{}, {"a": []}, {"a": [], "b": [], "c": []}, {"x": [], "y": []}], ids=str)
def test_feeds_must_be_the_sources(feeds: dict[str, list[Message]]) -> None:
    with pytest.raises(
        UsageError, match=f"graph 'merged' has the sources a, b; got feeds for {', '.join(feeds) or 'none'}"
    ):
        replay(merged(0), feeds)


def test_flat_out_asks_for_no_time() -> None:
    class Timeless(Operator):
        makes_progress = True
        clock_every = 1

        def on_page(self, port: int, page: Page) -> Iterator[Any]:
            assert page.arrival is None
            yield 0, page

        def on_clock(self, now: int) -> Iterator[Any]:
            raise AssertionError(now)

    rows = [(ts, ts, ts) for ts in range(100)]
    outcome = replay(chain(Timeless(), Hold()), {"source": pages(rows, 30)}, flat_out=True)
    assert sorted(outcome.results["sink"].column("id").to_pylist()) == list(range(100))
    assert outcome.statistics.edges["source -> o0"].pages == 4


class Wall:
    """A wall clock that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.slept.append(seconds)
        self.now += seconds

    async def sleep_async(self, seconds: float) -> None:
        self.sleep(seconds)


def wall_of(patch: pytest.MonkeyPatch) -> Wall:
    """A wall clock for replays, and for nobody else in this process: other threads sleep too."""
    clock, module = Wall(), import_module("oop_engine.runners.replay")
    patch.setattr(import_module("oop_engine.runners.feeds.reading"), "perf_counter", lambda: clock.now)
    patch.setattr(module, "sleep", clock.sleep)
    patch.setattr(module, "sleep_async", clock.sleep_async)
    return clock


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    return wall_of(monkeypatch)


@pytest.mark.parametrize("on", ["inline", "local"])
def test_paced_a_tuple_goes_in_when_it_is_due(wall: Wall, on: Literal["inline", "local"]) -> None:
    rows = [(0, 0, 1000), (1, 1, 1060), (2, 2, 1060), (3, 3, 1240)]
    entered: list[tuple[float, int]] = []
    replay(
        chain(Promise(0)),
        {"source": pages(rows, 10)},
        on=on,
        speed=60,
        on_tuples=lambda n: entered.append((round(wall.now - 1000, 6), n)),
    )
    assert entered == [(0.0, 1), (1.0, 2), (4.0, 1)]
    assert sum(wall.slept) == pytest.approx(4.0)


@given(rows=traces(), every=st.sampled_from([None, 5, 20]), speed=st.sampled_from([1.0, 200.0, 10_000.0]))
def test_pace_changes_nothing_but_the_wall_time(rows: Arrivals, every: int | None, speed: float) -> None:
    def graph() -> Graph:
        return chain(Promise(30, 5, clock_every=every, lull=9), Hold())

    with pytest.MonkeyPatch.context() as patch:
        clock = wall_of(patch)
        paced = replay(graph(), {"source": pages(rows, 1000)}, speed=speed)
    assert emitted(paced) == emitted(replay(graph(), {"source": pages(rows, 1000)}))
    assert sum(clock.slept) <= (rows[-1][2] - rows[0][2]) / speed + 1e-6 if rows else not clock.slept


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan")])
def test_a_speed_is_above_zero(speed: float) -> None:
    with pytest.raises(UsageError, match=r"replay: --speed must be above 0 \(1 is real time\); got"):
        replay(chain(Hold()), {"source": []}, speed=speed)


def test_a_pace_needs_a_time() -> None:
    graph = Graph("rows")
    graph.sink("sink", graph.source("source", Schema({"n": pa.int64()}, "n", "rows")))
    with pytest.raises(
        UsageError, match="--speed needs a time; the progressing attribute is in 'rows': leave it out"
    ):
        replay(graph, {"source": []}, speed=1)


@pytest.mark.parametrize("on", ["inline", "local"])
def test_an_error_in_a_feed_comes_out_bare(on: Literal["inline", "local"]) -> None:
    def feed() -> Iterator[Message]:
        yield from pages([(1, 1, 1)], 1)
        raise EOFError("cut off")

    with pytest.raises(EOFError, match="cut off"):
        replay(chain(Promise(0), Hold()), {"source": feed()}, on=on)


@pytest.mark.parametrize("on", ["inline", "local"])
def test_feeds_are_read_only_as_fast_as_the_graph_goes(on: Literal["inline", "local"]) -> None:
    read, done = 0, 0
    most = 0

    def feed() -> Iterator[Message]:
        nonlocal read, most
        for number in range(500):
            read += 1
            most = max(most, read - done)
            yield page_of([(number, number)], [number])

    def count(result: Result) -> None:
        nonlocal done
        done += isinstance(result.message, Page)

    replay(chain(Operator(), Operator()), {"source": feed()}, on=on, on_result=count)
    assert (read, done) == (500, 500)
    assert most <= 2 * 16 + 5


@pytest.mark.parametrize("size", [1, 2])
def test_arrivals_that_go_back_are_refused(size: int) -> None:
    feed = pages([(1, 0, 10), (2, 1, 9)], size)
    with pytest.raises(
        ContractError, match=r"feed 'source': arrivals must not go back; got 9 .* after 10: sort"
    ):
        replay(chain(Operator()), {"source": feed})
