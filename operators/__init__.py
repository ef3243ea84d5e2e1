"""The library of operators: one concept, one file; cards in ``operators/README.md``.

The public names are here.  Each is loaded when it is first used, so that a graph without
windows or joins never loads Numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if __name__ != "oop_engine.operators":  # a class under two names would be two classes
    msg = f"the operators of oop-engine are the package oop_engine.operators; got {__name__!r}: import that"
    raise ImportError(msg)

if TYPE_CHECKING:
    from oop_engine.operators.aggregate import Aggregate
    from oop_engine.operators.aggregates import (
        Avg,
        Count,
        First,
        Last,
        Max,
        Min,
        Stddev,
        Sum,
        UserDefined,
        Var,
    )
    from oop_engine.operators.apply import Apply
    from oop_engine.operators.bucket import Bucket
    from oop_engine.operators.consolidate import Consolidate
    from oop_engine.operators.describe import Describe
    from oop_engine.operators.distinct import Distinct
    from oop_engine.operators.edge.late import Late, Slack
    from oop_engine.operators.edge.policies import (
        BoundedCount,
        BoundedDisorder,
        Heartbeat,
        Ordered,
        PerGroup,
        Upstream,
    )
    from oop_engine.operators.guard import Ahead, Guard
    from oop_engine.operators.in_order.buffering_aggregate import BufferingAggregate
    from oop_engine.operators.in_order.merge import Merge
    from oop_engine.operators.in_order.opib_join import OPIBJoin
    from oop_engine.operators.in_order.opob_join import OPOBJoin
    from oop_engine.operators.in_order.sort import Sort
    from oop_engine.operators.joining.bands import Band, TumblingBand
    from oop_engine.operators.meld import Meld
    from oop_engine.operators.oa_join import OAJoin
    from oop_engine.operators.partial_aggregate import PartialAggregate
    from oop_engine.operators.project import Project
    from oop_engine.operators.punctuate import Punctuate
    from oop_engine.operators.select import Select
    from oop_engine.operators.sliced_aggregate import SlicedAggregate
    from oop_engine.operators.split import Split
    from oop_engine.operators.window_aggregate import WindowAggregate
    from oop_engine.operators.windows import (
        Landmark,
        PartitionedTupleBased,
        Sliding,
        Tumbling,
        TupleBased,
    )

__all__ = [
    "Aggregate",
    "Ahead",
    "Apply",
    "Avg",
    "Band",
    "BoundedCount",
    "BoundedDisorder",
    "Bucket",
    "BufferingAggregate",
    "Consolidate",
    "Count",
    "Describe",
    "Distinct",
    "First",
    "Guard",
    "Heartbeat",
    "Landmark",
    "Last",
    "Late",
    "Max",
    "Meld",
    "Merge",
    "Min",
    "OAJoin",
    "OPIBJoin",
    "OPOBJoin",
    "Ordered",
    "PartialAggregate",
    "PartitionedTupleBased",
    "PerGroup",
    "Project",
    "Punctuate",
    "Select",
    "Slack",
    "SlicedAggregate",
    "Sliding",
    "Sort",
    "Split",
    "Stddev",
    "Sum",
    "Tumbling",
    "TumblingBand",
    "TupleBased",
    "Upstream",
    "UserDefined",
    "Var",
    "WindowAggregate",
]

_NAMES_OF = {
    "aggregate": "Aggregate",
    "aggregates": "Avg Count First Last Max Min Stddev Sum UserDefined Var",
    "apply": "Apply",
    "joining.bands": "Band TumblingBand",
    "bucket": "Bucket",
    "consolidate": "Consolidate",
    "describe": "Describe",
    "distinct": "Distinct",
    "guard": "Ahead Guard",
    "in_order.buffering_aggregate": "BufferingAggregate",
    "in_order.merge": "Merge",
    "in_order.opib_join": "OPIBJoin",
    "in_order.opob_join": "OPOBJoin",
    "in_order.sort": "Sort",
    "edge.late": "Late Slack",
    "meld": "Meld",
    "oa_join": "OAJoin",
    "partial_aggregate": "PartialAggregate",
    "edge.policies": "BoundedCount BoundedDisorder Heartbeat Ordered PerGroup Upstream",
    "project": "Project",
    "punctuate": "Punctuate",
    "select": "Select",
    "sliced_aggregate": "SlicedAggregate",
    "split": "Split",
    "window_aggregate": "WindowAggregate",
    "windows": "Landmark PartitionedTupleBased Sliding Tumbling TupleBased",
}
_HOMES = {name: home for home, names in _NAMES_OF.items() for name in names.split()}

if not TYPE_CHECKING:  # so that a checker knows the names above and no others

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            msg = f"module 'operators' has no attribute {name!r}"
            raise AttributeError(msg)
        value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
