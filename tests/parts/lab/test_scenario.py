from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from oop_engine import EngineError, GraphError, UsageError
from oop_engine.lab.scenario import Parameter, Scenario, load, names

SMALL = """
from oop_engine.lab.scenario import Parameter, Scenario

SCENARIO = Scenario(
    name="small", title="Small", about="Nothing.", feeds=lambda values: {}, variants=lambda values: [], keys=("ts",),
    parameters={
        "skew": Parameter(20, "seconds", least=0),
        "rate": Parameter(1.5, "a second", least=0.5),
        "every": Parameter("15 min", "a length"),
        "lulls": Parameter(False, "whether"),
    },
)
"""


@pytest.fixture
def small(tmp_path: Path) -> Scenario:
    return load(written(tmp_path, SMALL))


def written(folder: Path, text: str, name: str = "small.py") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_a_file_of_the_user_is_a_scenario(small: Scenario) -> None:
    assert small.name == "small"
    assert small.values() == {"skew": 20, "rate": 1.5, "every": "15 min", "lulls": False}
    assert small.claims([]) == []


def test_settings_are_read_by_the_type_of_the_default(small: Scenario) -> None:
    found = small.values({"skew": "5", "rate": "2", "every": "1 h", "lulls": "yes"})
    assert found == {"skew": 5, "rate": 2.0, "every": "1 h", "lulls": True}
    assert {k: type(v) for k, v in found.items()} == {"skew": int, "rate": float, "every": str, "lulls": bool}


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", True), ("TRUE", True), ("yes", True), ("0", False), ("False", False), ("no", False)],
)
def test_truth_has_a_few_words(text: str, value: bool) -> None:
    assert Parameter(True, "").parse(text, "lulls") is value


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"skew": "soon"}, "parameter 'skew' must be int; got 'soon' (default 20)"),
        ({"skew": "1.5"}, "parameter 'skew' must be int; got '1.5'"),
        ({"skew": "-1"}, "parameter 'skew' must be at least 0; got '-1'"),
        ({"rate": "0.25"}, "parameter 'rate' must be at least 0.5; got '0.25'"),
        ({"rate": "nan"}, "parameter 'rate' must be at least 0.5; got 'nan'"),
        ({"lulls": "maybe"}, "parameter 'lulls' must be bool; got 'maybe' (default False)"),
        ({"skwe": "1"}, "scenario 'small' has no parameter 'skwe'; did you mean skew?"),
        ({"x": "1"}, "scenario 'small' has no parameter 'x'; there are skew, rate, every, lulls"),
    ],
    ids=str,
)
def test_settings_that_do_not_fit_are_refused(small: Scenario, settings: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(words)}"):
        small.values(settings)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SCENARIO = 7", "a scenario file must define SCENARIO = Scenario(...); got 7"),
        (
            "graph = 7",
            "got None; it has a graph: `oop-engine run` runs that, and `oop-engine explain` shows it",
        ),
        ("", "a scenario file must define SCENARIO = Scenario(...); got None"),
        ("def f(:", "cannot be loaded: SyntaxError: "),
        ("import no_such_module", "cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"),
        ("SCENARIO = Scenario()", "cannot be loaded: NameError: name 'Scenario' is not defined"),
        (
            SMALL.replace('keys=("ts",)', 'keys=(), needs={"no_such_module": "no-such-package"}'),
            "scenario 'small': it needs no-such-package, not installed here: pip install no-such-package",
        ),
    ],
    ids=range(7),
)
def test_a_file_that_is_no_scenario_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)) as caught:
        load(written(tmp_path, text))
    assert isinstance(caught.value, EngineError)


def test_errors_of_the_engine_in_a_file_stay_what_they_are(tmp_path: Path) -> None:
    text = "from oop_engine import Schema\nSchema({}, 'ts')"
    with pytest.raises(GraphError, match="schema: progressing attribute 'ts'"):
        load(written(tmp_path, text))


def test_a_file_does_not_hide_a_module_of_its_name(tmp_path: Path) -> None:
    load(written(tmp_path, SMALL, "json.py"))
    assert sys.modules["json"] is json


def test_a_path_to_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no scenario file at .*nothing\.py"):
        load(str(tmp_path / "nothing.py"))
    with pytest.raises(UsageError, match="no scenario file at"):
        load(f"{tmp_path}/")


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        UsageError, match=r"no scenario 'nyc_flight'; did you mean nyc_flights\?, or give the path"
    ):
        load("nyc_flight")
    with pytest.raises(UsageError, match="no scenario 'zzz'; there are "):
        load("zzz")


def test_the_names_are_those_of_the_files() -> None:
    assert "nyc_flights" in names()
    assert names() == sorted(names())
    assert "truth" not in names()
