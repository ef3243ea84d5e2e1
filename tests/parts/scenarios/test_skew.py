from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import Page
from oop_engine.lab.comparison import compare
from oop_engine.lab.scenario import Sweep
from oop_engine.scenarios.enorm.skew import BATCH, SCENARIO, feeds, keys_by_rank, shares
from oop_engine.spark.plan.balance import Balance
from oop_engine.spark.plan.key_groups import key_groups


@pytest.mark.slow
def test_all_claims_hold() -> None:
    compared = compare(
        replace(SCENARIO, sweep=Sweep("hot", (0.7, 0.85))), {"tuples": "600000", "keys": "500"}
    )
    assert len(compared.claims) == 4
    assert {c.claim: c.figures for c in compared.claims if not c.holds} == {}


def test_a_short_trace_has_no_claims_about_shards() -> None:
    assert len(compare(SCENARIO, {"tuples": "2000", "hot": "0.8"}).claims) == 2


@pytest.mark.parametrize("hot", [0.7, 0.8, 0.85])
def test_balanced_the_most_loaded_shard_has_much_less_to_do(hot: float) -> None:
    """Counted in tuples: at most 0.73 of before where 0.7 are hot, 0.64 at 0.8, 0.6 at 0.85."""
    values = SCENARIO.values({"hot": str(hot), "tuples": "600000"})
    before, after = shares(values, balanced=False), shares(values, balanced=True)
    assert after[0] == before[0] == pytest.approx(hot, abs=0.02)
    assert max(after[1:4]) <= {0.7: 0.73, 0.8: 0.64, 0.85: 0.6}[hot] * min(before[1:4])


def test_other_keys_are_hot_in_the_second_half() -> None:
    values = SCENARIO.values({"tuples": "100000"})
    pages = [page for page in feeds(values)["events"] if isinstance(page, Page)]
    place = np.concatenate([key_groups([page.column("key")], Balance().groups) % 2 for page in pages])
    assert place[:40_000].mean() == pytest.approx(0.2, abs=0.02)
    assert place[-40_000:].mean() == pytest.approx(0.8, abs=0.02)


def test_keys_are_different_and_the_first_is_hot() -> None:
    values = SCENARIO.values({"keys": "300"})
    keys = keys_by_rank(values, 1)
    assert len(set(keys.tolist())) == 300
    assert key_groups([pa.array(keys[:1])], Balance().groups)[0] % 2 == 1


def test_micro_batches_are_whole() -> None:
    values = SCENARIO.values({"tuples": str(3 * BATCH)})
    assert len(shares(values, balanced=False)) == 3
