"""The library of operators: one concept, one file; cards in ``operators/README.md``.

The public names are here.  Each is loaded when it is first used, so that a graph without
windows or joins never loads Numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from operators.aggregate import Aggregate
    from operators.aggregates import (
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
    from operators.apply import Apply
    from operators.bands import Band, TumblingBand
    from operators.bucket import Bucket
    from operators.consolidate import Consolidate
    from operators.describe import Describe
    from operators.distinct import Distinct
    from operators.guard import Ahead, Guard
    from operators.in_order.buffering_aggregate import BufferingAggregate
    from operators.in_order.merge import Merge
    from operators.in_order.opib_join import OPIBJoin
    from operators.in_order.opob_join import OPOBJoin
    from operators.in_order.sort import Sort
    from operators.late import Late, Slack
    from operators.meld import Meld
    from operators.oa_join import OAJoin
    from operators.partial_aggregate import PartialAggregate
    from operators.policies import (
        BoundedCount,
        BoundedDisorder,
        Carried,
        Heartbeat,
        Ordered,
        PerGroup,
    )
    from operators.project import Project
    from operators.punctuate import Punctuate
    from operators.select import Select
    from operators.sliced_aggregate import SlicedAggregate
    from operators.split import Split
    from operators.window_aggregate import WindowAggregate
    from operators.windows import (
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
    "Carried",
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
    "UserDefined",
    "Var",
    "WindowAggregate",
]

_NAMES_OF = {
    "aggregate": "Aggregate",
    "aggregates": "Avg Count First Last Max Min Stddev Sum UserDefined Var",
    "apply": "Apply",
    "bands": "Band TumblingBand",
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
    "late": "Late Slack",
    "meld": "Meld",
    "oa_join": "OAJoin",
    "partial_aggregate": "PartialAggregate",
    "policies": "BoundedCount BoundedDisorder Carried Heartbeat Ordered PerGroup",
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
        value = globals()[name] = getattr(import_module(f"operators.{_HOMES[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
