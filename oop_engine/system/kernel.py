"""Kernel: a function that Numba compiles, and that does without Numba until it is called.

To import Numba takes .13 s, and to make a dispatcher .25 ms; there are about 190 kernels, and a graph calls ten.  So a
kernel is a ``partial`` of nothing but its dispatcher, which comes into it with the first call: from then on a call goes
through C alone.  To Numba, which finds it as a global of another kernel, it is its dispatcher (``_numba_type_``).
"""

from __future__ import annotations

import gc
import logging
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, partial, wraps
from importlib import import_module
from typing import Any

import numpy as np

from oop_engine.system.knobs import kernel_setting
from oop_engine.system.ready.ready_kernel import Ready, possible
from oop_engine.system.stopwatch import COMPILED

__all__ = ["COMPILES", "Intrinsic", "Kernel", "before_numba", "njit", "unless_in_python"]

COMPILES = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")
"""Whether kernels are compiled; else they are plain Python: slow, and with nothing behind a pointer."""
_MAKING = threading.RLock()
_declarations: list[Callable[[], None]] = []  # to Numba, when it is ready
_places: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends


class Kernel(partial[Any]):
    """Calls Numba's dispatcher of ``py_func``; all other attributes are its own."""

    py_func: Callable[..., Any]

    def __new__(cls, function: Callable[..., Any], options: dict[str, Any]) -> Kernel:
        """Return the kernel; nothing is imported or compiled."""
        made = super().__new__(cls, function)
        state = {"py_func": function, "_options": options, "__doc__": function.__doc__}
        made.__setstate__((made._first, (), {}, state))
        return made

    def dispatcher(self) -> Any:
        """Return Numba's dispatcher, made if there is none yet."""
        with _MAKING:
            if "_made" not in vars(self):
                vars(self)["_made"] = made = self._compiled() if COMPILES else _in_python(self.py_func)
                self.__setstate__((made, (), {}, vars(self)))
        return vars(self)["_made"]

    def _compiled(self) -> Any:
        return _loading(numba().njit(**self._options)(self.py_func))

    def _first(self, *args: Any) -> Any:
        if COMPILES and self._options.get("cache") and possible():
            with _MAKING:
                if "_made" not in vars(self):
                    self.__setstate__((Ready(self.py_func, self.dispatcher), (), {}, vars(self)))
            return self.func(*args)
        return self.dispatcher()(*args)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher(), name)

    def __reduce__(self) -> Any:
        return _found, (self.py_func.__module__, self.py_func.__qualname__)


def njit(**options: Any) -> Any:
    """Declare a kernel; ``options`` are those of ``numba.njit``."""
    return lambda function: Kernel(function, options)


