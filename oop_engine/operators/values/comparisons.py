"""Comparisons: expressions that compare a column of integers with a number, which are called by themselves.

Arrow's engine of expressions takes 80 microseconds to begin, however few rows there are; the function that it calls
takes 10.  An expression shows its parts in its text alone.  So a comparison is read from the text, made anew, and taken
if both are equal; whatever is not read goes the usual way.
"""

from __future__ import annotations

import operator
import re
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.system.knobs import knob

__all__ = ["compared"]

_TEXT = re.compile(r"\((\w+) (==|!=|<=|<|>=|>) (-?\d{1,18})\)", re.ASCII)
_SIGNS = {
    "==": (operator.eq, "equal"), "!=": (operator.ne, "not_equal"), "<": (operator.lt, "less"),
    "<=": (operator.le, "less_equal"), ">": (operator.gt, "greater"), ">=": (operator.ge, "greater_equal"),
}  # fmt: skip
_MOST = knob(__name__, "_MOST", 1024)  # expressions whose reading is remembered


class _Comparison(NamedTuple):
    """``function`` of a column and a number."""

    function: str
    column: str
    number: int


_read: dict[int, tuple[pc.Expression, _Comparison | None]] = {}
"""By identity: to compare expressions makes another one."""


def compared(expression: pc.Expression, batch: pa.RecordBatch) -> pa.Array | None:
    """Return an expression of the columns of a batch, if it compares a column of integers with a number.

    Null where the column is.  None: it is another expression, the column has no integers, or the number does not fit
    their type.  O(rows).
    """
    comparison = _comparison_of(expression)
    if comparison is None:
        return None
    column = batch.column(comparison.column)
    if not pa.types.is_integer(column.type):
        return None
    try:
        number = pa.scalar(comparison.number, column.type)
    except (pa.ArrowInvalid, OverflowError):
        return None
    return pc.call_function(comparison.function, [column, number])


def _comparison_of(expression: pc.Expression) -> _Comparison | None:
    known = _read.get(id(expression))
    if known is not None and known[0] is expression:
        return known[1]
    if len(_read) >= _MOST:
        _read.clear()
    comparison = _parsed(expression)
    _read[id(expression)] = expression, comparison
    return comparison


def _parsed(expression: pc.Expression) -> _Comparison | None:
    if (match := _TEXT.fullmatch(str(expression))) is None:
        return None
    name, sign, number = match.groups()
    compare, function = _SIGNS[sign]
    again: pc.Expression = compare(pc.field(name), int(number))
    return _Comparison(function, name, int(number)) if again.equals(expression) else None
