"""The library of operators: one concept, one file; cards in ``operators/README.md``.

The public names are here.  Each is loaded when it is first used, so that a graph without
windows or joins never loads Numba.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import lazy_names
from oop_engine.system.other_names import INSTEAD

if TYPE_CHECKING:  # operators
    from oop_engine.operators.aggregate import Aggregate as Aggregate
    from oop_engine.operators.apply import Apply as Apply
    from oop_engine.operators.bucket import Bucket as Bucket
    from oop_engine.operators.levels.consolidate import Consolidate as Consolidate
    from oop_engine.operators.edge.describe import Describe as Describe
    from oop_engine.operators.distinct import Distinct as Distinct
    from oop_engine.operators.edge.shed import Shed as Shed
    from oop_engine.operators.edge.stamp import Stamp as Stamp
    from oop_engine.operators.expire import Expire as Expire
    from oop_engine.operators.finalize import Finalize as Finalize
    from oop_engine.operators.edge.guard import Ahead as Ahead, Guard as Guard
    from oop_engine.operators.if_none import IfNone as IfNone
    from oop_engine.operators.in_order.buffering_aggregate import BufferingAggregate as BufferingAggregate
    from oop_engine.operators.in_order.merge import Merge as Merge
    from oop_engine.operators.in_order.opib_join import OPIBJoin as OPIBJoin
    from oop_engine.operators.in_order.opob_join import OPOBJoin as OPOBJoin
    from oop_engine.operators.in_order.sort import Sort as Sort
    from oop_engine.operators.latest import Latest as Latest
    from oop_engine.operators.levels.low_level_aggregate import LowLevelAggregate as LowLevelAggregate
    from oop_engine.operators.meld import Meld as Meld
    from oop_engine.operators.multi_way_join import MultiJoin as MultiJoin
    from oop_engine.operators.oa_join import OAJoin as OAJoin
    from oop_engine.operators.levels.partial_aggregate import PartialAggregate as PartialAggregate
    from oop_engine.operators.project import Project as Project
    from oop_engine.operators.edge.punctuate import Punctuate as Punctuate
    from oop_engine.operators.select import Select as Select
    from oop_engine.operators.window_aggregate import SlicedAggregate as SlicedAggregate
    from oop_engine.operators.split import Split as Split
    from oop_engine.operators.top_n import TopN as TopN
    from oop_engine.operators.window_aggregate import Strategy as Strategy, WindowAggregate as WindowAggregate

if TYPE_CHECKING:  # values: windows, aggregates, policies, and what yours are made of
    from oop_engine.operators.aggregates import (
        Aggregation as Aggregation,
        All as All,
        Any as Any,
        ApproxCountDistinct as ApproxCountDistinct,
        ApproxQuantile as ApproxQuantile,
        ArgMax as ArgMax,
        ArgMin as ArgMin,
        Avg as Avg,
        Collect as Collect,
        Count as Count,
        CountDistinct as CountDistinct,
        First as First,
        FrequentItems as FrequentItems,
        GeometricMean as GeometricMean,
        HeavyHitters as HeavyHitters,
        Kll as Kll,
        Last as Last,
        M4 as M4,
        Max as Max,
        MaxCount as MaxCount,
        Median as Median,
        Min as Min,
        MinCount as MinCount,
        Mode as Mode,
        Part as Part,
        Product as Product,
        Quantile as Quantile,
        Stddev as Stddev,
        Sum as Sum,
        TDigest as TDigest,
        TopK as TopK,
        UserDefined as UserDefined,
        Var as Var,
        WeightedAvg as WeightedAvg,
    )
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
    from oop_engine.operators.policies.timer import Timer as Timer
    from oop_engine.operators.policies.running_bound import (
        Lag as Lag,
        Policy as Policy,
        RunningBound as RunningBound,
        register_policy as register_policy,
    )
    from oop_engine.operators.rewrites.described import described as described
    from oop_engine.operators.rewrites.multi_join import multi_join as multi_join
    from oop_engine.operators.joining.bands import (
        AsOf as AsOf,
        Band as Band,
        TumblingBand as TumblingBand,
        WindowIdBand as WindowIdBand,
    )
    from oop_engine.operators.slicing.accumulators import (
        Accumulator as Accumulator,
        register_accumulator as register_accumulator,
    )
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
        OrFinally as OrFinally,
        Once as Once,
        Trigger as Trigger,
        WindowView as WindowView,
    )
    from oop_engine.operators.values.expressions import Expression as Expression
    from oop_engine.operators.values.flush import (
        AtOnce as AtOnce,
        Flush as Flush,
        InOrder as InOrder,
        Lazy as Lazy,
        Slow as Slow,
    )
    from oop_engine.operators.windows import (
        Delimited as Delimited,
        Extents as Extents,
        Folding as Folding,
        FixedBand as FixedBand,
        Frames as Frames,
        Global as Global,
        Intervals as Intervals,
        Landmark as Landmark,
        LastRows as LastRows,
        PartitionedTupleBased as PartitionedTupleBased,
        Session as Session,
        SlideByTuple as SlideByTuple,
        Sliding as Sliding,
        Tumbling as Tumbling,
        TupleBased as TupleBased,
        UserWindows as UserWindows,
        Windows as Windows,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__, instead=INSTEAD)
