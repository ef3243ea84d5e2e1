"""CSV cells: numbers and dates as a ``CsvFormat`` has them become numbers and dates of ISO 8601, still as texts.

A cell that is written otherwise stays, and is read or refused as it stands; one that would be read as another number
(``1.5`` where the decimal sign is a comma), and a local time that clocks skip or show twice, gets a word why it is
refused.  Nothing is done where a format has neither.
"""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.core.errors import TraceError
from oop_engine.core.values.arrays import converted
from oop_engine.traces.csv_format import CsvFormat

__all__ = [
    "MISREAD",
    "MONTHS",
    "canonical",
    "check_zone",
    "date_pattern",
    "dates_of",
    "matches",
    "number_pattern",
]

_PATTERN = {
    "d": r"(?P<d>[0-9]{1,2})", "m": r"(?P<m>[0-9]{1,2})", "Y": r"(?P<Y>[0-9]{4})", "H": r"(?P<H>[0-9]{1,2})",
    "I": r"(?P<H>1[0-2]|0?[1-9])", "M": r"(?P<M>[0-9]{2})", "S": r"(?P<S>[0-9]{2})", "f": r"(?P<f>[0-9]{1,9})",
    "z": r"(?P<z>Z|[+-][0-9]{2}(?::?[0-9]{2})?)", "p": r"(?P<p>[AaPp][Mm])", "b": r"(?P<b>[A-Za-z]{3})",
}  # fmt: skip
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
"""Names of months in dates (``%b``)."""
MISREAD = r"[0-9][.,'_][0-9]"
"""Cells that are no number of a format, and would be read as another."""
_LOCAL = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9:.]+)?$"


def canonical(cells: pa.Array, kind: pa.DataType, format: CsvFormat) -> pa.Array:
    """Return cells (bytes or texts) of a column of ``kind`` as ISO 8601 has them.  O(cells)."""
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    is_date = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    if is_number and (format.thousands or format.decimal == ","):
        return _numbers(_texts(cells), format)
    if is_date and (format.date_forms or (format.zone and pa.types.is_timestamp(kind))):
        texts = _texts(cells)
        for form in format.date_forms:
            texts = dates_of(texts, form)
        if not (format.zone and pa.types.is_timestamp(kind)):
            return texts
        return _in_zone(texts, format.zone, "ns" if kind.unit == "ns" else "us")
    return cells


def check_zone(place: str, format: CsvFormat, columns: pa.Schema) -> None:
    """Raise ``TraceError`` if the format has a zone, which makes times of UTC, and a column has none."""
    for field in columns if format.zone else ():
        if pa.types.is_timestamp(field.type) and field.type.tz is None:
            msg = (
                f"{place}: CsvFormat: zone={format.zone!r} makes times of UTC; {field.name!r} is {field.type}, "
                f"without a zone: declare timestamp[{field.type.unit}, UTC], or leave the zone out"
            )
            raise TraceError(msg)


def _texts(cells: pa.Array) -> pa.Array:
    """Return bytes as texts; bytes that are no UTF-8 become the replacement character."""
    if pa.types.is_string(cells.type):
        return cells
    try:
        return cells.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([None if v is None else v.decode(errors="replace") for v in cells.to_pylist()])


def _numbers(texts: pa.Array, format: CsvFormat) -> pa.Array:
    good = pc.match_substring_regex(texts, number_pattern(format))
    plain = pc.replace_substring(texts, format.thousands, "") if format.thousands else texts
    plain = pc.replace_substring(plain, ",", ".") if format.decimal == "," else plain
    if pc.all(good).as_py() is not False:
        return plain
    signs = f"decimal={format.decimal or '.'!r}" + (
        f", thousands={format.thousands!r}" if format.thousands else ""
    )
    misread = pc.and_(pc.invert(good), pc.match_substring_regex(texts, MISREAD))
    reason = pc.binary_join_element_wise(texts, f" ({signs})", "")
    return pc.if_else(good, plain, pc.if_else(misread, reason, texts))


