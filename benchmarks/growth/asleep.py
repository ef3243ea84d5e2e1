"""The cost of one small message while many groups are asleep, for each operator.

Each operator gets a tuple of each of 1 k, 10 k, 100 k and 1 M keys, and nothing that ends them.  Then come a page of
one row, one of a row of a new key, a linear bound that closes nothing, and punctuation of one key, or that ends one,
over and over; and, with shorter windows, a linear bound that closes the window of one key, while those of all others
are later.  Printed is for each the work of one of them: CPU microseconds, calls in Python, and the bytes of all arrays
that are made for it, which tell of a walk over all groups in columns.  Behind them stand the exponents of calls and
bytes over all sizes: 0 is the same at any number of keys, 1 a walk over all.  Groups that are asleep should cost
nothing.
"""

from __future__ import annotations

import gc
import math
import sys
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oop_engine import GroupWise, Linear, Operator, Page, Schema
from oop_engine.aggregates import Last, Median, UserDefined
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.extend import Message
from oop_engine.operators import (
    AsOf,
    Band,
    BoundedDisorder,
    Count,
    Distinct,
    Emit,
    Expire,
    Finalize,
    Latest,
    Max,
    Meld,
    MultiJoin,
    OAJoin,
    PerGroup,
    Punctuate,
    Session,
    Sliding,
    Sum,
    TopN,
    Tumbling,
    WindowAggregate,
)
from oop_engine.runners.dispatch import handle
from oop_engine.system import stopwatch
from oop_engine.thesis import (
    Bucket,
    BufferingAggregate,
    LowLevelAggregate,
    Merge,
    OPIBJoin,
    PartialAggregate,
    Sort,
)
from oop_engine.triggers import AfterCount
from oop_engine.windows import (
    Delimited,
    Frames,
    Global,
    Intervals,
    Landmark,
    LastRows,
    PartitionedTupleBased,
    RowsBetween,
    SlideByTuple,
    TupleBased,
    UserWindows,
)

__all__ = [
    "CASES", "CLOSES", "CLOSING", "MESSAGES", "SCHEMA", "Work", "asked", "exponent", "given", "least_calls",
    "least_made", "least_us", "table", "work",
]  # fmt: skip

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()}, "ts", "ms")
REVISED = Schema(pa.schema([*SCHEMA.fields, pa.field("change", pa.int8())]), "ts", "ms", change="change")
FAR = 1_000_000_000  # ms: no window, band or session ends before
AT = 1000  # when the tuples of all keys are
STEP, LATER = 1000, 10_000_000  # of windows that close one by one, and when the tuples of all others are
TIMES, WARM = 20, 5
ASKED = {"n": Count(), "sum": Sum("v"), "most": Max("v")}


def _windows(windows: Any, asked: Any = None, **more: Any) -> Callable[[], Operator]:
    return lambda: WindowAggregate(windows, asked or ASKED, by=("k",), **more).opened(SCHEMA)


def _join(band: Any, **more: Any) -> Callable[[], Operator]:
    return lambda: OAJoin([("k", "k")], band, **more).opened(SCHEMA, SCHEMA)


SPELT = UserDefined(
    lambda v: (v.to_numpy() % 1009, np.full(len(v), 31)),
    lambda a, b: ((a[0] * b[1] + b[0]) % 1009, a[1] * b[1] % 1009),
    lambda state: state[0],
    reads=("v",),
    state_types=("int64", "int64"),
    returns=pa.int64(),
    commutative=False,
)
"""The number that values spell in order of time, modulo a prime: it is not commutative."""


def _far(times: Any, columns: Any, begin: int, bound: int, ended: bool) -> tuple[Any, Any]:
    ends = np.array([FAR, 2 * FAR])
    ends = ends[(ends > begin) & (ends <= bound)]
    return ends - FAR, ends


_NEVER_MARK, _MARK = pc.field("v") < 0, pc.field("v") >= 0
FOLDED: dict[str, Callable[[], Operator]] = {
    "ranks by time": _windows(PartitionedTupleBased(4, 1, order="time")),
    "ranks by time, with a tie": _windows(PartitionedTupleBased(4, 1, order="time", tie=("v",))),
    "ranks of the stream": _windows(TupleBased(4, 4, order="time")),
    "rows around": _windows(RowsBetween(-3, 1)),
    "last rows before": _windows(LastRows(4, FAR)),
    "each row": _windows(SlideByTuple(FAR)),
    "from mark to mark": _windows(Delimited(_NEVER_MARK)),
    "from mark to mark of all": _windows(Delimited(_NEVER_MARK, "stream")),
    "frames": _windows(Frames(_MARK, _NEVER_MARK)),
    "session of at most": _windows(Session(FAR, most=2 * FAR)),
    "intervals": _windows(Intervals([(0, FAR), (AT, 2 * FAR)])),
    "windows of a function": _windows(UserWindows(_far, back=FAR)),
    "not commutative": _windows(Tumbling(FAR), {"spelt": SPELT}),
    "three that share rows": _windows(
        {"a": SlideByTuple(FAR), "b": LastRows(4, FAR), "c": Session(FAR, most=2 * FAR)}
    ),
}
"""Windows that are folded in order of time, likewise: records that no bound has passed are held."""

