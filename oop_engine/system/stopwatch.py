"""Stopwatch: wall and CPU seconds, less those that went into compiling kernels.

A kernel is compiled when it is first used on a machine, which takes seconds; later processes load it from a
cache.  So the first that a process really compiles is reported: by the logger ``oop_engine``, or as a program likes.
Figures are to be the same the first time and the tenth, so time spent compiling counts for nothing but itself.
Compilations are counted in ``COMPILED``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter, process_time

__all__ = ["COMPILED", "CompileTime", "cpu", "wall"]


@dataclass
class CompileTime:
    """The kernels compiled in this process, with all they call.

    ``on_first`` is called before the first kernel is compiled; None: a line is logged.
    """

    kernels: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    on_first: Callable[[], None] | None = None
    _depth: int = 0
    _began: tuple[float, float] = (0.0, 0.0)

    def begin(self) -> None:
        """Note that a kernel is being compiled now; those that it calls are inside it."""
        if not self._depth:
            if not self.kernels:
                (self.on_first or _log)()
            self._began = perf_counter(), process_time()
            self.kernels += 1
        self._depth += 1

    def end(self) -> None:
        """Note that it is done."""
        self._depth -= 1
        if not self._depth:
            self.wall_s += perf_counter() - self._began[0]
            self.cpu_s += process_time() - self._began[1]


def _log() -> None:
    import logging  # hardly ever

    message = "compiling kernels, once on this machine, which takes some seconds; `oop-engine warm` does it beforehand"
    logging.getLogger("oop_engine").warning(message)


COMPILED = CompileTime()
"""Of this process, which has one compiler."""


def wall() -> float:
    """Return seconds that have a meaning only as differences."""
    return perf_counter() - COMPILED.wall_s


def cpu() -> float:
    """Return CPU seconds of this process."""
    return process_time() - COMPILED.cpu_s
