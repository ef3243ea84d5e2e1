"""Meld: a union that combines the punctuation of its inputs and ignores their order.

Pages leave the moment they arrive; only punctuation is combined.  The bound of the output
is the minimum of the bounds of the inputs, taken for the whole
stream (linear) and for each group (group-wise).

    Pass       every page, unchanged, at once.
    Keep       one int64 per input, and one more per input for each group whose bound on some
               input is ahead of the whole stream.  Never a tuple.
    Propagate  linear      min over inputs i of  linear[i]
               group-wise  min over inputs i of  max(linear[i], grouped[g, i])
               each only when it has grown.  Joint punctuation: only with a single input.
    Cost       O(1) a page; a group-wise punctuation costs its groups, a linear one the groups
               whose bound it raises or passes, O(inputs + log groups) each.  Order needed: none.
    Source     thesis 8.2, fig. 8-2; group-wise, the same for each group.  ``Merge`` is the
               in-order twin, which buffers and sorts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.keys.tables import IN_KERNELS

__all__ = ["Meld"]

_MOST = 10_000  # inputs


@checked_arguments
class Meld(Operator):
    """Union of ``n_inputs`` streams of one schema, in the order in which pages come.

    Inputs are ``in0``, ``in1``, ...  Raises ``GraphError`` if ``n_inputs`` is below 1 or the
    inputs' columns, progressing attributes or units differ.

    >>> import pyarrow as pa
    >>> from oop_engine import Linear
    >>> from oop_engine.testing import Driver
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> driver = Driver(Meld(n_inputs=2), schema, schema)
    >>> driver.feed(0, Linear(60))
    []
    >>> driver.feed(1, Linear(40))
    [(0, Linear(below=40))]
    """

    is_union = True
    revisions = "passes"

    def __init__(self, n_inputs: int) -> None:
        if not 1 <= n_inputs <= _MOST:
            msg = f"Meld: n_inputs must be a number of inputs from 1 to {_MOST:,}; got {n_inputs!r}"
            raise GraphError(msg)
        self.inputs = tuple(f"in{i}" for i in range(n_inputs))

    def uses_arrival(self) -> bool:
        return False

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        for port, schema in enumerate(inputs):
            if schema != inputs[0]:
                msg = (
                    f"Meld: inputs must have the same schema; in{port} differs from in0 in "
                    f"{_difference(inputs[0], schema)}: project or rename before"
                )
                raise GraphError(msg)
        return (inputs[0],)

    def partition_keys(self, inputs: tuple[Schema, ...]) -> None:
        return None

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column,) * len(inputs)

    def reads(
        self, inputs: tuple[Schema, ...], downstream: tuple[frozenset[str], ...]
    ) -> tuple[frozenset[str], ...]:
        return downstream * len(inputs)

    def open(self) -> None:
        self._progress = Progress(len(self.inputs), tables=IN_KERNELS)

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        for combined in self._progress.advance(port, punctuation):
            yield 0, combined

    def state(self) -> State:
        return State(groups=self._progress.groups, nbytes=self._progress.nbytes)

    def save(self) -> dict[str, Any]:
        return {"progress": self._progress.save()}

    def load(self, state: Saved) -> None:
        self._progress.load(state.part("progress"))


def _difference(first: Schema, other: Schema) -> str:
    """Describe the first difference of two schemas."""
    if first.names != other.names:
        apart = sorted(set(first.names) ^ set(other.names))
        return f"columns {', '.join(map(repr, apart))}" if apart else f"the order of columns {other.names}"
    for name in first.names:
        if (expected := first.fields.field(name)) != (actual := other.fields.field(name)):
            return f"column {name!r}: {actual} instead of {expected}"
    if first.progressing != other.progressing:
        return f"the progressing attribute: {other.progressing!r} instead of {first.progressing!r}"
    return f"the unit: {other.unit!r} instead of {first.unit!r}"
