"""Resuming: the parts of a service that go into a checkpoint, and those that come from one.

Nodes that the checkpoint does not know begin empty; the others go on.  Nodes that are gone, or have changed, are
refused unless they are named, since their state is discarded then.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from typing import Any

from oop_engine.connectors.parts.calls import called
from oop_engine.connectors.parts.json_value import json_value
from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.fingerprint import described
from oop_engine.core.graphs.graph import Plan
from oop_engine.core.snapshot import readable
from oop_engine.runners.local import Local
from oop_engine.runners.states import RUNNER
from oop_engine.service.checkpoint_manifest import CheckpointManifest, check_graph, discards
from oop_engine.service.dead_letters import DeadLetters
from oop_engine.service.inlet import Inlet
from oop_engine.service.outlets import DEAD
from oop_engine.service.why import standing, windows_of

__all__ = [
    "check_dead_letters",
    "check_start",
    "check_states",
    "log_changes",
    "manifest_of",
    "move_positions",
    "positions_but",
    "restore",
]

_LOG = logging.getLogger("oop_engine")
_EARLIEST, _LATEST = "earliest", "latest"
_SHOWN = 200


def manifest_of(
    local: Local, inlets: Mapping[str, Inlet], dead: DeadLetters, *, over: bool = False
) -> CheckpointManifest:
    """Return all that a checkpoint has but the states of operators."""
    counts = {
        name: {"tuples": inlet.tuples, "unreadable": sum(dead.counts[name].values())}
        for name, inlet in inlets.items()
    }
    return CheckpointManifest(
        graph=local.plan.name,
        nodes=described(local.plan),
        states={},
        positions={name: inlet.position for name, inlet in inlets.items()},
        headers={name: inlet.headers for name, inlet in inlets.items() if inlet.headers},
        ended=[name for name, inlet in inlets.items() if inlet.ended],
        standing=asdict(replace(standing(local), windows=windows_of(local))),
        counts=counts,
        over=over,
    )


def check_states(
    place: str, manifest: CheckpointManifest, local: Local, without: Collection[str], *, after_drain: bool
) -> None:
    """Raise ``UsageError`` unless a graph can go on from a manifest (``check_graph``)."""
    versions = {name: readable(op.state_version, op.migrations) for name, op in local.operators.items()}
    check_graph(
        place, manifest, local.plan.name, described(local.plan), versions, without, after_drain=after_drain
    )


def check_dead_letters(place: str, manifest: CheckpointManifest, sinks: Collection[str]) -> None:
    """Raise ``UsageError`` if the sink of dead letters is gone, and its last ones may not be visible."""
    if DEAD in manifest.prepared and DEAD not in sinks:
        msg = (
            f"{place}: has dead letters that may not be visible yet, as its process was killed: start once more with "
            "dead_letters= (--dead-letters) and stop in order (SIGTERM, Ctrl-C); then it can be left out"
        )
        raise UsageError(msg)


def restore(
    manifest: CheckpointManifest,
    states: dict[str, bytes],
    local: Local,
    inlets: Mapping[str, Inlet],
    without: Collection[str],
) -> None:
    """Give operators and sources their parts of a checkpoint; of a drained one, sources their positions."""
    fresh = {*without, *(node.name for node in local.plan.nodes if node.name not in manifest.nodes)}
    if not manifest.over:
        known = {name: states[name] for name in (*local.operators, RUNNER) if name in states}
        local.restore(known, fresh)
    for name, inlet in inlets.items():
        inlet.position = manifest.positions.get(name)
        inlet.headers = manifest.headers.get(name, [])
        inlet.ended = not manifest.over and name in manifest.ended
    for edge, below in manifest.standing.get("bounds", {}).items():
        if edge in local.statistics.edges and not manifest.over:
            local.statistics.edges[edge].below = below


def log_changes(place: str, manifest: CheckpointManifest, plan: Plan, without: Collection[str]) -> None:
    """Log which nodes begin empty, and the state that is discarded."""
    if manifest.over:
        _LOG.warning(
            "%s: resumes after its drain: operators are empty, sources continue at their positions", place
        )
        return
    if given := [name for name in manifest.nodes if name in without]:
        _LOG.warning("%s: without the state of %s, %s", place, ", ".join(given), discards(manifest, given))
    added = [node for node in plan.nodes if node.name not in manifest.nodes]
    if names := [repr(node.name) for node in added if node.kind == "source"]:
        _LOG.warning("%s: new sources, read from their beginning: %s", place, ", ".join(names))
    if names := [repr(node.name) for node in added if node.kind != "source"]:
        words = "%s: new nodes without state: %s; their first windows lack the rows before this checkpoint"
        _LOG.warning(words, place, ", ".join(names))


def check_start(start_from: Mapping[str, Any], inlets: Mapping[str, Inlet]) -> None:
    """Raise ``UsageError`` unless ``start_from`` has names of sources, and values of JSON."""
    if unknown := [name for name in start_from if name not in inlets]:
        msg = f"start_from: the graph has the sources {', '.join(inlets)}; got {unknown[0]!r}"
        msg += did_you_mean(unknown[0], inlets)
        raise UsageError(msg)
    for name, where in start_from.items():
        try:
            json.dumps(where)
        except (TypeError, ValueError) as error:
            msg = f"start_from {name!r}: must be 'earliest', 'latest' or a position as JSON; got {where!r}"
            raise UsageError(msg) from error


async def move_positions(start_from: Mapping[str, Any], inlets: Mapping[str, Inlet]) -> None:
    """Set the positions of some sources, each with a line of the log."""
    for name, where in start_from.items():
        inlet = inlets[name]
        before = inlet.position
        inlet.position, inlet.headers = await _position(inlet, where), []
        inlet.ended = False
        _LOG.warning(
            "source %r: starts from %s, not from %s: rows may be missing, or come twice",
            name, _words(where), "its beginning" if before is None else _words(before),
        )  # fmt: skip


def positions_but(names: Collection[str], positions: Mapping[str, Any]) -> dict[str, Any]:
    """Return positions but for those of some sources."""
    return {name: position for name, position in positions.items() if name not in names}


async def _position(inlet: Inlet, where: Any) -> Any:
    if where == _EARLIEST:
        return None
    if where != _LATEST:
        return where
    latest = await called(inlet.place, inlet.source, "latest")
    return json_value(latest, f"{inlet.place}: the value of latest")


def _words(position: Any) -> str:
    text = position if isinstance(position, str) else json.dumps(position)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
