"""The words: home-made ones never become more, reserved ones keep their one meaning, the glossary is true.

``BUDGET`` has for each folder (or document) how often it may still have a home-made word: "promise" as the name of
a punctuation, data flow as speech ("says", "said", "told"), and "what ..." for a thing without a name.  A number may
be lowered, never raised: say punctuation or bound, name the thing, use a plain verb.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("oop_engine",)
FILES = sorted(
    path.relative_to(ROOT)
    for pattern in (
        "*.md",
        "docs/*.md",
        "oop_engine/**/*.py",
        "oop_engine/operators/*.md",
    )
    for path in ROOT.glob(pattern)
    if path.name != "CHANGELOG.md"
)
HOME_MADE = {
    "promise": re.compile(r"promis", re.IGNORECASE),
    "said": re.compile(r"\b(?:says|said|told)\b", re.IGNORECASE),
    "what": re.compile(r"\bwhat\b", re.IGNORECASE),
}
BUDGET: dict[str, tuple[int, int, int]] = {
    "CONTRIBUTING.md": (0, 0, 6),
    "docs/asyncio.md": (0, 0, 1),
    "docs/choosing.md": (0, 1, 0),
    "docs/design.md": (0, 1, 13),
    "docs/glossary.md": (2, 0, 1),
    "docs/operators-of-your-own.md": (0, 1, 2),
    "docs/scenarios.md": (0, 0, 1),
    "oop_engine": (0, 0, 3),
    "oop_engine/cli": (2, 0, 3),
    "oop_engine/core": (1, 1, 5),
    "oop_engine/lab": (3, 0, 6),
    "oop_engine/pipeline": (0, 2, 32),
    "oop_engine/runners": (0, 0, 2),
    "oop_engine/spark": (0, 0, 3),
    "oop_engine/traces": (8, 0, 2),
    "oop_engine/operators": (1, 0, 1),
    "oop_engine/operators/README.md": (0, 3, 3),
    "oop_engine/operators/aggregates": (0, 5, 3),
    "oop_engine/operators/kernels": (18, 5, 35),
    "oop_engine/operators/keys": (0, 0, 1),
    "oop_engine/operators/slicing": (0, 0, 4),
    "oop_engine/operators/windows": (0, 1, 6),
}  # fmt: skip
"""(promise, said, what) by folder."""

FIRST_PAGES = ("README.md", "docs/tutorial.md", "docs/live.md", "docs/windows.md", "docs/semantics.md")
"""Read before a first service; details have pages of their own."""
FIRST_WORDS = 6_000

RESERVED = {
    "edge": r"\b(?:at|behind) the edges?\b|\bedges? of (?:a |an |the )?(?:window|graph|in-order plan|system)",
    "slice": r"\bslices? of (?:a |the |each )?(?:slow |fast )?sources?\b|\bsource in slices\b",
    "component": r"\bcomponents? of (?:a |an |the )?(?:aggregate|state|partial)",
    "run": r"\bruns of (?:rows|tuples|equal)|\b(?:into|small|large) runs\b",
    "row": r"\brows? of (?:panes|slices|windows)\b",
}
UNTIL_REWRITTEN = ("docs/glossary.md",)
"""Where reserved words are not looked for: the glossary quotes the other meanings."""


def folder_of(path: Path) -> str:
    if path.suffix == ".md" or len(path.parts) == 1:
        return path.as_posix()
    deep = 3 if path.parts[1] == "operators" else 2
    return "/".join(path.parts[: min(len(path.parts) - 1, deep)])


def counted(texts: dict[Path, str]) -> dict[str, tuple[int, ...]]:
    found: dict[str, Counter[str]] = {}
    for path, text in texts.items():
        of_folder = found.setdefault(folder_of(path), Counter())
        of_folder.update({word: len(pattern.findall(text)) for word, pattern in HOME_MADE.items()})
    return {folder: tuple(words[word] for word in HOME_MADE) for folder, words in found.items()}


def over_budget(found: dict[str, tuple[int, ...]]) -> list[str]:
    return [
        f"{folder}: {word!r} {number} times, {most} allowed"
        for folder, numbers in found.items()
        for word, number, most in zip(HOME_MADE, numbers, BUDGET.get(folder, (0, 0, 0)), strict=True)
        if number > most
    ]


def misused(path: Path, text: str) -> list[str]:
    if folder_of(path) in UNTIL_REWRITTEN:
        return []
    return [
        f"{path}: {match[0]!r}: {word} has another meaning, see docs/glossary.md"
        for word, pattern in RESERVED.items()
        for match in re.finditer(pattern, text, re.IGNORECASE)
    ]


def texts() -> dict[Path, str]:
    return {path: (ROOT / path).read_text() for path in FILES}


def glossary(heading: str) -> list[list[str]]:
    """Return the cells of the table under a heading of the glossary."""
    text = (ROOT / "docs/glossary.md").read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows[1:]]


def test_home_made_words_do_not_become_more() -> None:
    assert over_budget(counted(texts())) == []


@pytest.mark.parametrize(
    ("sentence", "word"),
    [
        ("The operator makes a promise.", "promise"),
        ("The policy says which tuples are late.", "said"),
        ("Return what comes out.", "what"),
    ],
)
def test_one_sentence_too_many_is_found(sentence: str, word: str) -> None:
    planted = texts()
    path = Path("oop_engine/system/memory.py")
    planted[path] += f'"""{sentence}"""'
    assert [line.split("'")[1] for line in over_budget(counted(planted))] == [word]


def test_reserved_words_have_one_meaning() -> None:
    assert [line for path, text in texts().items() for line in misused(path, text)] == []


@pytest.mark.parametrize(
    "sentence",
    [
        "What is late is decided at the edge.",
        "The edges of windows cut it.",
        "The slices of a source are read again.",
        "The components of an aggregate are added.",
        "Rows are sorted into runs.",
        "A row of panes is summed.",
    ],
)
def test_another_meaning_is_found(sentence: str) -> None:
    assert len(misused(Path("oop_engine/core/page.py"), sentence)) == 1


def test_every_reserved_word_that_is_looked_for_is_in_the_glossary() -> None:
    assert set(RESERVED) <= {word for word, *_ in glossary("Reserved words")}


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix == ".md"], ids=str)
def test_links_lead_to_files(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", (ROOT / path).read_text())
    assert [target for target in targets if not (ROOT / path.parent / target).exists()] == []


def slug(heading: str) -> str:
    """Return the anchor of a heading as GitHub makes it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def headings(text: str) -> set[str]:
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", prose, re.MULTILINE)}


def lost_anchors(path: Path, text: str) -> list[str]:
    """Return the links of a document to headings that are not there."""
    links = re.findall(r"\]\(([^)#:\s]*\.md|)#([^)\s]+)\)", text)
    targets = [(ROOT / path.parent / file if file else ROOT / path, anchor) for file, anchor in links]
    return [f"{file.name}#{anchor}" for file, anchor in targets if anchor not in headings(file.read_text())]


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix == ".md"], ids=str)
def test_links_lead_to_headings(path: Path) -> None:
    assert lost_anchors(path, (ROOT / path).read_text()) == []


def test_a_lost_heading_is_found() -> None:
    text = "[a](docs/live.md#sources) [b](docs/live.md#nowhere)"
    assert lost_anchors(Path("README.md"), text) == ["live.md#nowhere"]


def test_pages_before_a_first_service_stay_short() -> None:
    assert sum(len((ROOT / path).read_text().split()) for path in FIRST_PAGES) <= FIRST_WORDS
