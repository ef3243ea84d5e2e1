"""Protocols, base classes and registries for parts of your own, which ``oop_engine.testing`` tries.

Operators, aggregates, windows, policies, triggers, formats, sources and sinks; a sink of Spark is in
``oop_engine.spark``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.connectors.message_format import (
        MessageFormat as MessageFormat,
    )
    from oop_engine.connectors.message_format import (
        register_message_format as register_message_format,
    )
    from oop_engine.connectors.sink import LiveSink as LiveSink
    from oop_engine.connectors.source import LiveSource as LiveSource
    from oop_engine.core.groups.group_index import GroupIndex as GroupIndex
    from oop_engine.core.operator import Emission as Emission
    from oop_engine.core.operator import Message as Message
    from oop_engine.core.operator import State as State
    from oop_engine.core.progress import Progress as Progress
    from oop_engine.core.saved import Saved as Saved
    from oop_engine.operators.aggregates import Aggregation as Aggregation
    from oop_engine.operators.aggregates import Part as Part
    from oop_engine.operators.policies.running_bound import (
        Policy as Policy,
    )
    from oop_engine.operators.policies.running_bound import (
        RunningBound as RunningBound,
    )
    from oop_engine.operators.policies.running_bound import (
        register_policy as register_policy,
    )
    from oop_engine.operators.slicing.accumulators import (
        Accumulator as Accumulator,
    )
    from oop_engine.operators.slicing.accumulators import (
        register_accumulator as register_accumulator,
    )
    from oop_engine.operators.triggers import Trigger as Trigger
    from oop_engine.operators.triggers import WindowView as WindowView
    from oop_engine.operators.values.expressions import Expression as Expression
    from oop_engine.operators.windows import Extents as Extents
    from oop_engine.operators.windows import Folding as Folding
    from oop_engine.operators.windows import Windows as Windows
    from oop_engine.query.registered import (
        register_aggregate as register_aggregate,
    )
    from oop_engine.query.registered import (
        register_windows as register_windows,
    )
    from oop_engine.traces.format import Reader as Reader
    from oop_engine.traces.format import Writer as Writer
    from oop_engine.traces.format_registry import (
        TraceFormat as TraceFormat,
    )
    from oop_engine.traces.format_registry import (
        register_format as register_format,
    )
else:
    __getattr__, __dir__ = shelf(__name__)
