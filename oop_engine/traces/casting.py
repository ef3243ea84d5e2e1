"""Guessing: the type that reads the texts of a column of a file which declares none.

``core/values`` has how a text of a declared type is read.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.core.values.arrays import converted
from oop_engine.core.values.texts import prepared, reads_all

__all__ = ["guess", "guess_time", "guess_words"]

_TIMES = [pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")]
_GUESSES = [pa.int64(), pa.uint64(), pa.float64(), pa.bool_(), *_TIMES]
_WHOLE = "^-?[0-9]+$"
_SAMPLE = 200


def guess(texts: pa.Array) -> pa.DataType:
    """Return the narrowest type that reads all texts: integer, float, boolean, timestamp, else string.

    Integers that are beyond 64 bits are texts: as floats some that differ would be one.
    """
    known = converted(texts.unique().drop_null(), pa.string())[0]
    readable = (
        kind for kind in _GUESSES if reads_all(prepared(known, kind), kind) and not _merged(known, kind)
    )
    return next(readable, pa.string()) if len(known) else pa.string()


def guess_words(texts: pa.Array) -> pa.DataType:
    """Return the timestamp type that reads all texts, else string: digits in quotes are no number."""
    known = converted(texts.drop_null(), pa.string())[0]  # bytes that are no UTF-8 are no evidence
    return next(
        (kind for kind in _TIMES if len(known) and reads_all(prepared(known, kind), kind)), pa.string()
    )


def guess_time(texts: pa.Array) -> pa.DataType:
    """Return the integer or timestamp type that reads most of some texts, if more than half, else string."""
    known = texts.drop_null()[:_SAMPLE]

    def unread(kind: pa.DataType) -> int:
        where = converted(known, kind)[1]
        return 0 if where is None else int(where.true_count)

    best = min([pa.int64(), *_TIMES], key=unread)
    return best if 2 * unread(best) < len(known) else pa.string()


def _merged(texts: pa.Array, kind: pa.DataType) -> bool:
    """Tell whether all texts are integers, and ``kind`` has not all of their digits."""
    if not pa.types.is_floating(kind):
        return False
    digits = prepared(texts, kind).drop_null()
    return bool(len(digits) and pc.all(pc.match_substring_regex(digits, _WHOLE)).as_py())
