"""Declarations that were bent at random: taken, or refused in one line, and Spark is not started to find out."""

from __future__ import annotations

import shutil
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine.core.errors import EngineError, SetupError
from oop_engine.pipeline import job
from oop_engine.pipeline.declaration import load_declaration
from oop_engine.pipeline.job import Wanted, run_pipeline
from tests.fuzz import SCALE

GOOD = """
name = "events"
format = "csv"

[columns]
ts = {type = "int64", required = true}
at = {type = "timestamp", format = "dd/MM/yyyy HH:mm", zone = "Europe/Berlin"}
link = "string"

[computed]
double = "2 * ts"
"when" = "timestampadd(MINUTE, double, at)"

[refuse]
"is nothing" = "ts < 0 OR link LIKE 'x%'"

[stream]
time = "ts"
unit = "ms"
arrival = "ts"
source = ["link"]
by = ["link"]
keep = ["ts", "link", "double"]

[csv]
delimiter = ";"
header = true

[run]
graph = "graph.py"
policy = 'PerGroup(BoundedDisorder("5 s"), by=("link",))'
partition = "1 min"
"""
PIECES = [
    *"\"'[]{}=,.;#-_\\\n\0\ufffd\u2028 0é", '"""', "'''", "[[", "]]", "nan", "inf", "1e999", "9" * 5000, "[" * 3000,
    "{a=" * 200, "true", "1979-05-27", "columns", "[stream]", "ts", "`ts`", "string", "timestamp", "float64", "UTC",
    "../../etc", "java_method('java.lang.System','exit','1')", "(SELECT 1)", "${env:HOME}", "$(id)", "CAST(", " AS ",
    "CASE WHEN ", "(" * 400, "BoundedDisorder(", "Ordered()", "__import__('os')", "lambda: 0", "5 s", "-1 s", "1e400 s",
    "lpad(link, 3)", "-" * 300, "~" * 300,
]  # fmt: skip


@st.composite
def bent(draw: st.DrawFn) -> bytes:
    """A declaration in which some pieces were replaced, doubled, moved or taken away."""
    text = GOOD
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        stop = min(len(text), start + draw(st.integers(0, 30)))
        new = draw(st.one_of(st.sampled_from(PIECES), st.text(max_size=5), st.just(text[start:stop] * 2)))
        text = text[:start] + new + text[stop:]
    data = text.encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(data) - 1))
        data = data[:at] + bytes([data[at] ^ 1 << draw(st.integers(0, 7))]) + data[at + 1 :]
    return data


PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.dates(), st.binary(max_size=3))
WORDS = st.sampled_from([*PIECES, "ts", "link", "int64", "timestamp", "ms", "csv", "2 * ts", "ts < 0"])
KEYS = st.one_of(st.sampled_from(PIECES[:40]), st.integers())
VALUES = st.recursive(
    st.one_of(PLAIN, WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=5,
)
TABLES = {
    "columns": ["ts", "link", "select", "a b", "_file"],
    "computed": ["double", "x"],
    "refuse": ["no", ""],
    "stream": ["time", "unit", "arrival", "source", "by", "keep"],
    "csv": ["delimiter", "header"],
    "run": ["graph", "policy", "partition"],
}
GIVEN = {
    "columns": st.just({"ts": "int64", "link": "string"}),
    "stream": st.just({"time": "ts", "unit": "ms"}),
}
BENT = {
    name: st.one_of(st.dictionaries(st.sampled_from(keys), VALUES), VALUES) for name, keys in TABLES.items()
}
DICTIONARIES = st.one_of(
    st.fixed_dictionaries(
        GIVEN, optional={k: v for k, v in BENT.items() if k not in GIVEN} | {"name": VALUES}
    ),
    st.fixed_dictionaries({}, optional=BENT | {"name": VALUES, "format": VALUES}),
)


class Started(Exception):  # noqa: N818
    """Spark would have been started."""


@pytest.fixture(autouse=True)
def _no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object, **__: object) -> None:
        raise Started

    monkeypatch.setattr(job, "session", start)


def refusal(path: Path) -> EngineError | None:
    """Take a declaration in as far as the start of Spark, and return what it is refused with."""
    folder = path.parent
    (folder / "a.csv").write_text("ts;at;link\n1;01/01/2020 00:00;a\n")
    try:
        run_pipeline(Wanted(load_declaration(path), [folder / "a.csv"], folder / "out", until="policy"))
    except Started:
        shutil.rmtree(folder / "out")
    except EngineError as error:
        return error
    return None


def check(refused: EngineError | None) -> None:
    assert not isinstance(refused, SetupError)
    assert "\n" not in str(refused)
    assert len(str(refused)) < 12_000


def test_the_good_one_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "events.toml"
    path.write_text(GOOD)
    assert refusal(path) is None


@settings(max_examples=60 * SCALE, derandomize=SCALE == 1)
@given(data=bent())
def test_a_bent_declaration_is_taken_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "events.toml"
    path.write_bytes(data)
    check(refusal(path))


@settings(max_examples=60 * SCALE, derandomize=SCALE == 1)
@given(said=DICTIONARIES)
def test_a_dictionary_of_anything_is_taken_or_refused(
    tmp_path_factory: pytest.TempPathFactory, said: dict[str, object]
) -> None:
    path = tmp_path_factory.getbasetemp() / "events.toml"
    path.touch()
    with patch("oop_engine.pipeline.declaration._of_toml", lambda _: said):
        check(refusal(path))
