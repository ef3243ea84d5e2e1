"""Windows of SQL: calls of TUMBLE, HOP, CUMULATE, SESSION in FROM and GROUP BY, and time_bucket.

Flink and RisingWave write a slide before its range, Arroyo as well; windows begin at 1970 there, those of
``time_bucket`` on 2000-01-03, a Monday, as in DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
from sqlglot import exp

from oop_engine.core.errors import EngineError
from oop_engine.core.schema import Schema
from oop_engine.core.units import TIME_UNITS
from oop_engine.operators.windows import Landmark, Session, Sliding, Tumbling, Windows
from oop_engine.query.joins import as_length
from oop_engine.query.registered import WINDOWS
from oop_engine.query.sql.reading.mistakes import mistake
from oop_engine.query.sql.scalar.literals import interval_us
from oop_engine.query.sql.scalar.moments import ORIGIN_US, moment_us, origin_of

__all__ = ["bucket", "of_call", "truncated"]

_OFFSET = "a last length moves where windows begin"
_FORMS = {
    "TUMBLE": f"TUMBLE(s, ts, INTERVAL '1' MINUTE); {_OFFSET}",
    "HOP": f"HOP(s, ts, INTERVAL '10' SECOND, INTERVAL '1' MINUTE): the slide, then the range; {_OFFSET}",
    "CUMULATE": f"CUMULATE(s, ts, INTERVAL '1' HOUR, INTERVAL '1' DAY): the step, then the size; {_OFFSET}",
    "SESSION": "SESSION(s, ts, INTERVAL '5' MINUTE): the gap alone",
}
_MOST_STEPS = 10_000
_TRUNCATED = {"SECOND": "1 s", "MINUTE": "1 min", "HOUR": "1 h", "DAY": "1 day", "WEEK": "7 days"}


def of_call(text: str, node: Any, lengths: Sequence[Any], schema: Schema) -> Windows | dict[str, Windows]:
    """Return the windows of a call by its name and its lengths."""
    name = node.name.upper()
    values = [length_of(text, length, schema) for length in lengths]
    if name == "CUMULATE" and len(values) in (2, 3):
        return _cumulating(text, node, values, schema)
    try:
        return WINDOWS[name](*values)
    except (EngineError, TypeError) as error:
        words = f"{name} reads {_FORMS[name]}" if name in _FORMS else f"{name}: {error}"
        raise mistake(text, node, words) from error


_BUILT_IN: dict[str, Callable[..., Windows]] = {
    "TUMBLE": lambda size, offset=0: Tumbling(size, offset),
    "HOP": lambda slide, size, offset=None: _hopping(slide, size, offset),
    "CUMULATE": lambda step: Landmark(step),
    "SESSION": lambda gap: Session(gap),
}
for _name, _made in _BUILT_IN.items():
    WINDOWS.register(_name, _made, __name__)


def _hopping(slide: Any, size: Any, offset: Any) -> Windows:
    """Return windows that begin at multiples of ``slide``, moved by ``offset``, also where these are no multiples."""
    rest = size % slide if slide else None
    moved = rest if offset is None else offset + rest if rest else offset
    return Sliding(size, slide, moved) if moved else Sliding(size, slide)


def _cumulating(text: str, node: Any, values: Sequence[Any], schema: Schema) -> dict[str, Windows]:
    """Return the windows that begin every ``size`` and end every ``step``, by their numbers."""
    step, size, *moved = values
    offset = schema.length(moved[0], "CUMULATE: offset") if moved else 0
    step_units, whole = schema.length(step, "CUMULATE"), schema.length(size, "CUMULATE")
    if step_units < 1 or whole % step_units or whole // step_units > _MOST_STEPS:
        words = f"CUMULATE takes a step, then a size that is a multiple of it, at most {_MOST_STEPS:,} times as long"
        raise mistake(text, node, words)
    ends = range(step_units, whole + 1, step_units)
    return {
        str(number): Sliding(as_length(end, schema.unit), size, origin=as_length(end + offset, schema.unit))
        for number, end in enumerate(ends, 1)
    }


def length_of(text: str, node: Any, schema: Schema) -> Any:
    """Return a length: an interval, or an integer in the unit of the event time."""
    if isinstance(node, exp.Literal) and not node.is_string:
        return int(node.this)
    micros = interval_us(text, node)
    if pa.types.is_timestamp(schema.type_of(schema.progressing)) or schema.unit in TIME_UNITS:
        return timedelta(microseconds=micros)
    raise mistake(text, node, f"{schema.progressing!r} is in {schema.unit!r}: write a plain integer")


def bucket(text: str, node: Any, schema: Schema) -> Windows:
    """Return the windows of ``time_bucket(INTERVAL ..., ts)``."""
    kind = schema.type_of(schema.progressing)
    size, given = length_of(text, node.this, schema), origin_of(node)
    if not pa.types.is_timestamp(kind):
        return Tumbling(size)
    micros = ORIGIN_US if given is None else moment_us(text, given)
    origin = datetime(1970, 1, 1) + timedelta(microseconds=micros)
    return Tumbling(size, origin.replace(tzinfo=ZoneInfo("UTC")) if kind.tz else origin)


def truncated(unit: str, schema: Schema) -> Windows | None:
    """Return the windows of ``date_trunc(unit, ts)``; None: they are of no one length, or of another zone."""
    zone = getattr(schema.type_of(schema.progressing), "tz", None)
    if unit not in _TRUNCATED or zone not in (None, "UTC"):
        return None
    monday = datetime(2000, 1, 3, tzinfo=ZoneInfo("UTC") if zone else None)
    return Tumbling(_TRUNCATED[unit], monday if unit == "WEEK" else 0)
