"""Expressions that Filter, Project, WithColumns and Split compute from the columns of a page.

An expression is one of

* the name of a column, as text;
* a ``pyarrow.compute`` expression: ``pc.field("len") > 40``.  It can be pickled, and all
  those of an operator are evaluated in one pass;
* a function from a record batch to an array (Arrow or NumPy) with one value a row:
  ``lambda batch: np.hypot(batch["x"], batch["y"])``.  Only a named function of a module
  can be pickled.

Types are found when a graph is built, by evaluation on a page of no rows.  They are those
of Arrow: in an expression ``int64 * 2.5`` is a 32-bit float; cast the column to
``float64`` first if it matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.schema import Schema
from oop_engine.operators.values.comparisons import compared
from oop_engine.core.values.arrow_data import no_rows
from oop_engine.operators.values import row_functions as _registered  # noqa: F401  # expressions may name them

__all__ = [
    "Expression",
    "columns_of",
    "evaluate",
    "filled",
    "mask_of",
    "require_boolean",
    "text_of",
    "types_of",
]

_SHOWN = 100  # characters of an expression in the message of an error

Expression: TypeAlias = str | pc.Expression | Callable[[pa.RecordBatch], pa.Array | NDArray[Any]]


def types_of(place: str, expressions: Sequence[Expression], schema: Schema) -> list[pa.DataType]:
    """Return the Arrow type of each expression over ``schema``.

    Raises ``GraphError`` in the name of ``place`` for unknown columns, and for whatever does
    not evaluate on a page of no rows.

    >>> types_of("WithColumns", [pc.field("ts") > 5], Schema({"ts": pa.int64()}, "ts", "s"))
    [DataType(bool)]
    """
    return [_type_of(place, expression, schema) for expression in expressions]


def columns_of(expressions: Iterable[Expression], schema: Schema) -> frozenset[str]:
    """Return the columns of ``schema`` that expressions read: of a function all, for it may read any.

    An Arrow expression does not name its columns, but it does not evaluate where one of them is missing.

    >>> sorted(columns_of([pc.field("a") > 5], Schema({"ts": pa.int64(), "a": pa.int64()}, "ts", "s")))
    ['a']
    """
    return frozenset(name for expression in expressions for name in _columns_of(expression, schema))


def require_boolean(place: str, expressions: Sequence[Expression], schema: Schema) -> None:
    """Raise ``GraphError`` in the name of ``place`` unless all expressions are true or false."""
    for expression, kind in zip(expressions, types_of(place, expressions, schema), strict=True):
        if not pa.types.is_boolean(kind):
            msg = f"{place}: a predicate must be boolean; {text_of(expression)} is {kind}: compare it with something"
            raise GraphError(msg)


def evaluate(
    place: str, expressions: Sequence[Expression], types: Sequence[pa.DataType], batch: pa.RecordBatch
) -> list[pa.Array]:
    """Return the value of each expression, one a row, in its type as found by ``types_of``.

    O(rows); about 40 us a page for all ``pyarrow.compute`` expressions together.  Raises
    ``ContractError`` in the name of ``place`` if the data do not let it (division by zero,
    another type or number of rows than declared).
    """
    try:
        arrays = _arrays(expressions, batch)
        arrays = [a if a.type == kind else a.cast(kind) for a, kind in zip(arrays, types, strict=True)]
    except pa.ArrowException as error:
        why = ", ".join(str(error).splitlines())
        texts = ", ".join(_shortened(text_of(expression)) for expression in expressions)
        msg = f"{place}: {texts} cannot be evaluated on a page: {why}"
        raise ContractError(msg) from error
    for expression, array in zip(expressions, arrays, strict=True):
        if len(array) != batch.num_rows:
            msg = (
                f"{place}: one value a row; {text_of(expression)} gave {len(array)} for {batch.num_rows} rows"
            )
            raise ContractError(msg)
    return arrays


def mask_of(predicate: pa.BooleanArray) -> NDArray[np.bool_]:
    """Return where a predicate is true, bool (rows,); null is not true."""
    mask: NDArray[np.bool_] = filled(predicate).to_numpy(zero_copy_only=False)
    return mask


def filled(predicate: pa.BooleanArray) -> pa.BooleanArray:
    """Return a predicate with false for null."""
    return pc.fill_null(predicate, False) if predicate.null_count else predicate


def text_of(expression: Expression) -> str:
    """Return an expression as one would write it (a function: its name)."""
    return getattr(expression, "__name__", "a function") if callable(expression) else str(expression)


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


class _Bound:
    """An Arrow expression over columns, as a key: planning asks for the type of one a dozen times."""

    def __init__(self, expression: pc.Expression, fields: pa.Schema) -> None:
        self.expression, self.fields = expression, fields
        self._hash = hash((str(expression), *fields.names))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Bound):
            return NotImplemented
        return bool(self.fields.equals(other.fields) and self.expression.equals(other.expression))


@lru_cache(1024)
def _type_computed(bound: _Bound) -> pa.DataType:
    """Return the type of an expression; one that does not evaluate is evaluated anew."""
    return _computed([bound.expression], no_rows(bound.fields))[0].type


def _columns_of(expression: Expression, schema: Schema) -> Sequence[str]:
    if isinstance(expression, str):
        return [expression]
    if not isinstance(expression, pc.Expression):
        return schema.names
    return _columns_needed(_Bound(expression, schema.fields))


@lru_cache(1024)
def _columns_needed(bound: _Bound) -> tuple[str, ...]:
    return tuple(name for name in bound.fields.names if not _evaluates(bound, without=name))


def _evaluates(bound: _Bound, without: str) -> bool:
    expression, fields = (
        bound.expression,
        pa.schema([field for field in bound.fields if field.name != without]),
    )
    try:
        _computed([expression], no_rows(fields))
    except (pa.ArrowException, KeyError):
        return False
    return True


def _type_of(place: str, expression: Expression, schema: Schema) -> pa.DataType:
    if isinstance(expression, str):
        schema.require([expression], place)
        return schema.type_of(expression)
    if not (isinstance(expression, pc.Expression) or callable(expression)):
        msg = f"{place}: {expression!r} is no column name, pyarrow.compute expression or function of a record batch"
        raise GraphError(msg)
    try:
        if isinstance(expression, pc.Expression):
            kind = _type_computed(_Bound(expression, schema.fields))
        else:
            kind = _called(expression, no_rows(schema.fields)).type
    except Exception as error:  # a function may raise anything
        why = ", ".join(str(error).splitlines())
        msg = f"{place}: {text_of(expression)} does not evaluate on an empty page of {schema}: {why}"
        if isinstance(error, TypeError) and not isinstance(expression, pc.Expression):
            msg += (
                ": it gets a RecordBatch, whose columns pyarrow.compute compares; or write pc.field('n') > 3"
            )
        raise GraphError(msg) from error
    if pa.types.is_null(kind):
        msg = f"{place}: {text_of(expression)} has no type on an empty page: give one, pa.array(values, type=...)"
        raise GraphError(msg)
    return kind


def _arrays(expressions: Sequence[Expression], batch: pa.RecordBatch) -> list[pa.Array]:
    arrays = [compared(e, batch) if isinstance(e, pc.Expression) else _called(e, batch) for e in expressions]
    rest = [
        e
        for e, known in zip(expressions, arrays, strict=True)
        if known is None and isinstance(e, pc.Expression)
    ]
    computed = iter(_computed(rest, batch))
    return [next(computed) if known is None else known for known in arrays]


def _called(expression: Expression, batch: pa.RecordBatch) -> pa.Array:
    if isinstance(expression, str):
        return batch.column(expression)
    return _whole(expression(batch))


def _computed(expressions: list[pc.Expression], batch: pa.RecordBatch) -> list[pa.Array]:
    if not expressions:
        return []
    from pyarrow import acero  # here: it takes 20 ms and loads pyarrow.dataset

    source = acero.TableSourceNodeOptions(pa.Table.from_batches([batch]))
    project = acero.ProjectNodeOptions(expressions, [str(i) for i in range(len(expressions))])
    steps = [acero.Declaration("table_source", source), acero.Declaration("project", project)]
    table = acero.Declaration.from_sequence(steps).to_table(use_threads=False)
    return [_whole(column) for column in table.columns]


def _whole(values: pa.Array | pa.ChunkedArray | NDArray[Any]) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
    return values if isinstance(values, pa.Array) else pa.array(values)
