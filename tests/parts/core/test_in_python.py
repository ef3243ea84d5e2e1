"""Rows in Python, also where Python has no such moment, and without pandas, which the package does not ask for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from oop_engine import Page, Schema
from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.groups.in_python import counted, rows_of, values_of

FAR, NANO = 2**60, 1_700_000_000_123_456_789
INSIDE = pa.struct([("at", pa.timestamp("ns", "UTC")), ("for", pa.duration("ns"))])
NESTED = pa.map_(pa.string(), pa.list_(INSIDE, 1))

WITHOUT_PANDAS = """
import sys

class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pandas":
            raise ImportError(name)

sys.meta_path.insert(0, Nowhere())
import pyarrow as pa
from oop_engine import ContractError, GroupWise, Page, Schema
from oop_engine.connectors.formats.payloads import payloads_of
from oop_engine.core.graphs.contract import EdgeContract
from oop_engine.core.groups.in_python import values_of
from oop_engine.cli import main

kinds = [pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.time64("ns"), pa.duration("ns")]
nested = [pa.list_(pa.time64("ns")), pa.map_(pa.string(), pa.struct([("a", pa.duration("ns"))]))]
found = [values_of(pa.array([7, None], kind)) for kind in kinds]
assert found == [
    ["1970-01-01T00:00:00.000000007", None], ["1970-01-01T00:00:00.000000007Z", None], ["00:00:00.000000007", None],
    [7, None],
], found
assert values_of(pa.array([[7]], nested[0])) == [["00:00:00.000000007"]]
assert values_of(pa.array([[("b", {"a": 7})]], nested[1])) == [[("b", {"a": 7})]]
schema = Schema({"ts": pa.timestamp("ns"), "k": pa.list_(pa.int8())}, "ts")
page = Page.of(schema, {"ts": pa.array([7], pa.timestamp("ns")), "k": [[1]]})
assert b"00.000000007" in payloads_of(page, "jsonl")[0]
edge = EdgeContract("edge")
edge.check(GroupWise(page.batch.select(["ts"]), pa.array([10]).to_numpy()))
try:
    edge.check(page)
except ContractError as error:
    assert "00.000000007" in str(error), error
sys.argv = ["oop-engine", "run", "graph.py", "s=in.csv", "--time", "ts", "--json"]
main()
"""
GRAPH = """
from oop_engine import Graph

def graph(schemas, policies):
    graph = Graph("all")
    (name, schema), = schemas.items()
    graph.sink("all", graph.source(name, schema))
    return graph
"""


def test_rows_are_those_of_arrow_where_python_has_them() -> None:
    table = pa.table({"n": [1, None], "d": pa.array([0, 1], pa.date32())})
    assert rows_of(table) == table.to_pylist()


def test_moments_beyond_the_last_year_are_integers() -> None:
    kinds = [pa.timestamp("s"), pa.timestamp("us", "Europe/Berlin"), pa.duration("s")]
    assert [values_of(pa.array([FAR, None], kind)) for kind in kinds] == [[FAR, None]] * 3
    assert values_of(pa.array([2**31 - 1], pa.date32())) == [2**31 - 1]
    assert values_of(pa.array([[FAR]], pa.large_list(pa.timestamp("ms")))) == [[FAR]]
    assert values_of(pa.array([FAR, None], pa.timestamp("s")).dictionary_encode()) == [FAR, None]
    schema = Schema({"ts": pa.timestamp("s"), "n": pa.int64()}, "ts")
    page = Page.of(schema, {"ts": pa.array([FAR], pa.timestamp("s")), "n": [1]})
    assert page.to_pylist() == rows_of(page.batch) == [{"ts": FAR, "n": 1}]
    assert str(FAR)[:3] in page._repr_html_()


def test_nested_keys_with_nanoseconds_are_told_apart() -> None:
    column = pa.array([[("a", [{"at": NANO + more, "for": more}])] for more in (0, 1, 0)], NESTED)
    assert counted(column).to_pylist()[1] == [("a", [{"at": NANO + 1, "for": 1}])]
    index = GroupIndex([NESTED])
    assert index.encode([column], 3).tolist() == [0, 1, 0]


def test_all_of_it_goes_without_pandas(tmp_path: Path) -> None:
    (tmp_path / "graph.py").write_text(GRAPH)
    (tmp_path / "in.csv").write_text("ts\n2024-01-01T00:00:00.123456789\n")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PANDAS], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == '{"ts": "2024-01-01T00:00:00.123456789"}\n'


@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.decimal128(5, 2), pa.timestamp("ns"), pa.string(), pa.int8()], ids=str
)
def test_there_may_be_no_rows_of_a_dictionary(kind: pa.DataType) -> None:
    schema = Schema({"ts": pa.int64(), "k": pa.dictionary(pa.int8(), kind)}, "ts", "s")
    assert Page.empty(schema).to_pylist() == []
