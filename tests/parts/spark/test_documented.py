"""The page about Spark: its blocks run one after another, those too that need a session."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "spark.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.spark
def test_the_page_about_spark(spark) -> None:
    text = PAGE.read_text()
    namespace: dict[str, object] = {"__name__": "page"}
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(PAGE), "exec"), namespace)
    assert "again" in namespace
