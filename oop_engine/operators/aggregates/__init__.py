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

from oop_engine.operators.aggregates.arguments import ArgMax, ArgMin
from oop_engine.operators.aggregates.base import Aggregation, Arrays, Part
from oop_engine.operators.aggregates.collecting import Collect
from oop_engine.operators.aggregates.counting import Count
from oop_engine.operators.aggregates.extremes import M4, All, Any, First, Last, Max, MaxCount, Min, MinCount
from oop_engine.operators.aggregates.library_sketches import FrequentItems, Kll, TDigest
from oop_engine.operators.aggregates.moments import Stddev, Var
from oop_engine.operators.aggregates.products import GeometricMean, Product, WeightedAvg
from oop_engine.operators.aggregates.sketches import ApproxCountDistinct, ApproxQuantile
from oop_engine.operators.aggregates.sums import Avg, Sum
from oop_engine.operators.aggregates.user_defined import UserDefined
from oop_engine.operators.aggregates.values import CountDistinct, HeavyHitters, Median, Mode, Quantile, TopK

__all__ = [
    "M4",
    "Aggregation",
    "All",
    "Any",
    "ApproxCountDistinct",
    "ApproxQuantile",
    "ArgMax",
    "ArgMin",
    "Arrays",
    "Avg",
    "Collect",
    "Count",
    "CountDistinct",
    "First",
    "FrequentItems",
    "GeometricMean",
    "HeavyHitters",
    "Kll",
    "Last",
    "Max",
    "MaxCount",
    "Median",
    "Min",
    "MinCount",
    "Mode",
    "Part",
    "Product",
    "Quantile",
    "Stddev",
    "Sum",
    "TDigest",
    "TopK",
    "UserDefined",
    "Var",
    "WeightedAvg",
]
