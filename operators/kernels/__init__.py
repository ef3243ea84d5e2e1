"""Hot loops in Numba, and nothing else: arrays and scalars in, arrays out.

A kernel is compiled for the types it is first called with, and kept in Numba's cache beside its file, or in the
cache folder of the user, or where ``NUMBA_CACHE_DIR`` says.  Where none of them can be written it is kept for this
process alone.  What that takes is told to ``oop_engine.system.stopwatch``.

Arrays are copied in a loop, never as ``a[i:j] = b``: with that comes code that makes a text of both shapes, for the
error of arrays that do not fit, and takes seconds to compile.  A number that is handed to another kernel begins as
``np.int64(0)``: a literal is a type of its own, for which that kernel is compiled once more.
"""

import gc
import logging
import os
import tempfile

from numba import config, njit
from numba.core import event

from oop_engine.system.knobs import kernel_setting
from oop_engine.system.stopwatch import COMPILED

__all__: list[str] = []


class _Compiling(event.Listener):  # type: ignore[misc]
    """Takes the time of compilations, and keeps the garbage collector out of them: it would take a fifth of it.

    What comes from the cache is no compilation.
    """

    def __init__(self) -> None:
        self._collected: list[bool] = []

    def on_start(self, event: event.Event) -> None:
        self._collected.append(gc.isenabled())
        gc.disable()
        COMPILED.begin()

    def on_end(self, event: event.Event) -> None:
        COMPILED.end()
        if self._collected.pop():
            gc.enable()


event.register("numba:compile", _Compiling())

if setting := kernel_setting():  # a compiled kernel contains its knobs, and Numba's cache does not know them
    config.CACHE_DIR = os.path.join(
        config.CACHE_DIR or os.path.join(tempfile.gettempdir(), f"oop-engine-kernels-{os.getuid()}"), setting
    )


def _probe() -> None:
    """Is never compiled: Numba looks for the place of a cache when a function is declared."""


_places: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends

try:
    njit(cache=True)(_probe)
except RuntimeError:  # no such place
    _places.append(tempfile.TemporaryDirectory(prefix="oop-engine-kernels-"))
    config.CACHE_DIR = _places[0].name
    _TOLD = "compiled kernels cannot be kept: name a folder that can be written in NUMBA_CACHE_DIR"
    logging.getLogger("oop_engine").warning(_TOLD)
