"""Each file of a checkpoint damaged in some way: the same results as without damage, or one line that names it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import EngineError, UsageError, replay
from oop_engine.errors import SnapshotError
from oop_engine.testing import multiset
from tests.parts.spark.stand_in import SEGMENTS, add_segments, go_on, graph, pages, results

Damage = Callable[[Path, Path, float], None]
FIRST = 4  # slices of the left source that are there at the first start


def deleted(path: Path, other: Path, at: float) -> None:
    path.unlink()


def emptied(path: Path, other: Path, at: float) -> None:
    path.write_bytes(b"")


def cut(path: Path, other: Path, at: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * at)])


def flipped(path: Path, other: Path, at: float) -> None:
    content = bytearray(path.read_bytes())
    if content:
        bit = int(8 * len(content) * at)
        content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(bytes(content))


def swapped(path: Path, other: Path, at: float) -> None:
    """With another file of its kind, if there is one."""
    one, two = path.read_bytes(), other.read_bytes()
    path.write_bytes(two)
    other.write_bytes(one)


def replaced(path: Path, other: Path, at: float) -> None:
    path.write_bytes(other.read_bytes())


DAMAGES = [deleted, emptied, cut, flipped, swapped, replaced]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A query that has read the slices there were."""
    place = tmp_path_factory.mktemp("begun")
    add_segments(place, 0, FIRST)
    go_on(place)
    return place


EXPECTED = multiset(
    replay(graph(), {"left": pages(1), "right": pages(2)}, flat_out=True).results["out"].to_pylist()
)


def files_of(place: Path) -> list[Path]:
    return sorted(path.relative_to(place) for path in place.rglob("*") if path.is_file())


def outcome(begun: Path, damage: Callable[[Path], None]) -> str:
    """Damage a copy of a query that has begun, let it go on, and return what it said; "": its results are right."""
    place = begun.with_name("damaged")
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(begun, place)
    damage(place)
    add_segments(place, FIRST, SEGMENTS)
    try:
        go_on(place)
    except EngineError as error:
        said = str(error)
    else:
        said = ""
        assert results(place) == EXPECTED
    assert "\n" not in said
    return said


@pytest.mark.parametrize("pattern", ["nothing", ".*.crc", "*/.*.crc", "commits/3", "offsets/0"])
def test_what_is_not_needed_may_go(begun: Path, pattern: str) -> None:
    def remove(place: Path) -> None:
        for path in (place / "checkpoint" / "spark").glob(pattern):
            path.unlink()

    assert outcome(begun, remove) == ""


@pytest.mark.slow
@given(data=st.data())
def test_a_damaged_file_changes_no_result(begun: Path, data: st.DataObject) -> None:
    files = [path for path in files_of(begun) if path.parts[0] == "checkpoint"]
    path = data.draw(st.sampled_from(files), label="file")
    alike = [other for other in files if other.suffix == path.suffix and other != path] or [path]
    other = data.draw(st.sampled_from(alike), label="other")
    at = data.draw(st.floats(0, 1, exclude_max=True), label="where")
    damage = data.draw(st.sampled_from(DAMAGES), label="damage")
    outcome(begun, lambda place: damage(place / path, place / other, at))


def newest_states(place: Path, kind: str) -> list[Path]:
    return [sorted(folder.iterdir())[-1] for folder in (place / "checkpoint" / kind).iterdir()]


def remove_newest_states(place: Path) -> None:
    for path in newest_states(place, "copies"):
        path.unlink()


def swap_states(place: Path) -> None:
    one, two = newest_states(place, "copies")[:2]
    swapped(one, two, 0)


def edit_offset(place: Path) -> None:
    """What the last micro-batch read is said to be what one before it read; the checksums fit."""
    offsets = place / "checkpoint" / "spark" / "offsets"
    for pattern in ("{}", ".{}.crc"):
        shutil.copy(offsets / pattern.format(0), offsets / pattern.format(3))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (remove_newest_states, r"copies/.*\.state.* is missing"),
        (swap_states, r"copies/.*\.state.* is damaged"),
        (lambda place: shutil.rmtree(place / "checkpoint" / "copies"), r"copies/.*\.state.* is missing"),
        (lambda place: shutil.rmtree(place / "checkpoint" / "heads"), r"heads/.*\.state.* is missing"),
        (lambda place: shutil.rmtree(place / "checkpoint" / "spark"), r"spark/offsets/3 is missing"),
        (edit_offset, "spark/offsets/3 is damaged"),
        (lambda place: (place / "checkpoint" / "manifest.json").unlink(), r"manifest\.json is missing"),
        (lambda place: (place / "checkpoint" / "query.json").unlink(), r"query\.json is missing"),
        (lambda place: (place / "checkpoint" / "id").unlink(), "id is missing"),
        (lambda place: cut(place / "left" / "001.msgpack", place, 0.5), r"001\.msgpack: the query has read it"),
        (lambda place: emptied(place / "results" / "out" / "batch-000001-00000.parquet", place, 0), "has 0 bytes"),
        (lambda place: shutil.rmtree(place / "results"), "batch-000000-00000.parquet, which .* is gone: restore"),
    ],
)  # fmt: skip
def test_what_is_missing_or_exchanged_is_named(
    begun: Path, damage: Callable[[Path], None], words: str
) -> None:
    assert re.search(words, outcome(begun, damage))


def test_another_graph_is_not_taken_without_its_description(begun: Path) -> None:
    place = begun.with_name("other")
    shutil.copytree(begun, place)
    with pytest.raises(UsageError, match="it is of another graph"):
        go_on(place, graph(width=25))
    (place / "checkpoint" / "query.json").unlink()
    with pytest.raises(SnapshotError, match=r"query\.json is missing"):
        go_on(place, graph(width=25))
