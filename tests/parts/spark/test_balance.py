"""Assignments of key groups to shards: what the balancer makes of them, and that results are always the same."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oop_engine import Graph, Page, Schema, UsageError, replay
from oop_engine.operators.aggregates import Avg, Count, Sum
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.meld import Meld
from oop_engine.operators.policies.policies import BoundedDisorder, PerGroup
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Sliding, Tumbling
from oop_engine.spark.io.sinks import ForeachBatch
from oop_engine.spark.plan.assignments import AssignmentFolder, Control
from oop_engine.spark.plan.balance import (
    Assignments,
    Balance,
    Balancer,
    even_assignment,
    loads_of_shards,
    rebalanced,
    unevenness,
)
from oop_engine.spark.plan.cut import cut
from oop_engine.spark.plan.key_groups import key_groups
from oop_engine.spark.plan.pieces import SHARDS, Cut
from oop_engine.spark.plan.two_level import scaled
from oop_engine.spark.run import BatchDone, SparkOutcome, pieces_of, run_on_spark
from oop_engine.testing import multiset
from tests.laws.test_random_graphs import SCHEMA as RANDOM
from tests.laws.test_random_graphs import Built, graphs, pages
from tests.parts.spark.staged import Given, Rows, Staged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()}, "ts", "s")
GROUPS = 16


@st.composite
def loaded(draw: st.DrawFn) -> tuple[tuple[int, ...], list[int], int]:
    """Return an assignment, the load of each group, and how many shards there are."""
    shards = draw(st.integers(1, 5))
    loads = draw(st.lists(st.integers(0, 100) | st.integers(0, 10**12), min_size=1, max_size=20))
    places = draw(st.lists(st.integers(0, shards - 1), min_size=len(loads), max_size=len(loads)).map(tuple))
    return places, loads, shards


@given(loaded())
def test_rebalanced_is_never_worse_and_leaves_nothing_to_improve(
    given: tuple[tuple[int, ...], list[int], int],
) -> None:
    places, loads, shards = given
    found = rebalanced(places, loads, shards)
    assert len(found) == len(places)
    assert set(found) <= set(range(shards))
    before, after = loads_of_shards(places, loads, shards), loads_of_shards(found, loads, shards)
    assert after.sum() == before.sum() == sum(loads)
    assert after.max() <= before.max()
    least = min(
        (loads[g] for g, shard in enumerate(found) if shard == after.argmax() and loads[g]), default=0
    )
    assert after.max() - after.min() <= least or not any(loads)
    assert rebalanced(found, loads, shards) == found


def test_a_single_hot_group_is_alone_in_the_end() -> None:
    assert rebalanced((0, 0, 0, 1), [100, 10, 10, 10], 2) == (1, 0, 0, 0)
    assert rebalanced((0, 1), [100, 10], 2) == (0, 1)


def test_a_single_hot_group_is_said_to_be_indivisible() -> None:
    balancer = Balancer(Balance(), {3: (0, 0, 0, 1)}, 2)
    assert balancer.take(7, {3: [100, 10, 10, 10]})
    (move,) = balancer.moves
    assert (move.batch, move.component, move.groups, move.indivisible) == (7, 3, 2, 0)
    assert move.after == pytest.approx(100 / 65)
    assert not balancer.take(8, {3: [100, 10, 10, 10]})


def test_even_loads_move_nothing() -> None:
    balancer = Balancer(Balance(threshold=1.2), {0: even_assignment(8, 2)}, 2)
    assert not balancer.take(0, {0: [11, 9] * 4})
    assert balancer.moves == []


def test_a_peak_of_one_batch_moves_nothing() -> None:
    balancer = Balancer(Balance(memory=0.8), {0: even_assignment(4, 2)}, 2)
    assert not balancer.take(0, {0: [10, 10, 10, 10]})
    assert not balancer.take(1, {0: [20, 10, 20, 10]})
    assert not balancer.take(2, {0: [10, 10, 10, 10]})


def test_loads_of_chance_do_not_flap() -> None:
    """Zipf keys: once they are spread, what differs from batch to batch is no reason to move."""
    chance = np.random.default_rng(1)
    share = 1 / np.arange(1, 65)
    balancer = Balancer(Balance(), {0: tuple(int(group >= 16) for group in range(64))}, 2)
    for batch in range(50):
        balancer.take(batch, {0: chance.multinomial(1000, share / share.sum()).tolist()})
    assert [move.batch for move in balancer.moves] == [0]
    assert balancer.moves[0].before > 1.4
    assert balancer.moves[0].after < 1.05


def test_what_becomes_hot_later_is_moved_too() -> None:
    balancer = Balancer(Balance(), {0: even_assignment(8, 2)}, 2)
    moved = [balancer.take(batch, {0: [10] * 8}) for batch in range(3)]
    moved += [balancer.take(batch, {0: [90, 10, 90, 10, 90, 10, 10, 10]}) for batch in range(3, 9)]
    assert moved.count(True) <= 2
    assert unevenness(balancer.assignments[0], [90, 10, 90, 10, 90, 10, 10, 10], 2) < 1.25


@pytest.mark.parametrize("wrong", [{"threshold": 1.0}, {"groups": 1}, {"memory": 1.0}, {"memory": -0.1}])
def test_values_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Balance(**wrong)  # type: ignore[arg-type]


def test_versions_of_assignments_are_kept_and_old_ones_forgotten(tmp_path: Path) -> None:
    folder = AssignmentFolder(str(tmp_path / "maps"))
    assert folder.newest() == -1
    for version in range(20):
        folder.add({2: (0, version % 2)})
        assert folder.newest() == version
    assert folder.read(19) == {2: (0, 1)}
    assert len(list((tmp_path / "maps").iterdir())) == 16


def balanced(shards: int = 2) -> Cut:
    return pieces_of(graph(), groups=3, balance=True, shards=shards)


def test_control_goes_on_from_the_newest_assignment(tmp_path: Path) -> None:
    pieces = balanced()
    first, second = (component.number for component in pieces.at(SHARDS))
    control = Control(Balance(groups=4), pieces, str(tmp_path))
    control.take(0, {first: [9, 1, 9, 1], second: [1, 1, 1, 1]})
    folder = AssignmentFolder(str(tmp_path))
    assert folder.newest() == 1
    assert folder.read(0) == {first: (0, 1, 0, 1), second: (0, 1, 0, 1)}
    Control(Balance(groups=4), pieces, str(tmp_path))
    assert folder.newest() == 1
    Control(Balance(groups=8), pieces, str(tmp_path))
    assert folder.read(2)[first] == even_assignment(8, 2)


def graph() -> Graph:
    """Promises for single keys and for all of them, two sources, and a total behind."""
    made = Graph("balanced")
    policies = {"a": PerGroup(BoundedDisorder(4), by=("k",)), "b": BoundedDisorder(4)}
    edges = [
        made.add(f"{name}-edge", Punctuate(policy, granularity=5), made.source(name, SCHEMA))
        for name, policy in policies.items()
    ]
    by_key = WindowAggregate(Sliding(10, 5), {"n": Count(), "sum": Sum("v"), "mean": Avg("v")}, by=("k",))
    per_key = made.add("per-key", by_key, made.add("union", Meld(2), *edges))
    made.sink("keys", per_key)
    total = WindowAggregate(Tumbling(20), {"n": Sum("n"), "keys": Count()})
    made.sink("all", made.add("total", total, per_key))
    return made


def skewed(seed: int, rows: int = 400) -> list[Page]:
    """Return pages of which four in five tuples have a key that an even assignment puts on shard 0."""
    chance = np.random.default_rng(seed)
    keys = np.arange(200)
    first = key_groups([pa.array(keys)], GROUPS) % 2 == 0
    drawn = np.where(
        chance.random(rows) < 0.8, chance.choice(keys[first], rows), chance.choice(keys[~first], rows)
    )
    times = np.arange(rows) // 4 - chance.integers(0, 4, rows)
    columns = {"ts": times, "k": drawn, "v": chance.integers(0, 50, rows)}
    whole = Page.of(SCHEMA, columns, np.arange(rows) // 4 + 1)
    return [whole.slice(at, min(at + 50, rows)) for at in range(0, rows, 50)]


def feeds() -> dict[str, list[Page]]:
    return {"a": skewed(1), "b": skewed(2, 330)}


def assert_equal(found: Mapping[str, Rows], expected: dict[str, pa.Table]) -> None:
    for name, table in expected.items():
        assert multiset(found[name]) == multiset(table.to_pylist()), name


def chance_assignments(pieces: Cut, shards: int, seed: int) -> Assignments:
    """Return assignments of chance."""
    draw = random.Random(seed)
    return {c.number: tuple(draw.randrange(shards) for _ in range(GROUPS)) for c in pieces.at(SHARDS)}


def test_shards_are_at_a_level_of_their_own() -> None:
    pieces = balanced(shards=3)
    assert [(c.nodes, c.groups) for c in pieces.at(SHARDS)] == [
        (("per-key-partial-0",), 3),
        (("per-key-partial-1",), 3),
    ]
    assert [chain.nodes for chain in pieces.chains] == [("a-edge",), ("b-edge",)]
    merged = pieces.at(1)[0]
    assert merged.nodes[:2] == ("union", "per-key")
    assert [(pieces.edges[n].channels, pieces.edges[n].owner) for n in merged.inlets] == [(3, ("k",))] * 2


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_other_assignments_in_every_micro_batch_change_nothing(shards: int) -> None:
    pieces, seeds = balanced(shards), iter(range(1000))
    sources = {name: Given(SCHEMA, [[page] for page in given]) for name, given in feeds().items()}
    staged = Staged(pieces, sources, assignments=lambda: chance_assignments(pieces, shards, next(seeds)))
    assert_equal(staged.run(per_batch=1), replay(graph(), feeds()).results)


@pytest.mark.slow
def test_random_graphs() -> None:
    @settings(suppress_health_check=[HealthCheck.too_slow])
    @given(graphs(), st.data())
    def holds(built: Built, data: st.DataObject) -> None:
        sources = {n: Given(RANDOM, [[page] for page in pages(feed, 3)]) for n, feed in built.feeds.items()}
        twin, in_shards = scaled(built.graph, balance=True)
        shards, seeds = data.draw(st.integers(1, 3)), iter(range(1000))
        pieces = cut(twin, groups=2, shards=shards, in_shards=in_shards)
        staged = Staged(pieces, sources, assignments=lambda: chance_assignments(pieces, shards, next(seeds)))
        found = staged.run(data.draw(st.integers(1, 5)))
        for number, told in enumerate(built.told):
            assert multiset(found[f"sink{number}"]) == multiset(told.rows)

    holds()


@pytest.mark.slow
@pytest.mark.spark
def test_on_spark_other_assignments_in_every_micro_batch_and_a_restart_change_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A batch that fails after its results were written is run again under the assignment that it had."""
    assignments, found, again = (
        AssignmentFolder(str(tmp_path / "maps")),
        dict[int, dict[str, pa.Table]](),
        list[int](),
    )

    def keep(tables: dict[str, pa.Table], batch: int) -> None:
        if batch in found:
            again.append(batch)
            assert all(
                multiset(found[batch][n].to_pylist()) == multiset(t.to_pylist()) for n, t in tables.items()
            )
        found[batch] = tables

    def next_assignment(done: BatchDone) -> None:
        assignments.add(chance_assignments(balanced(), 2, done.number))
        if done.number == 2 and not again:
            raise RuntimeError("killed")

    def run() -> SparkOutcome:
        return run_on_spark(
            graph(),
            feeds(),
            spark=spark,
            balance=Balance(threshold=100, groups=GROUPS),
            checkpoint=tmp_path,
            sink=ForeachBatch(keep),
            on_batch=next_assignment,
            segment_rows=100,
            segments_per_batch=2,
        )

    with pytest.raises(Exception, match="killed"):
        run()
    outcome = run()
    assert again == [2]
    assert outcome.tuples == 730
    results = {
        name: [row for tables in found.values() for row in tables[name].to_pylist()]
        for name in ("keys", "all")
    }
    assert_equal(results, replay(graph(), feeds()).results)
    versions = [json.loads(path.read_text().splitlines()[-1])["(map)"] for path in wal(tmp_path)]
    assert versions == [0, 1, 2, 4, 5][: len(versions)]


