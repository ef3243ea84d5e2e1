"""Tests with a fault: ``python -m tests.faults.with_fault FAULT TEST...`` plants it, and ends as pytest does."""

from __future__ import annotations

import sys

import pytest

from tests.faults.planting import FAULTS, plant

if __name__ == "__main__":
    planted, *tests = sys.argv[1:]
    plant(FAULTS[planted])
    sys.exit(pytest.main(["-q", "-x", "-n", "0", "-p", "no:cacheprovider", *tests]))
