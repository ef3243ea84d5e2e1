"""The folder of checkpoints on the disk of this machine."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from oop_engine import UsageError
from oop_engine.errors import SnapshotError
from oop_engine.service.checkpoint_folder import CheckpointFolder, OwnerGone
from oop_engine.service.checkpoint_manifest import CheckpointManifest
from oop_engine.service.epochs import Entry
from oop_engine.system.disk import Disk

KINDS = {"count": ("WindowAggregate", 1)}


def manifest() -> CheckpointManifest:
    return CheckpointManifest("g", {"count": ["Count()", "in", "f"]}, {}, positions={"in": 3})


def recorded(folder: Path, *states: bytes, keep: int = 3) -> CheckpointFolder:
    checkpoints = CheckpointFolder(folder, keep=keep, clock=lambda: 1.0, owner="me")
    checkpoints.claim()
    for state in states:
        checkpoints.record(manifest(), {"count": state, "": b"runner"}, KINDS)
        checkpoints.collect()
    return checkpoints


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("states/*/*") if path.name != "manifest.json")


def test_a_record_is_found_by_the_next_process(tmp_path: Path) -> None:
    first = recorded(tmp_path, b"one", b"two")
    second = CheckpointFolder(tmp_path)
    found = second.claim()
    assert found is not None
    assert found.positions == {"in": 3}
    assert second.states_of(found) == {"count": b"two", "": b"runner"}
    assert second.run == first.run


@pytest.mark.parametrize("removed", ["", "epochs", "states"])
def test_a_folder_that_is_removed_while_the_service_runs_is_one_line(removed: str, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    checkpoints = recorded(folder, b"one")
    shutil.rmtree(folder / removed)
    with pytest.raises(
        SnapshotError, match=r"state: its files were removed while the service runs; .*empty one"
    ):
        checkpoints.record(manifest(), {"count": b"one" if removed == "epochs" else b"two"}, KINDS)


def test_a_state_that_has_not_changed_is_not_written_again(tmp_path: Path) -> None:
    recorded(tmp_path, b"one", b"one", b"one", b"one", b"one")
    assert len(files(tmp_path)) == 2
    found = CheckpointFolder(tmp_path)
    last = found.claim()
    assert last is not None
    assert found.states_of(last)["count"] == b"one"


def test_old_states_are_removed(tmp_path: Path) -> None:
    recorded(tmp_path, *(bytes([n]) for n in range(6)), keep=2)
    assert len([name for name in files(tmp_path) if name.startswith("count.")]) == 2
    assert len(list((tmp_path / "epochs").iterdir())) == 2


def test_claims_are_removed_with_the_records_around_them(tmp_path: Path) -> None:
    for number in range(20):  # processes that are restarted again and again
        recorded(tmp_path, bytes([number]), keep=2)
    assert len(list((tmp_path / "epochs").iterdir())) == 2  # two records
    assert CheckpointFolder(tmp_path).claim() is not None


@pytest.mark.parametrize("records", [0, 3])
def test_a_process_that_dies_before_its_record_again_and_again_leaves_one_claim(
    records: int, tmp_path: Path
) -> None:
    if records:
        recorded(tmp_path, *(bytes([n]) for n in range(records)), keep=2)
    for _ in range(20):
        torn = CheckpointFolder(tmp_path, keep=2)
        last = torn.claim()
        assert (last is None) == (not records)
        begun = tmp_path / "states" / f"{torn.number + 1:07d}-torn"
        begun.mkdir()
        (begun / "count.1").write_bytes(b"half")
    assert len(list((tmp_path / "epochs").iterdir())) == min(records, 2) + 1
    if records:  # two states, and the folders that were begun by the last two
        assert len(list((tmp_path / "states").iterdir())) == 4


def test_who_has_slept_finds_a_larger_number_where_its_next_one_is_free_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = recorded(tmp_path, b"one")
    new = recorded(tmp_path, *(bytes([n]) for n in range(6)), keep=1)
    assert not (tmp_path / "epochs" / f"{old.number + 1:07d}.json").exists()
    with pytest.raises(OwnerGone):
        old.record(manifest(), {"count": b"three", "": b""}, KINDS)
    monkeypatch.setattr(
        old, "_check_mine", lambda: None
    )  # it looked, and fell asleep before it made its entry
    with pytest.raises(OwnerGone):
        old.record(manifest(), {"count": b"three", "": b""}, KINDS)
    assert not (tmp_path / "epochs" / f"{old.number + 1:07d}.json").exists()  # it counted for nothing
    new.record(manifest(), {"count": b"five", "": b""}, KINDS)
    new.collect()
    assert len(list((tmp_path / "epochs").iterdir())) == 1
    found = CheckpointFolder(tmp_path)
    last = found.claim()
    assert last is not None
    assert found.states_of(last)["count"] == b"five"


def test_a_claim_that_comes_too_late_is_made_again(tmp_path: Path) -> None:
    """A process that sleeps between its look at the log and its claim, while claims come and go."""
    recorded(tmp_path, b"one")

    class Late(CheckpointFolder):
        slept = False

        def manifest_of(self, entry: Entry) -> CheckpointManifest:
            found = super().manifest_of(entry)
            if not self.slept:
                self.slept = True
                recorded(tmp_path, *(bytes([n]) for n in range(6)), keep=1)
            return found

    late = Late(tmp_path)
    last = late.claim()
    assert last is not None
    assert late.states_of(last)["count"] == bytes([5])
    late.record(manifest(), {"count": b"seven", "": b""}, KINDS)


def test_a_folder_of_other_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text("a")
    with pytest.raises(UsageError, match=r"holds results.csv: give a folder of its own, such as") as told:
        CheckpointFolder(tmp_path).claim()
    assert "\n" not in str(told.value)
    assert [path.name for path in tmp_path.iterdir()] == ["results.csv"]
    with pytest.raises(UsageError, match="must be a folder; a file is in its place"):
        CheckpointFolder(tmp_path / "results.csv").claim()


def test_states_without_their_log_are_refused(tmp_path: Path) -> None:
    recorded(tmp_path, b"one")
    for path in (tmp_path / "epochs").iterdir():
        path.unlink()
    with pytest.raises(UsageError, match="has the states of a checkpoint"):
        CheckpointFolder(tmp_path).claim()


def test_who_was_taken_over_records_nothing(tmp_path: Path) -> None:
    old = recorded(tmp_path, b"one")
    new = recorded(tmp_path, b"two")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OwnerGone, match="me has taken it over"):
        old.record(manifest(), {"count": b"three", "": b""}, KINDS)
    assert sorted(tmp_path.rglob("*")) == before
    new.record(manifest(), {"count": b"four", "": b""}, KINDS)


def test_of_two_that_record_at_once_one_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = recorded(tmp_path, b"one")
    recorded(tmp_path)
    monkeypatch.setattr(old, "_check_mine", lambda: None)  # it looked before the claim was there
    with pytest.raises(OwnerGone):
        old.record(manifest(), {"count": b"three", "": b""}, KINDS)
    found = CheckpointFolder(tmp_path)
    last = found.claim()
    assert last is not None
    assert found.states_of(last)["count"] == b"one"


@pytest.mark.parametrize(
    ("pattern", "change", "reason"),
    [
        ("states/*/count.*", lambda path: path.write_bytes(b"other"), "state of 'count' is damaged"),
        ("states/*/count.*", lambda path: path.unlink(), "is missing"),
        ("states/*/manifest.json", lambda path: path.write_bytes(b"{}"), "is damaged"),
        ("states/*/manifest.json", lambda path: path.unlink(), "is missing"),
    ],
)
def test_damage_is_told_and_nothing_is_skipped(tmp_path: Path, pattern: str, change, reason: str) -> None:
    recorded(tmp_path, b"one")
    change(next(tmp_path.glob(pattern)))
    found = CheckpointFolder(tmp_path)
    with pytest.raises(SnapshotError, match=reason):
        found.states_of(found.claim())  # type: ignore[arg-type]


def test_a_damaged_last_entry_is_told_for_its_results_may_be_out(tmp_path: Path) -> None:
    recorded(tmp_path, b"one")
    torn = tmp_path / "epochs" / "0000003.json"
    torn.write_bytes(b'{"number": 3, "ki')
    with pytest.raises(
        SnapshotError, match=r"epochs/0000003.json: is damaged: restore the file, or remove it"
    ):
        CheckpointFolder(tmp_path).claim()
    torn.unlink()
    found = CheckpointFolder(tmp_path)
    last = found.claim()
    assert last is not None
    assert found.states_of(last)["count"] == b"one"
    assert found.number == 3


def test_a_checkpoint_must_be_claimed_before_it_is_used(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must be claimed first"):
        CheckpointFolder(tmp_path).record(manifest(), {}, {})


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_told_by_the_file_that_could_not_be_written() -> None:
    with pytest.raises(OSError, match="No space left on device") as failed:
        Disk().write(Path("/dev/full"), b"a state")
    assert failed.value.filename == "/dev/full"
