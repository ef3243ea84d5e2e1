"""The library of operators: one concept, one file; cards in ``operators/README.md``.

The operators are here, and those windows, aggregates, bands, policies and triggers that most graphs have, so that a
first graph needs one line of imports; ``oop_engine.windows``, ``aggregates``, ``joins``, ``policies`` and
``triggers`` have all of them.  Each is loaded when it is first used, so that a graph without windows or joins never
loads Numba.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:  # operators
    from oop_engine.operators.with_columns import WithColumns as WithColumns
    from oop_engine.operators.distinct import Distinct as Distinct
    from oop_engine.operators.edge.prune_punctuation import PrunePunctuation as PrunePunctuation
    from oop_engine.operators.edge.guard import Guard as Guard
    from oop_engine.operators.edge.punctuate import Punctuate as Punctuate
    from oop_engine.operators.edge.shed import Shed as Shed
    from oop_engine.operators.edge.arrival_time import ArrivalTime as ArrivalTime
    from oop_engine.operators.expire import Expire as Expire
    from oop_engine.operators.finalize import Finalize as Finalize
    from oop_engine.operators.if_none import IfNone as IfNone
    from oop_engine.operators.latest import Latest as Latest
    from oop_engine.operators.meld import Meld as Meld
    from oop_engine.operators.multi_way_join import MultiJoin as MultiJoin
    from oop_engine.operators.oa_join import OAJoin as OAJoin
    from oop_engine.operators.project import Project as Project
    from oop_engine.operators.filter import Filter as Filter
    from oop_engine.operators.split import Split as Split
    from oop_engine.operators.top_n import TopN as TopN
    from oop_engine.operators.window_aggregate import WindowAggregate as WindowAggregate

if TYPE_CHECKING:  # of other shelves: values that most graphs have
    from oop_engine.operators.aggregates import Avg as Avg, Count as Count, Max as Max, Min as Min, Sum as Sum
    from oop_engine.operators.joining.bands import AsOf as AsOf, Band as Band
    from oop_engine.operators.policies.late import Late as Late
    from oop_engine.operators.policies.policies import (
        BoundedDisorder as BoundedDisorder,
        Ordered as Ordered,
        PerGroup as PerGroup,
        Upstream as Upstream,
    )
    from oop_engine.operators.triggers import Emit as Emit
    from oop_engine.operators.windows import Session as Session, Sliding as Sliding, Tumbling as Tumbling
else:
    __getattr__, __dir__ = shelf(__name__)
