"""Watermarks: the soft bound beside the promise, at the edge and through operators."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import FOREVER, NEVER, ContractError, GraphError, GroupWise, Linear, Page, Schema, Watermark
from oop_engine.core.graphs.contract import EdgeContract
from oop_engine.core.saved import Saved
from oop_engine.extend import Policy, Progress
from oop_engine.operators import (
    Band,
    BoundedDisorder,
    Distinct,
    Meld,
    OAJoin,
    Ordered,
    PerGroup,
    Project,
    PrunePunctuation,
    Punctuate,
    Tumbling,
)
from oop_engine.policies import BoundedCount, ByQuantile
from oop_engine.testing import Driver
from oop_engine.thesis import Bucket

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")


def page(*times: int, k: str = "a") -> Page:
    return Page.of(SCHEMA, {"ts": list(times), "k": [k] * len(times)}, list(range(len(times))))


def soft(below: int, **group: str) -> Watermark:
    of = GroupWise.of({name: [key] for name, key in group.items()}, [below]) if group else Linear(below)
    return Watermark(of)


def said(driver: Driver, port: int, message: Page | Linear | GroupWise | Watermark) -> list[object]:
    """What is put out for a message but pages."""
    return [out for _, out in driver.feed(port, message) if not isinstance(out, Page)]


def test_two_policies_at_the_edge() -> None:
    driver = Driver(Punctuate(BoundedDisorder(20), granularity=10, watermark=BoundedDisorder(5)), SCHEMA)
    assert said(driver, 0, page(16)) == [Linear(-10), soft(10)]
    assert said(driver, 0, page(9)) == []
    assert driver.operator.counts() == {"late": 0, "allowed_late": 1}
    assert said(driver, 0, page(36)) == [Linear(10), soft(30)]
    assert driver.feed(0, page(9)) == []
    assert driver.operator.counts() == {"late": 1, "allowed_late": 1}


@pytest.mark.parametrize("granularity", [None, 10])
def test_where_pages_end_does_not_matter_to_what_is_late(granularity: int | None) -> None:
    draw = random.Random(3)
    times = [max(0, i - draw.choice([0, 0, 3, 9, 40])) for i in range(200)]
    edge = Punctuate(BoundedDisorder(20), granularity, watermark=BoundedDisorder(5))
    found = []
    for cut in (1, 7, 200):
        driver = Driver(edge, SCHEMA)
        for start in range(0, 200, cut):
            driver.feed(0, page(*times[start : start + cut]))
            driver.move()
        found.append(driver.operator.counts())
    assert found[0]["late"] > 0 < found[0]["allowed_late"]
    assert found[1:] == found[:1] * 2


@pytest.mark.parametrize("granularity", [None, 10])
@pytest.mark.parametrize(
    ("policy", "watermark"),
    [
        (BoundedDisorder(20), BoundedDisorder(5)),
        (BoundedDisorder(5), BoundedDisorder(20)),  # a watermark behind punctuation says nothing
        (BoundedDisorder(20), BoundedCount(4)),
        (BoundedCount(9), BoundedDisorder(5)),
        (BoundedDisorder(20), ByQuantile(0.8, rows=10)),
        (BoundedDisorder(20), PerGroup(BoundedDisorder(3), ("k",), linear=BoundedDisorder(8))),
        (PerGroup(BoundedDisorder(9), ("k",), linear=BoundedDisorder(20)), BoundedDisorder(5)),
    ],
)
def test_tuples_of_a_whole_page_are_late_as_those_that_come_one_by_one(
    policy: Policy, watermark: Policy, granularity: int | None
) -> None:
    draw = random.Random(f"{policy}, {watermark}")
    times = [max(0, i - draw.choice([0, 0, 3, 9, 40])) for i in range(300)]
    keys = [draw.choice("ab") for _ in times]
    found, said = [], []
    for cut, arrive in ((50, True), (1, False), (50, False), (300, False)):
        driver = Driver(Punctuate(policy, granularity, watermark=watermark), SCHEMA)
        for start in range(0, 300, cut):
            rows = slice(start, start + cut)
            arrivals = list(range(300))[rows] if arrive else None
            driver.feed(0, Page.of(SCHEMA, {"ts": times[rows], "k": keys[rows]}, arrivals))
            driver.move()
        found.append(driver.operator.counts())
        bounds = driver.punctuation(), [watermark.of for watermark in driver.watermarks()]
        said.append([last_linear(some) for some in bounds])
        assert any(isinstance(of, GroupWise) for of in bounds[1]) == isinstance(watermark, PerGroup)
    assert found[0]["late"] > 0
    assert found[1:] == found[:1] * 3
    assert said[1:] == said[:1] * 3


def last_linear(bounds: Iterable[object]) -> int | None:
    return max((one.below for one in bounds if isinstance(one, Linear)), default=None)


def test_watermarks_of_groups_at_the_edge() -> None:
    edge = Punctuate(PerGroup(BoundedDisorder(20), ("k",)), 10, watermark=PerGroup(Ordered(), ("k",)))
    driver = Driver(edge, SCHEMA)
    driver.feed(0, page(16, 36))
    driver.feed(0, page(11, k="b"))
    promised, expected = driver.punctuation(), driver.watermarks()
    assert promised[-1] == GroupWise.of({"k": ["b"]}, [-10]) or GroupWise.of({"k": ["a"]}, [10]) in promised
    assert soft(30, k="a") in expected
    assert said(driver, 0, page(12)) == []
    assert driver.operator.counts() == {"late": 0, "allowed_late": 1}


def test_equal_policies_are_refused() -> None:
    with pytest.raises(GraphError, match="less patient"):
        Punctuate(BoundedDisorder(5), watermark=BoundedDisorder(5))


def test_a_promise_says_the_watermark_of_its_bound() -> None:
    driver = Driver(Meld(1), SCHEMA)
    assert said(driver, 0, soft(20)) == [soft(20)]
    assert said(driver, 0, soft(20)) == []
    assert said(driver, 0, Linear(30)) == [Linear(30)]
    assert said(driver, 0, soft(25)) == []
    assert said(driver, 0, soft(31)) == [soft(31)]


def test_a_union_expects_the_least() -> None:
    driver = Driver(Meld(2), SCHEMA, SCHEMA)
    assert said(driver, 0, soft(40)) == []
    assert said(driver, 1, Linear(30)) == [soft(30)]
    assert said(driver, 0, Linear(10)) == [Linear(10)]
    driver.move()
    assert said(driver, 1, soft(70)) == [soft(40)]


def test_a_join_expects_what_both_sides_do() -> None:
    join = OAJoin(keys=[("k", "k")], band=Band(before=0, after=5))
    driver = Driver(join, SCHEMA, SCHEMA)
    assert said(driver, 0, soft(40)) == []
    assert said(driver, 1, soft(30)) == [soft(25)]
    assert said(driver, 1, soft(90, k="a")) == [Watermark(GroupWise.of({"k": ["a"]}, [40]))]


def test_row_by_row_they_pass_as_promises_do() -> None:
    renamed = Driver(Project({"time": "ts", "key": "k"}), SCHEMA)
    assert said(renamed, 0, soft(7, k="a")) == [soft(7, key="a")]
    dropped = Driver(Project({"time": "ts"}), SCHEMA)
    assert said(dropped, 0, soft(7, k="a")) == []
    assert said(Driver(Distinct(by=()), SCHEMA), 0, soft(7, k="a")) == []
    assert said(Driver(Distinct(), SCHEMA), 0, soft(7)) == [soft(7)]
    assert said(Driver(Bucket(Tumbling(10)), SCHEMA), 0, soft(17)) == [soft(10)]
    described = Driver(PrunePunctuation(granularity=10), SCHEMA)
    assert said(described, 0, soft(17)) == [soft(10)]
    assert said(Driver(PrunePunctuation(keep=("linear",)), SCHEMA), 0, soft(17)) == []


def test_they_may_not_shrink() -> None:
    contract = EdgeContract("edge")
    contract.check(soft(20))
    contract.check(page(3))  # below a watermark is allowed
    contract.check(Linear(3))
    with pytest.raises(ContractError, match="watermarks"):
        contract.check(soft(19))


def test_the_least_of_all_inputs_by_group_at_random() -> None:
    draw = random.Random(5)
    for _ in range(60):
        progress, inputs, keys = Progress(2), 2, ("a", "b")
        sound = {(port, kind, key): NEVER for port in range(inputs) for kind in "pe" for key in ("", *keys)}
        out = dict(sound)
        for _ in range(20):
            port, key, below = draw.randrange(2), draw.choice(["", *keys]), draw.randrange(50)
            bound = GroupWise.of({"k": [key]}, [below]) if key else Linear(below)
            kind = draw.choice("pe")
            sound[port, kind, key] = max(below, sound[port, kind, key])
            for grown in progress.advance(port, Watermark(bound) if kind == "e" else bound):
                of, kind_out = (grown.of, "e") if isinstance(grown, Watermark) else (grown, "p")
                if isinstance(of, Linear):
                    out[0, kind_out, ""] = of.below
                elif isinstance(of, GroupWise):
                    for name, least in zip(of.groups.column("k").to_pylist(), of.below.tolist(), strict=True):
                        out[0, kind_out, name] = least
            fresh = Progress(2)
            fresh.load(Saved(progress.save()))
            progress = fresh
            for name in keys:
                promised = [max(sound[i, "p", ""], sound[i, "p", name]) for i in range(inputs)]
                expected = [max(p, sound[i, "e", ""], sound[i, "e", name]) for i, p in enumerate(promised)]
                of_out = max(out[0, kind, of] for kind in "pe" for of in ("", name))
                assert of_out == min(expected)
                assert max(out[0, "p", ""], out[0, "p", name]) == min(promised)


def bounds_by_definition(times: list[int], share: float, rows: int) -> list[int]:
    """The largest time, minus the quantile of the lateness of the last tuples, at most an eighth too large."""
    lateness: list[int] = []
    bounds: list[int] = []
    for i, time in enumerate(times):
        lateness.append(max(max(times[: i + 1]) - time, 0))
        last = sorted(lateness[-rows:])
        wanted = last[math.ceil(share * len(last)) - 1]
        step = 1 << max(wanted.bit_length() - 4, 0)
        most = wanted // step * step + step - 1
        bounds.append(max([max(times[: i + 1]) - most, *bounds[-1:]]))
    return bounds


@pytest.mark.parametrize("share", [0.01, 0.5, 0.9, 1.0])
def test_quantiles_of_lateness(share: float) -> None:
    draw = random.Random(9)
    times = [10 * i - draw.choice([0, 0, 5, 17, 100, 3000]) for i in range(300)]
    running = ByQuantile(share, rows=40).running(SCHEMA, "test")
    found = np.concatenate([running.after(page(*times[i : i + 7])) for i in range(0, 300, 7)])
    assert found.tolist() == bounds_by_definition(times, share, 40)


def test_quantiles_survive_a_snapshot_and_the_ends_of_int64() -> None:
    edge = Punctuate(BoundedDisorder(10_000), watermark=ByQuantile(0.5, rows=3))
    driver = Driver(edge, SCHEMA)
    for at in (5, 90, 70, 95, 99):
        driver.feed(0, page(at))
        driver.move()
    assert driver.watermarks()[-1] == soft(99)
    far = ByQuantile(1.0, rows=3).running(SCHEMA, "test")
    assert far.after(page(NEVER + 1, FOREVER, NEVER + 1)).tolist() == [NEVER + 1, FOREVER - 1, FOREVER - 1]


@pytest.mark.parametrize("wrong", [{"share": 0.0}, {"share": 1.5}, {"share": 0.5, "rows": 0}])
def test_quantiles_that_cannot_be(wrong: dict[str, float]) -> None:
    with pytest.raises(GraphError, match="ByQuantile"):
        ByQuantile(**wrong)  # type: ignore[arg-type]
