"""Aggregates: what is computed of the tuples in a window.

An aggregate is a value: it names its column, checks types when a graph is built, says of
which partial aggregates it is made (``parts``), and turns those into a column of results.
Equal parts are kept once: ``Avg("x")`` beside ``Count("x")`` costs one float more a window.

Nulls are skipped, as in SQL; an aggregate of no values is null (a count is 0).

Each family is a file beside this one.  One of your own is an ``Aggregation`` (``base.py``); where its parts are of a
new kind, ``oop_engine.operators.slicing.accumulators`` says how they are kept.

Source: thesis 6.1 (WID); lift, combine and lower after Traub et al., Scotty, TODS 2021.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from oop_engine.operators.aggregates.arguments import (
        ArgMax as ArgMax,
        ArgMin as ArgMin,
    )
    from oop_engine.operators.aggregates.base import (
        Aggregation as Aggregation,
        Arrays as Arrays,
        Part as Part,
    )
    from oop_engine.operators.aggregates.collecting import Collect as Collect
    from oop_engine.operators.aggregates.counting import Count as Count
    from oop_engine.operators.aggregates.extremes import (
        M4 as M4,
        All as All,
        Any as Any,
        First as First,
        Last as Last,
        Max as Max,
        MaxCount as MaxCount,
        Min as Min,
        MinCount as MinCount,
    )
    from oop_engine.operators.aggregates.library_sketches import (
        FrequentItems as FrequentItems,
        Kll as Kll,
        TDigest as TDigest,
    )
    from oop_engine.operators.aggregates.moments import (
        Stddev as Stddev,
        Var as Var,
    )
    from oop_engine.operators.aggregates.products import (
        GeometricMean as GeometricMean,
        Product as Product,
        WeightedAvg as WeightedAvg,
    )
    from oop_engine.operators.aggregates.sketches import (
        ApproxCountDistinct as ApproxCountDistinct,
        ApproxQuantile as ApproxQuantile,
    )
    from oop_engine.operators.aggregates.sums import (
        Avg as Avg,
        Sum as Sum,
    )
    from oop_engine.operators.aggregates.user_defined import UserDefined as UserDefined
    from oop_engine.operators.aggregates.values import (
        CountDistinct as CountDistinct,
        HeavyHitters as HeavyHitters,
        Median as Median,
        Mode as Mode,
        Quantile as Quantile,
        TopK as TopK,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)
