"""What knobs are worth: ``python -m benchmarks.knobs [NAMES...]``; names are parts of those of knobs, as ``joining.``.

A knob cuts work, or chooses how it is done, and no result depends on it.  So it has to earn its place: here each knob
that Python code reads is set to a half, to double, to a 32nd and to 32 times its value, one at a time, while those of
the questions below run that read it most often.  Printed is for each setting the question that changes most: the ratio
of its CPU seconds to those with the knob as it is, and that of its peak state where that changes; a dot where all are
within a tenth.  A knob of dots alone chooses between ways that cost the same here: one of them can go, or a question
is missing.

Settings take turns in one process, round after round, and ratios are those of the least times.  Knobs of kernels are
compiled in, so they are not set here.
"""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import os
import pkgutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from types import CodeType
from typing import Any, NamedTuple

import oop_engine
from benchmarks.data import clicks, links
from benchmarks.ours import run_graph
from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.w2 import BytesBySender
from benchmarks.workloads.w3 import PacketsBySender
from benchmarks.workloads.w7 import SessionsByUser
from oop_engine import Graph, Page
from oop_engine.aggregates import Median
from oop_engine.operators import (
    AsOf,
    BoundedDisorder,
    Count,
    Distinct,
    Emit,
    Max,
    Meld,
    OAJoin,
    PerGroup,
    Punctuate,
    Sliding,
    Sum,
    TopN,
    Tumbling,
    WindowAggregate,
)
from oop_engine.system import stopwatch
from oop_engine.system.knobs import KNOBS, VARIABLE
from oop_engine.windows import Landmark

__all__ = ["QUESTIONS", "knobs_of_python", "main", "set_to"]

ROWS, PAGE = 100_000, 1 << 14
ROUNDS = 2
MOST = 5  # questions for a knob: those that read it most often
LEAST_S = 0.01  # CPU seconds of a turn
SHOWN = 0.1
FAR = 32
SLOW = 5  # times the CPU seconds of the knob as it is: one turn tells enough
Run = Callable[[], int]
"""Answers a question once and returns the peak of its state in bytes."""

_SHORT = ("W1", "W2", "W3", "W3-late", "W4", "W4-left", "W5", "W5-100", "W6-min-1", "W6-avg-64", "W7", "W8")
_MORE = ("W9-median", "Q5", "Q7", "Q11")


def _workload(name: str, page: int = PAGE, rows: int = ROWS) -> Run:
    workload = WORKLOADS[name]
    columns = workload.data(rows)
    return _run(workload.graph, list(workload.feed(columns, page)))


def _run(graph: Callable[[], Graph], feed: list[tuple[str, Page]]) -> Run:
    def run() -> int:
        pages = [(source, Page(cut.schema, cut.batch)) for source, cut in feed]
        return int(run_graph(graph(), pages, lambda _: None).statistics.peak.nbytes)

    return run


def _over_packets(
    operator: Callable[[], Any], *, keys: int = 50_000, policy: Any = None, rows: int = ROWS
) -> Run:
    """Return a question of many senders, by one operator behind its policy."""
    workload = BytesBySender("W2")

    def graph() -> Graph:
        made = Graph("packets")
        tuples = made.source("tuples", workload.schema)
        promised = made.add("progress", Punctuate(policy or BoundedDisorder("7 s"), "1 s"), tuples)
        made.sink("results", made.add("operator", operator(), promised))
        return made

    return _run(graph, list(workload.feed(links(rows, keys=keys), PAGE)))


