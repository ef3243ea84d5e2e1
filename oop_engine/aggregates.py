"""Aggregates: functions of the records in a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.operators.aggregates import (
        M4 as M4,
    )
    from oop_engine.operators.aggregates import (
        All as All,
    )
    from oop_engine.operators.aggregates import (
        Any as Any,
    )
    from oop_engine.operators.aggregates import (
        ApproxCountDistinct as ApproxCountDistinct,
    )
    from oop_engine.operators.aggregates import (
        ApproxQuantile as ApproxQuantile,
    )
    from oop_engine.operators.aggregates import (
        ArgMax as ArgMax,
    )
    from oop_engine.operators.aggregates import (
        ArgMin as ArgMin,
    )
    from oop_engine.operators.aggregates import (
        Avg as Avg,
    )
    from oop_engine.operators.aggregates import (
        Collect as Collect,
    )
    from oop_engine.operators.aggregates import (
        Count as Count,
    )
    from oop_engine.operators.aggregates import (
        CountDistinct as CountDistinct,
    )
    from oop_engine.operators.aggregates import (
        First as First,
    )
    from oop_engine.operators.aggregates import (
        FrequentItems as FrequentItems,
    )
    from oop_engine.operators.aggregates import (
        GeometricMean as GeometricMean,
    )
    from oop_engine.operators.aggregates import (
        HeavyHitters as HeavyHitters,
    )
    from oop_engine.operators.aggregates import (
        Kll as Kll,
    )
    from oop_engine.operators.aggregates import (
        Last as Last,
    )
    from oop_engine.operators.aggregates import (
        Max as Max,
    )
    from oop_engine.operators.aggregates import (
        MaxCount as MaxCount,
    )
    from oop_engine.operators.aggregates import (
        Median as Median,
    )
    from oop_engine.operators.aggregates import (
        Min as Min,
    )
    from oop_engine.operators.aggregates import (
        MinCount as MinCount,
    )
    from oop_engine.operators.aggregates import (
        Mode as Mode,
    )
    from oop_engine.operators.aggregates import (
        Product as Product,
    )
    from oop_engine.operators.aggregates import (
        Quantile as Quantile,
    )
    from oop_engine.operators.aggregates import (
        Stddev as Stddev,
    )
    from oop_engine.operators.aggregates import (
        Sum as Sum,
    )
    from oop_engine.operators.aggregates import (
        TDigest as TDigest,
    )
    from oop_engine.operators.aggregates import (
        TopK as TopK,
    )
    from oop_engine.operators.aggregates import (
        UserDefined as UserDefined,
    )
    from oop_engine.operators.aggregates import (
        Var as Var,
    )
    from oop_engine.operators.aggregates import (
        WeightedAvg as WeightedAvg,
    )
else:
    __getattr__, __dir__ = shelf(__name__)
