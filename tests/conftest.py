"""What all tests share: examples that are the same on every machine and run, and one Spark session."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile(
    "deterministic",
    derandomize=True,
    deadline=None,
    max_examples=60,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=False,
)
settings.register_profile("thorough", settings.get_profile("deterministic"), max_examples=2000)
settings.load_profile("deterministic")


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in the background of a script.  A child would ignore it too, and so not end where a test interrupts it; a
    # handler is not inherited.
    signal.signal(signal.SIGINT, lambda *_: None)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session that all tests marked ``spark`` share: it takes seconds to start."""
    from oop_engine.spark.session.session import session

    with session("local[2]", app="tests", quick=True) as made:
        yield made


@pytest.hookimpl(wrapper=True)  # around the hook of pytest-xdist, which reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Keep tests of Spark in one process, and begin with them: each has work for more than a core."""
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
    yield


def pytest_collection_finish() -> None:
    """Keep the collector of garbage away from the thousands of tests, and from each kernel that is compiled."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