class Intrinsic:
    """Code for LLVM that kernels call: it becomes Numba's intrinsic where a kernel that calls it is compiled."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        """Raise: only compiled code calls it."""
        msg = f"{self._function.__name__}: only kernels that are compiled call it"
        raise NotImplementedError(msg)

    @cached_property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target
        from numba.extending import intrinsic

        made, context = intrinsic(self._function), cpu_target.typing_context
        context.refresh()
        return context.resolve_value_type(made)


def before_numba(function: Callable[[], None]) -> Callable[[], None]:
    """Call ``function`` when Numba is ready, before a kernel is compiled: it declares functions that kernels call."""
    with _MAKING:
        if numba.cache_info().currsize:
            function()
        else:
            _declarations.append(function)
    return function


def unless_in_python(function: Callable[..., Any]) -> Any:
    """Declare the ``function`` that takes the place of an intrinsic where kernels run as Python."""
    return lambda intrinsic: intrinsic if COMPILES else function


def _in_python(function: Callable[..., Any]) -> Any:
    """Return the kernel as Python: integers have 64 bits and wrap, and NumPy does not warn."""

    @wraps(function)
    def kernel(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*(np.int64(each) if type(each) is int else each for each in args))

    return kernel


def _found(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


@cache
def numba() -> Any:
    """Return Numba, ready: compilations are timed, and compiled kernels have a place."""
    import numba
    from numba.core import event

    event.register("numba:compile", _listener(event))
    if (
        setting := kernel_setting()
    ):  # a compiled kernel contains its knobs, and Numba's cache does not know them
        home = os.path.join(tempfile.gettempdir(), f"oop-engine-kernels-{os.getuid()}")
        numba.config.CACHE_DIR = os.path.join(numba.config.CACHE_DIR or home, setting)
    try:
        numba.njit(cache=True)(_probe)
    except RuntimeError:  # no such place
        _places.append(tempfile.TemporaryDirectory(prefix="oop-engine-kernels-"))
        numba.config.CACHE_DIR = _places[0].name
        words = "compiled kernels cannot be kept: name a folder that can be written in NUMBA_CACHE_DIR"
        logging.getLogger("oop_engine").warning(words)
    for declare in _declarations:
        declare()
    return numba


def _loading(dispatcher: Any) -> Any:
    """Return ``dispatcher``; it loads cached machine code without filling Numba's registries.

    Before Numba looks into its cache, it fills its registries (70 modules) and looks for extensions: a quarter of the
    CPU of a program over few rows.  Machine code needs neither.  Before Numba compiles, it fills its registries again,
    and ``load_overload`` looks for extensions.  A Numba without the names that this takes loads as it always does.
    """
    if dispatcher.stats.cache_path is not None and (quick := _cache_class()) is not None:
        dispatcher._compilation_chain_init_hook = _nothing
        dispatcher._cache.__class__ = quick
    return dispatcher


@cache
def _cache_class() -> Any:
    """Return the cache that loads machine code alone; None: Numba is built in another way than those known."""
    from numba.core import caching, dispatcher, entrypoints, environment
    from numba.core.runtime.nrt import rtsys

    if not (
        hasattr(dispatcher.Dispatcher, "_compilation_chain_init_hook")
        and hasattr(caching.FunctionCache, "_load_overload")
        and hasattr(environment, "_rebuild_env")
        and hasattr(environment, "lookup_environment")
        and hasattr(environment.Environment, "_memo")
    ):
        return None

    class Loaded(caching.FunctionCache):  # type: ignore[misc]
        def load_overload(self, sig: Any, target_context: Any) -> Any:
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors(), _environments_of_numba_alone(environment):
                loaded = self._load_overload(sig, target_context)
            if loaded is None:
                entrypoints.init_all()
            return loaded

    return Loaded


@contextmanager
def _environments_of_numba_alone(environment: Any) -> Iterator[None]:
    """Leave modules of Numba alone that cached code names: only code with Python objects reads their globals.

    Numba's lock of compilers is held, so no other thread loads meanwhile.
    """
    rebuilt = environment._rebuild_env

    def rebuild(module: str, constants: list[Any], name: str) -> Any:
        if not module.startswith("numba.") or module in sys.modules:
            return rebuilt(module, constants, name)
        if (known := environment.lookup_environment(name)) is None:
            known = environment.Environment({"__name__": module})
            known.consts[:] = constants
            known.env_name = name
            environment.Environment._memo[name] = known
        return known

    environment._rebuild_env = rebuild
    try:
        yield
    finally:
        environment._rebuild_env = rebuilt


def _nothing() -> None:
    """Look for extensions of Numba: not before something is compiled."""


def _probe() -> None:
    """Is never compiled: Numba looks for the place of a cache when a function is declared."""


def _listener(event: Any) -> Any:
    """Return a listener that takes the time of compilations; a kernel from the cache is none.

    It keeps the garbage collector out of them, which would take a fifth of it.
    """
    collected: list[bool] = []

    class Compiling(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            collected.append(gc.isenabled())
            gc.disable()
            COMPILED.begin()

        def on_end(self, event: Any) -> None:
            COMPILED.end()
            if collected.pop():
                gc.enable()

    return Compiling()
