"""Joins of queries: the operator, and the columns of its result as users of tables expect them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow.compute as pc

from oop_engine.core.errors import GraphError
from oop_engine.core.schema import Schema
from oop_engine.core.units import TIME_UNITS, Length
from oop_engine.operators.joining.bands import AsOf, Band, Bands
from oop_engine.operators.oa_join import OAJoin
from oop_engine.operators.project import Project
from oop_engine.operators.values.expressions import Expression
from oop_engine.query.expression import as_expression
from oop_engine.query.step import StepOutput, of_operator

__all__ = ["ALWAYS", "NO_BAND", "On", "as_length", "as_of", "interval_join", "joined"]

On = str | Sequence[str | tuple[str, str]]

ALWAYS = 2**62
"""A length that no two records are apart, in any unit."""
NO_BAND = (
    "a join without a bound on time keeps all records of both sides: add within=('0 s', '10 min'), "
    "take the latest one by join_asof, or read sources that end"
)


def as_length(units: int, unit: str) -> Any:
    """Return some units of the event time as a length that has its unit with it, where there is one."""
    return np.timedelta64(units, unit) if unit in TIME_UNITS else units  # type: ignore[call-overload]


def interval_join(
    left: StepOutput, right: StepOutput, on: On, within: Length | tuple[Length, Length] | None, how: str,
    where: Expression | None, suffix: str,
) -> StepOutput:  # fmt: skip
    """Return the pairs of equal keys whose times are near each other; see ``DataStream.join``."""
    band = _band(within, left.schema)
    unbounded = NO_BAND if within is None else None
    if how != "right":
        return joined(left, right, on, band, how, where, suffix, unbounded)
    if where is not None:
        msg = "join: where goes with how='inner', 'left', 'full', 'semi' and 'anti': exchange the streams"
        raise GraphError(msg)
    turned = Band(band.after, band.before)
    pairs = [(b, a) for a, b in _pairs(on)]
    names = _right_names(left.schema, right.schema, _pairs(on), suffix)
    matched = joined(right, left, pairs, turned, "left", None, "_of_left", unbounded)
    own = {name: f"{name}_of_left" if name in right.schema.names else name for name in left.schema.names}
    keys = dict(_pairs(on))
    columns: dict[str, Expression] = {
        name: keys[name] if keys.get(name) == name else own[name] for name in left.schema.names
    }
    columns = {name: old for name, old in columns.items() if old in matched.schema.names}
    columns |= {new: old for old, new in names.items()}
    progressing = names.get(right.schema.progressing, right.schema.progressing)
    return of_operator("columns", Project(columns, progressing=progressing), matched)


def as_of(
    left: StepOutput, right: StepOutput, on: On, within: Length | None, how: str, suffix: str
) -> StepOutput:
    """Return each left record with the latest right one; see ``DataStream.join_asof``."""
    return joined(left, right, on, AsOf(within), how, None, suffix, None)


def joined(
    left: StepOutput, right: StepOutput, on: On, band: Bands, how: str, where: Expression | None, suffix: str,
    unbounded: str | None,
) -> StepOutput:  # fmt: skip
    """Return the join; of key columns that have one name on both sides there is one."""
    pairs = _pairs(on)
    left.schema.require([a for a, _ in pairs], "join: on, left")
    right.schema.require([b for _, b in pairs], "join: on, right")
    operator = OAJoin(pairs, band, suffix=suffix, how=how)
    if where is not None:
        whole = operator.output_schemas((left.schema, right.schema))[0]
        operator = OAJoin(
            pairs, band, residual=as_expression(where, whole, "join: where"), suffix=suffix, how=how
        )
    stream = of_operator("join", operator, left, right, unbounded=unbounded)
    if how in ("semi", "anti"):
        return stream
    same = {f"{a}{suffix}": a for a, b in pairs if a == b}
    if not same:
        return stream
    columns: dict[str, Expression] = {name: name for name in stream.schema.names if name not in same}
    if how == "full":
        columns |= {a: pc.coalesce(pc.field(a), pc.field(b)) for b, a in same.items()}
    return of_operator("columns", Project(columns), stream)


def _right_names(left: Schema, right: Schema, pairs: list[tuple[str, str]], suffix: str) -> dict[str, str]:
    """Return the name in the result of each right column, without keys that have one name on both sides."""
    same = {b for a, b in pairs if a == b}
    return {
        name: f"{name}{suffix}" if name in left.names else name for name in right.names if name not in same
    }


def _pairs(on: On) -> list[tuple[str, str]]:
    """Return the key columns, a left and a right one each."""
    given: Sequence[Any] = (on,) if isinstance(on, str) else on
    return [(key, key) if isinstance(key, str) else (key[0], key[1]) for key in given]


def _band(within: Length | tuple[Length, Length] | None, schema: Schema) -> Band:
    if within is None:
        always = as_length(ALWAYS, schema.unit)
        return Band(always, always)
    if not isinstance(within, tuple):
        return Band(within, within)
    try:
        low, high = within
    except ValueError:
        msg = f"join: within is a length, or the least and the most, ('0 s', '10 min'); got {within!r}"
        raise GraphError(msg) from None
    return Band(_opposite(low), high)


def _opposite(length: Length) -> Length:
    """Return a length with the other sign.

    >>> _opposite("-5 s"), _opposite("5 s"), _opposite(3)
    ('5 s', '-5 s', -3)
    """
    if not isinstance(length, str):
        return -length
    text = length.strip()
    return text[1:].lstrip() if text.startswith("-") else f"-{text.removeprefix('+')}"
