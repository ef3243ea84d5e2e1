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
    downstream = tuple(frozenset(schema.names) for schema in outputs)
    questions: dict[str, tuple[tuple[Any, ...], Callable[[Any, tuple[Schema, ...]], bool], str]] = {
        "reads": ((inputs, downstream), _is_columns, f"a tuple of {len(inputs)} frozensets of columns, one an input"),
        "partition_keys": (
            (inputs,), _is_keys, f"None, or a list of keys, each a tuple of {len(inputs)} columns, one of each input",
        ),
        "keeps_order": ((inputs,), _is_flag, "True or False"),
        "uses_arrival": ((), _is_flag, "True or False"),
        "lineage": (
            (outputs[0].names[0], inputs), _is_origin, f"a tuple of {len(inputs)} columns or None, one an input",
        ),
    }  # fmt: skip
    for method, (given, is_right, wanted) in questions.items():
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
        answer = getattr(operator, method)(*given)
    except EngineError:
        raise
    except Exception as error:
        msg = f"{place} failed: {type(error).__name__}: {error}"
        raise GraphError(msg) from error
    if not is_right(answer, inputs):
        columns = "; ".join(", ".join(schema.names) for schema in inputs)
        got = f"{' '.join(f'{answer!r:.100}'.split())} ({type(answer).__name__})"
        msg = f"{place} must return {wanted}; got {got}; the columns are {columns}"
        raise GraphError(msg)


def _is_columns(answer: Any, inputs: tuple[Schema, ...]) -> bool:
    return (
        isinstance(answer, tuple | list)
        and len(answer) == len(inputs)
        and all(isinstance(columns, set | frozenset) for columns in answer)
        and all(columns <= {*schema.names} for columns, schema in zip(answer, inputs, strict=True))
    )


def _is_keys(answer: Any, inputs: tuple[Schema, ...]) -> bool:
    return answer is None or (isinstance(answer, list) and all(_is_key(key, inputs) for key in answer))


def _is_key(key: Any, inputs: tuple[Schema, ...]) -> bool:
    return (
        isinstance(key, tuple)
        and len(key) == len(inputs)
        and all(column in schema.names for column, schema in zip(key, inputs, strict=True))
    )


def _is_flag(answer: Any, inputs: tuple[Schema, ...]) -> bool:
    return isinstance(answer, bool)


def _is_origin(answer: Any, inputs: tuple[Schema, ...]) -> bool:
    return (
        isinstance(answer, tuple | list)
        and len(answer) == len(inputs)
        and all(
            column is None or column in schema.names for column, schema in zip(answer, inputs, strict=True)
        )
    )
