"""The names of a package are listed once: what a checker reads is what is loaded."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.children import MOST_S

ROOT = Path(__file__).parents[3]
INIT = """
from typing import TYPE_CHECKING
from oop_engine.system.lazy_names import lazy_names
if TYPE_CHECKING:  # to use
    from toys.trains import Train as Train, Wagon
    import toys.cars as cars
if TYPE_CHECKING:  # to extend
    from toys.planes import Plane as Plane
else:
    __getattr__, __dir__ = lazy_names(__name__)
"""
FILES = {
    "toys/__init__.py": INIT,
    "toys/trains.py": "class Train: pass\nclass Wagon: pass",
    "toys/planes.py": "class Plane: pass",
}


def told(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    begin = f"import sys; sys.path[:0] = [{str(path)!r}, {str(ROOT)!r}]; "
    return subprocess.run(
        [sys.executable, "-c", begin + code], capture_output=True, text=True, timeout=MOST_S, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_each_name_that_is_public_to_a_checker_is_there_and_no_other(folder: Path) -> None:
    done = told("import toys; print(toys.__all__, dir(toys)); toys.Wagon", folder)
    assert done.stdout == "['Plane', 'Train'] ['Plane', 'Train']\n"
    assert "AttributeError: module 'toys' has no attribute 'Wagon'" in done.stderr


def test_a_name_loads_its_own_module_alone(folder: Path) -> None:
    code = "import toys; print(sorted(m for m in sys.modules if m.startswith('toys')))"
    assert told(code, folder).stdout == "['toys']\n"
    assert told(f"import toys; toys.Train; {code}", folder).stdout == "['toys', 'toys.trains']\n"


def test_a_star_brings_all_of_them(folder: Path) -> None:
    assert told("from toys import *; print(Plane.__module__, Train.__module__)", folder).stdout == (
        "toys.planes toys.trains\n"
    )


def test_names_are_found_in_a_zip_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "toys.zip", "w") as packed:
        for name, text in FILES.items():
            packed.writestr(name, text)
    assert told("from toys import Plane; print(Plane.__name__)", tmp_path / "toys.zip").stdout == "Plane\n"


def test_a_package_without_its_source_says_so(folder: Path) -> None:
    code = "import py_compile; py_compile.compile('toys/__init__.py', 'toys/__init__.pyc')"
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, timeout=MOST_S)
    (folder / "toys/__init__.py").unlink()
    done = told("import toys; toys.Plane", folder)
    assert "ImportError: toys: its names are read from its source, which is not there" in done.stderr


def test_the_face_needs_no_extra() -> None:
    done = told("sys.modules['hypothesis'] = None; from oop_engine import *; print(Graph)", ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("package", "name", "meant"),
    [
        ("oop_engine.operators", "TumblingWindow", "Tumbling"),
        ("oop_engine.operators", "HoppingWindow", "Sliding"),
        ("oop_engine.operators", "AsOfJoin", "AsOf()"),
        ("oop_engine.operators", "WindowAgregate", "WindowAggregate"),
        ("oop_engine", "SessionWindow", "write Session (from oop_engine.windows import Session)"),
        ("oop_engine", "Tumbling", "from oop_engine.windows import Tumbling"),
        ("oop_engine.operators", "Kafka", "from oop_engine.sources import Kafka"),
        ("oop_engine", "SetupEror", "did you mean SetupError? (from oop_engine.errors import SetupError)"),
        ("oop_engine.sinks", "Kafka", "from oop_engine.sources import Kafka"),
        ("oop_engine.windows", "Schema", "from oop_engine import Schema"),
        (
            "oop_engine.aggregates",
            "AsOfJoin",
            "(from oop_engine.joins import AsOf; from oop_engine.operators import OAJoin)",
        ),
        ("oop_engine", "Graf", "Graph"),
    ],
)
def test_a_wrong_name_is_told_the_right_one(package: str, name: str, meant: str) -> None:
    module = importlib.import_module(package)
    with pytest.raises(AttributeError, match=re.escape(meant)):
        getattr(module, name)
    with pytest.raises(ImportError, match=re.escape(meant)):
        exec(f"from {package} import {name}", {})
    assert not hasattr(module, name)


def test_a_name_of_a_shelf_is_found_there_before_one_that_is_alike_here() -> None:
    with pytest.raises(ImportError, match=r"from oop_engine\.aggregates import Count"):
        exec("from oop_engine import Count", {})


def test_a_submodule_is_imported_without_a_look_at_other_shelves() -> None:
    done = told(
        "from oop_engine import operators; from oop_engine.lab import scenario;"
        "print(*(m for m in sys.modules if m in ('oop_engine.windows', 'oop_engine.system.other_names')))",
        ROOT,
    )
    assert (done.stdout, done.stderr) == ("\n", "")
