"""Documents: links lead to headings that are there, and the pages before a first service stay short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.laws.test_house import DOCUMENTS
from tests.sources import ROOT

FIRST_PAGES = ("README.md", "docs/tutorial.md", "docs/live.md", "docs/windows.md", "docs/semantics.md")
"""Read before a first service; details have pages of their own."""
FIRST_WORDS = 6_000


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
    targets = [(path.parent / file if file else path, anchor) for file, anchor in links]
    return [f"{file.name}#{anchor}" for file, anchor in targets if anchor not in headings(file.read_text())]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_headings(path: Path) -> None:
    assert lost_anchors(path, path.read_text()) == []


def test_a_lost_heading_is_found() -> None:
    text = "[a](docs/live.md#sources) [b](docs/live.md#nowhere)"
    assert lost_anchors(ROOT / "README.md", text) == ["live.md#nowhere"]


def test_pages_before_a_first_service_stay_short() -> None:
    assert sum(len((ROOT / path).read_text().split()) for path in FIRST_PAGES) <= FIRST_WORDS
