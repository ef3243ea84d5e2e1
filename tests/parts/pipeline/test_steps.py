"""Steps: what has its mark is not done again, and what follows a change is."""

from __future__ import annotations

from pathlib import Path

import pytest

from oop_engine.core.errors import UsageError
from oop_engine.pipeline.steps import Steps


def run(folder: Path, first: int, second: int, fail: bool = False) -> list[str]:
    did: list[str] = []
    steps = Steps(folder, did.append)
    steps.do("one", {"n": first}, lambda: {"answer": first})

    def work() -> dict[str, int]:
        if fail:
            raise KeyboardInterrupt
        return {"answer": second}

    steps.do("two", {"n": second}, work)
    assert [steps.result(name)["answer"] for name in ("one", "two")] == [first, second]
    return did


def test_a_step_is_done_once(tmp_path: Path) -> None:
    assert run(tmp_path, 1, 1) == ["one", "two"]
    assert run(tmp_path, 1, 1) == []
    assert run(tmp_path, 1, 2) == ["two"]
    assert run(tmp_path, 2, 2) == ["one", "two"], "what follows a change is done again"


def test_a_step_that_was_stopped_is_done_again(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, 1, 1, fail=True)
    assert run(tmp_path, 1, 1) == ["two"]
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, 1, 2, fail=True)
    assert run(tmp_path, 1, 1) == ["two"], "its work had begun to replace what was there"


def test_a_mark_that_is_damaged_is_none(tmp_path: Path) -> None:
    run(tmp_path, 1, 1)
    (tmp_path / "steps" / "one.json").write_text("{")
    assert run(tmp_path, 1, 1) == ["one"], "and what follows is as it was"


def test_a_folder_of_others_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty, and holds no pipeline"):
        Steps(tmp_path, print)
