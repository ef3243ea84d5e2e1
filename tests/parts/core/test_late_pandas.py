"""Arrow knows of pandas when another module has imported it, and not before."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.children import MOST_S

PROGRAM = """
import sys
{first}
import numpy as np
import pyarrow as pa
pa.array(np.arange(3)), pa.array(["a", None])
print("pandas" in sys.modules)
import pandas as pd
print(pa.array(pd.Series([1.0, float("nan")])).null_count, pa.array(pd.array([1, None])).type)
print(pa.array([1, 2]).to_pandas().sum(), pa.Table.from_pandas(pd.DataFrame({{"a": [1]}})).schema.names)
print(pa.array([1.0, float("nan")], from_pandas=True).null_count, pd.__spec__.name)
"""


def said(first: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(first=first)],
        capture_output=True, text=True, timeout=MOST_S, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


@pytest.mark.parametrize("before", ["", "import pyarrow; "], ids=["before Arrow", "behind Arrow"])
def test_arrow_takes_data_frames_once_pandas_is_imported(before: str) -> None:
    late = said(
        f"{before}from oop_engine.cli.running.late_pandas import import_pandas_late; import_pandas_late()"
    )
    usual = said("")
    assert late[0] == "False"
    assert late[1:] == usual[1:]
    assert late[1].startswith("1 ")


def test_pandas_that_is_imported_already_stays() -> None:
    first = "import pandas; from oop_engine.cli.running.late_pandas import import_pandas_late; import_pandas_late()"
    assert said(first)[0] == "True"


def test_pandas_that_imports_arrow_is_left_alone() -> None:
    first = "from oop_engine.cli.running.late_pandas import import_pandas_late; import_pandas_late(); import pandas"
    assert said(first) == ["True", *said("")[1:]]
