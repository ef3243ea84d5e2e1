"""Protocols, base classes and registries for parts of your own, which ``oop_engine.testing`` tries.

Operators, aggregates, windows, policies, triggers, formats, sources and sinks; a sink of Spark is in
``oop_engine.spark``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.connectors.by_name import (
        register_sink as register_sink,
        register_source as register_source,
    )
    from oop_engine.connectors.message_format import (
        MessageFormat as MessageFormat,
        register_message_format as register_message_format,
    )
    from oop_engine.connectors.sink import LiveSink as LiveSink
    from oop_engine.connectors.source import LiveSource as LiveSource
    from oop_engine.core.groups.group_index import GroupIndex as GroupIndex
    from oop_engine.core.operator import Emission as Emission, Message as Message, State as State
    from oop_engine.core.progress import Progress as Progress
    from oop_engine.core.saved import Saved as Saved
    from oop_engine.operators.aggregates import Aggregation as Aggregation, Part as Part
    from oop_engine.operators.policies.running_bound import (
        Policy as Policy,
        RunningBound as RunningBound,
        register_policy as register_policy,
    )
    from oop_engine.operators.slicing.accumulators import (
        Accumulator as Accumulator,
        register_accumulator as register_accumulator,
    )
    from oop_engine.operators.triggers import Trigger as Trigger, WindowView as WindowView
    from oop_engine.operators.values.expressions import Expression as Expression
    from oop_engine.operators.windows import (
        Extents as Extents,
        Folding as Folding,
        Merging as Merging,
        Windows as Windows,
    )
    from oop_engine.query.registered import (
        register_aggregate as register_aggregate,
        register_windows as register_windows,
    )
    from oop_engine.traces.format import Reader as Reader, Writer as Writer
    from oop_engine.traces.format_registry import (
        TraceFormat as TraceFormat,
        register_format as register_format,
    )
else:
    __getattr__, __dir__ = shelf(__name__)
