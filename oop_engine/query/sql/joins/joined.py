"""Joining: a join of two relations under a condition that was read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from oop_engine.core.errors import GraphError
from oop_engine.operators.joining.bands import AsOf, Band, Bands, WindowIdBand
from oop_engine.query.sql.joins.condition import Condition
from oop_engine.query.sql.joins.keys import with_keys
from oop_engine.query.sql.plans import band_of, pair_schema, paired, project
from oop_engine.query.sql.reading.mistakes import mistake, unsupported
from oop_engine.query.sql.relation import NamedStream, Names
from oop_engine.query.sql.scalar.expressions import Expressions

__all__ = ["joined"]

_TIME = "time"  # of a full join


def joined(
    text: str, node: Any, kind: str, condition: Condition, left: NamedStream, right: NamedStream
) -> NamedStream:
    """Return the join of ``kind``; raises ``UsageError`` at ``node`` for a condition that no join has."""
    condition, left, right = with_keys(text, condition, left, right)
    if kind == "full":
        condition, left = _without_time(condition, left)
    if not condition.pairs and not condition.is_bounded and not kind.startswith("asof"):
        raise unsupported(
            text, node, "a join without equal keys and without a band of time", "ON a.k = b.k AND ..."
        )
    try:
        if kind.startswith("asof"):
            return _as_of(text, node, kind.removeprefix("asof-"), condition, left, right)
        if kind == "right":
            mirrored = _Join(text, _turned(condition), right, left, "left").relation("left")
            names = (
                *mirrored.names.names[len(right.names.names) :],
                *mirrored.names.names[: len(right.names.names)],
            )
            return replace(mirrored, names=Names(names))
        return _Join(text, condition, left, right, kind).relation(kind)
    except GraphError as error:
        raise mistake(text, node, str(error)) from error


def _without_time(condition: Condition, left: NamedStream) -> tuple[Condition, NamedStream]:
    """Return a left side whose columns leave the name of the event time of full joins to that."""
    names = left.stream.schema.names
    if _TIME not in names:
        return condition, left
    new, number = f"_{_TIME}", 0
    while new in names:
        new, number = f"_{_TIME}_{number}", number + 1
    moved = {new if name == _TIME else name: name for name in names}
    columns = (replace(name, column=new) if name.column == _TIME else name for name in left.names.names)
    pairs = [(new if a == _TIME else a, b) for a, b in condition.pairs]
    relation = replace(left, stream=project(left.stream, moved), names=Names(tuple(columns)))
    return replace(condition, pairs=pairs), relation


class _Join:
    """A join, left and right as the operator has them."""

    def __init__(
        self, text: str, condition: Condition, left: NamedStream, right: NamedStream, kind: str
    ) -> None:
        self._text, self._condition, self._left, self._right = text, condition, left, right
        taken = [*left.stream.schema.names, *([_TIME] if kind == "full" else [])]
        self.suffix, names = "_right", right.stream.schema.names
        while any(f"{name}{self.suffix}" in (*taken, *names) for name in names):
            self.suffix += "_"
        of_right = {name: f"{name}{self.suffix}" if name in taken else name for name in names}
        moved = (replace(name, column=of_right[name.column]) for name in right.names.names)
        self.names = Names((*left.names.names, *moved))

    def _band(self) -> tuple[Bands, str | None]:
        """Return the band, and why a state without an end needs another."""
        condition = self._condition
        if condition.band is None:
            return band_of(condition.least, condition.most, self._left.stream.schema.unit)
        if condition.least is not None or condition.most is not None:
            words = "a join on windows and on a band of time: one of them is enough"
            raise GraphError(words)
        return condition.band, None

    def relation(self, kind: str) -> NamedStream:
        """Return the join of ``kind``."""
        left, right, condition = self._left.stream, self._right.stream, self._condition
        band, unbounded = self._band()
        where = None
        if condition.rest:
            schema = pair_schema(left, right, condition.pairs, band, self.suffix)
            where = Expressions(self._text, self.names, schema).predicate(exp.and_(*condition.rest))
        stream = paired(left, right, condition.pairs, band, kind, self.suffix, where, unbounded)
        return NamedStream(stream, self._left.names if kind in ("semi", "anti") else self.names)


def _as_of(
    text: str, node: Any, kind: str, condition: Condition, left: NamedStream, right: NamedStream
) -> NamedStream:
    """Return each left row with the latest right one that is not after it."""
    if condition.least is not None or condition.most != 0 or condition.rest:
        raise mistake(text, node, f"ASOF JOIN reads ON a.k = b.k AND a.{left.time} >= b.{right.time}")
    join = _Join(text, condition, left, right, kind)
    stream = paired(left.stream, right.stream, condition.pairs, AsOf(), kind, join.suffix)
    return NamedStream(stream, join.names)


def _turned_band(band: Bands | None) -> Bands | None:
    """Return the band on windows of the exchanged sides."""
    match band:
        case Band(before, after):
            return Band(after, before)
        case WindowIdBand(left, right, slide, origin):
            return WindowIdBand(right, left, slide, origin)
    return band


def _turned(condition: Condition) -> Condition:
    """Return the condition of the exchanged sides."""
    return Condition(
        [(b, a) for a, b in condition.pairs],
        None if condition.most is None else -condition.most,
        None if condition.least is None else -condition.least,
        condition.rest,
        _turned_band(condition.band),
    )
