"""Hot loops in Numba, and nothing else: arrays and scalars in, arrays out.

A kernel is compiled for the types it is first called with, and kept in Numba's cache beside its file (or
where ``NUMBA_CACHE_DIR`` says).  What that takes is told to ``oop_engine.stopwatch``.
"""

from numba.core import event

from oop_engine.stopwatch import COMPILED

__all__: list[str] = []


class _Compiling(event.Listener):  # type: ignore[misc]
    """Takes the time of compilations; what comes from the cache is none."""

    def on_start(self, event: event.Event) -> None:
        COMPILED.begin()

    def on_end(self, event: event.Event) -> None:
        COMPILED.end()


event.register("numba:compile", _Compiling())