def number_pattern(format: CsvFormat) -> str:
    """Return a pattern of the numbers of a format."""
    point, group = re.escape(format.decimal or "."), re.escape(format.thousands)
    whole = rf"(?:[0-9]{{1,3}}(?:{group}[0-9]{{3}})+|[0-9]+)" if group else "[0-9]+"
    return rf"^\s*[+-]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?\s*$"


def matches(texts: pa.Array, form: str) -> pa.Array:
    """Return which texts have the form of a date."""
    return pc.match_substring_regex(texts, date_pattern(form))


def dates_of(texts: pa.Array, form: str) -> pa.Array:
    """Return texts of the form of a date as ISO 8601, others as they are."""
    parts = pc.extract_regex(texts, date_pattern(form))
    if parts.null_count == len(parts):
        return texts
    has = {f.name for f in parts.type}

    def part(name: str) -> pa.Array:
        return pc.utf8_lpad(pc.struct_field(parts, name), 2, "0")

    month = part("m") if "m" in has else _month(pc.struct_field(parts, "b"))
    iso = pc.binary_join_element_wise(part("Y"), month, part("d"), "-")
    if "H" in has:
        hour = _of_24(part("H"), pc.struct_field(parts, "p")) if "p" in has else part("H")
        minute, second = (part(name) if name in has else "00" for name in "MS")
        iso = pc.binary_join_element_wise(iso, pc.binary_join_element_wise(hour, minute, second, ":"), "T")
        if "f" in has:
            iso = pc.binary_join_element_wise(iso, pc.struct_field(parts, "f"), ".")
        if "z" in has:
            iso = pc.binary_join_element_wise(iso, pc.struct_field(parts, "z"), "")
    return pc.if_else(parts.is_valid(), iso, texts)


@lru_cache(maxsize=256)
def date_pattern(form: str, *, whole: bool = True) -> str:
    """Return a pattern of the dates of a form; groups have the names of directives (``H`` also for ``%I``).

    ``whole=False``: a clock may follow.
    """
    pieces = re.split("%(.)", form.strip())
    end = r"\s*$" if whole else r"(?:[ ,T]|$)"
    return rf"^\s*{''.join(_PATTERN[p] if i % 2 else re.escape(p) for i, p in enumerate(pieces))}{end}"


def _month(names: pa.Array) -> pa.Array:
    """Return the number of a month by its English name; ``00`` for none, which is no date."""
    at = pc.add(pc.index_in(pc.utf8_lower(names), value_set=pa.array(MONTHS)), 1).fill_null(0)
    return pc.if_else(names.is_valid(), pc.utf8_lpad(at.cast(pa.string()), 2, "0"), None)


def _of_24(hours: pa.Array, halves: pa.Array) -> pa.Array:
    hour = pc.if_else(pc.equal(hours, "12"), "00", hours).cast(pa.int8())
    after_noon = pc.equal(pc.utf8_lower(halves), "pm")
    return pc.utf8_lpad(pc.add(hour, pc.if_else(after_noon, 12, 0)).cast(pa.string()), 2, "0")


def _in_zone(texts: pa.Array, zone: str, unit: str) -> pa.Array:
    """Return local times as times of UTC; those that a zone's clocks do not show once are refused."""
    local = pc.match_substring_regex(texts, _LOCAL).fill_null(False)
    times = converted(pc.if_else(local, texts, None), pa.timestamp(unit))[0]
    early, late = (
        pc.assume_timezone(times, zone, ambiguous=which, nonexistent=which)
        for which in ("earliest", "latest")
    )
    iso = pc.binary_join_element_wise(early.cast(pa.timestamp(unit)).cast(pa.string()), "Z", "")
    refused = pc.binary_join_element_wise(texts, f" (not once on the clocks of {zone})", "")
    known = pc.if_else(pc.equal(early, late), iso, refused)
    no_time = pc.binary_join_element_wise(texts, f" (no time in {unit})", "")
    return pc.if_else(local, pc.if_else(times.is_valid(), known, no_time), texts)
