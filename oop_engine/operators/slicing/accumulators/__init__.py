"""Accumulators: which one keeps which kind of part.  Nothing else asks for the kind.

An aggregate with a state of its own is an ``Aggregation`` whose parts are of a new kind, and an ``Accumulator`` that is
registered for that kind.  It then runs wherever the others do: by windows, panes, slices, in order, in two halves.

>>> import numpy as np
>>> from oop_engine.operators.aggregates import Part
>>> @register_accumulator("multiplied")
... class Product(Accumulator):
...     identity = (np.float64(1),)
...     def prepare(self, page, times):
...         return (page.column(self.part.column).fill_null(1).to_numpy(zero_copy_only=False),)
...     def combine(self, a, b):
...         return (a[0] * b[0],)
>>> accumulator(Part("multiplied", "x")).reduce((np.array([2.0, 3.0, 4.0]),), np.array([0, 2]))
(array([6., 4.]),)

On Spark the registration must be in a file that is imported with the aggregate, so not in the script itself.  For a
state that is to be combined in compiled loops see ``Compiled`` and ``oop_engine.operators.kernels.monoids.Monoid``.
"""

from __future__ import annotations

from oop_engine.operators.slicing.accumulator import (
    ACCUMULATORS,
    Accumulator,
    SumOverflowError,
    accumulator,
    is_compiled,
    is_ragged,
    register_accumulator,
)
from oop_engine.operators.slicing.accumulators import (
    kept_values,
    library_sketches,
    lists,
    sums_and_choices,
    user,
)  # each registers its own
from oop_engine.operators.slicing.compiled import Compiled

__all__ = [
    "ACCUMULATORS",
    "Accumulator",
    "Compiled",
    "SumOverflowError",
    "accumulator",
    "is_compiled",
    "is_ragged",
    "kept_values",
    "library_sketches",
    "lists",
    "register_accumulator",
    "sums_and_choices",
    "user",
]
