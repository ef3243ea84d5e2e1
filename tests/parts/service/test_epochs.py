"""Decisions about a checkpoint, as functions of what was read."""

from __future__ import annotations

import re

import pytest

from oop_engine import UsageError
from oop_engine.errors import SnapshotError
from oop_engine.service.checkpoint_manifest import (
    CheckpointManifest,
    StateFile,
    check_graph,
    read_manifest,
    write_manifest,
)
from oop_engine.service.epochs import (
    Entry,
    foreign,
    garbage,
    kept_manifests,
    last_entry,
    next_number,
    number_of,
    read_entry,
    write_entry,
)


def entry(number: int, kind: str = "record", manifest: str | None = None) -> Entry:
    name = f"states/{number:07d}-a/manifest.json" if manifest is None else manifest
    return Entry(number, kind, name, "hash", "run", "me", 1.5)


def test_an_entry_is_read_as_it_was_written() -> None:
    assert read_entry(3, write_entry(entry(3))) == entry(3)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"[]", b"null", write_entry(entry(3))[:-5], write_entry(entry(4)),
        write_entry(entry(3, "other")), write_entry(entry(3)).replace(b"1.5", b'"x"'),
        write_entry(entry(3)).replace(b'"run"', b'"ran"', 1),
    ],
)  # fmt: skip
def test_a_damaged_entry_is_none(data: bytes) -> None:
    assert read_entry(3, data) is None


def test_the_number_is_in_the_name() -> None:
    assert [number_of(name) for name in ("0000012.json", "x.json", "0000012", ".0000012.json.1f.part")] == [
        12, None, None, None,
    ]  # fmt: skip


def test_one_goes_on_from_the_last_entry_that_is_whole_and_takes_no_number_twice() -> None:
    entries = {1: entry(1, "claim", ""), 2: entry(2), 3: None}
    assert last_entry(entries) == entry(2)
    assert next_number(entries) == 4
    assert last_entry({}) is None
    assert next_number({}) == 1


def test_entries_before_those_that_are_kept_are_garbage_whatever_they_are() -> None:
    entries = {
        1: entry(1, "claim", ""), 2: entry(2), 3: entry(3, "claim", entry(2).manifest), 4: None,
        **{n: entry(n) for n in (5, 6, 7)},
    }  # fmt: skip
    kept = kept_manifests(entries, 2)
    assert kept == [entry(6).manifest, entry(7).manifest]
    used = {kept[0]: ["states/0000002-a/one"], kept[1]: ["states/0000007-a/two"]}
    there = [
        *kept, "states/0000002-a/one", "states/0000002-a/two", "states/0000007-a/two",
        "states/0000007-b/torn", "states/0000008-b/begun",
    ]  # fmt: skip
    numbers, files = garbage(entries, used, there)
    assert numbers == [1, 2, 3, 4, 5]
    assert files == ["states/0000002-a/two", "states/0000007-b/torn"]


@pytest.mark.parametrize("last", [entry(9, "claim", entry(7).manifest), None])
def test_the_last_entry_stays_for_nobody_may_take_its_number_again(last: Entry | None) -> None:
    entries = {n: entry(n) for n in (5, 6, 7)} | {8: entry(8, "claim", entry(7).manifest), 9: last}
    used = {name: [name] for name in kept_manifests(entries, 1)}
    assert garbage(entries, used, []) == ([5, 6] if last is None else [5, 6, 8], [])


@pytest.mark.parametrize(
    ("names", "entries", "states", "reason"),
    [
        ([], [], [], None),
        (["epochs", "states", ".hidden", "lost+found"], [], [], None),
        (["epochs", "notes.txt"], [4], [], None),
        (
            ["a.csv", "b", "c", "d", "e"], [], [],
            r"^checkpoint here: must be empty, absent, or a checkpoint \(epochs/, states/\); it holds a.csv, b, c "
            r"and 2 more: give a folder of its own, such as here/state$",
        ),
        (["states"], [], ["states/0000002-a/manifest.json"], "has the states of a checkpoint .* none of the log"),
    ],
)  # fmt: skip
def test_a_folder_of_others_is_refused(
    names: list[str], entries: list[int], states: list[str], reason: str
) -> None:
    found = foreign("here", names, entries, states)
    assert found is None if reason is None else re.search(reason, found or "")


