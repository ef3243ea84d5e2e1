"""Patterns over a column of texts: which of them cannot be cast to a type.

Arrow casts a column of texts or refuses all of it.  To find the bad ones by trying takes 50 µs each, so
patterns find most of them at once; a text that matches and is refused all the same (a
year out of the range of nanoseconds) is found by trying.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["DIGITS", "unreadable"]

_YEAR, _LEAP = "[0-9]{4}", "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DAY = (
    rf"(?:{_YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    rf"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP}-02-29)"
)
_HOUR, _SIXTY = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]"
_ZONE = f"(?:Z|[+-]{_HOUR}(?::?{_SIXTY})?)"
DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_FLOAT = r"^[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:nan|inf|infinity))$"


def unreadable(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a mask of the texts (no nulls) that certainly cannot be read as ``kind``; boolean (rows,)."""
    if pa.types.is_integer(kind):
        return _beyond(texts, kind)
    pattern = _pattern(kind)
    if pattern is None:
        return pa.array(np.zeros(len(texts), np.bool_))
    return pc.invert(pc.match_substring_regex(texts, pattern))


def _pattern(kind: pa.DataType) -> str | None:
    if pa.types.is_floating(kind):
        return _FLOAT
    if pa.types.is_boolean(kind):
        return "^(?i:true|false|0|1)$"
    if pa.types.is_date32(kind):
        return f"^{_DAY}$"
    if pa.types.is_timestamp(kind):
        digits = DIGITS[kind.unit]
        fraction = rf"(?:\.[0-9]{{1,{digits}}})?" if digits else ""
        time = f"[ T]{_HOUR}(?::{_SIXTY}(?::{_SIXTY}{fraction})?)?"
        return f"^{_DAY}(?:{time})?$" if kind.tz is None else f"^{_DAY}{time}{_ZONE}$"
    return None


def _beyond(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return which texts are no integers of ``kind``: by their digits, for no type could hold them all."""
    hexadecimal = rf"0[xX][0-9a-fA-F]{{1,{kind.bit_width // 4}}}"
    signed = pa.types.is_signed_integer(kind)
    most = 2 ** (kind.bit_width - signed) - 1
    digits = pc.utf8_ltrim(pc.utf8_ltrim(texts, "-") if signed else texts, "0")
    large = {True: str(most + 1), False: str(most)}
    largest = pc.if_else(pc.starts_with(texts, "-"), large[True], large[False])
    length = pc.utf8_length(digits)
    too_large = pc.or_(
        pc.greater(length, len(str(most))),
        pc.and_(pc.equal(length, len(str(most))), pc.greater(digits, largest)),
    )
    decimal = pc.match_substring_regex(texts, "^-?[0-9]+$" if signed else "^[0-9]+$")
    readable = pc.or_(pc.and_not(decimal, too_large), pc.match_substring_regex(texts, f"^{hexadecimal}$"))
    return pc.invert(readable)
