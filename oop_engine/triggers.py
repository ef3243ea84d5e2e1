"""Triggers: when a window aggregate emits a version of a result before it is final, and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.operators.triggers import (
        AfterAll as AfterAll,
    )
    from oop_engine.operators.triggers import (
        AfterAny as AfterAny,
    )
    from oop_engine.operators.triggers import (
        AfterChange as AfterChange,
    )
    from oop_engine.operators.triggers import (
        AfterCount as AfterCount,
    )
    from oop_engine.operators.triggers import (
        AfterDelay as AfterDelay,
    )
    from oop_engine.operators.triggers import (
        AfterEach as AfterEach,
    )
    from oop_engine.operators.triggers import (
        AfterFraction as AfterFraction,
    )
    from oop_engine.operators.triggers import (
        AfterMatch as AfterMatch,
    )
    from oop_engine.operators.triggers import (
        Emit as Emit,
    )
    from oop_engine.operators.triggers import (
        Once as Once,
    )
    from oop_engine.operators.triggers import (
        OnRequest as OnRequest,
    )
    from oop_engine.operators.triggers import (
        OrFinally as OrFinally,
    )
else:
    __getattr__, __dir__ = shelf(__name__)
