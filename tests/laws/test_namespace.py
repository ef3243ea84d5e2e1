"""One namespace: what is installed is the package ``oop_engine``; it touches no other, and none hides it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.children import MOST_S

ROOT = Path(__file__).parents[2]
MISSING = [name for name in ("hatchling", "pip") if importlib.util.find_spec(name) is None]
EXAMPLE = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
MINE = 'raise AssertionError("a file of the user is no part of the engine")\n'
FOREIGN = {
    "scenarios/__init__.py": "OURS = False\n",
    "scenarios/thesis/links.py": "",
    "scenarios-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: scenarios\nVersion: 1.0\n",
    "scenarios-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}

INSTALL = ("install", "--no-deps", "--no-index", "--ignore-installed")

pytestmark = pytest.mark.slow


def done(command: Sequence[str | Path], cwd: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PIP_NO_INDEX": "1"}
    run = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=MOST_S,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def built(kind: str, source: Path, folder: Path) -> Path:
    done([sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", folder], source)
    (found,) = [path for path in folder.iterdir() if path.suffix in (".whl", ".gz")]
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if MISSING:
        pytest.skip(f"{', '.join(MISSING)} not installed: pip install -e '.[dev]'")
    return built("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


def foreign(folder: Path) -> Path:
    """Make a distribution of somebody else that has a package ``scenarios``, as one on PyPI does."""
    path = folder / "scenarios-1.0-py3-none-any.whl"
    record = "".join(f"{name},,\n" for name in [*FOREIGN, "scenarios-1.0.dist-info/RECORD"])
    with zipfile.ZipFile(path, "w") as packed:
        for name, text in {**FOREIGN, "scenarios-1.0.dist-info/RECORD": record}.items():
            packed.writestr(name, text)
    return path


class Fresh:
    """An environment of its own, in which what the engine depends on is there, and the engine is not."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder / "venv", with_pip=False)
        self.bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        self.python = self.bin / "python"
        paths = {"base": str(folder / "venv"), "platbase": str(folder / "venv")}
        self.site = Path(sysconfig.get_path("purelib", "venv", paths))
        (self.site / "depends.pth").write_text(sysconfig.get_path("purelib") + "\n")
        self._folder = folder

    def pip(self, *args: str | Path) -> None:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--python"]
        done([*pip, str(self.python), *map(str, args)], self._folder)

    def files(self, package: str) -> set[str]:
        found = (self.site / package).rglob("*")
        return {
            str(p.relative_to(self.site)) for p in found if p.is_file() and p.parent.name != "__pycache__"
        }

    def top(self) -> set[str]:
        return {p.name for p in self.site.iterdir()} - {"depends.pth", "__pycache__"}


@pytest.fixture
def fresh(tmp_path: Path) -> Fresh:
    return Fresh(tmp_path)


def test_the_wheel_has_one_package_and_no_caches(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"oop_engine"}
    assert {
        "oop_engine/operators/meld.py",
        "oop_engine/scenarios/thesis/links.py",
        "oop_engine/py.typed",
    } <= set(names)
    assert not [name for name in names if "__pycache__" in name]


def test_the_source_distribution_gives_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    source = built("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(source) as packed:
        packed.extractall(tmp_path, filter="data")
    again = built("wheel", tmp_path / source.name.removesuffix(".tar.gz"), tmp_path / "again")
    assert zipfile.ZipFile(again).namelist() == zipfile.ZipFile(wheel).namelist()


def test_it_lives_beside_a_foreign_scenarios_and_a_file_operators(
    wheel: Path, fresh: Fresh, tmp_path: Path
) -> None:
    fresh.pip(*INSTALL, foreign(tmp_path))
    theirs = fresh.files("scenarios")
    fresh.pip(*INSTALL, wheel)
    assert {name.partition("-")[0] for name in fresh.top()} == {"oop_engine", "scenarios"}
    assert fresh.files("scenarios") == theirs

    work = tmp_path / "work"
    work.mkdir()
    (work / "operators.py").write_text(MINE)
    (work / "scenarios.py").write_text(MINE)
    (work / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "access.csv", work / "docs")
    assert EXAMPLE is not None
    (work / "example.py").write_text(EXAMPLE[1] + "import oop_engine\nprint(oop_engine.__file__)\n")
    told = done([fresh.python, "example.py"], work).splitlines()
    assert told[0].split()[::3] == ["a", "3"]  # host, day, time, number
    assert Path(told[-1]) == fresh.site / "oop_engine" / "__init__.py"
    assert "nyc_flights" in done([fresh.bin / "oop-engine", "scenarios"], work)

    ours = fresh.files("oop_engine")
    fresh.pip("uninstall", "--yes", "scenarios")
    assert (fresh.files("oop_engine"), fresh.files("scenarios")) == (ours, set())
    fresh.pip(*INSTALL, foreign(tmp_path))
    fresh.pip("uninstall", "--yes", "oop-engine")
    assert (fresh.files("oop_engine"), fresh.files("scenarios")) == (set(), theirs)
