"""The operators of the thesis by its own names, beside ``WindowAggregate`` and ``OAJoin``, and the in-order twins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.operators.aggregate import Aggregate as Aggregate
    from oop_engine.operators.bucket import Bucket as Bucket
    from oop_engine.operators.in_order.buffering_aggregate import BufferingAggregate as BufferingAggregate
    from oop_engine.operators.in_order.merge import Merge as Merge
    from oop_engine.operators.in_order.opib_join import OPIBJoin as OPIBJoin
    from oop_engine.operators.in_order.opob_join import OPOBJoin as OPOBJoin
    from oop_engine.operators.in_order.sort import Sort as Sort
    from oop_engine.operators.levels.consolidate import Consolidate as Consolidate
    from oop_engine.operators.levels.low_level_aggregate import LowLevelAggregate as LowLevelAggregate
    from oop_engine.operators.levels.partial_aggregate import PartialAggregate as PartialAggregate
    from oop_engine.operators.window_aggregate import Strategy as Strategy
else:
    __getattr__, __dir__ = shelf(__name__)
