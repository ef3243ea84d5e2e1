"""Plans: the operators that SQL puts behind a stream, where the words of ``DataStream`` say less than it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oop_engine.core.operator import Operator
from oop_engine.core.schema import Schema
from oop_engine.operators.joining.bands import Band, Bands
from oop_engine.operators.meld import Meld
from oop_engine.operators.oa_join import OAJoin
from oop_engine.operators.project import Project
from oop_engine.query.data_stream import DataStream
from oop_engine.query.joins import ALWAYS, as_length
from oop_engine.query.step import of_operator

__all__ = [
    "GROUPED",
    "NOT_DISTINCT",
    "OF_SUBQUERY",
    "band_of",
    "filtered",
    "pair_schema",
    "paired",
    "project",
    "then",
]

Pairs = Sequence[tuple[str, str]]

_BAND = "b.ts BETWEEN a.ts - INTERVAL '5' MINUTE AND a.ts"
GROUPED = (
    "a GROUP BY without a window has a state for each key and a result only at the end of the stream: "
    "group by a window, TUMBLE(s, ts, INTERVAL '1' MINUTE) or time_bucket(INTERVAL '1 minute', ts), "
    "add EMIT CHANGES, which shows how it grows, or read a source that ends"
)
NOT_DISTINCT = (
    "SELECT DISTINCT, or UNION, without the event time keeps each row until the stream ends: "
    "add the column of event time to the list, group by a window (of UNION write UNION ALL), or read a source that ends"
)
OF_SUBQUERY = (
    "the value of a subquery is known only when its stream ends: "
    f"add a band of time to its WHERE, {_BAND}, join results of windows ON a.window_end = b.window_end, "
    "or read a source that ends"
)
_JOINED = (
    "a join, IN or EXISTS {lacks} keeps all records of {whom}: "
    f"add the band AND {_BAND}, join results of windows ON a.window_end = b.window_end, or read sources that end"
)


def then(stream: DataStream, hint: str, operator: Operator, unbounded: str | None = None) -> DataStream:
    """Return the output of ``operator`` over a stream."""
    return DataStream(of_operator(hint, operator, stream.output, unbounded=unbounded))


def filtered(stream: DataStream, predicate: Any) -> DataStream:
    """Return the records for which a predicate is true; of a union each input by itself, so that less is merged."""
    step = stream.output.step
    if not isinstance(step.operator, Meld) or step.name is not None:
        return stream.filter(predicate)
    first, *others = (filtered(DataStream(stream), predicate) for stream in step.inputs)
    return first.union(*others)


def project(stream: DataStream, columns: Mapping[str, Any], progressing: str | None = None) -> DataStream:
    """Return columns under new names, computed ones too; all under their own names are the stream itself."""
    same = [name for name, column in columns.items() if isinstance(column, str) and column == name]
    if same == stream.columns and len(columns) == len(same):
        return stream
    return then(stream, "select", Project(dict(columns), progressing=progressing))


def band_of(least: int | None, most: int | None, unit: str) -> tuple[Band, str | None]:
    """Return the band of right times minus left ones, and why a state without an end needs another."""
    before = ALWAYS if least is None else -least
    after = ALWAYS if most is None else most
    bounded = least is not None and most is not None
    half = least is not None or most is not None
    lacks = "whose band of time has one end alone" if half else "without a band of time"
    words = _JOINED.format(lacks=lacks, whom="one side" if half else "both sides")
    return Band(as_length(before, unit), as_length(after, unit)), None if bounded else words


def paired(
    left: DataStream, right: DataStream, pairs: Pairs, band: Bands, kind: str, suffix: str, where: Any = None,
    unbounded: str | None = None,
) -> DataStream:  # fmt: skip
    """Return the join with all columns of both; names that the left one has get the suffix."""
    operator = OAJoin(list(pairs), band, residual=where, suffix=suffix, how=kind)
    return DataStream(of_operator("join", operator, left.output, right.output, unbounded=unbounded))


def pair_schema(left: DataStream, right: DataStream, pairs: Pairs, band: Bands, suffix: str) -> Schema:
    """Return the columns of a pair, on which a predicate is evaluated."""
    return OAJoin(list(pairs), band, suffix=suffix).output_schemas((left.schema, right.schema))[0]
