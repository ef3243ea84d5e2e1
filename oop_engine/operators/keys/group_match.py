"""Group match: which of the known groups a punctuation has bounds for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.punctuation import GroupWise
from oop_engine.operators.keys.tables import IN_KERNELS

__all__ = ["matching"]

Integers = NDArray[np.int64]


def matching(groups: GroupIndex, by: Sequence[str], punctuation: GroupWise) -> tuple[Integers, Integers]:
    """Return the slots of ``groups`` that it has bounds for, and the row of each in it.

    ``by`` names the columns of ``groups``; those of the punctuation are some of them.
    O(groups it names), or where it names only some of ``by``, O(groups there are).
    """
    names = punctuation.attributes
    if len(names) == len(by):
        slots = groups.find([punctuation.groups.column(name) for name in by], len(punctuation))
        known = np.flatnonzero(slots >= 0)
        return slots[known], known
    index = GroupIndex(punctuation.groups.schema.types, IN_KERNELS)
    index.encode(punctuation.groups.columns, len(punctuation))
    everyone = np.arange(len(groups))
    keys = dict(zip(by, groups.keys(everyone), strict=True))
    of = index.find([keys[name] for name in names], everyone.size)
    slots = np.flatnonzero(of >= 0)
    return slots, of[slots]
