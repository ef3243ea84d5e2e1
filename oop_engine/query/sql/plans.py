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
from oop_engine.query.joins import ALWAYS, NO_BAND, as_length
from oop_engine.query.step import of_operator

__all__ = ["band_of", "filtered", "pair_schema", "paired", "project", "then"]

Pairs = Sequence[tuple[str, str]]


def then(stream: DataStream, hint: str, operator: Operator, unbounded: str | None = None) -> DataStream:
    """Return the output of ``operator`` over a stream."""
    return DataStream(of_operator(hint, operator, stream.output, unbounded=unbounded))


def filtered(stream: DataStream, predicate: Any) -> DataStream:
    """Return the records for which a predicate is true; of a union each input by itself, so that less is merged."""
    step = stream.output.step
    if not isinstance(step.operator, Meld) or step.name is not None:
        return stream.filter(predicate)
    first, *others = (filtered(DataStream(one), predicate) for one in step.inputs)
    return first.union(*others)


def project(stream: DataStream, columns: Mapping[str, Any], progressing: str | None = None) -> DataStream:
    """Return columns under new names, computed ones too; all under their own names are the stream itself."""
    same = [name for name, one in columns.items() if isinstance(one, str) and one == name]
    if same == stream.columns and len(columns) == len(same):
        return stream
    return then(stream, "select", Project(dict(columns), progressing=progressing))


def band_of(least: int | None, most: int | None, unit: str) -> tuple[Band, str | None]:
    """Return the band of right times minus left ones, and why a state without an end needs another."""
    before = ALWAYS if least is None else -least
    after = ALWAYS if most is None else most
    bounded = least is not None and most is not None
    return Band(as_length(before, unit), as_length(after, unit)), None if bounded else NO_BAND


def paired(
    left: DataStream, right: DataStream, pairs: Pairs, band: Bands, kind: str, suffix: str, where: Any = None,
    unbounded: str | None = None,
) -> DataStream:  # fmt: skip
    """Return the join with all columns of both; names that the left one has get the suffix."""
    operator = OAJoin(list(pairs), band, where, suffix=suffix, kind=kind)
    return DataStream(of_operator("join", operator, left.output, right.output, unbounded=unbounded))


def pair_schema(left: DataStream, right: DataStream, pairs: Pairs, band: Bands, suffix: str) -> Schema:
    """Return the columns of a pair, on which a predicate is evaluated."""
    return OAJoin(list(pairs), band, suffix=suffix).output_schemas((left.schema, right.schema))[0]
