"""Epochs: the log of a checkpoint, and all decisions about it, as functions of values that were read.

Each entry of the log is a file ``epochs/<number>.json`` that is made if it is absent, and never changed.  A *record*
makes a manifest the state after an epoch.  With a *claim* a process goes on from the last record: it is
an entry, too, so an older process that is still there finds the number of its next record taken, and stops.  Entry
after entry, there is one owner: nothing else is needed as a fence.

Old entries are removed, claims too, but never the last one, so the largest number never falls.  An entry counts
if it had the largest number when its process looked, behind the making: a process that has slept, and makes an entry
where one has been removed, finds a larger number, removes its own again, and stops.  Its entry is older than the last,
so nobody goes on from it, even if the process dies before it has removed it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, fields

__all__ = [
    "Entry",
    "foreign",
    "garbage",
    "kept_manifests",
    "last_entry",
    "next_number",
    "number_of",
    "read_entry",
    "write_entry",
]


@dataclass(frozen=True)
class Entry:
    """An entry of the log.

    ``number``: its place.  ``kind``: "record" or "claim".  ``manifest``: the file of the last state, within the
    checkpoint, and its ``sha256``; empty before the first record.  ``run``: the name of the checkpoint, by which
    sinks know it.  ``owner``: the process, in words; ``at``: wall seconds since 1970.
    """

    number: int
    kind: str
    manifest: str
    sha256: str
    run: str
    owner: str
    at: float


_OURS = ("epochs", "states", "lost+found")
_SHOWN = 3
_KINDS = {
    field.name: {"int": int, "str": str, "float": (int, float)}[str(field.type)] for field in fields(Entry)
}


def read_entry(number: int, data: bytes) -> Entry | None:
    """Return the entry in a file; None: it is damaged, for a disk makes an entry whole or not at all."""
    try:
        content = json.loads(data)
    except ValueError:
        return None
    if not isinstance(content, dict) or content.keys() != _KINDS.keys():
        return None
    if any(not isinstance(content[name], kind) for name, kind in _KINDS.items()):  # type: ignore[arg-type]
        return None
    return (
        Entry(**content) if content["number"] == number and content["kind"] in ("record", "claim") else None
    )


def write_entry(entry: Entry) -> bytes:
    """Return the content of the file of an entry."""
    return json.dumps(asdict(entry)).encode()


def number_of(name: str) -> int | None:
    """Return the number of the entry in the file ``name``; None: it is no entry."""
    stem, _, suffix = name.partition(".")
    return int(stem) if suffix == "json" and stem.isdigit() else None


def last_entry(entries: Mapping[int, Entry | None]) -> Entry | None:
    """Return the entry to go on from: the last that is whole; None: there is none.

    A claim has the manifest of the record before it.
    """
    whole = [entry for _, entry in sorted(entries.items()) if entry is not None]
    return whole[-1] if whole else None


def next_number(entries: Collection[int]) -> int:
    """Return the number of the next entry: also of a damaged one the place is taken."""
    return max(entries, default=0) + 1


def foreign(
    place: str, names: Collection[str], entries: Collection[int], states: Collection[str]
) -> str | None:
    """Return in a line why a folder cannot be used for checkpoints; None: it can.

    ``names``: all that is in it; ``entries``: the numbers in its log; ``states``: manifests of states.  A folder
    without a log has to be empty, but for hidden files, and ``lost+found`` of a disk of its own.
    """
    if entries:
        return None
    if states:
        return (
            f"checkpoint {place}: has the states of a checkpoint ({min(states)}), and none of the log in epochs/ that "
            "names the last one: restore the whole folder, or start from an empty one"
        )
    others = [name for name in names if name[0] != "." and name not in _OURS]
    if not others:
        return None
    more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    return (
        f"checkpoint {place}: must be empty, absent, or a checkpoint (epochs/, states/); it holds "
        f"{', '.join(others[:_SHOWN])}{more}: give a folder of its own, such as {place.rstrip('/')}/state"
    )


def kept_manifests(entries: Mapping[int, Entry | None], keep: int) -> list[str]:
    """Return the files of the last ``keep`` manifests, by the last entry that names each."""
    newest_first = [entry for _, entry in sorted(entries.items(), reverse=True) if entry is not None]
    return list(dict.fromkeys(entry.manifest for entry in newest_first if entry.manifest))[:keep][::-1]


def garbage(
    entries: Mapping[int, Entry | None], used: Mapping[str, Iterable[str]], there: Iterable[str]
) -> tuple[list[int], list[str]]:
    """Return the entries and files that can be removed, so that all manifests in ``used`` can still be restored.

    ``used``: the files that each kept manifest refers to, by the manifest's file; ``there``: the files of all
    states, as ``states/<number>-.../<file>``.  A file stays if a kept manifest uses it, or if it is of a checkpoint
    that is still being written: its number is behind the last entry.  So nothing that the next checkpoint may refer
    to goes. The last entry stays, as the number by which an older process finds that it is no longer the owner; claims
    before it, which name the manifest of a record, go: a process that never gets to a record leaves none behind.
    """
    first = min((number for number, e in entries.items() if e is not None and e.manifest in used), default=0)
    used_files = {*used, *(file for files in used.values() for file in files)}
    last = max(entries, default=0)
    whole = {number: e for number, e in entries.items() if e is not None}
    claims = [number for number, e in whole.items() if e.kind == "claim" and number < max(whole)]
    old = sorted({*claims, *(number for number in entries if number < first)})
    return old, [file for file in there if used and file not in used_files and _checkpoint_of(file) <= last]


def _checkpoint_of(file: str) -> int:
    """Return the number of the checkpoint for which a file was written."""
    return int(file.split("/")[1].partition("-")[0])
