"""Ready kernels: machine code out of Numba's cache, called without Numba.

To import Numba takes a quarter of the CPU of a program over few rows, and a program whose kernels are all cached needs
nothing of it but the C code that unpacks arguments.  So this reads Numba's cache files, gives the machine code to LLVM
and calls it.  All that is not as this knows it (another Numba, another system, settings of Numba, a kernel that is not
cached for these types, a symbol that is missing) is left to Numba.

A call tells types apart in Python, .2 us an argument more than Numba's dispatcher.  So after ``_MOST`` calls, which
have cost as much as Numba's import, ``Ready`` imports Numba on a thread, for no turn of an event loop to wait for it.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
from collections.abc import Callable
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from oop_engine.system.knobs import kernel_setting, knob
from oop_engine.system.ready.cache_file import (
    UnknownError,
    code_of,
    described,
    place,
    stamp_of,
    type_of,
    unpickled,
)
from oop_engine.system.ready.numba_here import known_numba, version
from oop_engine.system.ready.process import process

__all__ = ["Ready", "possible"]

_MOST = knob(__name__, "_MOST", 1 << 16)
_UNKNOWN: tuple[type[Exception], ...] = (UnknownError, OSError, ImportError, AttributeError, LookupError)
_UNKNOWN += ValueError, TypeError, EOFError, pickle.UnpicklingError, RuntimeError
"""Errors of files and libraries that are not as this knows them."""
_LOADING = threading.RLock()
_calls = count(1)


class Ready:
    """Calls a kernel for the types that Numba's cache has; ``numba`` returns the kernel of Numba for all else."""

    def __init__(self, function: Callable[..., Any], numba: Callable[[], Callable[..., Any]]) -> None:
        self._function, self._numba = function, numba
        self._found: dict[Any, Callable[..., Any]] = {}
        self._by_types: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Return the results of the kernel."""
        wanted = named or "numba" in sys.modules or next(_calls) > _MOST
        if wanted and (named or _imported()):  # whoever has Numba has it for all kernels
            return self._numba()(*args, **named)
        compiled = self._found.get(_kinds(args)) or self._find(args)
        return (self._numba() if compiled is None else compiled)(*args)

    def _find(self, args: tuple[Any, ...]) -> Callable[..., Any] | None:
        try:
            types = tuple(described(arg) for arg in args)
        except UnknownError:
            return None
        with _LOADING:
            compiled = self._by_types.get(types)  # arrays whose other flags differ, or another thread
            if compiled is None:
                compiled = _loaded(self._function, types)
            if compiled is not None:
                self._found[_kinds(args)] = self._by_types[types] = compiled
        return compiled


def _imported() -> bool:
    """Return whether Numba is imported as a whole; if nobody has begun to, do so on a thread: it takes a while."""
    if (numba := sys.modules.get("numba")) is None:
        _begin()
        return False
    return not getattr(numba.__spec__, "_initializing", False)


@cache
def _begin() -> None:
    threading.Thread(target=import_module, args=("numba",), daemon=True).start()


def _kinds(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return all that decides which machine code fits ``args``."""
    return tuple(
        [
            (arg.dtype, arg.ndim, arg.flags.num)
            if type(arg) is np.ndarray
            else (type(arg), _kinds(arg))
            if isinstance(arg, tuple)
            else type(arg)
            for arg in args
        ]
    )


@cache
def possible() -> bool:
    """Return whether kernels can do without Numba here: nobody has it, it is a known one, and nothing sets it."""
    return (
        sys.platform == "linux"
        and sys.byteorder == "little"
        and sys.implementation.name == "cpython"
        and "numba" not in sys.modules
        and not kernel_setting()
        and not any(name.startswith("NUMBA_") and name != "NUMBA_CACHE_DIR" for name in os.environ)
        and not Path(".numba_config.yaml").exists()
        and known_numba()
    )


def _loaded(function: Callable[..., Any], types: tuple[Any, ...]) -> Callable[..., Any] | None:
    """Return the machine code of ``function`` for arguments of ``types``; None: Numba is needed."""
    try:
        folder, name = place(function)
        with (folder / f"{name}.nbi").open("rb") as file:
            if pickle.load(file) != version():
                return None
            stamp, cached = unpickled(file)
        if stamp != stamp_of(function.__code__.co_filename):
            return None
        for (signature, machine, code), data in cached.items():
            if code == code_of(function) and tuple(type_of(kind) for kind in signature) == types:
                llvm = process()
                return llvm.load(function, (folder / data).read_bytes()) if machine == llvm.machine else None
    except _UNKNOWN:
        return None
    return None