def test_without_a_manifest_nothing_is_garbage() -> None:
    assert garbage({1: entry(1, "claim", "")}, {}, ["states/0000001-a/x"]) == ([], [])


NODES = {"in": ["source", "", "f"], "count": ["Count()", "in", "f"]}
MANIFEST = CheckpointManifest(
    "g", NODES, {"count": StateFile("Count", 2, "states/0000001-a/count.1", "h", 7)}, positions={"in": [1, 2]}
)


def test_a_manifest_is_read_as_it_was_written() -> None:
    assert read_manifest("here", write_manifest(MANIFEST)) == MANIFEST


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{", "here: cannot be read"),
        (b"[]", "here: is not the manifest"),
        (write_manifest(MANIFEST).replace(b'"graph"', b'"grape"'), "here: is not the manifest"),
        (
            write_manifest(MANIFEST).replace(b'"format": 1', b'"format": 9'),
            "is of format 9, this program writes 1",
        ),
        (
            write_manifest(MANIFEST).replace(b'"nbytes"', b'"bytes"'),
            "names a state in a way that is not known",
        ),
    ],
)
def test_a_damaged_manifest_is_told(data: bytes, reason: str) -> None:
    with pytest.raises(SnapshotError, match=reason):
        read_manifest("here", data)


OTHER = {**NODES, "count": [*NODES["count"][:2], "another fingerprint"]}


def checked(**changes: object) -> None:
    told: dict = {
        "manifest": MANIFEST, "graph": "g", "nodes": NODES, "versions": {"count": range(2, 3)}, "without_state_of": [],
    } | changes  # fmt: skip
    check_graph("here", **told)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"graph": "h"}, "was written by graph 'g'; got 'h'"),
        (
            {"nodes": {**NODES, "count": ["Sum()", "in", "f"]}},
            r"was Count\(\) and is Sum\(\).*--without-state-of count",
        ),
        (
            {"nodes": {"in": ["x", "", "f"], "count": ["Sum()", "in", "f"]}},
            r"'in' .*; node 'count' .* without their state: --without-state-of in --without-state-of count \(",
        ),
        ({"nodes": {"in": NODES["in"]}}, "'count' is no longer there"),
        (
            {"versions": {"count": range(3, 4)}},
            "version 2, from which there is no migration; this program's is 3",
        ),
        ({"versions": {"count": range(1, 2)}}, "is of version 2, a newer one; this program's is 1"),
        ({"nodes": OTHER, "versions": {"count": range(2, 3)}}, "has other parameters or functions"),
        (
            {"nodes": {**NODES, "count": ["Sum()", "in", "f"]}, "versions": {"count": range(2, 4)}},
            "and is Sum",
        ),
        ({"without_state_of": ["none"]}, "no node 'none'"),
        ({"manifest": CheckpointManifest("g", NODES, {}, over=True)}, "streams have ended"),
    ],
)
def test_another_graph_is_refused_in_one_line(changes: dict, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as told:
        checked(**changes)
    assert "\n" not in str(told.value)


def test_nodes_that_begin_anew_may_differ() -> None:
    checked()
    checked(nodes={**NODES, "count": ["Sum()", "in", "f"]}, without_state_of=["count"])
    checked(nodes={"in": NODES["in"]}, without_state_of=["count"])
    checked(versions={"count": range(3, 4)}, without_state_of=["count"])


def test_a_node_with_a_state_of_an_older_version_is_compared_by_words_and_inputs() -> None:
    checked(versions={"count": range(1, 4)}, nodes=OTHER)
    checked(versions={"count": range(2, 4)}, nodes=OTHER)
