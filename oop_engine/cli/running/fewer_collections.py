"""Fewer collections of garbage: none while the program is loaded, and none ever of its own modules.

Python's collector looks at all objects again and again while modules are imported, and twice more when the process
ends: a sixth of the CPU of ``oop-engine run`` over 1,000 rows.
"""

from __future__ import annotations

import gc

__all__ = ["collect_less", "keep_loaded"]

_LOADED = 1 << 18
"""The first collection waits for so many objects: NumPy, Arrow and the engine have 110,000."""


def collect_less() -> None:
    """Delay the first garbage collection until the program is loaded; then Python's own thresholds apply.

    Thresholds that a module of the user sets meanwhile stay.
    """
    usual = gc.get_threshold()
    gc.set_threshold(_LOADED, *usual[1:])
    gc.callbacks.append(_First(usual))


def keep_loaded() -> None:
    """Exclude the modules loaded so far from garbage collection, where ``collect_less`` was called before.

    Commands call it before they load a file of the user.  Objects of the user are not among them, so at the end of
    the process files that these have open are written.  Nothing happens in a process of others, which may have garbage.
    """
    if any(isinstance(each, _First) for each in gc.callbacks):
        gc.freeze()


class _First:
    """Is called at the first collection."""

    def __init__(self, usual: tuple[int, int, int]) -> None:
        self._usual = usual

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        """Go back to the usual thresholds."""
        gc.callbacks.remove(self)
        if gc.get_threshold()[0] == _LOADED:
            gc.set_threshold(*self._usual)
