"""The manifest of a checkpoint: which files are its states, where sources go on, which results sinks have prepared.

Restoring goes by the names of nodes.  A checkpoint that does not fit is found here, before anything runs.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import SnapshotError, UsageError
from oop_engine.core.graphs.fingerprint import difference
from oop_engine.service.why import kept_by

__all__ = [
    "FORMAT",
    "CheckpointManifest",
    "StateFile",
    "check_graph",
    "check_names",
    "discards",
    "read_manifest",
    "write_manifest",
]

FORMAT = 1
"""The format of checkpoints; another one is refused."""


@dataclass(frozen=True)
class StateFile:
    """The state of a node: the operator's class, the version of its states, its file within the checkpoint."""

    kind: str
    version: int
    file: str
    sha256: str
    nbytes: int


@dataclass(frozen=True)
class CheckpointManifest:
    """The state of a service after an epoch.

    ``graph``: its name.  ``nodes``: how each is described (``fingerprint.described``).  ``states``: by operator,
    and of the runner under the empty name.  ``positions``: by source.  ``ended``: sources that have.  ``prepared``:
    by sink, results of this epoch to commit.  ``standing``: how far each edge was (``why.Standing``).  ``counts``:
    by source, tuples that came and those that could not be read.  ``over``: all streams have ended and all results
    are out.  ``parent``: the number of the entry before; ``at``: wall seconds since 1970.  ``headers``: by
    source, the lines of names at its position.
    """

    graph: str
    nodes: dict[str, list[str]]
    states: dict[str, StateFile]
    positions: dict[str, Any] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)
    prepared: dict[str, Any] = field(default_factory=dict)
    standing: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    over: bool = False
    parent: int = 0
    at: float = 0.0
    headers: dict[str, list[str]] = field(default_factory=dict)
    format: int = FORMAT


_SHAPES: dict[str, Any] = {
    "graph": str, "nodes": dict, "states": dict, "positions": dict, "ended": list, "prepared": dict,
    "standing": dict, "counts": dict, "over": bool, "parent": int, "at": (int, float), "format": int,
    "headers": dict,
}  # fmt: skip
_STATE = {each.name for each in fields(StateFile)}


def write_manifest(manifest: CheckpointManifest) -> bytes:
    """Return the content of the file of a manifest."""
    return json.dumps(asdict(manifest)).encode()


def read_manifest(place: str, data: bytes) -> CheckpointManifest:
    """Return the manifest in a file; raises ``SnapshotError`` in the name of ``place`` if there is none."""
    try:
        content = json.loads(data)
    except ValueError as error:
        msg = f"{place}: cannot be read ({error}): restore the file, or start with an empty folder"
        raise SnapshotError(msg) from error
    if isinstance(content, dict) and content.get("format", FORMAT) != FORMAT:
        msg = f"{place}: is of format {content['format']}, this program writes {FORMAT}: use the version that wrote it"
        raise SnapshotError(msg)
    if isinstance(content, dict):
        content.setdefault("headers", {})  # earlier versions did not write it
    sound = isinstance(content, dict) and content.keys() == _SHAPES.keys()
    if not sound or any(not isinstance(content[name], kind) for name, kind in _SHAPES.items()):
        msg = f"{place}: is not the manifest of a checkpoint: restore the file, or start with an empty folder"
        raise SnapshotError(msg)
    if any(not isinstance(state, dict) or state.keys() != _STATE for state in content["states"].values()):
        msg = f"{place}: names a state in a way that is not known: use the version that wrote it"
        raise SnapshotError(msg)
    states = {name: StateFile(**state) for name, state in content["states"].items()}
    return CheckpointManifest(**{**content, "states": states})


def check_names(place: str, nodes: Collection[str], without_state_of: Collection[str]) -> None:
    """Raise ``UsageError`` unless the operators that begin anew are among ``nodes``."""
    if unknown := set(without_state_of) - {*nodes}:
        there, hint = ", ".join(dict.fromkeys(nodes)), did_you_mean(min(unknown), nodes)
        msg = f"{place}: there is no node {min(unknown)!r} to restart without its state; there are {there}{hint}"
        raise UsageError(msg)


def check_graph(
    place: str,
    manifest: CheckpointManifest,
    graph: str,
    nodes: Mapping[str, list[str]],
    versions: Mapping[str, range],
    without_state_of: Collection[str],
    *,
    after_drain: bool = False,
) -> None:
    """Raise ``UsageError`` unless a graph can go on from a manifest: its nodes are those of then, or are new.

    ``versions``: those of the states that each operator can take, its own last.  Nodes whose state is of an older one
    are compared by words and inputs, for the class has changed.  ``without_state_of``: nodes that may have changed,
    or gone; they begin anew.  ``after_drain``: all operators do, and sources go on behind the drain.
    """
    check_names(place, [*nodes, *manifest.nodes], without_state_of)
    if graph != manifest.graph:
        msg = f"{place}: was written by graph {manifest.graph!r}; got {graph!r}: give this graph a folder of its own"
        raise UsageError(msg)
    if manifest.over and not after_drain:
        msg = (
            f"{place}: its streams have ended, and all results are out: resume from the same positions, with empty "
            "operators, by --after-drain (after_drain=True), or start with another folder"
        )
        raise UsageError(msg)
    if after_drain and not manifest.over:
        msg = f"{place}: was not drained, and has the state of open windows: leave out --after-drain (after_drain)"
        raise UsageError(msg)
    if manifest.over:
        return
    for name, readable in versions.items():
        was_version = manifest.states[name].version if name in manifest.states else readable[-1]
        if was_version not in readable and name not in without_state_of:
            why = "a newer one" if was_version > readable[-1] else "from which there is no migration"
            msg = (
                f"{place}: the state of {name!r} is of version {was_version}, {why}; this program's is {readable[-1]}: "
                f"use the version that wrote it, or restart this node without its state: --without-state-of {name} "
                f"(without_state_of), {discards(manifest, [name])}"
            )
            raise UsageError(msg)
    older = {n for n, state in manifest.states.items() if n in versions and state.version < versions[n][-1]}
    changed = {}
    for name, was in manifest.nodes.items():
        now = nodes.get(name)
        seen = slice(2) if name in older else slice(None)
        if (now is None or was[seen] != now[seen]) and name not in without_state_of:
            changed[name] = difference(name, was, now)
    if changed:
        restart = "this node without its" if len(changed) == 1 else "these nodes without their"
        options = " ".join(f"--without-state-of {name}" for name in changed)
        msg = (
            f"{place}: the graph has changed: {'; '.join(changed.values())}: run the previous graph, or restart "
            f"{restart} state: {options} (without_state_of), {discards(manifest, changed)}"
        )
        raise UsageError(msg)


def discards(manifest: CheckpointManifest, nodes: Iterable[str]) -> str:
    """Return in words the states of some nodes, and the results of sinks that may not be visible yet."""
    parts = []
    for name in nodes:
        if words := kept_by(manifest.standing, name):
            parts.append(f"{words} of {name!r}")
        if name in manifest.prepared:
            parts.append(f"the last results of sink {name!r}, which may not be visible yet")
    return f"which discards {'; '.join(parts)}" if parts else "which discards no state"
