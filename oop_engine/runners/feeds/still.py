"""Still: values as they are now, also if their giver changes them later.

A generator may use one dictionary for all its rows, and rows wait for each other before they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any

import numpy as np

__all__ = ["still"]

_CONSTANT = {int, str, float, bool, NoneType, bytes}


def still(value: Any) -> Any:
    """Return a value that nobody changes: of a dictionary, list or array, a copy, inside of it too.

    >>> tags = ["a"]
    >>> kept = still({"ts": 1, "tags": tags})
    >>> tags.clear()
    >>> kept
    {'ts': 1, 'tags': ['a']}
    """
    if value.__class__ in _CONSTANT:
        return value
    if isinstance(value, Mapping):
        return {key: item if item.__class__ in _CONSTANT else still(item) for key, item in value.items()}
    if value.__class__ in (list, tuple):
        return value.__class__(item if item.__class__ in _CONSTANT else still(item) for item in value)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    return value.copy() if isinstance(value, np.ndarray) else value
