"""Cuts on Spark: results do not depend on pages, segments, micro-batches or batches of Arrow.

``python -m tests.simulation.cuts_on_spark ROWS``: the cases and streams of ``tests.simulation.cuts``, many as one graph
in one session, once for each size of pages, with other segments, micro-batches and batches of Arrow each time; their
results are those of ``run``.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from oop_engine import run
from oop_engine.core.errors import EngineError
from oop_engine.testing import Case
from tests.cases import all_cases
from tests.parts.spark.together import Together, in_segments
from tests.simulation.cuts import OTHERS, contents_of, feeds_of, graph_of, sizes_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["WAYS", "Way", "differences_on_spark"]


class Way(NamedTuple):
    """How a stream is cut on Spark: segments, those of a micro-batch, records of a batch of Arrow."""

    segments: int
    per_batch: int
    records: int


_OTHERS = {"stamp": "its pages have no arrivals there"}
TOGETHER = 40  # cases in one query: their sources and states are in the memory of one Java process
WAYS = (Way(2, 4, 10_000), Way(7, 1, 1), Way(5, 2, 7), Way(3, 3, 1000))


def differences_on_spark(spark: SparkSession, cases: Sequence[Case], rows: int) -> Iterator[str]:
    """Yield a line for each case and size of pages that gives other results on Spark than ``run`` does."""
    expected = [_expected(case, rows) for case in cases]
    for number, size in enumerate(sizes_of(rows)):
        way, together = WAYS[number % len(WAYS)], Together()
        for case in cases:
            feeds = feeds_of(case, rows, size)
            together.add(
                graph_of(case), {name: in_segments(feed, way.segments) for name, feed in feeds.items()}
            )
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", way.records)
        found = together.run(spark, per_batch=way.per_batch)
        for case, results, content in zip(cases, found, expected, strict=True):
            if contents_of(case, results) != content:
                yield f"{case.id}: other results on Spark, in pages of {size} rows, cut as {way}"


def _expected(case: Case, rows: int) -> list[dict[str, int]]:
    outcome = run(graph_of(case), feeds_of(case, rows, rows))
    return contents_of(case, {sink: table.to_pylist() for sink, table in outcome.results.items()})


def _suited(rows: int) -> list[Case]:
    """Return the cases that such a stream suits: sums of random numbers may be beyond 64 bits."""
    found = []
    for case in all_cases():
        if any(part in case.id for part in (*OTHERS, *_OTHERS)):
            continue
        try:
            _expected(case, rows)
        except EngineError as error:
            print(f"{case.id}: refused: {error}", flush=True)
        else:
            found.append(case)
    return found


def main() -> int:
    from oop_engine.spark.session.session import session

    logging.getLogger("oop_engine").setLevel(logging.ERROR)
    rows = int(sys.argv[1])
    cases = _suited(rows)
    found = []
    with session("local[2]", app="cuts", quick=True) as spark:
        for begin in range(0, len(cases), TOGETHER):
            some = cases[begin : begin + TOGETHER]
            found += list(differences_on_spark(spark, some, rows))
            print(f"{some[0].id} to {some[-1].id}: {len(found)} differ so far", flush=True)
    print(*found, f"{len(cases)} cases in pages of {sizes_of(rows)} rows: {len(found)} differ", sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
