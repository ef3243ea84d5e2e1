"""Public names: a root of few, all others on shelves, each on one."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import oop_engine
from oop_engine import Operator
from oop_engine.core.close_names import SHELVES
from oop_engine.extend import Aggregation, LiveSink, LiveSource, Policy, Trigger, Windows
from tests.children import MOST_S
from tests.shelves import ON, on_shelves
from tests.sources import FILES, MODULES, ROOT, homes, is_for_types, parsed, text_of

MOST_IN_ROOT = 30
FACES = ["oop_engine", *(f"oop_engine.{shelf}" for shelf in SHELVES)]
REPEATED_IN_ROOT = {"ContractError", "EngineError", "GraphError", "UsageError"}
REPEATED_BY_OPERATORS = {
    "AsOf", "Avg", "Band", "BoundedDisorder", "Count", "Emit", "Late", "Max", "Min", "Ordered", "PerGroup", "Session",
    "Sliding", "Sum", "Tumbling", "Upstream",
}  # fmt: skip
"""What most graphs of README, docs, tests and benchmarks have beside operators."""
BASES = {"HeldSink", "OfColumn", "OfList"}  # of several that are public
OUTSIDE = ("scenarios",)  # written as programs of users are
TEXTS = [
    *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("oop_engine/**/*.md"), *ROOT.glob("oop_engine/**/*.txt"),
    *ROOT.glob("oop_engine/**/*.py"), *ROOT.glob("benchmarks/*.md"),
]  # fmt: skip
NOT_NOW = ("CHANGELOG.md",)  # what was, by the names of then
LINE = re.compile(r"from (oop_engine(?:\.\w+)*) import (\([^()]*\)|\w+(?: as \w+)?(?:, \w+(?: as \w+)?)*)")


def test_the_root_has_few_names() -> None:
    assert len(dir(oop_engine)) <= MOST_IN_ROOT


@pytest.mark.parametrize("face", FACES)
def test_a_face_shows_its_list_and_nothing_else(face: str) -> None:
    module = import_module(face)
    assert dir(module) == sorted(module.__all__)
    assert all(getattr(module, name) is not None for name in module.__all__)


def test_each_name_is_on_one_shelf() -> None:
    shelved = Counter(name for shelf, names in ON.items() for name in names)
    assert {name for name, shelves in shelved.items() if shelves > 1} == REPEATED_BY_OPERATORS
    assert all(shelved[name] <= 2 and name in ON["operators"] for name in REPEATED_BY_OPERATORS)
    assert set(dir(oop_engine)) & {*shelved} == REPEATED_IN_ROOT


def test_what_two_faces_show_is_one_thing() -> None:
    for name in REPEATED_IN_ROOT:
        assert getattr(oop_engine, name) is on_shelves("errors")[name]
    for name, thing in on_shelves("windows", "aggregates", "joins", "policies", "triggers").items():
        if name in REPEATED_BY_OPERATORS:
            assert thing is on_shelves("operators")[name]


@pytest.mark.parametrize(
    ("rooms", "base", "shelves"),
    [
        ("operators", Operator, ("operators", "thesis")),
        ("operators.windows", Windows, ("windows", "extend")),
        ("operators.aggregates", Aggregation, ("aggregates", "extend")),
        ("operators.policies", Policy, ("policies", "extend")),
        ("operators.triggers", Trigger, ("triggers", "extend")),
        ("connectors.sources", LiveSource, ("sources", "extend")),
        ("connectors.sinks", LiveSink, ("sinks", "extend")),
        ("core.errors", Exception, ("errors",)),
    ],
)
def test_a_kind_is_on_its_shelf(rooms: str, base: type, shelves: tuple[str, ...]) -> None:
    found = set()
    for module in MODULES:
        if module.startswith(f"oop_engine.{rooms}") and ".kernels" not in module and ".slicing" not in module:
            for name in getattr(import_module(module), "__all__", ()):
                thing = getattr(import_module(module), name)
                if inspect.isclass(thing) and issubclass(thing, base) and thing.__module__ == module:
                    found.add(name)
    assert found
    assert found - BASES - {name for shelf in shelves for name in ON[shelf]} == set()


def imports_of(text: str) -> list[tuple[str, str]]:
    """Return module and name of each import of the package that a text has, in code, examples or messages."""
    found = []
    for module, names in LINE.findall(text):
        for name in re.sub(r"#[^\n]*|\.\.\. ", "", names.strip("()")).split(","):
            if name.strip():
                found.append((module, name.split()[0]))
    return found


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_each_import_in_a_text_works(path: Path) -> None:
    if path.name not in NOT_NOW:
        missing = [(m, n) for m, n in imports_of(path.read_text()) if not hasattr(import_module(m), n)]
        assert [(m, n) for m, n in missing if f"{m}.{n}" not in MODULES] == []


def test_an_import_of_a_text_is_found() -> None:
    text = ">>> from oop_engine import (\n...     A,\n...     B as b,\n... )\n'; from oop_engine.windows import C'"
    assert imports_of(text) == [("oop_engine", "A"), ("oop_engine", "B"), ("oop_engine.windows", "C")]


def faces_in(text: str) -> set[str]:
    """Return the public names that a file imports from a face, at any depth."""
    tree = parsed(text)
    froms = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module in FACES]
    return {f"{n.module}.{a.name}" for n in froms for a in n.names if f"{n.module}.{a.name}" in homes()}


def is_face(path: Path) -> bool:
    return any(is_for_types(node) for node in parsed(text_of(path)).body) and any(
        path == MODULES[face] for face in FACES
    )


@pytest.mark.parametrize("path", [p for p in FILES if p.parts[1] not in OUTSIDE and not is_face(p)], ids=str)
def test_no_room_imports_from_a_face(path: Path) -> None:
    assert faces_in(text_of(path)) == set()


def test_a_planted_import_from_a_face_is_found() -> None:
    text = "def f():\n    from oop_engine.windows import Tumbling\n    from oop_engine.lab import scenario"
    assert faces_in(text) == {"oop_engine.windows.Tumbling"}


def test_a_shelf_loads_nothing_but_its_list() -> None:
    code = f"import sys, importlib; [importlib.import_module(f) for f in {FACES!r}]; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=MOST_S
    )
    rooms = [name for name in done.stdout.split() if name.startswith("oop_engine.") and name not in FACES]
    assert {"numpy", "pyarrow"} & {*done.stdout.split()} == set()
    assert {name.split(".")[1] for name in rooms} <= {"core", "system"}


def test_make_api_documents_each_shelf() -> None:
    listed = re.search(r"^SHELVES := ((?:.*\\\n)*.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert listed is not None
    assert sorted(listed[1].replace("\\", "").split()) == sorted(SHELVES)


def test_the_page_of_names_has_all_shelves() -> None:
    page = (ROOT / "docs" / "names.md").read_text()
    rows = dict(re.findall(r"^\| `(oop_engine(?:\.\w+)?)` \| (.*) \|$", page, re.MULTILINE))
    assert sorted(rows) == sorted(FACES)
    for face, names in rows.items():
        assert sorted(re.findall(r"`(\w+)`", names)) == sorted(import_module(face).__all__)
