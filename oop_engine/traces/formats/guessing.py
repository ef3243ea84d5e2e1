"""Guessing: the types of columns of texts, by the first of them.

A guess never makes two different texts one value, for they may be keys: ``007``, ``+7`` and ``7``, ``1.0`` and ``1``,
or ``true`` and ``True`` are texts.  Moments are compared as moments: texts of the same one are one value.  Times whose
texts have offsets are of UTC; a column with and without offsets is text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.core.groups.in_python import values_of
from oop_engine.core.values.arrays import converted

__all__ = ["Spoiler", "as_texts_are", "guess", "guess_time", "guess_words", "merged_by", "spoiler_of"]

_PLAIN = [pa.timestamp("us"), pa.timestamp("ns")]
_ZONED = [pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")]
_NUMBERS = [pa.int64(), pa.uint64(), pa.float64()]
_OFFSET = r"[ T][0-9]{2}.*(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)\s*$"
_WHOLE = r"^\s*-?(?:[1-9][0-9]*|0)\s*$"
_CANONICAL = r"^\s*(?:-?[1-9][0-9]*|0)\s*$"
_LEADING = r"^\s*(?:[+]|-?0[0-9]|0[xX]|-0+\s*$)"
_SAMPLE = 200

Prepared = Callable[[pa.Array, pa.DataType], pa.Array]
"""Returns texts as they are to be read for a type: a ``CsvFormat`` may write numbers otherwise."""


@dataclass(frozen=True)
class Spoiler:
    """Why a column is text: nearly all of its texts are of ``kind``; the first that is not is ``value`` in ``row``."""

    kind: pa.DataType
    row: int
    value: str

    def line(self, name: str) -> str:
        """Return this as a line for the user."""
        kind = (
            "timestamp" if pa.types.is_timestamp(self.kind) else str(self.kind).replace("double", "float64")
        )
        return (
            f"{name}: text, since row {self.row:,} is {self.value!r}; "
            f'types={{"{name}": {kind}}} refuses that row (--type {name}={kind})'
        )


def guess(texts: pa.Array, prepared: Prepared | None = None, *, exact: bool = True) -> pa.DataType:
    """Return the narrowest type that reads all texts: integer, float, boolean, timestamp, else string.

    ``exact``: texts that differ must not become one number.
    """
    known = _distinct(texts)
    if not len(known):
        return pa.string()
    first = known[:_SAMPLE]  # most types are excluded by few texts
    kinds = [k for k in (*_NUMBERS, pa.bool_(), *_times_of(known)) if not _unread(first, k, prepared)]
    return next((kind for kind in kinds if _reads(known, kind, prepared, exact=exact)), pa.string())


def guess_words(texts: pa.Array) -> pa.DataType:
    """Return the timestamp type that reads all texts, else string: digits in quotes are no number."""
    known = _distinct(texts)
    return next((k for k in _times_of(known) if len(known) and _reads(known, k, None)), pa.string())


def guess_time(texts: pa.Array, prepared: Prepared | None = None) -> pa.DataType:
    """Return the integer or timestamp type that reads most of some texts, if more than half, else string."""
    known = _texts(texts.drop_null()[:_SAMPLE])
    zoned = pc.match_substring_regex(known, _OFFSET).true_count
    times = [*_ZONED, *_PLAIN] if 2 * zoned > len(known) else [*_PLAIN, *_ZONED]

    best = min([pa.int64(), *times], key=lambda kind: _unread(known, kind, prepared))
    return best if 2 * _unread(known, best, prepared) < len(known) else pa.string()


def merged_by(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return which texts (no bytes) are written as no number of ``kind`` is, so that others could be equal to them."""
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return pa.repeat(False, len(texts))
    if pa.types.is_integer(kind):
        return pc.invert(pc.match_substring_regex(texts, _CANONICAL))
    return pc.match_substring_regex(texts, _LEADING)


