"""Tests with a fault: ``python -m tests.faults.with_fault FAULT TEST...`` plants it, and ends as pytest does."""

from __future__ import annotations

import sys

import pytest
from hypothesis import Phase, settings

from tests.faults.planting import FAULTS, plant


class Unshrunk:
    """A plugin: that a test fails is the question, not the smallest example of it."""

    def pytest_collection(self) -> None:
        """Let tests that are collected from now on draw examples, and no more; conftest has set its own profile."""
        settings.register_profile("unshrunk", settings(), phases=[Phase.generate])
        settings.load_profile("unshrunk")


if __name__ == "__main__":
    planted, *tests = sys.argv[1:]
    plant(FAULTS[planted])
    sys.exit(pytest.main(["-q", "-x", "-n", "0", "-p", "no:cacheprovider", *tests], [Unshrunk()]))
