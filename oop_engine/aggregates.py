"""Aggregates: functions of the records in a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.operators.aggregates import (
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
else:
    __getattr__, __dir__ = shelf(__name__)
