"""Arguments: they are checked where an object is made, by the annotations of the parameters.

A wrong name, a missing argument or a value of another type raises ``GraphError`` in the words of the caller, and not a
``TypeError`` from inside.  One name stands for a sequence of one: ``by="host"`` is ``by=("host",)``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import timedelta
from enum import Enum
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from pyarrow.compute import Expression

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import GraphError

__all__ = ["ARGUMENTS", "checked_arguments"]

T = TypeVar("T")
Check = Callable[[str, str, Any], Any]
"""Takes the class, the parameter and the value; returns the value to use, or raises ``GraphError``."""

_OTHER_WORDS = {
    "by": "keys key group_by groupby partition_by partitions on",
    "keys": "by on key using",
    "range": "size length width window",
    "slide": "step hop every period advance",
    "gap": "timeout inactivity",
    "how": "kind type join",
    "aggregates": "aggs agg aggregations functions",
    "column": "field col name",
    "origin": "offset start",
}
"""Names that options have elsewhere."""
_KEPT = ("self", "_")
ARGUMENTS = "_arguments"
"""The attribute with the arguments that an object was made with, by place and by name."""
_MOST = 2**63 - 1
_WHOLE, _NUMBERS = (int, np.integer), (int, float, np.integer, np.floating)
_SEQUENCES = (Sequence, Iterable, tuple, list)


def checked_arguments(cls: type[T]) -> type[T]:
    """Make the constructor of a class raise ``GraphError`` for arguments that its annotations exclude; a decorator.

    Integers must be no bool and have no fraction, names may be one name, members of an enumeration are named in full.
    Other annotations (names, lengths, functions of several forms) are left to the class, which knows more.

    >>> @checked_arguments
    ... class Last:
    ...     def __init__(self, n: int, by: Sequence[str] = ()) -> None:
    ...         self.n, self.by = n, by
    >>> Last(3, by="host").by
    ('host',)
    >>> Last(n="3")
    Traceback (most recent call last):
    oop_engine.core.errors.GraphError: Last: n must be an integer; got '3'
    >>> Last(3, keys=["host"])
    Traceback (most recent call last):
    oop_engine.core.errors.GraphError: Last: there is no option 'keys'; there are n, by; did you mean by?
    """
    init: Any = cls.__init__

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **options: Any) -> None:
        name = type(self).__name__
        parameters: Mapping[str, Check | None] = _checks(init, cls)  # type: ignore[arg-type]
        if parameters:
            args = (
                tuple(
                    value if check is None else check(name, parameter, value)
                    for value, (parameter, check) in zip(args, parameters.items(), strict=False)
                )
                + args[len(parameters) :]
            )
            for parameter, value in options.items():
                if (check := parameters.get(parameter)) is not None:
                    options[parameter] = check(name, parameter, value)
        try:
            init(self, *args, **options)
        except TypeError:
            if problem := _misfit(init, name, args, options):
                raise GraphError(problem) from None
            raise
        if type(self).__init__ is cls.__init__ and not is_dataclass(cls) and hasattr(self, "__dict__"):
            vars(self)[ARGUMENTS] = (args, options)

    cls.__init__ = __init__  # type: ignore[method-assign]
    return cls


def _misfit(init: Any, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> str | None:
    """Return in words why the arguments do not bind, or None: they do."""
    signature = inspect.signature(init)
    parameters = list(signature.parameters.values())[1:]
    try:
        signature.bind(None, *args, **options)
    except TypeError:
        names = [parameter.name for parameter in parameters]
        needed = [
            parameter.name
            for parameter in parameters
            if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
        ]
        if unknown := [option for option in options if option not in names]:
            hint = _meant(unknown[0], names)
            return f"{name}: there is no option {unknown[0]!r}; there are {', '.join(names) or 'none'}{hint}"
        by_place = [
            parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ]
        if len(args) > len(by_place):
            got = f"got {len(args)} of them: write the others by name"
            return f"{name}: takes at most {len(by_place)} arguments by place ({', '.join(by_place)}); {got}"
        if twice := [option for option in options if option in by_place[: len(args)]]:
            return f"{name}: {twice[0]!r} is given twice, by place and by name: leave one out"
        given = {*by_place[: len(args)], *options}
        missing = [option for option in needed if option not in given]
        form = f"{name}({', '.join(option if option in needed else f'{option}=...' for option in names)})"
        got = f"got {len(given) or 'no'} argument{'s' * (len(given) != 1)}"
        return f"{name}: needs {' and '.join(missing)}; {got}: write {form}"
    return None


def _meant(option: str, names: list[str]) -> str:
    """Return the hint for an option that is not known: one of the same meaning, or of a close name."""
    same = (name for name in names if option in _OTHER_WORDS.get(name, "").split())
    return did_you_mean(next(same, option), names)


@functools.cache
def _checks(init: Any, cls: type[Any]) -> dict[str, Check | None]:
    """Return the check of each parameter but the first, in order; None: the class checks it."""
    several = inspect.Parameter.VAR_POSITIONAL
    parameters = [
        parameter
        for parameter in list(inspect.signature(init).parameters.values())[1:]
        if parameter.kind is not several
    ]
    try:
        hints = {**_hints(cls), **_hints(init)}
    except NameError:  # of a module that imports the type for type checkers alone
        hints = {}
    return {parameter.name: _check_of(hints.get(parameter.name)) for parameter in parameters}


def _hints(function: Any) -> dict[str, Any]:
    return get_type_hints(function)


def _check_of(kind: Any) -> Check | None:
    """Return the check of an annotation."""
    if get_origin(kind) in (Union, UnionType):
        kinds = [argument for argument in get_args(kind) if argument is not NoneType]
        if len(kinds) < len(get_args(kind)):
            inner = _check_of(Union[tuple(kinds)]) if kinds else None  # noqa: UP007
            return None if inner is None else functools.partial(_optional, inner)
        if set(kinds) == {int, float}:
            return _number
        if {int, str, timedelta} <= set(kinds):
            return _length
        return functools.partial(_instance, tuple(kinds)) if all(map(_is_ours, kinds)) else None
    if get_origin(kind) in _SEQUENCES or (get_origin(kind) and get_origin(kind) in (Sequence, Iterable)):
        return _names if get_args(kind)[:1] == (str,) else None
    if get_origin(kind) is Callable or kind is Callable:
        return _function
    if get_origin(kind) is Mapping:
        return _mapping
    if isinstance(kind, type) and issubclass(kind, Enum):
        return functools.partial(_member, kind)
    plain: dict[Any, Check] = {int: _integer, float: _number, bool: _flag, str: _text}
    if kind in plain if isinstance(kind, type) else False:
        return plain[kind]
    return functools.partial(_instance, (kind,)) if _is_ours(kind) else None


def _is_ours(kind: Any) -> bool:
    """Return whether a type is a class of this package, no protocol, whose objects are asked for in no other words."""
    return (
        isinstance(kind, type)
        and kind.__module__.startswith("oop_engine.")
        and not getattr(kind, "_is_protocol", False)
    )


def _refuse(name: str, parameter: str, wanted: str, value: Any, way_out: str = "") -> GraphError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    return GraphError(f"{name}: {parameter} must be {wanted}; got {shown}{way_out}")


def _optional(inner: Check, name: str, parameter: str, value: Any) -> Any:
    return None if value is None else inner(name, parameter, value)


def _integer(name: str, parameter: str, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, _WHOLE):
        whole = isinstance(value, float) and value.is_integer()
        raise _refuse(name, parameter, "an integer", value, f": write {int(value)}" if whole else "")
    return value


def _number(name: str, parameter: str, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        raise _refuse(name, parameter, "a number", value)
    return value


def _length(name: str, parameter: str, value: Any) -> Any:
    """Refuse containers and nothing; other lengths are read where the unit is known."""
    if value is None or isinstance(value, bool | list | tuple | dict | set | bytes | type):
        raise _refuse(name, parameter, "a length, such as '15 min' or a timedelta", value)
    if isinstance(value, int) and not -_MOST <= value <= _MOST:
        raise _refuse(name, parameter, "a length that fits 64 bits", value)
    return value


def _flag(name: str, parameter: str, value: Any) -> Any:
    if not isinstance(value, bool | np.bool_):
        raise _refuse(name, parameter, "True or False", value)
    return bool(value)


def _text(name: str, parameter: str, value: Any) -> Any:
    if not isinstance(value, str | Expression):  # columns are asked for where the schema is known
        raise _refuse(name, parameter, "a text", value)
    return value


def _names(name: str, parameter: str, value: Any) -> Any:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Mapping | bytes) or not isinstance(value, Iterable):
        raise _refuse(
            name, parameter, "a column's name, or several in a list", value, f": write {parameter}=['host']"
        )
    names = tuple(value)
    if wrong := [column for column in names if not isinstance(column, str)]:
        raise _refuse(name, parameter, "names of columns, which are texts", wrong[0])
    return names


def _member(kind: type[Enum], name: str, parameter: str, value: Any) -> Any:
    if isinstance(value, kind):
        return value
    members = [f"{kind.__name__}.{member.name}" for member in kind]
    fits = [
        member for member in kind if str(value).lower() in (str(member.value).lower(), member.name.lower())
    ]
    close = did_you_mean(str(value).rpartition(".")[2], [member.name for member in kind])
    way_out = f": write {parameter}={kind.__name__}.{fits[0].name}" if fits else close
    raise _refuse(name, parameter, f"one of {', '.join(members)}", value, way_out)


def _function(name: str, parameter: str, value: Any) -> Any:
    if not callable(value):
        raise _refuse(name, parameter, "a function", value)
    return value


def _mapping(name: str, parameter: str, value: Any) -> Any:
    if not isinstance(value, Mapping) and parameter != "aggregates":  # of which the class shows an example
        raise _refuse(name, parameter, "a dictionary", value)
    return value


def _instance(kinds: tuple[type, ...], name: str, parameter: str, value: Any) -> Any:
    if not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        way_out = (
            f": write {value.__name__}(...)" if isinstance(value, type) and issubclass(value, kinds) else ""
        )
        raise _refuse(name, parameter, f"{'an' if wanted[0] in 'AEIOU' else 'a'} {wanted}", value, way_out)
    return value
