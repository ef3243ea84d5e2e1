"""A crash at every moment in which something is written: the next start goes on, and each result is there once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oop_engine import replay
from oop_engine.spark.io.result_folder import ResultFile
from oop_engine.spark.state.ledger import Ledger
from oop_engine.spark.state.state_files import StateFiles
from oop_engine.testing import multiset
from tests.parts.spark.stand_in import SEGMENTS, add_segments, go_on, graph, pages, results

EXPECTED = multiset(replay(graph(), {"left": pages(1), "right": pages(2)}).results["out"].to_pylist())


class CrashError(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


class Crashing:
    """Lets some calls that write pass, and ends with ``CrashError`` at the next one, before or after it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None
        self.calls = 0
        for owner, name in (
            (Path, "replace"), (Path, "rename"), (Path, "unlink"), (Path, "write_text"), (Path, "write_bytes"),
            (Ledger, "append"), (StateFiles, "save"), (ResultFile, "close"),
        ):  # fmt: skip
            patch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            self.calls += 1
            if self.left is None:
                return call(*args, **options)
            self.left -= 1
            if self.left == 0:
                raise CrashError
            done = call(*args, **options)
            if isinstance(args[0], Ledger) and self.left == 1:  # the next one: half a line is left
                path = args[0]._path
                path.write_bytes(path.read_bytes()[:-3])
                raise CrashError
            return done

        return counted


def crashed(place: Path, crashing: Crashing, at: int) -> bool:
    """Start the query, and tell whether it crashed at its write ``at``; else it has ended."""
    crashing.left = at
    try:
        go_on(place)
    except CrashError:
        return True
    finally:
        crashing.left = None
    return False


@pytest.mark.slow
@pytest.mark.parametrize(("twice", "stride"), [(0, 5), (7, 17)])
def test_results_are_those_of_an_undisturbed_run(
    twice: int, stride: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashing = Crashing(monkeypatch)
    at = 1
    while True:
        place = tmp_path / str(at)
        add_segments(place, 0, SEGMENTS)
        ended = not crashed(place, crashing, at)
        if twice:
            crashed(place, crashing, twice)
        go_on(place)
        assert results(place) == EXPECTED, at
        if ended:
            break
        at += stride
    assert at > 50
