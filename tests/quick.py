"""The quick run, ``pytest --quick``: every property, with fewer examples, and of slow families some cases.

A developer runs it before each commit (``make test``); what is left out runs before a merge (``make test-all``).

A test marked ``slow`` is left out: the same is shown in a smaller way by a quick one, or it takes processes that are
killed, a second Spark, all scenarios.  ``slow(keep=4)`` leaves out a family of cases but 4 of them, always the same,
evenly spaced.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import is_hypothesis_test, settings

SHARE = Fraction(1, 4)
"""Of the examples of each property."""
_FEWEST = 4
_SETTINGS = "_hypothesis_internal_use_settings"


def left_out(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests that the quick run leaves out.  O(tests)."""
    families = defaultdict[tuple[str, int], list[pytest.Item]](list)
    for item in items:
        if item.get_closest_marker("slow"):
            families[item.nodeid.partition("[")[0], _kept(item)].append(item)
    return [item for (_, keep), family in families.items() for item in _all_but(keep, family)]


def with_examples(item: pytest.Item, share: Fraction | int) -> bool:
    """Tell whether a test is a property; one that names its own number of examples has this share of them."""
    test = getattr(item, "obj", None)
    if not is_hypothesis_test(test):
        return False
    own = getattr(test, _SETTINGS, None)
    if own is not None and own.max_examples != settings().max_examples:
        number = max(int(own.max_examples * share), min(own.max_examples, _FEWEST))
        setattr(getattr(test, "__func__", test), _SETTINGS, settings(own, max_examples=number))
    return True


def _kept(item: pytest.Item) -> int:
    mark = item.get_closest_marker("slow")
    assert mark is not None
    return int(mark.kwargs.get("keep", 0))


def _all_but(keep: int, family: list[pytest.Item]) -> list[pytest.Item]:
    kept = {number * len(family) // keep for number in range(keep)}
    return [item for number, item in enumerate(family) if number not in kept]
