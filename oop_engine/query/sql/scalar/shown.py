"""Shown: moments and numbers as the texts that DuckDB makes of them."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["in_format", "shown"]

_ALIKE = "YmdHMSyjpIAaBbVGuwUW%"
_EXPANDED = {"%c": "%Y-%m-%d %H:%M:%S", "%x": "%Y-%m-%d", "%X": "%H:%M:%S", "%T": "%H:%M:%S"}
_PARTS = {"f": (6, 1), "g": (3, 1000)}
"""Directives of parts of a second: how many digits they have, and the microseconds of the last one."""


def shown(value: Any, kind: pa.DataType) -> Any:
    """Return a value of ``kind`` as a text where that of Arrow differs from DuckDB's; None: it does not."""
    if pa.types.is_timestamp(kind):
        return _moment(value, kind)
    return _number(value) if pa.types.is_floating(kind) else None


def _moment(value: Any, kind: pa.DataType) -> Any:
    """Return a moment without zeros at its end; one with a zone in UTC."""
    plain = value.cast(pa.timestamp(kind.unit, "UTC")).cast(pa.timestamp(kind.unit)) if kind.tz else value
    text = plain.cast(pa.string())
    if kind.unit != "s":
        text = pc.replace_substring_regex(text, r"[.]?0+$", "")
    return _joined(text, pc.scalar("+00")) if kind.tz else text


def _number(value: Any) -> Any:
    """Return a float with a point, or with an exponent of two digits: ``3.0``, ``1e-07``."""
    text = pc.replace_substring_regex(value.cast(pa.string()), r"^(-?[0-9]+)$", r"\1.0")
    text = pc.replace_substring_regex(text, r"e([+-])([0-9])$", r"e\10\2")
    whole = value.cast(options=pc.CastOptions.unsafe(pa.int64())).cast(pa.string())
    is_whole = pc.and_kleene(pc.match_substring_regex(text, "e[+]1[0-5]$"), pc.equal(pc.trunc(value), value))
    return pc.if_else(is_whole, _joined(whole, pc.scalar(".0")), text)


def in_format(value: Any, kind: pa.DataType, format: str) -> Any:
    """Return moments in a format of ``strftime``; raises ``ValueError`` for a directive that is not known."""
    for short, long in _EXPANDED.items():
        format = format.replace(short, long)
    whole = value
    if pa.types.is_timestamp(kind):
        whole = pc.floor_temporal(value, unit="second").cast(pa.timestamp("s", kind.tz))
    parts = re.split("(%.?)", format, flags=re.DOTALL)
    texts = [_part(part, value, whole) for part in _together(parts)]
    return _joined(*texts) if texts else pc.scalar("")


def _together(parts: list[str]) -> list[str]:
    """Return the parts of a format, those that Arrow writes as DuckDB does in one."""
    pieces = [""]
    for part in parts:
        if part.startswith("%") and part[1:] in _PARTS:
            pieces += [part, ""]
        elif part.startswith("%") and (part == "%" or part[1:] not in _ALIKE):
            known = ", ".join(f"%{sign}" for sign in sorted([*_ALIKE, *_PARTS, "c", "x", "X", "T"]))
            msg = f"no part {part!r} of a format; there are {known}"
            raise ValueError(msg)
        else:
            pieces[-1] += part
    return [piece for piece in pieces if piece]


def _part(part: str, value: Any, whole: Any) -> Any:
    if part[1:] not in _PARTS or not part.startswith("%"):
        return pc.strftime(whole, format=part)
    digits, size = _PARTS[part[1:]]
    micros = pc.add(pc.multiply(pc.millisecond(value), pc.scalar(1000)), pc.microsecond(value))
    number = pc.divide(micros, pc.scalar(size)).cast(pa.string())
    return pc.utf8_lpad(number, digits, "0")


def _joined(*texts: Any) -> Any:
    return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, pc.scalar(""))
