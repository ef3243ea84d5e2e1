"""Names of before the first release are found where they were, with a warning that has the line to write."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from oop_engine.sources import Kafka
from oop_engine.system.moved_names import _HAD
from oop_engine.windows import Landmark


@pytest.mark.parametrize(
    ("package", "name", "line"),
    [
        ("oop_engine", "Kafka", "from oop_engine.sources import Kafka"),
        ("oop_engine", "Delta", "from oop_engine.spark import Delta"),
        ("oop_engine", "contract_suite", "from oop_engine.testing import contract_suite"),
        ("oop_engine.operators", "Landmark", "from oop_engine.windows import Landmark"),
        ("oop_engine.operators", "Select", "from oop_engine.operators import Filter"),
        ("oop_engine.operators", "described", "from oop_engine.rewrites import prune_punctuation"),
    ],
)
def test_a_name_is_found_with_the_line_to_write(package: str, name: str, line: str) -> None:
    now: dict[str, object] = {}
    exec(line, now)
    wanted = now[line.split()[-1]]
    module = importlib.import_module(package)
    with pytest.warns(DeprecationWarning, match=f"^{package}.{name} has moved: {line}$") as told:
        assert getattr(module, name) is wanted
    assert told[0].filename == __file__
    found: dict[str, object] = {}
    with pytest.warns(DeprecationWarning, match=line):
        exec(f"from {package} import {name}", found)
    assert found[name] is wanted
    assert name not in dir(module)
    assert name not in module.__all__


def test_a_star_brings_them_all_without_a_warning() -> None:
    found: dict[str, object] = {}
    exec("from oop_engine.operators import *", found)
    assert found["Landmark"] is Landmark
    assert {"Select", "Filter", "Median", "Sort", "PerGroup"} <= {*found}
    assert not {"Kafka", "check", "scan"} & {*found}
    of_root: dict[str, object] = {}
    exec("from oop_engine import *", of_root)
    assert of_root["Kafka"] is Kafka
    assert not {"Tumbling", "Any", "Min", "check"} & {*of_root}


@pytest.mark.filterwarnings("ignore:.* has moved:DeprecationWarning")
def test_each_name_of_before_is_found() -> None:
    for package, names in _HAD.items():
        module = importlib.import_module(package)
        assert not set(names) & set(dir(module))
        assert all(getattr(module, name) is not None for name in names)


def test_a_module_that_became_a_name_is_found_and_hides_it_from_nobody() -> None:
    script = (
        "import pytest\n"
        "with pytest.warns(DeprecationWarning, match='from oop_engine.lab import compare'):\n"
        "    from oop_engine.lab.compare import compare as before\n"
        "from oop_engine.lab import compare\n"
        "from oop_engine.lab.comparison import compare as now\n"
        "assert before is now\n"
        "try:\n"
        "    compare()\n"
        "except TypeError as error:\n"
        "    assert 'missing 1 required positional argument' in str(error), error\n"
        "else:\n"
        "    raise SystemExit('it took no argument')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
