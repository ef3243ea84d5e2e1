"""Sniffing of CSV: encoding, delimiter, decimal comma and dates, by the first block of a file.

Only a form with one meaning is taken: ``1,234`` may be 1.234 or 1234, and ``03/04/2026`` two days, so such columns stay
text; a ``CsvFormat`` tells.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.traces.csv_format import CsvFormat
from oop_engine.traces.formats.csv_cells import matches, number_pattern
from oop_engine.traces.formats.csv_rows import CsvRows
from oop_engine.traces.formats.encodings import MARKS, wide_encoding

__all__ = ["sniffed_cells", "sniffed_delimiter", "sniffed_encoding"]

_DELIMITERS = (",", ";", "\t", "|")
_LINES = 50
_COMMA = r"^\s*[+-]?[0-9]+(?:,[0-9]+)?\s*$"
_SURE_COMMA = r"^\s*[+-]?(?:[0-9]+,[0-9]{1,2}|[0-9]+,[0-9]{4,}|0[0-9]*,[0-9]+|[0-9]{4,},[0-9]+)\s*$"
_POINT = r"^\s*[+-]?[0-9]+\.[0-9]+\s*$"
_SIGNS = (
    (",", ".", r"^\s*[+-]?[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]+\s*$", _POINT),
    (".", ",", r"^\s*[+-]?[0-9]{1,3}(?:,[0-9]{3})+\.[0-9]+\s*$", r"^\s*[+-]?[0-9]+,[0-9]+\s*$"),
)
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f")
_DAYS = (r"^\s*([0-9]{1,2})/([0-9]{1,2})/[0-9]{4}\b",)


def sniffed_encoding(head: bytes) -> tuple[str, int]:
    """Return the encoding that the first bytes tell, and how long the byte order mark is."""
    for mark, encoding in MARKS.items():
        if head.startswith(mark):
            return encoding, len(mark)
    return wide_encoding(head) or "utf-8", 0


def sniffed_delimiter(head: bytes, format: CsvFormat, known: Collection[str]) -> str:
    """Return the delimiter of a file: that of a header with ``known`` names, else that which lines agree on."""
    scores = {}
    for delimiter in _DELIMITERS:
        if delimiter in (format.quote, format.comment) or (delimiter == "," and format.decimal == ","):
            continue
        rows = CsvRows(replace(format, delimiter=delimiter), ["", ""], spans=True)
        first, _, at = rows.header(head)
        if first is None:
            continue
        names = {cell.decode(errors="replace").strip() for cell in first}
        if known and names.issuperset(known) and len(first) > 1:
            return delimiter
        lines = [line for line in head[at:].splitlines()[:_LINES] if line.strip()]
        alike = sum(len(rows.cells(line) or ()) == len(first) for line in lines)
        share = alike / len(lines) if lines else 1.0
        if len(first) > 1:
            scores[delimiter] = (share > 0.5, len(first))
    return max(scores, key=scores.__getitem__, default=",")


def sniffed_cells(head: pa.RecordBatch, format: CsvFormat) -> CsvFormat:
    """Return ``format`` with the signs of numbers and the forms of dates that columns of the first block show."""
    columns = [column.drop_null().cast(pa.string()) for column in head.columns if _is_utf8(column)]
    columns = [column for column in columns if len(column)]
    if not format.thousands:
        format = _with_thousands(columns, format)
    if format.decimal is None and format.delimiter != ",":
        comma = any(_share(c, _COMMA) > 0.5 and _share(c, _SURE_COMMA) > 0 for c in columns)
        point = any(_share(c, _POINT) > 0.5 for c in columns)
        format = replace(format, decimal="," if comma and not point and format.thousands != "," else None)
    if not format.date_forms:
        forms = [form for form in map(_form_of, columns) if form]
        format = replace(format, dates=tuple(dict.fromkeys(forms)))
    return format


def _with_thousands(columns: list[pa.Array], format: CsvFormat) -> CsvFormat:
    """Return ``format`` with both signs of numbers where one has both, and no column has numbers of another form."""
    for decimal, thousands, both, other in _SIGNS:
        if format.decimal in (None, decimal) and not (decimal == "," == format.delimiter):
            found = replace(format, decimal=decimal, thousands=thousands)
            numbers = number_pattern(found)
            is_sure = [_share(c, both) > 0 and _share(c, numbers) > 0.5 for c in columns]
            others = [c for c, sure in zip(columns, is_sure, strict=True) if not sure]
            if any(is_sure) and all(_share(c, other) <= 0.5 for c in others):
                return found
    return format


def _share(texts: pa.Array, pattern: str) -> float:
    return float(pc.match_substring_regex(texts, pattern).true_count) / len(texts)


def _form_of(texts: pa.Array) -> str | None:
    """Return the form of dates that more than half of some texts have, if it has one meaning."""
    forms = ["%d.%m.%Y"]
    parts = pc.extract_regex(texts, r"^\s*(?P<a>[0-9]{1,2})/(?P<b>[0-9]{1,2})/[0-9]{4}\b").drop_null()
    if len(parts):
        first, second = (pc.max(pc.struct_field(parts, n).cast(pa.int8())).as_py() for n in "ab")
        forms = ["%d/%m/%Y"] if first > 12 >= second else ["%m/%d/%Y"] if second > 12 >= first else []
    tried = [day + clock for day in forms for clock in _CLOCKS] + ["%d/%b/%Y:%H:%M:%S %z"]
    return next((form for form in tried if 2 * matches(texts, form).true_count > len(texts)), None)


def _is_utf8(column: pa.Array) -> bool:
    try:
        column.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True
