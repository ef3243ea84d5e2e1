"""Triggers: when a window aggregate emits a version of a result before it is final, and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.operators.triggers import (
        AfterAll as AfterAll,
        AfterAny as AfterAny,
        AfterChange as AfterChange,
        AfterCount as AfterCount,
        AfterDelay as AfterDelay,
        AfterEach as AfterEach,
        AfterFraction as AfterFraction,
        AfterMatch as AfterMatch,
        Emit as Emit,
        OnRequest as OnRequest,
        Once as Once,
        OrFinally as OrFinally,
    )
else:
    __getattr__, __dir__ = shelf(__name__)
