"""Values of JSON that are kept in a checkpoint: positions of sources, and whatever a sink has prepared."""

from __future__ import annotations

import datetime
from math import isfinite
from pathlib import PurePath
from types import NoneType
from typing import Any

import numpy as np

from oop_engine.core.errors import ContractError

__all__ = ["FIXED", "json_value"]

FIXED = {int, str, bool, NoneType}
"""Types whose values are of JSON and never change, so nobody has to look at them."""
_KINDS = "None, bool, int, finite float, text, a list or a dictionary with texts as keys"
_WAYS: dict[type | tuple[type, ...], str] = {
    np.generic: "give value.item()",
    np.ndarray: "give array.tolist()",
    bytes: "give value.hex(), or a text",
    (set, frozenset): "give sorted(...)",
    (datetime.date, datetime.time): "give value.isoformat()",
    PurePath: "give str(path)",
    float: "give None, or a text",
}


def json_value(value: Any, place: str) -> Any:
    """Return a copy of a value of JSON: it stays, whatever the giver does with its dictionaries and lists.

    Tuples stay tuples here; a checkpoint gives them back as lists.  Raises ``ContractError`` in the name of ``place``
    for any other value.

    >>> given = {"0": [1, 2]}
    >>> kept = json_value(given, "position")
    >>> given["0"].append(3)
    >>> kept
    {'0': [1, 2]}
    """
    if value.__class__ in FIXED:
        return value
    try:
        return _copy(value, place)
    except RecursionError as error:
        msg = (
            f"{place} must be a value of JSON; got {type(value).__name__} that is within itself, or too deep"
        )
        raise ContractError(msg) from error


def _copy(value: Any, place: str) -> Any:
    if value is None or isinstance(value, int | str):
        return value
    if isinstance(value, float) and isfinite(value) and not isinstance(value, np.generic):
        return value
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                got = f"{key!r:.40} ({type(key).__name__})"
                msg = (
                    f"{place} must be a value of JSON, whose keys are texts; got the key {got}: give str(key)"
                )
                raise ContractError(msg)
        return {key: item if item.__class__ in FIXED else _copy(item, place) for key, item in value.items()}
    if isinstance(value, list | tuple):
        copied = [item if item.__class__ in FIXED else _copy(item, place) for item in value]
        return copied if isinstance(value, list) else tuple(copied)
    way = next((f": {way}" for kinds, way in _WAYS.items() if isinstance(value, kinds)), "")
    got = f"{value!r:.60} ({type(value).__name__})"
    msg = f"{place} must be a value of JSON ({_KINDS}); got {got}{way}"
    raise ContractError(msg)
