"""Planting in a process that has all loaded: the functions of a module take the code that the fault gives them.

A process that is forked for a fault then needs no imports and loads no kernels.  The text with the fault is compiled,
and each function that differs gets its code in place; whoever has imported it has the same function.  An edit outside
of functions (a table, a default, a class), and one of kernels, which are compiled by then, needs a fresh process.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from tests.faults.planting import ROOT, Edit, Fault

__all__ = ["UnplantableError", "plant_in_place"]

COMPILED = ("oop_engine/operators/kernels/", "oop_engine/system/kernel.py")
Codes = dict[CodeType, CodeType]


class UnplantableError(ValueError):
    """The fault needs a process that has not loaded its modules."""


def plant_in_place(fault: Fault) -> None:
    """Let the functions that are loaded have the fault.  Raises ``UnplantableError`` before anything is changed."""
    files: dict[str, list[Edit]] = {}
    for edit in fault.edits:
        files.setdefault(edit.file, []).append(edit)
    changed = Codes()
    for file, edits in files.items():
        changed |= _changed(file, edits)
    gc.unfreeze()  # the collector does not list what is frozen
    found = [
        (one, changed[one.__code__])
        for one in gc.get_objects()
        if isinstance(one, FunctionType) and one.__code__ in changed
    ]
    if {one.__code__ for one, _ in found} != set(changed):
        raise UnplantableError(fault.name)
    for function, code in found:
        function.__code__ = code


def _changed(file: str, edits: list[Edit]) -> Codes:
    if file.startswith(COMPILED):
        raise UnplantableError(file)
    path = (ROOT / file).resolve()
    before = after = path.read_text()
    for edit in edits:
        after = edit.in_text(after)
    return dict(_pairs(compile(before, str(path), "exec"), compile(after, str(path), "exec")))


def _pairs(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield the outermost functions that differ, as they are and as they are to be; a module and classes must not."""
    if _own(before) != _own(after):
        raise UnplantableError(f"{before.co_filename}: {before.co_qualname}")
    for old, new in zip(_nested(before), _nested(after), strict=True):
        if not old.co_flags & inspect.CO_OPTIMIZED:  # the body of a class
            yield from _pairs(old, new)
        elif _all(old) != _all(new):
            if old.co_freevars != new.co_freevars:
                raise UnplantableError(f"{old.co_filename}: {old.co_qualname}")
            yield old, new


def _nested(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def _own(code: CodeType) -> tuple[Any, ...]:
    """Return what code does itself, apart from lines and the functions in it."""
    consts = [repr(one) for one in code.co_consts if not isinstance(one, CodeType)]
    return code.co_name, code.co_code, code.co_names, code.co_varnames, consts, len(_nested(code))


def _all(code: CodeType) -> tuple[Any, ...]:
    return *_own(code), *map(_all, _nested(code))
