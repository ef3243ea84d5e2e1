"""The house in order: what a file under ``operators/`` is, one name for one thing.

Each rule is a function of texts, so that it can be tried on a text that breaks it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

import oop_engine
from tests.laws.test_layers import FLOORS, KNOWS_OPERATORS, RANK
from tests.rooms import description, floors, imports, room_of, without_shortcuts
from tests.shelves import OF_GRAPHS, ON, on_shelves
from tests.sources import FILES, ROOT, parsed, text_of

OF_OPERATORS = [
    Path("oop_engine/operators"),
    Path("oop_engine/operators/edge"),
    Path("oop_engine/operators/levels"),
]  # each file is one public operator

VERSIONS = [
    "oop_engine/operators/slicing/closing.py",
    "oop_engine/operators/slicing/changing.py",
    *(str(path) for path in FILES if path.parent.name == "revised"),
]
"""Classes of one purpose each, that hold one another."""
GRIDS = [
    f"oop_engine/operators/slicing/{name}.py"
    for name in (
        "panes/open_spans", "panes/pane_block", "store", "stores/adaptive_groups", "stores/grid_cells",
        "stores/landmark_windows", "stores/pane_store", "stores/slice_ring", "stores/sparse_groups", "stores/tail",
        "stores/window_store",
    )
]  # fmt: skip
"""Stores of grids, and what they share: none is the base of another."""
OF_ALL = {"_replace", "_make", "__name__"}  # of tuples, and of classes
HOT = {
    "behind.linear",
    "behind.highest",
}  # written in place: a punctuation enters no file more (``test_calls.py``)
KINDS = {"NamedTuple", "Protocol", "Holder"}  # those that are no classes with fields of their own

TEXTS = {str(path): text_of(path) for path in FILES}
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
CARDS = (ROOT / "oop_engine" / "operators" / "README.md").read_text()
MISSING = "Not there:"
DESIGN = (ROOT / "docs" / "design.md").read_text()
PICTURE = (ROOT / "docs" / "images" / "house.svg").read_text()
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        ROOT / "oop_engine" / "operators" / "README.md",
        ROOT / "benchmarks" / "README.md",
    ]
)


def classes(text: str) -> list[ast.ClassDef]:
    return [n for n in parsed(text).body if isinstance(n, ast.ClassDef) and not n.name.startswith("_")]


def operators_in(text: str) -> list[str]:
    return [c.name for c in classes(text) if "Operator" in map(ast.unparse, c.bases)]


def not_one_operator(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the files in folders of operators that do not define one operator, with what they define."""
    direct = {path: text for path, text in texts.items() if Path(path).parent in OF_OPERATORS}
    found = {path: operators_in(text) for path, text in direct.items() if Path(path).name != "__init__.py"}
    return {path: names for path, names in found.items() if len(names) != 1}


