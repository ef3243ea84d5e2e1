"""Contender: somebody who answers a workload's question, over data that are in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from numpy.typing import NDArray

__all__ = ["Contender"]


class Contender(NamedTuple):
    """``prepare`` is not measured, ``run`` is; ``columns`` turns what it returned into results to compare."""

    prepare: Callable[[], Any]
    run: Callable[[Any], Any]
    columns: Callable[[Any], dict[str, NDArray[Any]]]
