"""The choice of a policy, by what it would cost; and policies as text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import Schema
from oop_engine.core.errors import UsageError
from oop_engine.operators.policies.policies import BoundedCount, BoundedDisorder, Heartbeat, Ordered, PerGroup
from oop_engine.operators.policies.running_bound import Policy
from oop_engine.pipeline.measure import Measured, SourceProfile
from oop_engine.pipeline.policy import choose, read_policy
from oop_engine.traces.lateness import Histogram
from oop_engine.traces.profiling import Lateness

SCHEMA = Schema({"ts": pa.int64(), "link": pa.string()}, "ts", "ms")


def seen(values: list[int]) -> Histogram:
    found = Histogram()
    found.add(np.array(values, np.int64))
    return found


def measured(late: list[int], own: list[int] | None = None) -> Measured:
    lateness, within = seen(late), seen(own or [])
    by = () if own is None else ("link",)
    own_lateness = None if own is None else Lateness.of(within)
    profile = SourceProfile(
        "a", len(late), "ms", 0, 100, 1.0, Lateness.of(lateness), by, own_lateness, len(by), ()
    )
    return Measured(profile, lateness, within)


@pytest.mark.parametrize(
    ("found", "share", "policy", "words"),
    [
        (measured([0, 0, 0]), 1.0, Ordered(), "loses nothing"),
        (measured([0, 5, 100]), 1.0, BoundedDisorder("100 ms"), "delay 100 ms: loses nothing"),
        (measured([0] * 9 + [100]), 0.9, Ordered(), "keeps 90.0000% of the tuples in time"),
        (measured([0] * 8 + [7, 100]), 0.9, BoundedDisorder("7 ms"), "keeps 90"),
        (measured([0, 5, 100], [0, 5, 60]), 1.0, BoundedDisorder("100 ms"), "not worth a state per group"),
        (
            measured([0, 5, 100], [0, 5, 50]),
            1.0,
            PerGroup(BoundedDisorder("50 ms"), by=("link",), linear=BoundedDisorder("100 ms")),
            "groups are worth their state",
        ),
        (
            measured([0, 5, 100], [0, 0, 0]),
            1.0,
            PerGroup(Ordered(), by=("link",), linear=BoundedDisorder("100 ms")),
            "100 ms for the whole stream, 0 ms per group",
        ),
        (measured([0, 0], [0, 0]), 1.0, Ordered(), "not worth"),
    ],
)
def test_the_least_delay_that_loses_no_more_than_it_may(
    found: Measured, share: float, policy: Policy, words: str
) -> None:
    choice = choose(found, share)
    assert read_policy(choice.policy, "test", SCHEMA) == policy
    assert words in choice.reason
    assert choice.policy in [candidate.policy for candidate in choice.candidates]


def test_a_measure_survives_json() -> None:
    found = measured([0, 5, 100], [0, 5, 50])
    again = Measured.of(found.to_dict())
    assert again.profile == found.profile
    assert choose(again, 0.5) == choose(found, 0.5)


@pytest.mark.parametrize(
    "policy",
    [
        BoundedCount(3),
        Heartbeat(Ordered(), threshold="5 s", slack=3),
        PerGroup(BoundedDisorder("5 s"), by=("link",), linear=Ordered()),
    ],
)
def test_every_policy_can_be_spelled(policy: Policy) -> None:
    assert read_policy(repr(policy), "test", SCHEMA) == policy


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ordered(", "is no policy"),
        ("Orderd()", "there are BoundedCount"),
        ("__import__('os').remove('x')", "there are BoundedCount"),
        ("BoundedDisorder()", "is no policy"),
        ("BoundedDisorder('5 miles')", "must be a length of time"),
        ("PerGroup(Ordered(), by=('lnik',))", "no column 'lnik'"),
        ("5", "must be a policy such as"),
    ],
)
def test_what_is_no_policy(text: str, words: str) -> None:
    with pytest.raises(UsageError, match="--policy") as told:
        read_policy(text, "--policy", SCHEMA)
    assert words in str(told.value)