def said_twice(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the public classes that have the name of another one, with their files."""
    homes: dict[str, list[str]] = {}
    for path, text in texts.items():
        for each in classes(text):
            homes.setdefault(each.name, []).append(path)
    return {name: paths for name, paths in homes.items() if len(paths) > 1}


def missing_of(glossary: str) -> list[str]:
    """Return the classes that the glossary says are not there."""
    return re.findall(r"`(\w+)`", glossary.partition(MISSING)[2])


def no_longer_missing(glossary: str, public: Iterable[str]) -> set[str]:
    return set(missing_of(glossary)) & set(public)


def without_a_word(public: Iterable[str], *documents: str) -> set[str]:
    """Return the public names that no document mentions."""
    words = set(re.findall(r"\w+", " ".join(documents)))
    return set(public) - words


def inherited(text: str) -> list[str]:
    """Return the classes with fields that are those of another one."""
    every = [n for n in ast.walk(parsed(text)) if isinstance(n, ast.ClassDef)]
    return [n.name for n in every if not set(map(ast.unparse, n.bases)) <= KINDS]


def window_kinds() -> set[str]:
    """Return the names of the classes of windows and of their definitions."""
    folder = ROOT / "oop_engine" / "operators" / "windows"
    every = [each for path in folder.glob("*.py") for each in classes(path.read_text())]
    return {each.name for each in every if "NamedTuple" not in map(ast.unparse, each.bases)} - {"Windows"}


def asked_for_their_class(text: str, kinds: set[str]) -> list[str]:
    """Return the questions whether a value is of some class of ``kinds``."""
    every = list(ast.walk(parsed(text)))
    calls = [
        n for n in every if isinstance(n, ast.Call) and ast.unparse(n.func) in ("isinstance", "issubclass")
    ]
    cases = [n for n in every if isinstance(n, ast.MatchClass)]
    compared = [n for n in every if isinstance(n, ast.Compare) and isinstance(n.left, ast.Call)]
    types = [n for n in compared if ast.unparse(n.left).startswith("type(")]
    asked = (
        [(n, n.args[1]) for n in calls] + [(n, n.cls) for n in cases] + [(n, n.comparators[0]) for n in types]
    )
    return [ast.unparse(n) for n, of in asked if kinds & set(re.findall(r"\w+", ast.unparse(of)))]


def of_others(text: str) -> list[str]:
    """Return the fields and methods that are private to another object, and those of others that are written."""
    names = [n for n in ast.walk(parsed(text)) if isinstance(n, ast.Attribute)]
    others = [n for n in names if ast.unparse(n.value) not in ("self", "cls")]
    private = [n for n in others if n.attr.startswith("_") and n.attr not in OF_ALL]
    found = [ast.unparse(n) for n in others if n in private or isinstance(n.ctx, ast.Store)]
    return [name for name in found if name not in HOT]


@pytest.mark.slow
def test_the_picture_of_the_house_is_true() -> None:
    rooms = imports()
    assert "(images/house.svg)" in DESIGN
    assert description(rooms) in PICTURE, "python docs/images/draw_house.py draws it anew"
    rooms["core"].add("traces")
    assert description(rooms) not in PICTURE


def test_rooms_stand_above_those_that_they_import() -> None:
    names = ["oop_engine.core.page", "oop_engine.operators.meld", "oop_engine.operators.keys.behind"]
    assert list(map(room_of, names)) == ["core", "operators", "operators/keys"]
    rooms = {"a": set[str](), "b": {"a"}, "c": {"a", "b"}}
    assert floors(rooms) == {"a": 0, "b": 1, "c": 2}
    assert without_shortcuts(rooms)["c"] == {"b"}


def test_a_file_in_a_folder_of_operators_is_one_operator() -> None:
    assert not_one_operator(TEXTS) == {}


@pytest.mark.parametrize(
    "text",
    [
        "def helper(): ...",
        "class _Hidden(Operator): ...",
        "class One(Operator): ...\nclass Two(Operator): ...",
    ],
)
def test_a_planted_file_that_is_no_operator_is_found(text: str) -> None:
    for folder in OF_OPERATORS:
        planted = str(folder / "planted.py")
        assert [*not_one_operator({**TEXTS, planted: text})] == [planted]


@pytest.mark.parametrize("paths", [VERSIONS, GRIDS], ids=["versions", "grids"])
def test_parts_write_their_own_fields_alone(paths: list[str]) -> None:
    assert len(paths) > len(KINDS)
    assert {path: found for path in paths if (found := inherited(TEXTS[path]) + of_others(TEXTS[path]))} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("class Prompt(Finals): ...", ["Prompt"]),
        ("class Rows(NamedTuple):\n    rows: int", []),
        ("def f(self, ring):\n    self._used = ring._used", ["ring._used"]),
        ("def f(self, ring):\n    ring.used -= self.used", ["ring.used"]),
        ("def f(self, some):\n    self.some = some._replace(used=0)", []),
    ],
)
def test_a_field_of_another_class_is_found(text: str, found: list[str]) -> None:
    assert inherited(text) + of_others(text) == found


def test_no_operator_asks_of_which_class_windows_are() -> None:
    kinds = window_kinds()
    assert {"Extents", "Gap", "Tumbling", "Folding", "Merging"} <= kinds
    inside = {path: text for path, text in TEXTS.items() if path.startswith("oop_engine/operators/")}
    found = {path: asked for path, text in inside.items() if (asked := asked_for_their_class(text, kinds))}
    assert found == {}, "a definition answers questions (windows/definition.py)"


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(one, Extents)",
        "isinstance(one, int | Gap)",
        "type(one) is Gap",
        "issubclass(kind, Folding)",
        "isinstance(one, (Folding, int))",
        "match one:\n    case Tumbling(range=1): ...",
    ],
)
def test_a_question_for_a_class_of_windows_is_found(text: str) -> None:
    assert len(asked_for_their_class(text, window_kinds())) == 1
    assert (
        asked_for_their_class("isinstance(one, int)\nmatch one:\n    case Page(): ...", window_kinds()) == []
    )


def test_no_two_public_classes_have_one_name() -> None:
    assert said_twice(TEXTS) == {}


def test_a_planted_name_is_found() -> None:
    planted = {**TEXTS, "oop_engine/core/planted.py": "class Meld: ...\nclass _Page: ..."}
    assert said_twice(planted)["Meld"] == ["oop_engine/operators/meld.py", "oop_engine/core/planted.py"]
    assert "Page" not in said_twice(planted)


def test_what_the_glossary_calls_missing_is_not_public() -> None:
    public = {*dir(oop_engine), *on_shelves(*ON)}
    assert missing_of(GLOSSARY)
    assert no_longer_missing(GLOSSARY, public) == set()
    assert no_longer_missing(f"{MISSING} slide-by-tuple windows (`Meld`)", public) == {"Meld"}


def test_what_is_public_is_in_the_glossary_or_has_a_card() -> None:
    public = [name for name, thing in on_shelves(*OF_GRAPHS).items() if isinstance(thing, type)]
    there = GLOSSARY.partition(MISSING)[0]
    assert without_a_word(public, there, CARDS) == set()
    assert without_a_word([*public, "Planted"], there, CARDS) == {"Planted"}


def broken(folder: Path, text: str) -> list[str]:
    """Return the links of a document in ``folder`` that lead nowhere."""
    links = re.findall(r"\]\(([^)#\s]+)", text)
    return [link for link in links if "://" not in link and not (folder / link).exists()]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_of_documents_lead_somewhere(path: Path) -> None:
    assert broken(path.parent, path.read_text()) == []
    assert broken(path.parent, "[a](nowhere.md#part), [b](https://example.org/x)") == ["nowhere.md"]


def rooms(drawing: str) -> tuple[list[str], list[str]]:
    """Return the rooms of the package and those of ``operators/`` as a drawing has them, from the top."""
    inside = drawing.partition("oop_engine/\n")[2]
    outer = re.findall(r"^  (\w+)[/.]", inside, re.MULTILINE)
    floors = re.findall(r"^    ((?:\w+/ )*\w+/) ", inside.partition("  operators/")[2], re.MULTILINE)
    return outer, [room for line in floors for room in re.findall(r"\w+", line)]


def test_the_drawing_of_the_house_is_that_of_the_tables() -> None:
    drawing = DESIGN.partition("## The house")[2].partition("## ")[0]
    outer, floors = rooms(drawing)
    assert [room for room in outer if room not in ("operators", "scenarios")] == RANK
    assert outer.index("operators") == RANK.index(KNOWS_OPERATORS[0])
    there = {path.parts[2] for path in FILES if path.parts[1] == "operators" and len(path.parts) > 3}
    assert floors == [room for floor in FLOORS for room in floor if room in there]
    assert rooms(drawing.replace("  lab/ ", "  barn/ "))[0] != outer


def test_the_floors_of_the_cards_are_those_of_the_tables() -> None:
    rows = re.findall(
        r"^\| (\d) \| (.*?) \|", CARDS.partition("## The floors of this folder")[2], re.MULTILINE
    )
    floors = {int(number) - 1: set(re.findall(r"`(\w+)/`", names)) for number, names in rows}
    assert floors == {at: set(rooms) - {"a file of its own"} for at, rooms in enumerate(FLOORS)}
