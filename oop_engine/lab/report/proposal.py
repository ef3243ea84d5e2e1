"""Proposal: the query that fits a trace which was profiled, in Python and in SQL, to start from."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from oop_engine.core.schema import Schema
from oop_engine.core.units import TIME_UNITS, to_seconds
from oop_engine.traces.lengths import length_text
from oop_engine.traces.profiling import Profile

__all__ = ["in_python", "in_sql"]

_LENGTHS = {
    1: "1 second",
    10: "10 seconds",
    60: "1 minute",
    600: "10 minutes",
    3600: "1 hour",
    86400: "1 day",
}
_KEYWORDS = frozenset({
    "all", "and", "any", "array", "as", "asc", "at", "between", "both", "by", "case", "cast", "check",
    "collate", "column", "create", "cross", "cube", "current", "default", "desc", "describe", "distinct", "div",
    "do", "else", "end", "escape", "except", "exists", "extract", "false", "fetch", "final", "first", "for",
    "foreign", "from", "full", "global", "grant", "group", "having", "if", "ilike", "in", "index", "inner",
    "insert", "intersect", "interval", "into", "is", "join", "key", "language", "last", "lateral", "left",
    "like", "limit", "match", "natural", "next", "not", "null", "nulls", "of", "offset", "on", "only", "or",
    "order", "outer", "over", "partition", "percent", "pivot", "primary", "qualify", "range", "references",
    "right", "row", "rows", "schema", "select", "session", "set", "show", "some", "table", "then", "to", "true",
    "truncate", "union", "unique", "unnest", "update", "use", "using", "values", "view", "when", "where",
    "window", "with",
})  # fmt: skip
"""Words that SQL does not read as the name of a column, or reads otherwise in some places."""
_WINDOWS = 10  # the least number of windows that the trace spans


def in_python(path: Path, schema: Schema, profile: Profile) -> str:
    """Return an expression that counts the records of each window and key, with the least disorder that loses none."""
    text, unit = _disorder(profile), schema.unit
    own = "" if pa.types.is_timestamp(schema.type_of(schema.progressing)) else f", unit={json.dumps(unit)}"
    per = f", per={json.dumps(list(profile.by))}" if _is_per_key(profile) else ""
    source = f"scan({json.dumps(str(path))}).event_time({json.dumps(schema.progressing)}, {json.dumps(text)}{per}{own})"
    keys = ", ".join(map(json.dumps, _keys(schema, profile)))
    group = f".group_by({keys})" if keys else ""
    window = json.dumps(_LENGTHS[_window(profile)]) if unit in TIME_UNITS else str(_window(profile))
    return f"{source}{group}.window({window}).agg(n=Count()).run().table"


def in_sql(path: Path, schema: Schema, profile: Profile) -> str | None:
    """Return the same query in SQL, which measures the disorder itself; None if the event time is no timestamp."""
    if not pa.types.is_timestamp(schema.type_of(schema.progressing)):
        return None
    columns = "".join(f"{_quoted(name)}, " for name in _keys(schema, profile))
    file, time = str(path).replace("'", "''"), _quoted(schema.progressing)
    windows = f"TUMBLE('{file}', {time}, INTERVAL '{_LENGTHS[_window(profile)]}')"
    return f"SELECT {columns}window_start, count(*) AS n FROM {windows} GROUP BY ALL"


def _disorder(profile: Profile) -> str:
    lateness = profile.own_lateness if _is_per_key(profile) else profile.lateness
    most = profile.lateness.most if lateness is None else lateness.most
    return length_text(most, profile.unit) if most else "ordered"


def _is_per_key(profile: Profile) -> bool:
    return profile.own_lateness is not None and profile.own_lateness.most < profile.lateness.most


def _keys(schema: Schema, profile: Profile) -> tuple[str, ...]:
    """Return the columns that the trace was profiled by, or the first one of text."""
    texts = [field.name for field in schema.fields if pa.types.is_string(field.type)]
    return profile.by or tuple(name for name in texts if name != schema.progressing)[:1]


def _window(profile: Profile) -> int:
    """Return the length of windows, in seconds or else in the unit: a round one of which the trace spans ten."""
    span = (profile.last - profile.first) / _WINDOWS
    if profile.unit in TIME_UNITS:
        return max(
            (length for length in _LENGTHS if length <= to_seconds(int(span), profile.unit)), default=1
        )
    return int(f"1{'0' * (len(str(int(span))) - 1)}")


def _quoted(name: str) -> str:
    return (
        name if name.isidentifier() and name.lower() not in _KEYWORDS else '"' + name.replace('"', '""') + '"'
    )
