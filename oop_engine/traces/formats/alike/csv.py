"""CSV rows with quotes around the same cells: read in one pass, with the types of their columns (``alike``).

Rows that must be refused are left to the other reader, with the rest of their block: it tells why.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.core.units import TIME_UNITS
from oop_engine.core.values.arrays import converted
from oop_engine.traces.csv_format import CsvFormat
from oop_engine.traces.formats.alike.block import Alike, Cell, kind_of
from oop_engine.traces.formats.alike.kernel import TEXT
from oop_engine.traces.formats.csv_cells import canonical

__all__ = ["csv_alike"]


def csv_alike(
    lines: bytes, names: Sequence[str], columns: pa.Schema, required: Collection[str], format: CsvFormat
) -> pa.RecordBatch | None:
    """Return the ``columns`` of whole lines; None: rows are not written alike, or one must be refused.

    ``names``: of all cells of a row; ``required``: columns that must have a value.
    """
    if len(names) < 2 or format.comment or format.nulls or not _is_utf8(lines) or not lines.endswith(b"\n"):
        return None
    stops = np.zeros((2, 256), np.bool_)
    quote, delimiter = (format.quote or "").encode(), (format.delimiter or ",").encode()
    stops[:, [10, 13, *quote]] = True
    stops[0, delimiter[0]] = True
    line = lines[: lines.index(b"\n") + 1]
    cells: list[Cell] = []
    at, literal = 0, b""
    for number, name in enumerate(names):
        quoted = bool(quote) and line.startswith(quote, at)
        literal, begin = literal + quote * quoted, at + quoted
        end = begin
        while end < len(line) and not stops[int(quoted), line[end]]:
            end += 1
        cells.append(_cell(literal, name, columns, required, format, quoted=quoted))
        last = number == len(names) - 1
        literal = quote * quoted + (line[end + quoted :] if last else delimiter)
        at = end + len(literal)
        if line[end:at] != literal:
            return None
    if literal.strip(b"\r\n") != quote * quoted:
        return None
    read = Alike(cells, literal, stops).read(lines)
    return None if read is None else _typed(read[0], columns, required, format)


def _cell(
    literal: bytes,
    name: str,
    columns: pa.Schema,
    required: Collection[str],
    format: CsvFormat,
    *,
    quoted: bool,
) -> Cell:
    place = columns.get_field_index(name)
    if place < 0:
        return Cell(literal, TEXT, None, None, int(quoted))
    kind = columns.types[place]
    as_written = not (format.thousands or format.decimal == ",")
    read_as = kind_of(kind) if as_written else TEXT
    nullable = not quoted and (read_as == TEXT or name not in required)
    return Cell(literal, read_as, name, kind, int(quoted), nullable)


def _typed(
    cells: dict[str, pa.Array], columns: pa.Schema, required: Collection[str], format: CsvFormat
) -> pa.RecordBatch | None:
    """Return the cells in the types of their columns; None: a value does not fit, is missing, or is a far time."""
    arrays = []
    for field in columns:
        values = cells[field.name]
        if values.type != field.type:
            texts = canonical(values.cast(pa.binary()), field.type, format)
            values, lost = converted(texts, field.type)
            if lost is not None:
                return None
        if field.name in required and (values.null_count or _is_far(values)):
            return None
        arrays.append(values)
    return pa.RecordBatch.from_arrays(arrays, names=columns.names)


def _is_far(values: pa.Array) -> bool:
    """Return whether a time may be one that is refused, whatever the unit of the stream is."""
    if not pa.types.is_timestamp(values.type):
        return False
    ends = pc.min_max(values.cast(pa.int64())).as_py()
    most = 2**62 * TIME_UNITS[values.type.unit] // TIME_UNITS["ns"]
    return ends["min"] is not None and not (-most <= ends["min"] and ends["max"] < most)


def _is_utf8(lines: bytes) -> bool:
    if lines.isascii():
        return True
    try:
        lines.decode()
    except UnicodeDecodeError:
        return False
    return True
