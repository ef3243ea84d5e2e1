"""Targets: what the engine is to reach, and whether it did."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any, NamedTuple

from benchmarks.turns import Measured

__all__ = ["Target", "of_studies", "of_workloads"]

OF_FLOOR = {"W1": 0.35, "W2": 0.30, "W3": 0.30, "W4": 0.40, "W5": 0.25} | {
    f"W6-{kind}-{slide}": 0.5 for kind in ("min", "avg") for slide in (1, 64, 1024)
}
W1_OF_FLOOR = {
    "FiBA, on panes": 0.25,
    "Scotty": 0.14,
}  # their own figures, measured once, beside the same floor


class Target(NamedTuple):
    """What is asked, the least that will do, and what was measured."""

    workload: str
    asked: str
    least: float
    got: float

    @property
    def reached(self) -> bool:
        """Whether it is."""
        return self.got >= self.least


def of_workloads(found: list[Measured]) -> Iterator[Target]:
    """Yield the targets that can be told from what was measured."""
    by_name = {(m.workload, m.contender): m for m in found}
    for workload, least in OF_FLOOR.items():
        if (workload, "engine") in by_name:
            mine, floor = by_name[workload, "engine"], by_name[workload, "floor"]
            yield Target(workload, "tuples a second / floor", least, _ratio(mine, floor))
            if workload == "W1":
                yield from (
                    Target("W1", f"above {who}", of, _ratio(mine, floor)) for who, of in W1_OF_FLOOR.items()
                )
    for workload, peer, least, of in (
        ("W2", "Polars", 3, "wall_s"),
        ("W2", "DuckDB", 3, "wall_s"),
        ("W3", "Polars", 1, "cpu_s"),
        ("W3", "DuckDB", 1, "cpu_s"),
        ("W4", "Polars", 1, "cpu_s"),
        ("W4", "DuckDB", 1, "cpu_s"),
    ):
        if {(workload, "engine"), (workload, peer)} <= by_name.keys():
            words = f"tuples a {'CPU ' if of == 'cpu_s' else ''}second / {peer}"
            yield Target(
                workload, words, least, _ratio(by_name[workload, "engine"], by_name[workload, peer], of)
            )
    for name, words, least in (
        ("engine, pages of 256", "pages of 256 / of 65 536", 1 / 3),
        ("engine, text keys", "text keys / integer keys", 1 / 2),
    ):
        if ("W3", name) in by_name:
            yield Target("W3", words, least, _ratio(by_name["W3", name], by_name["W3", "engine"]))


def of_studies(studies: dict[str, Any]) -> Iterator[Target]:
    """Yield the targets that studies tell; what is to be small is told upside down."""
    for workload, found in studies["memory"].items():
        told = found["told_of_held"]
        yield Target(
            workload, "bytes of open partials / peak beyond base", 1 / 3, 1 / found["beyond_of_open"]
        )
        yield Target(workload, "state: bytes told and held, less of more", 0.8, min(told, 1 / told))
    by_rows, by_keys = ([run["ns_per_tuple"] for run in studies["growth"][of]] for of in ("rows", "keys"))
    yield Target("W3", "time a tuple, least of rows / most", 0.8, by_rows[0] / by_rows[-1])
    yield Target("W3", "time a tuple, least of groups / most", 0.5, by_keys[0] / by_keys[-1])
    yield Target(
        "W3", "page / group-wise promise, equal sizes", 1, 1 / studies["promises"]["promise_of_page"]
    )


def _ratio(mine: Measured, other: Measured, of: str = "wall_s") -> float:
    return median(mine.ratios(other, of))
