"""Knobs: the sizes by which work is cut (blocks, batches, pages, tables, rings, read sizes), all in one place.

No result depends on a knob: a page, a file or a state is cut where it suits the machine.  Tests set all knobs to small
values, with which ten records are cut as a million records are in production.

The environment variable ``OOP_ENGINE_KNOBS`` sets them for a process, before a module that declares one is imported:

==================  ====================================================================
``2``               each knob is 2, or its least value where that is larger
``seed:7``          each knob is drawn: its value in production, or a small one
``PAGE_ROWS=3``     the knobs of that name (``core.page.PAGE_ROWS``: of that module) are 3;
                    after a comma more of them, or one of the above, which the others use
==================  ====================================================================

Kernels are compiled with their knobs, so those have one value, small or of production, for all of them, and a cache
for each (``kernel_setting``): drawn by a seed, or ``kernels=2``, or as in production by ``kernels=``.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["KNOBS", "VARIABLE", "Knob", "kernel_knob", "kernel_setting", "knob"]

VARIABLE = "OOP_ENGINE_KNOBS"
_SMALL = (1, 2, 3, 7, 16, 100)
_OF_KERNELS = ("", "1", "2", "7")
"""The settings of kernels that a seed draws from; ``""``: their values in production."""


@dataclass(frozen=True)
class Knob:
    """``size``: its value in production; ``least``: the least that works; ``used``: its value in this process."""

    size: int
    least: int
    used: int


KNOBS: dict[str, Knob] = {}
"""All knobs that are declared so far, by module and name: ``core.page.PAGE_ROWS``."""


class _Setting:
    """The environment variable, read once: values by name, and the setting of all others."""

    def __init__(self, text: str) -> None:
        parts = [part.strip() for part in text.split(",") if part.strip()]
        named = dict(part.split("=", 1) for part in parts if "=" in part)
        self.others = next((part for part in parts if "=" not in part), "")
        drawn = (
            random.Random(self.others).choice(_OF_KERNELS) if self.others.startswith("seed:") else self.others
        )
        self.kernels = named.pop("kernels", drawn)
        self.by_name = {name: int(size) for name, size in named.items()}

    def of(self, name: str, size: int, least: int) -> int:
        for known in (name, name.rpartition(".")[2]):
            if known in self.by_name:
                return max(self.by_name[known], least)
        if self.others.startswith("seed:"):
            drawn = random.Random(f"{self.others} {name}")
            return max(drawn.choice(_SMALL), least) if drawn.random() < 0.7 else size
        return max(int(self.others), least) if self.others else size

    def of_kernel(self, name: str, size: int, least: int) -> int:
        if name.rpartition(".")[2] in self.by_name or name in self.by_name:
            return self.of(name, size, least)
        return max(int(self.kernels), least) if self.kernels else size


_SETTING = _Setting(os.environ.get(VARIABLE, ""))


def knob(module: str, name: str, size: int, *, least: int = 1, power: bool = False) -> int:
    """Declare a knob of a module (its ``__name__``) and return its value: ``size``, unless the environment sets it.

    ``least``: the least value that works; ``power``: it must be a power of two, and a set one is rounded up to one.

    >>> knob("oop_engine.core.page", "SHOWN", 20)
    20
    """
    return _declared(module, name, size, least, power, _SETTING.of)


def kernel_knob(module: str, name: str, size: int, *, least: int = 1, power: bool = False) -> int:
    """Declare a knob that a kernel is compiled with; as ``knob``."""
    return _declared(module, name, size, least, power, _SETTING.of_kernel)


def kernel_setting() -> str:
    """Return the setting of kernels as a file name; "": that of production."""
    named = [f"{name}-{size}" for name, size in sorted(_SETTING.by_name.items())]
    return "-".join([*([_SETTING.kernels] if _SETTING.kernels else []), *named])


def _declared(
    module: str, name: str, size: int, least: int, power: bool, of: Callable[[str, int, int], int]
) -> int:
    name = f"{module.removeprefix('oop_engine.').removeprefix('operators.')}.{name}"
    used = of(name, size, least)
    if power and used != size:
        used = 1 << max(used - 1, 0).bit_length()
    KNOBS[name] = Knob(size, least, used)
    return int(used)
