"""Targets: what the engine is to reach, and whether it did."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any, NamedTuple

from benchmarks.turns import Measured

__all__ = ["Target", "of_studies", "of_workloads"]

OF_FLOOR = {
    "W1": 0.60,
    "W2": 0.50,
    "W3": 0.50,
    "W4": 0.80,
    "W4-left": 0.40,
    "W4-wide": 0.40,
    "W5": 0.40,
    "W5-1000": 0.25,
    **{f"W6-{kind}-{slide}": 0.5 for kind in ("min", "avg") for slide in (1, 64, 1024)},
    "W7": 0.30,
    "W8": 0.40,
    "W9-median": 0.40,
    "W9-p99": 0.30,
}
OF_OPEN = {"W2": 12, "W3": 5}  # peak memory beyond base, times the bytes of open partial aggregates
W1_OF_FLOOR = {
    "FiBA, on panes": 0.25,
    "Scotty": 0.14,
}  # their own figures, measured once, beside the same floor


class Target(NamedTuple):
    """What is asked, the least that will do, what was measured; and the same by CPU seconds, not by the clock.

    ``least``: None where nothing is asked, and what was measured is to stand beside a target.
    """

    workload: str
    asked: str
    least: float | None
    got: float
    by_cpu: float | None = None

    @property
    def reached(self) -> bool:
        """Whether it is."""
        return self.least is None or self.got >= self.least


def of_workloads(found: list[Measured]) -> Iterator[Target]:
    """Yield the targets that can be told from what was measured."""
    by_name = {(m.workload, m.contender): m for m in found}
    for workload, asked, least, mine, other in _asked():
        if {(workload, mine), (workload, other)} <= by_name.keys():
            one, against = by_name[workload, mine], by_name[workload, other]
            clock, cpu = (median(one.ratios(against, of)) for of in ("wall_s", "cpu_s"))
            if "CPU" in asked:
                yield Target(workload, asked, least, cpu)
            else:
                yield Target(workload, asked, least, clock, cpu)


def _asked() -> Iterator[tuple[str, str, float | None, str, str]]:
    """Yield workload, words, least ratio, and the two contenders that it is of."""
    for workload, least in OF_FLOOR.items():
        yield workload, "tuples a second / floor", least, "engine", "floor"
    for who, of in W1_OF_FLOOR.items():
        yield "W1", f"tuples a second / floor, above {who}", of, "engine", "floor"
    for peer in ("Polars", "DuckDB"):
        yield "W2", f"tuples a second / {peer}", 3, "engine", peer
        yield from ((w, f"tuples a CPU second / {peer}", 1, "engine", peer) for w in ("W3", "W4"))
    for peer in ("Spark", "PyFlink"):
        yield from ((w, f"tuples a CPU second / {peer}", 50, "engine", peer) for w in ("Q5", "Q7", "Q11"))
    small = "pages of 256 / of 65 536"
    yield "W3", f"{small}, pushed", 1 / 3, "engine, pushed, pages of 256", "engine, pushed"
    yield "W3", f"{small}, each answered before the next", None, "engine, pages of 256", "engine"
    yield "W3", "text keys / integer keys", 1 / 2, "engine, text keys", "engine"
    yield "W3-late", "with versions / final results alone", 0.6, "engine", "engine, final results alone"


def of_studies(studies: dict[str, Any]) -> Iterator[Target]:
    """Yield the targets that studies tell; what is to be small is told upside down."""
    for workload, found in studies["memory"].items():
        told = found["told_of_held"]
        yield Target(
            workload,
            "bytes of open partials / peak beyond base",
            1 / OF_OPEN[workload],
            1 / found["beyond_of_open"],
        )
        yield Target(workload, "state: bytes told and held, less of more", 0.8, min(told, 1 / told))
    by_rows, by_keys = ([run["ns_per_tuple"] for run in studies["growth"][of]] for of in ("rows", "keys"))
    yield Target("W3", "CPU time a tuple, fewest tuples / most", 0.8, by_rows[0] / by_rows[-1])
    yield Target("W3", "CPU time a tuple, fewest groups / most", 0.5, by_keys[0] / by_keys[-1])
    of_floor = [run["floor_ns_per_tuple"] for run in studies["growth"]["keys"]]
    yield Target("W3", "the same of the floor", None, of_floor[0] / of_floor[-1])
    yield Target(
        "W3", "page / group-wise promise, equal sizes", 1, 1 / studies["promises"]["promise_of_page"]
    )
    recovery = studies["recovery"]
    yield Target("10 MB", "20 ms / stream stands still for a checkpoint", 1, 0.02 / recovery["still_s"])
    yield Target("100 MB", "1 s / CPU of a restart", 1, 1 / recovery["restart_s"])
    for workload in ("W2", "W3"):
        share = recovery[f"{workload}_cpu_share"]
        yield Target(workload, "1 - part of the CPU of checkpoints every 10 s", 0.95, 1 - share)
