"""Policies: when ``Punctuate`` emits bounds, where late records go, how fast closed windows are flushed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.operators.edge.guard import Ahead as Ahead
    from oop_engine.operators.policies.by_quantile import ByQuantile as ByQuantile
    from oop_engine.operators.policies.late import Late as Late, Slack as Slack
    from oop_engine.operators.policies.policies import (
        BoundedCount as BoundedCount,
        BoundedDisorder as BoundedDisorder,
        Heartbeat as Heartbeat,
        Ordered as Ordered,
        PerGroup as PerGroup,
        Upstream as Upstream,
    )
    from oop_engine.operators.policies.running_bound import Lag as Lag
    from oop_engine.operators.policies.timer import Timer as Timer
    from oop_engine.operators.values.flush import (
        AtOnce as AtOnce,
        Flush as Flush,
        InOrder as InOrder,
        Lazy as Lazy,
        Slow as Slow,
    )
else:
    __getattr__, __dir__ = shelf(__name__)
