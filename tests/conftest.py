"""What all tests share: examples that are the same on every machine and run, and one Spark session."""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from tests.quick import SHARE, left_out, with_examples

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
TIMES = int(os.environ.get("OOP_ENGINE_EXPLORE", "0"))
"""How many times more examples than usual, and other ones each time: those that failed come first the next time."""
settings.register_profile(
    "exploring",
    settings.get_profile("deterministic"),
    derandomize=False,
    max_examples=60 * max(TIMES, 1),
    database=DirectoryBasedExampleDatabase(".hypothesis/examples"),
    print_blob=True,
)
settings.register_profile(
    "quick",
    settings.get_profile("deterministic"),
    max_examples=int(settings.get_profile("deterministic").max_examples * SHARE),
)
settings.load_profile("exploring" if TIMES else "deterministic")


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


@pytest.fixture(autouse=True)
def _log_level() -> Iterator[None]:
    """Put the level of the engine's log back, which a command of the program sets for its process."""
    log = logging.getLogger("oop_engine")
    before = log.level
    yield
    log.setLevel(before)


def pytest_configure(config: pytest.Config) -> None:
    """Load the examples of the quick run before the modules of tests, some of which count in shares of them."""
    if config.getoption("--quick"):
        settings.load_profile("quick")


@pytest.hookimpl(wrapper=True)  # around the hook of pytest-xdist, which reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Keep tests of Spark in one process, and begin with them: each has work for more than a core."""
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)
    if config.getoption("--quick"):
        _leave_out(config, items)
    if TIMES:
        items[:] = [item for item in items if with_examples(item, TIMES)]
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
    yield


def _leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    out = left_out(items)
    config.hook.pytest_deselected(items=out)
    gone = set(out)
    items[:] = [item for item in items if item not in gone]
    for item in items:
        with_examples(item, SHARE)


def pytest_collection_finish() -> None:
    """Keep the collector of garbage away from the thousands of tests, and from each kernel that is compiled."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
