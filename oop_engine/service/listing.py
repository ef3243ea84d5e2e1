"""Listing: the checkpoints in a folder, as plain values; nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import time
from typing import Any

from oop_engine.core.errors import SnapshotError, UsageError
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.units import Clock, dated, instant
from oop_engine.core.values.rfc3339 import moment_of
from oop_engine.service.checkpoint_folder import CheckpointFolder
from oop_engine.service.epochs import Entry, last_entry
from oop_engine.service.why import Standing, sentences

__all__ = ["checkpoints", "reasons"]


def checkpoints(folder: str | Path, clock: Callable[[], float] = time) -> list[dict[str, Any]]:
    """Return the entries of the log that can still be restored or that are claims, the oldest first.

    Raises ``UsageError`` if there is no checkpoint in ``folder``.
    """
    checkpoint_folder = CheckpointFolder(folder)
    entries = checkpoint_folder.entries()
    if not entries:
        msg = f"{folder}: there is no checkpoint in it: give the folder that serve, or run --checkpoint, was given"
        raise UsageError(msg)
    return [_listed(checkpoint_folder, number, entry, clock()) for number, entry in entries.items()]


def reasons(folder: str | Path) -> list[str]:
    """Return why results were held back when the last checkpoint was taken (``why``).

    Raises ``UsageError`` if there is none, ``SnapshotError`` if it is damaged.
    """
    checkpoint_folder = CheckpointFolder(folder)
    last = last_entry(checkpoint_folder.entries())
    if last is None or not last.manifest:
        msg = f"{folder}: nothing has been recorded in it: give a folder of checkpoints, or wait for the first one"
        raise UsageError(msg)
    manifest = checkpoint_folder.manifest_of(last)
    if manifest.over:
        return []
    return sentences(Standing(**manifest.standing))


def _listed(folder: CheckpointFolder, number: int, entry: Entry | None, now: float) -> dict[str, Any]:
    if entry is None:
        return {"epoch": number, "kind": "damaged"}
    known: dict[str, Any] = {
        "epoch": number,
        "kind": entry.kind,
        "owner": entry.owner,
        "at": moment_of(entry.at),
        "age_s": max(now - entry.at, 0.0),
    }
    if entry.kind != "record":
        return known
    try:
        manifest = folder.manifest_of(entry)
    except SnapshotError as error:
        return {**known, "problem": str(error)}
    bounds, units, clocks = (manifest.standing.get(part, {}) for part in ("bounds", "units", "clocks"))
    return {
        **known,
        "graph": manifest.graph,
        "over": manifest.over,
        "bytes": {name or "runner": state.nbytes for name, state in manifest.states.items()},
        "written": sum(
            s.nbytes for s in manifest.states.values() if s.file.startswith(f"states/{number:07d}-")
        ),
        "positions": manifest.positions,
        "counts": manifest.counts,
        "bounds": {
            edge: _plain(below, units[edge], clocks.get(edge, "number")) for edge, below in bounds.items()
        },
        "units": units,
        "bounds_as_times": {
            edge: instant(below, units[edge], clocks.get(edge, "number"))
            if below not in (NEVER, FOREVER)
            else _plain(below, units[edge])
            for edge, below in bounds.items()
        },
    }


def _plain(below: int, unit: str, clock: Clock = "number") -> int | str | None:
    """Return a bound for JSON: a moment as RFC 3339 has it, or else the number."""
    return {NEVER: None, FOREVER: "ended"}.get(below, dated(below, unit, clock) or below)