def wal(checkpoint: Path) -> list[Path]:
    """Return what Spark has written down of each micro-batch."""
    files = (path for path in (checkpoint / "spark" / "offsets").iterdir() if path.name.isdigit())
    return sorted(files, key=lambda path: int(path.name))


@pytest.mark.slow
@pytest.mark.spark
def test_on_spark_groups_are_moved_until_shards_are_even(spark: SparkSession) -> None:
    outcome = run_on_spark(
        graph(),
        feeds(),
        spark=spark,
        balance=Balance(groups=GROUPS, memory=0),
        segment_rows=150,
        segments_per_batch=1,
    )
    assert_equal({n: t.to_pylist() for n, t in outcome.results.items()}, replay(graph(), feeds()).results)
    assert outcome.moves[0].batch == 0
    assert all(move.after < 1.2 < move.before for move in outcome.moves)
    assert sum(shard.tuples for batch in outcome.batches for shard in batch.shards) == outcome.tuples
    first, second = (worst(batch) for batch in outcome.batches[:2])
    assert first > 1.4
    assert second < 1.3


def worst(batch: BatchDone) -> float:
    """Return the tuples of the most loaded shard as a multiple of the mean."""
    tuples = [0, 0]
    for shard in batch.shards:
        tuples[shard.shard] += shard.tuples
    return max(tuples) * 2 / sum(tuples)
