"""Cache files: all that Numba keeps of a kernel, read without Numba's classes.

A kernel has an index (``.nbi``: a stamp of its source, and by signature, machine and code the name of a file) and a
file of machine code by entry (``.nbc``).  Both are pickled; objects of Numba become ``StandIn``.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np

__all__ = ["StandIn", "UnknownError", "code_of", "described", "place", "stamp_of", "type_of", "unpickled"]


class UnknownError(Exception):
    """Numba is needed: this is not as it is known here."""


class StandIn:
    """Stands for an object of Numba in a file of the cache: all that it was made of, and its state."""

    def __init__(self, *made_of: Any) -> None:
        self.made_of = made_of
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


@cache
def _stand_in(name: str) -> type[StandIn]:
    """Return the class of stand-ins for a class of Numba; to make one takes as long as to unpickle an entry."""
    return type(name, (StandIn,), {})


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] == "numba" or module == "copyreg":
            return _stand_in(name)
        return super().find_class(module, name)


def unpickled(file: IO[bytes]) -> Any:
    """Return an object of a file, without Numba's classes."""
    return _Unpickler(file).load()


def place(function: Callable[..., Any]) -> tuple[Path, str]:
    """Return where Numba keeps the code of ``function``: a folder, and how its files begin."""
    source = Path(function.__code__.co_filename)
    home = os.environ.get("NUMBA_CACHE_DIR")
    above = os.path.abspath(source.parent)
    folder = (
        Path(home) / f"{Path(above).name}_{hashlib.sha1(above.encode()).hexdigest()}"
        if home
        else source.parent / "__pycache__"
    )
    major, minor = sys.version_info[:2]
    qualified = function.__qualname__.replace("<", "").replace(">", "")
    return (
        folder,
        f"{source.stem}.{qualified}-{function.__code__.co_firstlineno}.py{major}{minor}{sys.abiflags}",
    )


@cache
def stamp_of(source: str) -> bytes:
    """Return the stamp of a source file: Numba compares it with that of the index."""
    return hashlib.sha256(Path(source).read_bytes()).digest()


def code_of(function: Callable[..., Any]) -> tuple[str, str]:
    """Return by which code of a function, and which values around it, an entry of the index is found."""
    if function.__closure__ is not None:
        raise UnknownError
    return hashlib.sha256(function.__code__.co_code).hexdigest(), hashlib.sha256(b"").hexdigest()


def described(arg: Any) -> Any:
    """Return the type of an argument as ``type_of`` returns those of the cache."""
    kind = type(arg)
    if kind is np.ndarray:
        flags = arg.flags
        if not (flags.aligned and arg.dtype.isnative and arg.dtype.kind in "biuf"):
            raise UnknownError
        order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return f"{'' if flags.writeable else 'readonly '}array({arg.dtype.name}, {arg.ndim}d, {order})"
    if kind in (int, float, bool):
        return {int: "int64", float: "float64", bool: "bool"}[kind]
    if isinstance(arg, np.generic) and arg.dtype.kind in "biuf":
        return arg.dtype.name
    if isinstance(arg, tuple):
        return kind, tuple(described(each) for each in arg)
    raise UnknownError


def type_of(kind: Any) -> Any:
    """Return a type of a signature as plain data."""
    _, (cls, *_), state = kind.made_of
    if cls.__name__ in ("UniTuple", "NamedUniTuple"):
        return state.get("instance_class", tuple), (type_of(state["dtype"]),) * state["count"]
    if cls.__name__ in ("Tuple", "NamedTuple"):
        return state.get("instance_class", tuple), tuple(type_of(each) for each in state["types"])
    if cls.__name__ not in ("Array", "Integer", "Float", "Boolean"):
        raise UnknownError
    return state["name"]
