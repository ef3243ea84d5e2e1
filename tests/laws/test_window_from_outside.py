"""A kind of window that no file of the packages knows: it merges, so ``WindowAggregate`` takes it as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from oop_engine import GraphError, Schema
from oop_engine.operators import Count, Sum, WindowAggregate
from oop_engine.operators.windows import Merging, Over
from oop_engine.testing import Case, contract_suite
from tests.naive import windows as naive
from tests.naive.sessions import sessions

Integers = NDArray[np.int64]
SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "s")
DOMAINS: dict[str, list[Any]] = {"ts": list(range(-30, 60)), "k": ["a", "b", None], "v": [-5, 0, 7, None]}
FUNCTIONS = {"n": naive.aggregate("count"), "s": naive.aggregate("sum", "v")}


@dataclass(frozen=True)
class Bursts:
    """Tuples with no two neighbours further apart than ``pause``; the window ends with its last tuple."""

    pause: int

    def bound(self, schema: Schema, place: str = "Bursts") -> Pause:
        return Pause(self.pause)


@dataclass(frozen=True)
class Pause(Merging):
    """Bursts in whole units."""

    length: int

    def check(self, times: Integers) -> None:
        assert times.size == 0 or abs(times).max() < 2**60

    def begins(self, slots: Integers, first: Integers, last: Integers) -> NDArray[np.bool_]:
        new = np.ones(slots.size, np.bool_)
        reach = None
        for i in range(slots.size):
            if i and slots[i] == slots[i - 1] and reach is not None and first[i] - reach <= self.length:
                new[i], reach = False, max(reach, last[i])
            else:
                reach = last[i]
        return new

    def ends(self, last: Integers) -> Integers:
        return last + 1

    def complete(self, last: Integers, bounds: Integers | int) -> NDArray[np.bool_]:
        done: NDArray[np.bool_] = last + self.length < bounds
        return done

    def least_end(self, bounds: Integers) -> Integers:
        return np.where(np.abs(bounds) < 2**60, bounds + 1, bounds)


def bursts(inputs: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    found = sessions(inputs[0], "ts", ("k",), FUNCTIONS, 4)
    return [row | {"window_end": row["window_end"] - 4 + 1} for row in found]


test_a_window_of_ones_own_keeps_the_laws = contract_suite(
    [
        Case(
            "bursts",
            WindowAggregate(Bursts(4), {"n": Count(), "s": Sum("v")}, ("k",)),
            (SCHEMA,),
            bursts,
            DOMAINS,
        )
    ],
    together=True,
)


def test_a_definition_that_no_store_knows_is_refused() -> None:
    @dataclass(frozen=True)
    class Vague:
        over: Over = Over.ATTRIBUTE
        whole_stream: bool = False

        def bound(self, schema: Schema, place: str = "Vague") -> Any:
            return self

    with pytest.raises(GraphError, match="no store keeps windows of Vague"):
        WindowAggregate(Vague(), {"n": Count()}).opened(SCHEMA)
