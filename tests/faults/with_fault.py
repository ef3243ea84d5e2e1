"""Tests with a fault: ``python -m tests.faults.with_fault FAULT TEST...`` plants it, and ends as pytest does."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest
from hypothesis import Phase, settings

from tests.faults.planting import FAULTS, plant

QUIET = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # of plugins that a warm process has imported


class Unshrunk:
    """A plugin: that a test fails is the question, not the smallest example of it."""

    def pytest_collection(self) -> None:
        """Let tests that are collected from now on draw examples, and no more; conftest has set its own profile."""
        settings.register_profile("unshrunk", settings(), phases=[Phase.generate])
        settings.load_profile("unshrunk")


def passes(tests: Sequence[str]) -> int:
    """Run tests in this process, return the exit code of pytest."""
    return int(pytest.main(["-q", "-x", "-n", "0", "-p", "no:cacheprovider", *QUIET, *tests], [Unshrunk()]))


if __name__ == "__main__":
    planted, *asked = sys.argv[1:]
    plant(FAULTS[planted])
    sys.exit(passes(asked))
