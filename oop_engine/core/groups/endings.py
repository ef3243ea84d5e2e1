"""Endings: groups of fewer attributes that are over, and with them all that are part of them.

To find the parts takes a walk over all groups, so of many it waits for more endings.  Until then the parts stay, which
does no harm: no tuple of theirs comes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import GroupIndex, KeyTables
from oop_engine.system.knobs import knob

__all__ = ["Endings"]

_MANY = knob(__name__, "_MANY", 1024)  # groups
_MANY_ENDINGS = knob(__name__, "_MANY_ENDINGS", 16)  # groups there may be for each ending that waits


class Endings:
    """Endings that wait, for groups of ``schema``; ``tables``: how their keys are looked up."""

    def __init__(self, schema: pa.Schema, tables: KeyTables) -> None:
        self._schema, self._tables = schema, tables
        self._waiting: list[pa.RecordBatch] = []

    def add(self, groups: pa.RecordBatch) -> None:
        """End groups of fewer attributes."""
        self._waiting.append(groups)

    def due(self, groups: int) -> bool:
        """Return whether so many ``groups`` should be looked through."""
        waiting = sum(each.num_rows for each in self._waiting)
        return waiting > 0 and (groups <= _MANY or waiting >= groups // _MANY_ENDINGS)

    def parts(self, index: GroupIndex) -> NDArray[np.int64]:
        """Return the groups of ``index`` that are part of those that are over; none waits any more.  O(groups)."""
        if not self._waiting:
            return np.empty(0, np.int64)
        keys = index.keys(np.arange(len(index)))
        columns = dict(zip(self._schema.names, keys, strict=True))
        over = np.zeros(len(index), np.bool_)
        for schema in {each.schema for each in self._waiting}:
            ended = GroupIndex(schema.types, self._tables)
            for groups in self._waiting:
                if groups.schema == schema:
                    ended.encode(groups.columns)
            over |= ended.find([columns[name] for name in schema.names]) >= 0
        self._waiting = []
        return np.flatnonzero(over)
