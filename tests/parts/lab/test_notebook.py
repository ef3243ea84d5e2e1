"""The recipe of a notebook, cell by cell, in the shell that a notebook runs: it awaits in the loop that is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from oop_engine import UsageError
from tests.children import ROOT

PAGE = (ROOT / "docs/applications.md").read_text()


def blocks(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


async def test_cells_of_the_recipe_run_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.history_manager.enabled = False  # type: ignore[union-attr]

    async def cell(text: str) -> Any:
        done = await shell.run_cell_async(text, transformed_cell=shell.transform_cell(text))
        done.raise_error()
        return done.result

    await cell(blocks(PAGE)[0])
    lines = blocks(PAGE.split("## A notebook")[1])[0].splitlines()
    for _ in range(2):  # all cells are run again
        found = [await cell(line) for line in lines]
        assert [each for each in found if each is not None] == [{"a": 1}, {"a": 1}]
    shown = await cell("requests()")
    assert "requests" in str(shown)
    with pytest.raises(UsageError, match=r"await serve\(...\)|await arun"):
        await cell("from oop_engine import run\nrun(requests(), {'log': []}, on='local')")
