"""Encodings: whether some bytes are text of two or four bytes a character."""

from __future__ import annotations

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE

from oop_engine.core.errors import TraceError

__all__ = ["MARKS", "refuse_wide", "wide_encoding"]

MARKS = {
    BOM_UTF8: "utf-8",
    BOM_UTF32_LE: "utf-32-le",  # before that of UTF-16, with which it begins
    BOM_UTF32_BE: "utf-32-be",
    BOM_UTF16_LE: "utf-16-le",
    BOM_UTF16_BE: "utf-16-be",
}
"""Byte order marks."""
_LOOKED_AT = 200
_ZEROS = {"utf-32-le": (0, 4), "utf-32-be": (3, 4), "utf-16-le": (0, 2), "utf-16-be": (1, 2)}
"""Which byte of how many is not zero in ASCII; the wider ones first."""


def wide_encoding(head: bytes) -> str:
    """Return the encoding of two or four bytes a character that the first bytes show; "": none.

    >>> wide_encoding("ts,host".encode("utf-16")), wide_encoding("ts,host".encode("utf-32-be")), wide_encoding(b"ts")
    ('utf-16-le', 'utf-32-be', '')
    """
    for mark, encoding in MARKS.items():
        if head.startswith(mark):
            return encoding if encoding != "utf-8" else ""
    start = head[:_LOOKED_AT]
    for encoding, (at, width) in _ZEROS.items():
        there, others = start[at::width], [start[each::width] for each in range(width) if each != at]
        zeros = sum(part.count(0) for part in others)
        if there and there.count(0) == 0 and zeros * 5 > sum(map(len, others)) * 4 > 0:
            return encoding
    return ""


def refuse_wide(place: object, head: bytes) -> None:
    """Raise ``TraceError`` in the name of ``place`` for text whose lines do not end at a byte."""
    if encoding := wide_encoding(head):
        name = encoding[:6].upper()
        msg = f"{place}: must be UTF-8; got {name}, by its first bytes: convert it (iconv -f {name} -t UTF-8)"
        raise TraceError(msg)
