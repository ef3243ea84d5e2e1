"""Own answers: the methods by which an operator of others tells how a graph may be rewritten, tried when it is built.

A rewrite would meet a wrong answer much later, far from its method, or lose columns by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oop_engine.core.errors import EngineError, GraphError
from oop_engine.core.operator import Operator
from oop_engine.core.schema import Schema

__all__ = ["check_answers"]


def check_answers(
    name: str, operator: Operator, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
) -> None:
    """Raise ``GraphError`` unless the methods that an operator overrides return answers of their form."""
    behind = tuple(frozenset(schema.names) for schema in outputs)
    asked: dict[str, tuple[tuple[Any, ...], Callable[[Any, tuple[Schema, ...]], bool], str]] = {
        "reads": ((inputs, behind), _is_columns, f"a tuple of {len(inputs)} frozensets of column names, one an input"),
        "partition_keys": (
            (inputs,), _is_keys, f"None, or a list of keys, each a tuple of {len(inputs)} columns, one of each input",
        ),
        "keeps_order": ((inputs,), _is_flag, "True or False"),
        "uses_arrival": ((), _is_flag, "True or False"),
        "lineage": (
            (outputs[0].names[0], inputs), _is_origin, f"a tuple of {len(inputs)} columns or None, one an input",
        ),
    }  # fmt: skip
    for method, (given, is_right, wanted) in asked.items():
        if getattr(type(operator), method) is not getattr(Operator, method):
            _check(
                f"node {name!r} ({type(operator).__name__}): {method}",
                operator,
                method,
                given,
                is_right,
                wanted,
                inputs,
            )


def _check(
    place: str, operator: Operator, method: str, given: tuple[Any, ...],
    is_right: Callable[[Any, tuple[Schema, ...]], bool], wanted: str, inputs: tuple[Schema, ...],
) -> None:  # fmt: skip
    try:
        found = getattr(operator, method)(*given)
    except EngineError:
        raise
    except Exception as error:
        msg = f"{place} failed: {type(error).__name__}: {error}"
        raise GraphError(msg) from error
    if not is_right(found, inputs):
        columns = "; ".join(", ".join(schema.names) for schema in inputs)
        got = f"{' '.join(f'{found!r:.100}'.split())} ({type(found).__name__})"
        msg = f"{place} must return {wanted}; got {got}; the columns are {columns}"
        raise GraphError(msg)


def _is_columns(found: Any, inputs: tuple[Schema, ...]) -> bool:
    return (
        isinstance(found, tuple | list)
        and len(found) == len(inputs)
        and all(isinstance(some, set | frozenset) for some in found)
        and all(some <= {*schema.names} for some, schema in zip(found, inputs, strict=True))
    )


def _is_keys(found: Any, inputs: tuple[Schema, ...]) -> bool:
    return found is None or (isinstance(found, list) and all(_is_key(key, inputs) for key in found))


def _is_key(key: Any, inputs: tuple[Schema, ...]) -> bool:
    return (
        isinstance(key, tuple)
        and len(key) == len(inputs)
        and all(column in schema.names for column, schema in zip(key, inputs, strict=True))
    )


def _is_flag(found: Any, inputs: tuple[Schema, ...]) -> bool:
    return isinstance(found, bool)


def _is_origin(found: Any, inputs: tuple[Schema, ...]) -> bool:
    return (
        isinstance(found, tuple | list)
        and len(found) == len(inputs)
        and all(of is None or of in schema.names for of, schema in zip(found, inputs, strict=True))
    )
