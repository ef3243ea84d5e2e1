"""Halves: which rows of partial aggregates go from ``PartialAggregate`` to ``Consolidate``.

Windows on a grid travel as panes, windows that merge as runs; of several sessions one row serves all gaps.
"""

from __future__ import annotations

from collections.abc import Mapping

from oop_engine.core.errors import GraphError
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation
from oop_engine.operators.slicing.output import Stamp
from oop_engine.operators.slicing.partial_rows import PartialRows
from oop_engine.operators.slicing.stores.pane_rows import PaneRows
from oop_engine.operators.slicing.stores.run_rows import RunRows
from oop_engine.operators.slicing.tagger import bind
from oop_engine.operators.values.describe_value import describe_value
from oop_engine.operators.windows import Extents, Gap, Merging, Over, Windows

__all__ = ["partial_rows"]


def partial_rows(
    windows: Windows | Mapping[str, Windows], aggregates: Mapping[str, Aggregation], by: tuple[str, ...],
    tuples: Schema, what: str, stamp: Stamp = "end",
) -> PartialRows:  # fmt: skip
    """Return the rows for ``windows``; raise ``GraphError`` in the name of ``what`` if they cannot be halved."""
    named = isinstance(windows, Mapping)
    given = windows if isinstance(windows, Mapping) else {"": windows}
    definitions = {name: bind(one, tuples, by, what) for name, one in given.items()}
    for name, one in definitions.items():
        if one.over is not Over.ATTRIBUTE:
            msg = (
                f"{what}: windows must be on the progressing attribute, for the order of arrival is known in one "
                f"place only; got {describe_value(given[name])}: use WindowAggregate, or a Sliding or Tumbling window"
            )
            raise GraphError(msg)
    rest = aggregates, by, tuples, what, stamp
    first = next(iter(definitions.values()))
    if not named and isinstance(first, Extents) and not first.landmark:
        return PaneRows(first, *rest)
    merging = {name: one for name, one in definitions.items() if isinstance(one, Merging)}
    if len(merging) == len(definitions) and (
        not named or all(isinstance(one, Gap) for one in merging.values())
    ):
        return RunRows(merging, *rest, named=named)
    msg = (
        f"{what}: windows must be one on a grid, with a range, or sessions, for others have no panes or runs to let "
        f"go of; got {', '.join(map(describe_value, given.values()))}: use WindowAggregate, or a Sliding "
        "or Tumbling window"
    )
    raise GraphError(msg)
