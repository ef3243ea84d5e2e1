"""Over: the parts of ``OVER (...)``, read as the keys and the extent of a frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlglot import exp

from oop_engine.operators.windows.count import FARTHEST
from oop_engine.query.sql.reading.mistakes import mistake, unsupported
from oop_engine.query.sql.relation import NamedStream
from oop_engine.query.sql.scalar.literals import interval_us

__all__ = ["EVER", "Frame", "frame_of"]

EVER = 1 << 60
"""A length of time before each record that all records are within, in any unit: the longest that windows have."""

_ROWS = "OVER (PARTITION BY k ORDER BY {} ROWS BETWEEN 9 PRECEDING AND CURRENT ROW)"
_RANGE = "OVER (PARTITION BY k ORDER BY {} RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW)"
_SIDES = {"PRECEDING": -1, "FOLLOWING": 1}


@dataclass(frozen=True)
class Frame:
    """The records of a frame: those of equal ``keys``, by the event time and then by the columns ``tie``.

    ``first``, ``last``: offsets in rows from the record; by ``time``, ``first`` is a length in its unit that ends with
    the record.
    """

    keys: tuple[str, ...]
    first: int
    last: int = 0
    tie: tuple[str, ...] = ()
    time: bool = False

    @property
    def bounded(self) -> bool:
        """Return whether the records of a key that it stores have a number or a length."""
        return self.first < EVER if self.time else self.first > -FARTHEST and self.last < FARTHEST


def frame_of(text: str, node: Any, relation: NamedStream, column: Callable[[Any], str]) -> Frame:
    """Return the frame of ``OVER (...)`` over a relation; ``column`` gives the name of a parsed expression in it.

    Raises ``UsageError`` with its place for a frame that is not known.
    """
    listed = [column(partition) for partition in node.args.get("partition_by") or []]
    times = {relation.time, *relation.twins}
    keys = tuple(key for key in listed if key not in times)
    ordered, spec = node.args.get("order"), node.args.get("spec")
    is_shifted = isinstance(node.this, exp.Lag | exp.Lead)
    if len(keys) < len(listed):
        if ordered is None and spec is None and not is_shifted:
            return Frame(keys, 1, time=True)  # the records of one time
        words = "an order or a frame beside the event time in PARTITION BY"
        raise unsupported(text, node, words, f"PARTITION BY k ORDER BY {relation.time}, or neither")
    if ordered is None:
        if is_shifted or spec is not None:
            form = f"{node.this.key}(x)" if is_shifted else "a frame"
            raise mistake(
                text, node, f"{form} needs an order: OVER (PARTITION BY k ORDER BY {relation.time})"
            )
        return Frame(keys, -FARTHEST, FARTHEST)
    by, *tie = (column(expression.this) for expression in ordered.expressions)
    if by not in times:
        raise mistake(text, ordered, f"the order must be that of the event time, ORDER BY {relation.time}")
    down = _is_down(text, ordered, relation.time)
    if is_shifted:
        bounds = _shifted(text, node.this)
    elif spec is None or str(spec.args.get("kind")).upper() == "RANGE":
        return Frame(keys, _length(text, node, spec, relation, down=down), time=True)
    else:
        bounds = _rows(text, node, spec, _ROWS.format(relation.time))
    first, last = (-bounds[1], -bounds[0]) if down else bounds
    return Frame(keys, first, last, tuple(tie))


def _is_down(text: str, ordered: Any, time: str) -> bool:
    """Return whether the latest record is the first; raises ``UsageError`` for more columns in such an order."""
    first, *more = ordered.expressions
    down = bool(first.args.get("desc"))
    if more and (down or any(by.args.get("desc") or by.args.get("nulls_first") for by in more)):
        raise unsupported(text, ordered, "DESC or NULLS FIRST beside other columns", f"ORDER BY {time}, x")
    return down


def _shifted(text: str, call: Any) -> tuple[int, int]:
    """Return the frame of lag and lead: one record."""
    offset = call.args.get("offset")
    by = 1 if offset is None else _number(text, offset)
    at = -by if isinstance(call, exp.Lag) else by
    return at, at


def _rows(text: str, node: Any, spec: Any, form: str) -> tuple[int, int]:
    """Return the offsets of ROWS BETWEEN."""
    if str(spec.args.get("kind")).upper() != "ROWS":
        raise unsupported(text, node, "this frame", f"write {form}")
    first, last = (_offset(text, spec, side) for side in ("start", "end"))
    if first > last:
        raise mistake(text, node, f"the frame ends before it begins: write {form}")
    return first, last


def _offset(text: str, spec: Any, side: str) -> int:
    """Return a bound of ROWS BETWEEN as an offset; a missing end is the current row."""
    given = spec.args.get(side)
    if given is None or str(given).upper() == "CURRENT ROW":
        return 0
    sign = _SIDES.get(str(spec.args.get(f"{side}_side")).upper())
    if sign is None:
        raise mistake(text, given, f"PRECEDING or FOLLOWING is wanted here: {given} PRECEDING")
    return sign * (FARTHEST if str(given).upper() == "UNBOUNDED" else _number(text, given))


def _number(text: str, node: Any) -> int:
    """Return a number of rows."""
    if (
        not isinstance(node, exp.Literal)
        or node.is_string
        or not node.this.isdigit()
        or int(node.this) >= FARTHEST
    ):
        raise mistake(text, node, "a number of rows is wanted here, such as 1")
    return int(node.this)


def _length(text: str, node: Any, spec: Any, relation: NamedStream, *, down: bool) -> int:
    """Return the length of a frame over the time before each record; without one it is all of it, as in SQL."""
    start = exp.var("UNBOUNDED") if spec is None else spec.args.get("start")
    side, end = ("PRECEDING", None) if spec is None else (spec.args.get("start_side"), spec.args.get("end"))
    is_known = side == "PRECEDING" and str(end or "CURRENT ROW").upper() == "CURRENT ROW"
    if not is_known or down:
        raise unsupported(text, node, "this frame", f"write {_RANGE.format(relation.time)}")
    if str(start).upper() == "UNBOUNDED":
        return EVER
    length = timedelta(microseconds=interval_us(text, start))
    return relation.stream.schema.length(length, "OVER") + 1