CASES: dict[str, Callable[[], Operator]] = {
    **FOLDED,
    "tumbling": _windows(Tumbling(FAR)),
    "sliding": _windows(Sliding(FAR, FAR // 4)),
    "sliding, WID": _windows(Sliding(FAR, FAR // 4), strategy="windows"),
    "sliding, adaptive": _windows(Sliding(FAR, FAR // 4), strategy="adaptive"),
    "definitions that share slices": _windows({"a": Tumbling(FAR), "b": Tumbling(2 * FAR)}),
    "session": _windows(Session(FAR)),
    "session, by its start": _windows(Session(FAR), stamp="start"),
    "session, early": _windows(Session(FAR), emit=Emit(early=AfterCount(10))),
    "session, median, early": _windows(Session(FAR), {"m": Median("v")}, emit=Emit(early=AfterCount(10))),
    "median, early": _windows(Tumbling(FAR), {"m": Median("v")}, emit=Emit(early=AfterCount(10))),
    "last rows, early": _windows(PartitionedTupleBased(4, 1, order="time"), emit=Emit(early=AfterCount(10))),
    "landmark, median": _windows(Landmark(FAR), {"m": Median("v")}),
    "session, median": _windows(Session(FAR), {"m": Median("v")}),
    "sessions of two gaps": _windows({"a": Session(FAR), "b": Session(2 * FAR)}),
    "sessions of two gaps, median": _windows({"a": Session(FAR), "b": Session(2 * FAR)}, {"m": Median("v")}),
    "global": _windows(Global()),
    "global, median": _windows(Global(), {"m": Median("v")}),
    "landmark": _windows(Landmark(FAR)),
    "last rows of a group": _windows(PartitionedTupleBased(4, 1)),
    "median": _windows(Tumbling(FAR), {"m": Median("v")}),
    "last": _windows(Tumbling(FAR), {"last": Last("v")}),
    "versions": _windows(Tumbling(FAR), emit=Emit()),
    "distinct": lambda: Distinct(by=("k",)).opened(SCHEMA),
    "latest": lambda: Latest(by=("k",), where=pc.field("v") >= 0).opened(SCHEMA),
    "join": _join(Band(FAR, FAR)),
    "left join": _join(Band(FAR, FAR), how="left"),
    "as-of join": _join(AsOf()),
    "union": lambda: Meld(2).opened(SCHEMA, SCHEMA),
    "joins of three": lambda: MultiJoin(
        "a", {"b": Band(FAR, FAR), "c": Band(FAR, FAR)}, [("k", "k", "k")]
    ).opened(SCHEMA, SCHEMA, SCHEMA),
    "policy of each group": lambda: Punctuate(
        PerGroup(BoundedDisorder(FAR), by=("k",), linear=BoundedDisorder(FAR))
    ).opened(SCHEMA),
    "policy of groups that are ahead": lambda: Punctuate(
        PerGroup(BoundedDisorder(AT // 2), by=("k",), linear=BoundedDisorder(FAR))
    ).opened(SCHEMA),
    "tumbling, of changes": lambda: WindowAggregate(Tumbling(FAR), ASKED, by=("k",)).opened(REVISED),
    "distinct, of changes": lambda: Distinct(by=("k",)).opened(REVISED),
    "finalize": lambda: Finalize().opened(REVISED),
    "first rows of each time": lambda: TopN(3, ["-v"], by=("k",)).opened(SCHEMA),
    "tumbling, by two columns": lambda: WindowAggregate(Tumbling(FAR), ASKED, by=("k", "v")).opened(SCHEMA),
    "distinct, by two columns": lambda: Distinct(by=("k", "v")).opened(SCHEMA),
    "last rows, by two columns": lambda: WindowAggregate(
        PartitionedTupleBased(4, 1), {"n": Count()}, by=("k", "v")
    ).opened(SCHEMA),
    "bucket": lambda: Bucket(Tumbling(FAR)).opened(SCHEMA),
    "bucket of rows": lambda: Bucket(PartitionedTupleBased(4, 1), by=("k",)).opened(SCHEMA),
    "low level": lambda: LowLevelAggregate(Tumbling(FAR), ASKED, by=("k",), slots=1 << 10).opened(SCHEMA),
    "partial": lambda: PartialAggregate(Tumbling(FAR), ASKED, by=("k",)).opened(SCHEMA),
    "in-order aggregate": lambda: BufferingAggregate(Tumbling(FAR), ASKED, by=("k",)).opened(SCHEMA),
    "in-order sliced": lambda: WindowAggregate(Tumbling(FAR), ASKED, by=("k",)).opened(SCHEMA),
    "in-order join": lambda: OPIBJoin([("k", "k")], Band(FAR, FAR)).opened(SCHEMA, SCHEMA),
    "in-order merge": lambda: Merge(2).opened(SCHEMA, SCHEMA),
    "sort": lambda: Sort(BoundedDisorder(FAR)).opened(SCHEMA),
    "expire": lambda: Expire(FAR).opened(SCHEMA),
}
"""Operators, fresh, by name."""


def _row(number: int) -> Message:
    return _page(np.array([number % 7]), AT + 1 + number)


def _linear(number: int) -> Message:
    return Linear(number - TIMES)


def _one_key(number: int) -> Message:
    keys = pa.RecordBatch.from_arrays([pa.array([3])], names=["k"])
    return GroupWise(keys, np.array([1 + number]))


def _new_key(number: int) -> Message:
    return _page(np.array([FAR + number]), AT + 1 + number)


def _end_of_key(number: int) -> Message:
    keys = pa.RecordBatch.from_arrays([pa.array([10 + number])], names=["k"])
    return GroupWise(keys, np.array([FOREVER]))


MESSAGES: dict[str, Callable[[int], Message]] = {
    "page of a row": _row,
    "page of a new key": _new_key,
    "linear bound": _linear,
    "bound of a key": _one_key,
    "end of a key": _end_of_key,
}
"""The messages whose cost is asked for, by what they are; each grows with its number."""


CLOSES = "bound that closes one"
CLOSING: dict[str, tuple[Callable[[], Operator], int]] = {
    "tumbling": (_windows(Tumbling(STEP)), STEP),
    "sliding": (_windows(Sliding(4 * STEP, STEP)), STEP),
    "sliding, WID": (_windows(Sliding(4 * STEP, STEP), strategy="windows"), STEP),
    "sliding, adaptive": (_windows(Sliding(4 * STEP, STEP), strategy="adaptive"), STEP),
    "definitions that share slices": (_windows({"a": Tumbling(STEP), "b": Tumbling(2 * STEP)}), STEP),
    "session": (_windows(Session(LATER)), LATER + 1),
    "session, in lists": (_windows(Session(STEP // 2)), STEP // 2 + 1),
    "session, median": (_windows(Session(STEP // 2), {"m": Median("v")}), STEP // 2 + 1),
    "sessions of two gaps, median": (
        _windows({"a": Session(STEP // 2), "b": Session(STEP)}, {"m": Median("v")}),
        STEP // 2 + 1,
    ),
    "session, by its start": (_windows(Session(LATER), stamp="start"), LATER + 1),
    "session, by its start, in lists": (_windows(Session(STEP // 2), stamp="start"), STEP // 2 + 1),
    "landmark": (_windows(Landmark(STEP)), STEP),
    "median": (_windows(Tumbling(STEP), {"m": Median("v")}), STEP),
    "last": (_windows(Tumbling(STEP), {"last": Last("v")}), STEP),
    "versions": (_windows(Tumbling(STEP), emit=Emit()), STEP),
    "ranks by time": (_windows(PartitionedTupleBased(1, 1, order="time")), STEP),
    "rows around": (_windows(RowsBetween(0, 0)), STEP),
    "last rows before": (_windows(LastRows(1, STEP)), STEP),
    "each row": (_windows(SlideByTuple(STEP // 2)), STEP),
    "frames": (_windows(Frames(_MARK, _NEVER_MARK, most=STEP)), STEP),
    "session of at most": (_windows(Session(STEP // 2, most=STEP)), STEP),
    "not commutative": (_windows(Tumbling(STEP), {"spelt": SPELT}), STEP),
    "two that share rows": (_windows({"a": SlideByTuple(STEP // 2), "b": LastRows(1, STEP)}), STEP),
    "left join": (_join(Band(STEP // 2, STEP // 2), how="left"), STEP),
    "tumbling, of changes": (
        lambda: WindowAggregate(Tumbling(STEP), ASKED, by=("k",)).opened(REVISED),
        STEP,
    ),
    "finalize": (lambda: Finalize().opened(REVISED), 1),
    "latest": (lambda: Latest(by=("k",), where=pc.field("v") >= 0).opened(SCHEMA), 1),
    "first rows of each time": (lambda: TopN(3, ["-v"], by=("k",)).opened(SCHEMA), 1),
}
"""Operators with results that leave one by one, fresh, by name, and how far behind its tuple the bound is that asks."""


def asked() -> list[tuple[str, str]]:
    """Return the pairs of operator and message that there are."""
    return [(name, message) for name in CASES for message in MESSAGES] + [(name, CLOSES) for name in CLOSING]


class Work(NamedTuple):
    """Of one message: CPU microseconds, calls in Python, bytes of what was made for it at one time."""

    us: float
    calls: int
    made: int


def _page(keys: Any, at: Any) -> Page:
    times = np.array(np.broadcast_to(at, keys.shape))
    return Page.of(SCHEMA, {"ts": times, "k": keys, "v": np.arange(keys.size)})


def work(name: str, message: str, keys: int) -> Work:
    """Return the work of one message while so many keys are asleep: the least of some times."""
    operator, some = _closing(name, keys) if message == CLOSES else _small(name, message, keys)
    give = partial(given, operator, port=len(operator.schemas_in) - 1 if message == CLOSES else 0)
    gc.collect()
    steps: list[Callable[[], Any]] = [partial(give, one) for one in some]
    return Work(
        least_us(steps[:TIMES]), least_calls(steps[TIMES : 2 * TIMES]), least_made(steps[2 * TIMES :])
    )


def _small(name: str, message: str, keys: int) -> tuple[Operator, list[Message]]:
    operator, make = CASES[name](), MESSAGES[message]
    _asleep(operator, keys, AT)
    numbers = iter(range(10_000))
    for _ in range(WARM):
        given(operator, make(next(numbers)))
    return operator, [make(next(numbers)) for _ in range(3 * TIMES)]


def _closing(name: str, keys: int) -> tuple[Operator, list[Message]]:
    """Return an operator with later windows of all keys and one earlier one of some more, and bounds that close these.

    Raises ``ValueError`` if one of the first bounds has no result.
    """
    make, behind = CLOSING[name]
    operator, times = make(), STEP * np.arange(1, WARM + 3 * TIMES + 1)
    _asleep(operator, keys, LATER)
    given(operator, _page(keys + times, times))
    bounds = [Linear(int(time) + behind) for time in times]
    for bound in bounds[:WARM]:
        if not any(
            isinstance(m, Page) for _, m in handle(operator, len(operator.schemas_in) - 1, bound, NEVER)
        ):
            msg = f"{name}: the bound {bound} must close a window; got no result"
            raise ValueError(msg)
    return operator, [*bounds[WARM:]]


def _asleep(operator: Operator, keys: int, at: int) -> None:
    for begin in range(0, keys, 8192):
        given(operator, _page(np.arange(begin, min(begin + 8192, keys)), at))


def given(operator: Operator, message: Message, port: int = 0) -> None:
    """Give a message to an operator and drop what it emits."""
    if isinstance(message, Page) and operator.schemas_in[0].change is not None:
        changes = pa.array(np.ones(len(message), np.int8))
        columns = [*message.batch.columns, changes]
        message = Page(REVISED, pa.RecordBatch.from_arrays(columns, schema=REVISED.fields))
    deque(handle(operator, port, message, NEVER), maxlen=0)


def least_us(steps: list[Callable[[], Any]]) -> float:
    """Return the CPU microseconds of the cheapest of some steps, each done once."""
    return min(map(_us, steps))


def least_calls(steps: list[Callable[[], Any]]) -> int:
    """Return the calls in Python of the cheapest step."""
    return min(map(_calls, steps))


def least_made(steps: list[Callable[[], Any]]) -> int:
    """Return the bytes that the cheapest step makes, at one time."""
    return min(map(_made, steps))


def _us(step: Callable[[], Any]) -> float:
    start = stopwatch.cpu()
    step()
    return (stopwatch.cpu() - start) * 1e6


def _calls(step: Callable[[], Any]) -> int:
    count = 0

    def counted(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        step()
    finally:
        sys.setprofile(None)
    return count


def _made(step: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        step()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def exponent(few: float, many: float, times: float) -> float:
    """Return ``x`` of work that grows as ``keys ** x``, from that of some keys and of so many times as many."""
    return math.log(max(many, 1) / max(few, 1)) / math.log(times)


def _exponents(found: list[Work], sizes: list[int]) -> str:
    few, many, times = found[0], found[-1], sizes[-1] / sizes[0]
    if times <= 1:
        return ""
    return f"{exponent(few.calls, many.calls, times):>6.2f} {exponent(few.made, many.made, times):>6.2f}"


def table(sizes: Iterable[int]) -> None:
    """Print a table: a line for each operator and message, the work at each number of keys, and its exponents."""
    sizes = list(sizes)
    header = [f"{keys:>10,} keys: us, calls, bytes" for keys in sizes]
    print("operator, message".ljust(52), *header, " exponents of calls, bytes")
    for name, message in asked():
        found = [work(name, message, keys) for keys in sizes]
        cells = [f"{one.us:>12.0f} {one.calls:>7} {one.made:>11,}" for one in found]
        print(f"{name}, {message}".ljust(52), *cells, _exponents(found, sizes), flush=True)
