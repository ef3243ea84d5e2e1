"""Every scenario on Spark, streaming and batch: the results of the embedded run, in order and out of order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from oop_engine import replay
from oop_engine.core.graphs.graph import Stream
from oop_engine.lab.answers import missing_and_wrong
from oop_engine.lab.scenario import load
from oop_engine.spark.io.spool import spool
from oop_engine.spark.run import run_on_spark
from tests.parts.spark.together import Together

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = {
    "nyc_flights": {"days": "4"},
    "links": {"tuples": "12000", "rate": "50", "range": "25 s", "slide": "5 s", "lull": "15 s"},
    "packet_join": {"rate": "20", "seconds": "130"},
    "netflow": {"tuples": "40000"},
    "paned_wid": {"tuples": "20000"},
    "adapt_wid": {"seconds": "12", "rate": "500"},
    "hammer_slide": {"tuples": "4000"},
    "skew": {"tuples": "20000"},
    "slide_by_tuple": {"tuples": "1000"},
    "consolidation": {"minutes": "20", "keys": "50"},
    "two_level": {"units": "1", "unit": "100", "minutes": "3"},
}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", SMALL)
def test_scenario(name: str, spark: SparkSession, tmp_path: Path) -> None:
    scenario = load(name)
    values = scenario.values(SMALL[name])
    variants = [v for v in scenario.variants(values) if v.exact]
    plan = variants[0].graph.plan()
    schemas = {node.name: plan.schema(Stream(node.name)) for node in plan.of_kind("source")}
    segments = spool(scenario.feeds(values), schemas, tmp_path, rows=12_000 if name == "netflow" else 2_500)
    together = Together()
    for variant in variants:
        together.join(variant.graph, segments)
    expected = [replay(variant.graph, scenario.feeds(values)).results for variant in variants]
    for batch in (False, True):
        outcome = run_on_spark(
            together.graph, together.sources, spark=spark, batch=batch, groups=3, segments_per_batch=1
        )
        for number, (variant, results) in enumerate(zip(variants, expected, strict=True)):
            for sink, table in results.items():
                found = outcome.results[f"g{number}-{sink}"]
                assert table.num_rows
                assert missing_and_wrong(found, table, scenario.keys) == (0, 0), (
                    variant.name,
                    variant.order,
                    batch,
                )
