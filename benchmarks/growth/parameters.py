"""One parameter at a time, over three decades: what a message costs, and the exponent that its docstring allows."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.growth.asleep import CASES, SCHEMA, given, least_calls, least_made, least_us
from oop_engine import Graph, GroupWise, Linear, Operator, Page, Schema
from oop_engine.aggregates import Median
from oop_engine.extend import Message
from oop_engine.operators import (
    Band,
    BoundedDisorder,
    Count,
    Distinct,
    Emit,
    Latest,
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
from oop_engine.runners.inline import Inline
from oop_engine.thesis import Merge

__all__ = ["GROWTHS", "Grown", "Growth", "grown", "largest_exponents"]

STEP, FAR = 1000, 1_000_000_000  # ms
TIMES, WARM = 9, 3
MANY = 3 * TIMES + WARM  # messages of a case
DECADES = (1, 10, 100, 1000)
Step = Callable[[], Any]
TEXT = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "ms")


class Growth(NamedTuple):
    """A parameter, an operator with a message, and the exponent of the message that the docstring states."""

    parameter: str
    name: str
    stated: float
    make: Callable[[int], tuple[Operator | None, Iterator[Step]]]
    sizes: tuple[int, ...] = DECADES


class Grown(NamedTuple):
    """The work of one message at a value of a parameter: CPU microseconds, calls, bytes made, bytes of the state."""

    us: float
    calls: int
    made: int
    state: int


def grown(growth: Growth, value: int) -> Grown:
    """Return the least work of a message."""
    operator, steps = growth.make(value)
    for _ in range(WARM):
        next(steps)()
    some = [next(steps) for _ in range(3 * TIMES)]
    gc.collect()
    us = least_us(some[:TIMES])
    calls, made = least_calls(some[TIMES : 2 * TIMES]), least_made(some[2 * TIMES :])
    return Grown(us, calls, made, 0 if operator is None else operator.state().nbytes)


def largest_exponents(found: list[Grown], sizes: tuple[int, ...]) -> tuple[float, float, float]:
    """Return the exponents of microseconds, calls and bytes over all values."""
    first, last, times = found[0], found[-1], sizes[-1] / sizes[0]
    several = [(first.us, last.us), (first.calls, last.calls), (first.made + 4096, last.made + 4096)]
    us, calls, made = (float(np.log(max(many, 1) / max(few, 1)) / np.log(times)) for few, many in several)
    return us, calls, made


def _rows(keys: Any, times: Any, schema: Schema = SCHEMA) -> Page:
    count = np.broadcast(keys, times).size
    column = {"ts": np.broadcast_to(times, count).copy(), "k": np.broadcast_to(keys, count).copy()}
    return Page.of(schema, {**column, "v": np.arange(count) % 1000})


def _fed(operator: Operator, messages: Iterator[tuple[int, Message]]) -> tuple[Operator, Iterator[Step]]:
    return operator, (partial(given, operator, message, port) for port, message in messages)


def _each(make: Callable[[int], Message], port: int = 0) -> Iterator[tuple[int, Message]]:
    return ((port, make(number)) for number in range(MANY))


# -- open windows, and sessions of a key -------------------------------------------------------------------------------


def _open(
    windows: Callable[[int], Any], message: str, asked: Any = None, **more: Any
) -> Callable[[int], Any]:
    """Return an operator with so many more open windows of one key, and messages to the first ones or the last."""

    def make(value: int) -> Any:
        operator = WindowAggregate(windows(value), asked or {"n": Count()}, by=("k",), **more).opened(SCHEMA)
        starts = STEP * np.arange(MANY + value)
        for begin in range(0, starts.size, 8192):
            given(operator, _rows(1, starts[begin : begin + 8192] + 1))
        if message == "row":
            return _fed(operator, _each(lambda number: _rows(1, int(starts[-1]) + number)))
        return _fed(operator, _each(lambda number: Linear(STEP * (number + 1))))

    return make


_OF_WINDOWS: dict[str, tuple[Callable[[int], Any], dict[str, Any]]] = {
    "tumbling": (lambda _: Tumbling(STEP), {}),
    "tumbling, WID": (lambda _: Tumbling(STEP), {"strategy": "windows"}),
    "median": (lambda _: Tumbling(STEP), {"asked": {"m": Median("v")}}),
    "versions": (lambda _: Tumbling(STEP), {"emit": Emit()}),
}
_OF_SESSIONS: dict[str, tuple[Callable[[int], Any], dict[str, Any]]] = {
    "session": (lambda _: Session(STEP // 2), {}),
    "session, by its start": (lambda _: Session(STEP // 2), {"stamp": "start"}),
}
_OF_SLIDES: dict[str, tuple[Callable[[int], Any], dict[str, Any]]] = {
    "sliding, by panes": (lambda value: Sliding(value * STEP, STEP), {"strategy": "panes"}),
    "sliding, WID": (lambda value: Sliding(value * STEP, STEP), {"strategy": "windows"}),
}


def _of_windows() -> Iterator[Growth]:
    for parameter, some in (("open windows", _OF_WINDOWS), ("sessions of a key", _OF_SESSIONS)):
        for name, (windows, more) in some.items():
            for message in ("row", "bound that closes one"):
                yield Growth(parameter, f"{name}, {message}", 0, _open(windows, message, **more))
    for name, (windows, more) in _OF_SLIDES.items():
        stated = float(name.endswith("WID"))
        yield Growth("windows of a tuple", f"{name}, row", stated, _open(windows, "row", **more))


# -- groups with a bound of their own ----------------------------------------------------------------------------------


def _own_bounds(name: str, message: Callable[[int], Message]) -> Callable[[int], Any]:
    def make(value: int) -> Any:
        operator = CASES[name]()
        for begin in range(0, value, 8192):
            keys = np.arange(begin, min(begin + 8192, value))
            for port in range(len(operator.schemas_in)):
                given(operator, _rows(keys, STEP), port)
                given(operator, GroupWise.of({"k": keys}, np.full(keys.size, STEP // 2)), port)
        return _fed(operator, _each(message))

    return make


_TO_GROUPS: dict[str, Callable[[int], Message]] = {
    "row": lambda number: _rows(7, STEP + number),
    "linear bound": lambda number: Linear(number - MANY),
    "bound of a key": lambda number: GroupWise.of({"k": [7]}, [STEP // 2 + number]),
    "end of a key": lambda number: GroupWise.of({"k": [10 + number]}, [np.iinfo(np.int64).max]),
}


def _of_own_bounds() -> Iterator[Growth]:
    for name in (
        "tumbling",
        "session",
        "distinct",
        "join",
        "as-of join",
        "union",
        "joins of three",
        "finalize",
        "ranks by time",
        "from mark to mark",
        "three that share rows",
    ):
        for message, make in _TO_GROUPS.items():
            sizes = (1000, 10_000, 100_000)
            yield Growth("own bounds", f"{name}, {message}", 0, _own_bounds(name, make), sizes)


# -- inputs, definitions, columns, length of keys ----------------------------------------------------------------------


def _inputs(of: Callable[[int], Operator], make: Callable[[int], Message]) -> Callable[[int], Any]:
    def made(value: int) -> Any:
        operator = of(2 * value).opened(*[SCHEMA] * (2 * value))
        for port in range(2 * value):
            given(operator, Linear(STEP), port)
        return _fed(operator, _each(make))

    return made


def _three(inputs: int) -> Operator:
    names = [f"i{number}" for number in range(inputs)]
    return MultiJoin(names[0], {name: Band(0, 0) for name in names[1:]}, [("k",) * inputs])


def _of_inputs() -> Iterator[Growth]:
    row, bound = (lambda number: _rows(1, 2 * STEP + number)), (lambda number: Linear(2 * STEP + number))
    for name, of, sizes in (
        ("union", Meld, DECADES),
        ("merge", Merge, DECADES),
        ("join", _three, (2, 5, 20)),
    ):
        for message, make in (
            ("row", row),
            ("bound", bound),
            ("bound of a key", _TO_GROUPS["bound of a key"]),
        ):
            stated = float(name == "join" or message != "row")
            yield Growth("inputs", f"{name}, {message}", stated, _inputs(of, make), sizes)


def _definitions(windows: Callable[[int], Any], make: Callable[[int], Message]) -> Callable[[int], Any]:
    def made(value: int) -> Any:
        named = {f"w{number}": windows(number) for number in range(value)}
        operator = WindowAggregate(named, {"n": Count(), "sum": Sum("v")}, by=("k",)).opened(SCHEMA)
        given(operator, _rows(np.arange(100), STEP))
        return _fed(operator, _each(make))

    return made


def _columns(message: str) -> Callable[[int], Any]:
    def made(value: int) -> Any:
        names = [f"v{number}" for number in range(value)]
        schema = Schema({"ts": pa.int64(), "k": pa.int64(), **dict.fromkeys(names, pa.int64())}, "ts", "ms")
        asked = WindowAggregate(Tumbling(STEP), {f"sum_{name}": Sum(name) for name in names}, by=("k",))
        if message == "opening":
            return None, (partial(asked.opened, schema) for _ in range(MANY))
        rows = 100
        columns = {"ts": np.full(rows, 1), "k": np.arange(rows) % 10, **dict.fromkeys(names, np.arange(rows))}
        operator, page = asked.opened(schema), Page.of(schema, columns)
        if message == "page":
            return _fed(operator, _each(lambda _: page))

        def closed(number: int) -> Any:
            later = {**columns, "ts": np.full(rows, number * STEP)}
            given(operator, Page.of(schema, later))
            return partial(given, operator, Linear((number + 1) * STEP), 0)

        return operator, (closed(number) for number in range(MANY))

    return made


_OF_TEXTS: dict[str, Callable[[], Operator]] = {
    "tumbling": lambda: WindowAggregate(Tumbling(FAR), {"n": Count()}, by=("k",)).opened(TEXT),
    "session": lambda: WindowAggregate(Session(FAR), {"n": Count()}, by=("k",)).opened(TEXT),
    "distinct": lambda: Distinct(by=("k",)).opened(TEXT),
    "latest": lambda: Latest(by=("k",), where=pc.field("v") >= 0).opened(TEXT),
    "join": lambda: OAJoin([("k", "k")], Band(FAR, FAR)).opened(TEXT, TEXT),
    "first rows of each time": lambda: TopN(3, ["-v"], by=("k",)).opened(TEXT),
    "policy of each group": lambda: Punctuate(PerGroup(BoundedDisorder(FAR), by=("k",))).opened(TEXT),
}


def _text_keys(name: str) -> Callable[[int], Any]:
    def made(value: int) -> Any:
        def page(number: int) -> Message:
            keys = [f"{(number * 100 + each):08}".rjust(value, "x") for each in range(100)]
            return _rows(np.array(keys, object), STEP + number, TEXT)

        return _fed(_OF_TEXTS[name](), _each(page))

    return made


def _of_shapes() -> Iterator[Growth]:
    for message, make in (("row", _TO_GROUPS["row"]), ("linear bound", _TO_GROUPS["linear bound"])):
        shared, apart = (
            (lambda number: Sliding(FAR * (number + 1), FAR)),
            (lambda number: Tumbling(FAR + number * STEP)),
        )
        yield Growth("definitions", f"on one grid, {message}", 0, _definitions(shared, make))
        yield Growth(
            "definitions", f"without a common grid, {message}", 1, _definitions(apart, make), DECADES[:3]
        )
    for message in ("opening", "page", "bound that closes ten"):
        yield Growth("columns", f"sums, {message}", 1, _columns(message), (*DECADES, 10_000))
    for name in _OF_TEXTS:
        yield Growth("length of keys", f"{name}, page of 100", 1, _text_keys(name), (8, 80, 800, 8000))


# -- pages, bounds, late rows, nodes -----------------------------------------------------------------------------------

_OF_PAGES = ("tumbling", "sliding", "session", "median", "distinct", "latest", "join", "union", "finalize")


def _pages(name: str) -> Callable[[int], Any]:
    def made(value: int) -> Any:
        return _fed(CASES[name](), _each(lambda number: _rows(np.arange(value) % 1000, STEP + number)))

    return made


def _bounds(name: str) -> Callable[[int], Any]:
    """Return a page of 1,000 rows with so many bounds behind it, as one step."""

    def made(value: int) -> Any:
        operator = CASES[name]()

        def step(number: int) -> None:
            given(operator, _rows(np.arange(1000), 2 * FAR + number))
            for each in range(value):
                given(operator, Linear(number * 1000 + each), len(operator.schemas_in) - 1)

        return operator, (partial(step, number) for number in range(MANY))

    return made


def _late(value: int) -> Any:
    operator = Punctuate(BoundedDisorder(10)).opened(SCHEMA)
    times = np.where(np.arange(1000) < value, 0, STEP)
    return _fed(operator, _each(lambda number: _rows(np.arange(1000), times + number)))


def _nodes(value: int) -> Any:
    """Return rows for one node, while so many others have nothing to do."""
    graph = Graph("nodes")
    for number in range(value):
        counts = WindowAggregate(Tumbling(FAR), {"n": Count()}, by=("k",))
        graph.sink(f"out{number}", graph.add(f"count{number}", counts, graph.source(f"in{number}", SCHEMA)))
    inline = Inline(graph, lambda _: None)
    return None, (partial(inline.push, "in0", _rows(1, number)) for number in range(MANY))


def _of_streams() -> Iterator[Growth]:
    for name in _OF_PAGES:
        yield Growth("page size", f"{name}, page", 1, _pages(name), (1, 10, 100, 1000, 10_000))
    for name in ("tumbling", "session", "distinct", "join", "finalize"):
        yield Growth("bounds of 1,000 rows", f"{name}, page and bounds", 1, _bounds(name))
    yield Growth("late rows of 1,000", "policy, page", 0, _late)
    yield Growth("nodes", "tumbling, row", 0, _nodes)


GROWTHS: list[Growth] = [*_of_windows(), *_of_own_bounds(), *_of_inputs(), *_of_shapes(), *_of_streams()]
"""All that ``python -m benchmarks.growth parameters`` measures."""


def table(parameters: Collection[str] = ()) -> None:
    """Print a line for each growth of some parameters, or of all: CPU microseconds at each value, and the exponents."""
    print(
        "parameter: operator, message".ljust(58),
        "us of a message, bytes of the state",
        "  exponents of us, calls, bytes; stated",
    )
    for growth in GROWTHS:
        if parameters and growth.parameter not in parameters:
            continue
        found = [grown(growth, value) for value in growth.sizes]
        cells = " ".join(
            f"{value:>7,}: {one.us:>8.0f} {one.state:>11,}"
            for value, one in zip(growth.sizes, found, strict=True)
        )
        exponents = " ".join(f"{each:>5.2f}" for each in largest_exponents(found, growth.sizes))
        print(
            f"{growth.parameter}: {growth.name}".ljust(58),
            cells,
            f"{exponents}; {growth.stated:.0f}",
            flush=True,
        )
