"""Fuzzers: small and the same each time in the tests, larger by ``make fuzz``."""

import os

SCALE = int(os.environ.get("OOP_ENGINE_FUZZ", "1"))
"""How many times more than in the tests; above 1, Hypothesis takes other examples each time."""
