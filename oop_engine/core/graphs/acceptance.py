"""Acceptance: whether a node is one, and may stand behind others by their rows; checked when a graph is built."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, get_args, get_type_hints

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import EngineError, GraphError, OperatorError
from oop_engine.core.graphs.own_answers import check_answers
from oop_engine.core.operator import Operator
from oop_engine.core.registry import is_ours
from oop_engine.core.schema import Schema

__all__ = ["check_accepts", "check_given", "opened", "output_schemas"]

_METHODS = (
    "output_schemas", "open", "on_page", "on_punctuation", "on_end", "on_clock", "state", "counts", "save", "load",
    "describe", "partition_keys", "lineage", "keeps_order", "twin", "halves", "reads", "wants",
    "uses_arrival",
)  # fmt: skip
_NAME = re.compile(r"[\w-]+")
_SUCH = {
    "source": "a schema, Schema(columns, progressing)",
    "operator": "an operator, such as Filter('flag')",
}


def check_given(place: str, name: object, kind: str, given: object) -> None:
    """Raise ``GraphError`` unless ``name`` is one, and a source has a schema, an operator an ``Operator``."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        first = "" if isinstance(name, str) else ": the name comes first"
        msg = f"{place}: a name is made of letters, digits, '_' and '-'; got {name!r}{first}"
        raise GraphError(msg)
    if kind in _SUCH and not isinstance(given, Schema if kind == "source" else Operator):
        msg = f"{place}: {name!r} must have {_SUCH[kind]}; got {given!r}"
        raise GraphError(msg)
    if isinstance(given, Operator) and not is_ours(type(given)):
        _check_form(f"{place}: {name!r} ({type(given).__name__})", given)


def _check_form(place: str, operator: Operator) -> None:
    """Raise ``GraphError`` unless the attributes of an operator of others have the types of ``Operator``."""
    version, takes = operator.state_version, get_args(get_type_hints(Operator)["revisions"])
    for name in ("inputs", "outputs"):
        ports: object = getattr(operator, name)
        if (
            not isinstance(ports, tuple | list)
            or not ports
            or not all(p and isinstance(p, str) for p in ports)
        ):
            way = f": write ({ports!r},)" if isinstance(ports, str) else ""
            msg = f"{place}: {name} must be a tuple of names of ports; got {ports!r:.60}{way}"
            raise GraphError(msg)
        if len(set(ports)) != len(ports):
            msg = f"{place}: {name} must have different names; got {ports!r:.60}"
            raise GraphError(msg)
    if type(version) is not int or version < 1:
        msg = f"{place}: state_version must be a whole number from 1 on; got {version!r:.60}"
        raise GraphError(msg)
    if operator.revisions not in takes:
        msg = (
            f"{place}: revisions must be one of {', '.join(map(repr, takes))}; got {operator.revisions!r:.60}"
        )
        raise GraphError(msg + did_you_mean(operator.revisions, takes))
    for name in _METHODS:
        if not callable(getattr(operator, name)):
            msg = f"{place}: {name} must be a method, def {name}(self, ...); got {getattr(operator, name)!r:.60}"
            raise GraphError(msg)


def output_schemas(name: str, operator: Operator, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
    """Return the schemas of an operator's outputs; an error of it names the node.

    Raises ``GraphError`` if it raises one that is none of ours, or returns anything but a schema for each output.
    """
    kind = type(operator).__name__
    try:
        returned: Any = operator.output_schemas(inputs)
    except GraphError as error:
        error.args = (f"node {name!r}: {error}",)
        raise
    except EngineError:
        raise
    except Exception as error:
        msg = f"node {name!r} ({kind}): output_schemas failed: {type(error).__name__}: {error}"
        raise GraphError(msg) from error
    many = len(operator.outputs)
    if (
        isinstance(returned, tuple | list)
        and len(returned) == many
        and all(isinstance(schema, Schema) for schema in returned)
    ):
        if not is_ours(type(operator)):
            check_answers(name, operator, inputs, tuple(returned))
        return tuple(returned)
    wanted = (
        f"a tuple of {many} Schema{'' if many == 1 else 's'}, one for each of {', '.join(operator.outputs)}"
    )
    got = f"{' '.join(f'{returned!r:.100}'.split())} ({type(returned).__name__})"
    msg = f"node {name!r} ({kind}): output_schemas must return {wanted}; got {got}"
    raise GraphError(msg)


def check_accepts(
    name: str, operator: Operator, inputs: Sequence[Schema], before: Iterable[tuple[str, Operator | None]]
) -> None:
    """Raise ``GraphError`` if the operator of node ``name`` would misunderstand its input.

    That is a revision stream that it does not take, or the rows of a node ``before`` it that are for sinks alone.
    """
    if operator.revisions == "refuses" and any(schema.change for schema in inputs):
        kind = type(operator).__name__
        msg = f"node {name!r}: {kind} cannot take revisions: put a Finalize before it, which ends them"
        raise GraphError(msg)
    for other, made_by in before:
        if made_by is not None and made_by.for_sinks:
            msg = (
                f"node {name!r}: behind {other!r} there can be sinks only, for {made_by.for_sinks}: "
                "take mode='retracting', whose rows operators understand"
            )
            raise GraphError(msg)


def opened(graph: str, name: str, operator: Operator, inputs: tuple[Schema, ...]) -> Operator:
    """Return the operator of a node, ready for messages; an error of ``open`` names it.

    Raises ``GraphError`` if its clock has no interval in whole units.
    """
    kind = type(operator).__name__
    try:
        ready = operator.opened(*inputs)
        every: Any = ready.clock_every
    except EngineError:
        raise
    except Exception as error:
        msg = f"graph {graph!r}, operator {name!r} ({kind}): open failed: {type(error).__name__}: {error}"
        raise OperatorError(msg) from error
    if every is None or (isinstance(every, Integral) and int(every) > 0):
        return ready
    msg = f"node {name!r} ({kind}): clock_every must be None, or a whole number of units above 0; got {every!r:.60}"
    raise GraphError(msg)
