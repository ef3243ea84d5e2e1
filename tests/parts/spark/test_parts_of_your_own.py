"""The examples of parts of one's own run on Spark, too: the page says so, and its own blocks are run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from oop_engine import run
from tests.children import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PAGE = (ROOT / "docs/parts-of-your-own.md").read_text()
GRAPHS = {
    "a policy": "query(HalfMinutes(1))",
    "an aggregate": "query(bits=any_bit)",
    "windows": "query(windows=UserWindows(doubling, back=2**20))",
}


def test_a_policy_an_aggregate_and_windows_give_the_rows_of_the_page(spark: SparkSession) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "page", "exec", dont_inherit=True), names)
    for part, text in GRAPHS.items():
        graph, again = eval(text, names), eval(text, names)
        table = run(graph, {"log": names["rows"]}).table
        found = run(again, {"log": names["rows"]}, on="spark", spark=spark, batch=True).table
        assert names["content"](found) == names["content"](table), part
