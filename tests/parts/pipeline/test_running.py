"""What a run leaves: only one that is whole goes on, and only with what it was begun with."""

from __future__ import annotations

from pathlib import Path

import pytest

from oop_engine.core.units import Length
from oop_engine.pipeline.running import Folders, default_partition


@pytest.fixture
def begun(tmp_path: Path) -> Folders:
    """A run of "one" that was stopped."""
    (tmp_path / "steps").mkdir()
    folders = Folders(tmp_path)
    assert not folders.claim("one")
    for path in (folders.results, folders.checkpoint):
        path.mkdir()
        (path / "file").touch()
    return folders


def is_clear(folders: Folders) -> bool:
    return not folders.results.exists() and not folders.checkpoint.exists()


def test_a_run_that_was_stopped_goes_on(begun: Folders) -> None:
    assert begun.claim("one")
    assert (begun.results / "file").exists()


def test_another_run_begins_anew(begun: Folders) -> None:
    assert not begun.claim("two")
    assert is_clear(begun)
    assert not begun.claim("one"), "it was cleared"


def test_what_is_wanted_anew_begins_anew(begun: Folders) -> None:
    assert not begun.claim("one", anew=True)
    assert is_clear(begun)


def test_results_without_a_checkpoint_are_of_no_use(begun: Folders) -> None:
    begun.release()  # done; but a kill came before the step had its mark
    assert (begun.results / "file").exists()
    assert not begun.claim("one")
    assert is_clear(begun)


def test_half_a_checkpoint_is_of_no_use(begun: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(path: Path, **_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("oop_engine.pipeline.running.shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            begun.claim("two")
    assert not begun.claim("one")
    assert is_clear(begun)


@pytest.mark.parametrize(
    ("span", "unit", "width"),
    [
        (0, "s", "1 s"),
        (400_000, "ms", "1 s"),
        (400_001, "ms", "1 min"),
        (365 * 86_400, "s", "1 d"),
        (40 * 365 * 86_400, "s", "30 d"),
        (400, "frames", 1),
        (4_001, "frames", 100),
    ],
)
def test_folders_of_results_are_some_hundreds_at_most(span: int, unit: str, width: Length) -> None:
    assert default_partition(span, unit) == width