def _twice(operator: Callable[[], Any]) -> Run:
    """Return a question about the packets joined with themselves."""
    workload = BytesBySender("W2")

    def graph() -> Graph:
        made = Graph("twice")
        sides = [
            made.add(
                f"{name}_progress",
                Punctuate(BoundedDisorder("7 s"), "1 s"),
                made.source(name, workload.schema),
            )
            for name in ("left", "right")
        ]
        made.sink("results", made.add("operator", operator(), *sides))
        return made

    pages = [cut for _, cut in workload.feed(links(ROWS // 2), PAGE)]
    return _run(graph, [(side, page) for page in pages for side in ("left", "right")])


_BY: dict[str, Any] = {"by": ("src",)}
_SUMS = {"n": Count(), "sum": Sum("len"), "most": Max("len")}
QUESTIONS: dict[str, Callable[[], Run]] = {
    **{name: partial(_workload, name) for name in (*_SHORT, *_MORE)},
    "W4-wide": partial(_workload, "W4-wide", rows=20_000),
    "W3, pages of 256": partial(_workload, "W3", 256, ROWS // 4),
    "W7, pages of 256": partial(_workload, "W7", 256, ROWS // 4),
    "tumbling, 50,000 senders": lambda: _over_packets(lambda: WindowAggregate(Tumbling("1 s"), _SUMS, **_BY)),
    "sliding, 50,000 senders": lambda: _over_packets(
        lambda: WindowAggregate(Sliding("1 min", "1 s"), _SUMS, **_BY), rows=ROWS // 2
    ),
    "shared, 50,000 senders": lambda: _over_packets(
        lambda: WindowAggregate({"a": Sliding("30 s", "3 s"), "b": Tumbling("5 s")}, _SUMS, **_BY)
    ),
    "adaptive, 50,000 senders": lambda: _over_packets(
        lambda: WindowAggregate(Sliding("1 min", "1 s"), _SUMS, **_BY, strategy="adaptive"), rows=ROWS // 8
    ),
    "landmark": lambda: _over_packets(lambda: WindowAggregate(Landmark("1 s"), _SUMS, **_BY), keys=1000),
    "median, 50,000 senders": lambda: _over_packets(
        lambda: WindowAggregate(Tumbling("10 s"), {"m": Median("len")}, **_BY)
    ),
    "early and late": lambda: _over_packets(
        lambda: WindowAggregate(Tumbling("1 s"), _SUMS, **_BY, emit=Emit()), keys=5000
    ),
    "bounds of each sender": lambda: _over_packets(
        lambda: WindowAggregate(Tumbling("1 s"), _SUMS, **_BY),
        keys=1000,
        rows=ROWS // 4,
        policy=PerGroup(BoundedDisorder("7 s"), by=("src",), linear=BoundedDisorder("9 s")),
    ),
    "distinct": lambda: _over_packets(lambda: Distinct(by=("src",))),
    "first of each second": lambda: _over_packets(lambda: TopN(3, ["-len"]), rows=ROWS // 4),
    "as-of join": lambda: _twice(lambda: OAJoin([("src", "src")], AsOf("5 s"))),
    "union": lambda: _twice(lambda: Meld(2)),
    "sessions of 100,000 users": lambda: _run(
        SessionsByUser("W7").graph, list(SessionsByUser("W7").feed(clicks(ROWS, keys=100_000), PAGE))
    ),
    "tumbling, 1,000,000 senders": lambda: _run(
        PacketsBySender("W3").graph, list(PacketsBySender("W3").feed(links(ROWS, keys=1_000_000), PAGE))
    ),
}
"""Questions by name, each made when it is asked."""


class Found(NamedTuple):
    """Ratios of one setting of a knob on a question: CPU seconds, and peak state."""

    cpu: float
    state: float

    @property
    def largest(self) -> float:
        return max(abs(self.cpu - 1), abs(self.state - 1))


def knobs_of_python() -> dict[str, str]:
    """Return the module of each knob that Python code reads, by name."""
    for each in pkgutil.walk_packages(oop_engine.__path__, "oop_engine."):
        if each.name.startswith(("oop_engine.operators.", "oop_engine.core.", "oop_engine.runners.")):
            importlib.import_module(each.name)
    homes = {}
    for name in KNOBS:
        inside = name.rpartition(".")[0]
        home = next(m for m in (f"oop_engine.{inside}", f"oop_engine.operators.{inside}") if m in sys.modules)
        if ".kernels." not in home:
            homes[name] = home
    return homes


@contextmanager
def set_to(home: str, name: str, size: int) -> Iterator[None]:
    """Set a knob in its module and in those that import it."""
    short = name.rpartition(".")[2]
    found = readers(home, short)
    before = [vars(each)[short] for each in found]
    for each in found:
        setattr(each, short, size)
    try:
        yield
    finally:
        for each, its in zip(found, before, strict=True):
            setattr(each, short, its)


@cache
def readers(home: str, name: str) -> list[Any]:
    """Return the modules that have a knob: its own, and those that import it."""
    modules = [
        each for key, each in sys.modules.items() if key.startswith("oop_engine.") and name in vars(each)
    ]
    return [each for each in modules if each.__name__ == home or _imports(each, home, name)]


def _imports(module: Any, home: str, name: str) -> bool:
    return (home, name) in _imported(module)


@cache
def _imported(module: Any) -> set[tuple[str | None, str]]:
    nodes = ast.walk(ast.parse(inspect.getsource(module)))
    froms = (node for node in nodes if isinstance(node, ast.ImportFrom))
    return {(node.module, alias.name) for node in froms for alias in node.names}


def sizes_of(name: str) -> dict[str, int]:
    """Return the sizes that are tried, by the columns of the table; none is below the least that works."""
    knob = KNOBS[name]
    tried = {
        "half": knob.size // 2,
        "double": 2 * knob.size,
        "small": knob.size // FAR,
        "large": FAR * knob.size,
    }
    return {words: max(size, knob.least) for words, size in tried.items()}


def reached(run: Run) -> Counter[tuple[str, str]]:
    """Return how often a question calls functions that read a name, by their file and the name."""
    called = Counter[CodeType]()
    sys.setprofile(lambda frame, event, _: called.update([frame.f_code]) if event == "call" else None)
    try:
        run()
    finally:
        sys.setprofile(None)
    found = Counter[tuple[str, str]]()
    for code, times in called.items():
        for name in code.co_names:
            found[code.co_filename, name] += times
    return found


def measured(home: str, name: str, run: Run) -> dict[str, Found]:
    """Return what each setting of a knob changes for one question."""
    sizes = {"": KNOBS[name].size, **sizes_of(name)}
    cpu, state = dict.fromkeys(sizes, float("inf")), dict.fromkeys(sizes, 0)
    times = 1 + int(LEAST_S / _cpu(run))
    for _ in range(ROUNDS):
        for words, size in sizes.items():
            with set_to(home, name, size):
                gc.collect()
                state[words] = run()
                cpu[words] = min(cpu[words], *(_cpu(run) for _ in range(times)))
    return {w: Found(cpu[w] / cpu[""], state[w] / max(state[""], 1)) for w in sizes if w}


def _cpu(run: Run) -> float:
    start = stopwatch.cpu()
    run()
    return stopwatch.cpu() - start


def row(name: str, near: list[str], found: dict[str, dict[str, Found]]) -> str:
    """Return a row of the table: at each setting the question that changes most, with its ratios."""
    cells = []
    for words, size in sizes_of(name).items():
        if size == KNOBS[name].size or not near:
            cells.append("" if near else "-")
            continue
        at, most = max(((one, found[one][words]) for one in near), key=lambda pair: pair[1].largest)
        state = f", {most.state:.2f}" if abs(most.state - 1) > SHOWN else ""
        cells.append(f"{at}: {most.cpu:.2f}{state}" if most.largest > SHOWN else ".")
    return f"| `{name}` | {KNOBS[name].size:,} | {len(near)} | {' | '.join(cells)} |"


def main(names: list[str]) -> None:
    """Print a table in Markdown, a row for each knob."""
    homes = knobs_of_python()
    asked = {name: home for name, home in homes.items() if not names or any(each in name for each in names)}
    runs = {question: make() for question, make in QUESTIONS.items()}
    for run in runs.values():
        run()
    reach = {question: reached(run) for question, run in runs.items()}
    print(
        "| knob | value | questions | half | double | a 32nd | 32 times |",
        "|---|---|---|---|---|---|---|",
        sep="\n",
    )
    for name, home in asked.items():
        short = name.rpartition(".")[2]
        places = {(str(each.__file__), short) for each in readers(home, short)}
        often = {question: sum(reach[question][place] for place in places) for question in runs}
        near = [question for question in sorted(runs, key=lambda one: -often[one])[:MOST] if often[question]]
        print(row(name, near, {one: measured(home, name, runs[one]) for one in near}), flush=True)


if __name__ == "__main__":
    if VARIABLE in os.environ:
        sys.exit(f"{VARIABLE} is set: knobs are measured against their values in production")
    main(sys.argv[1:])
