"""Errors of the library: each is an ``EngineError``, and names place, rule, value and way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.core.errors import (
        ContractError as ContractError,
        EngineError as EngineError,
        GraphError as GraphError,
        LateTuple as LateTuple,
        OperatorError as OperatorError,
        SetupError as SetupError,
        SnapshotError as SnapshotError,
        TraceError as TraceError,
        UnitError as UnitError,
        UnknownNameError as UnknownNameError,
        UsageError as UsageError,
    )
else:
    __getattr__, __dir__ = shelf(__name__)
