"""Errors of the library: each is an ``EngineError``, and names place, rule, value and way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.core.errors import (
        ContractError as ContractError,
    )
    from oop_engine.core.errors import (
        EngineError as EngineError,
    )
    from oop_engine.core.errors import (
        GraphError as GraphError,
    )
    from oop_engine.core.errors import (
        LateTuple as LateTuple,
    )
    from oop_engine.core.errors import (
        OperatorError as OperatorError,
    )
    from oop_engine.core.errors import (
        SetupError as SetupError,
    )
    from oop_engine.core.errors import (
        SnapshotError as SnapshotError,
    )
    from oop_engine.core.errors import (
        TraceError as TraceError,
    )
    from oop_engine.core.errors import (
        UnitError as UnitError,
    )
    from oop_engine.core.errors import (
        UnknownNameError as UnknownNameError,
    )
    from oop_engine.core.errors import (
        UsageError as UsageError,
    )
else:
    __getattr__, __dir__ = shelf(__name__)