def spoiler_of(texts: pa.Array, prepared: Prepared | None = None) -> Spoiler | None:
    """Return why a column of texts is no column of numbers or times, if more than half of its texts are."""
    known = _texts(texts)
    there = len(known) - known.null_count
    best: tuple[int, pa.DataType, pa.Array] | None = None
    sample = known.drop_null()
    sample = sample.take(pa.array(range(0, len(sample), max(len(sample) // _SAMPLE, 1)), pa.int64()))
    for kind in (pa.int64(), pa.float64(), *_times_of(_distinct(texts))):
        if 4 * _unread(sample, kind, prepared) > 3 * len(sample):
            continue
        as_given = prepared(known, kind) if prepared else known
        values, bad = converted(as_given, kind)
        mask = pc.or_(
            pa.repeat(False, len(known)) if bad is None else bad.fill_null(False),
            pc.and_(merged_by(as_given, kind).fill_null(False), values.is_valid()),
        )
        if mask.true_count and (best is None or mask.true_count < best[0]):
            best = (mask.true_count, kind, mask)
    if best is None or 2 * best[0] >= there:
        return None
    _, kind, mask = best
    at = pc.index(mask, True).as_py()
    return Spoiler(kind, at + 1, str(values_of(known.slice(at, 1))[0])[:60])


def _unread(texts: pa.Array, kind: pa.DataType, prepared: Prepared | None) -> int:
    """Return how many texts are of another type."""
    where = converted(prepared(texts, kind) if prepared else texts, kind)[1]
    return 0 if where is None else int(where.true_count)


def _times_of(known: pa.Array) -> list[pa.DataType]:
    zoned = pc.match_substring_regex(known, _OFFSET).true_count
    return [] if 0 < zoned < len(known) else _ZONED if zoned else _PLAIN


def _distinct(texts: pa.Array) -> pa.Array:
    """Return the different texts; bytes that are no UTF-8 are no evidence."""
    return _texts(texts.unique().drop_null()).drop_null()


def _texts(texts: pa.Array) -> pa.Array:
    return converted(texts, pa.string())[0]


def _reads(known: pa.Array, kind: pa.DataType, prepared: Prepared | None, *, exact: bool = True) -> bool:
    as_given = prepared(known, kind) if prepared else known
    values, bad = converted(as_given, kind)
    if bad is not None and bad.true_count:
        return False
    if pa.types.is_timestamp(kind):
        return True
    there = values.drop_null()
    if pa.types.is_boolean(kind):
        return not exact or len(there.unique()) == len(known)
    if not len(there):
        return False
    if pa.types.is_integer(kind) and pc.any(pc.and_(merged_by(as_given, kind), values.is_valid())).as_py():
        return False
    if not exact:
        return not (pa.types.is_floating(kind) and pc.all(pc.match_substring_regex(known, _WHOLE)).as_py())
    if pc.any(pc.and_(merged_by(as_given, kind), values.is_valid())).as_py() or len(there.unique()) < len(
        there
    ):
        return False
    if pa.types.is_floating(kind):  # numbers beyond floats, and whole ones beyond 64 bits, keep their digits
        beyond = pc.and_(pc.is_inf(values), pc.invert(pc.match_substring_regex(known, "(?i)inf")))
        return not (pc.any(beyond).as_py() or pc.all(pc.match_substring_regex(known, _WHOLE)).as_py())
    return True


def as_texts_are(name: str, cells: pa.Array) -> pa.Array:
    """Return cells of whole numbers, those like ``007`` with a word why they are refused: the type is a guess."""
    if not _may_have_zeros(cells):
        return cells
    texts = converted(cells, pa.string())[0]
    values = converted(texts, pa.int64())[0]
    if not pc.any(bad := pc.and_(merged_by(texts, pa.int64()).fill_null(False), values.is_valid())).as_py():
        return cells
    reason = pc.binary_join_element_wise(texts, f" (a guess; types={{'{name}': ...}} decides)", "")
    return pc.if_else(bad, reason.cast(cells.type), cells)


def _may_have_zeros(cells: pa.Array) -> bool:
    """Return whether a cell may have another sign than digits and a minus, or begin with a zero and go on."""
    _, ends, data = cells.buffers()
    offsets = np.frombuffer(ends, np.int32)[cells.offset : cells.offset + len(cells) + 1]
    if not len(cells) or offsets[0] == offsets[-1]:
        return False
    region = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    low = region.min()
    if region.max() > 57 or low < 45 or (low < 48 and ((region == 46) | (region == 47)).any()):
        return True
    starts = offsets[:-1] - offsets[0]
    first = region.take(starts, mode="clip")
    few = np.flatnonzero(first <= 48)  # cells with a zero or a minus in front
    if not len(few):
        return False
    begins = starts[few] + (first[few] == 45)
    zeros = (region.take(begins, mode="clip") == 48) & (np.diff(offsets)[few] > 1)
    return bool(zeros.any())
