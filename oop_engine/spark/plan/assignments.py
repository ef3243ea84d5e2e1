"""Assignments of key groups to shards, in files named by their version.

The version belongs to the offset that Spark writes down before it runs a micro-batch.  So a batch
that is run again, by a query that was killed too, has the assignment that it had.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from oop_engine.core.errors import SnapshotError
from oop_engine.spark.plan.balance import Assignments, Balance, Balancer, Move, even_assignment
from oop_engine.spark.plan.pieces import SHARDS, Cut

__all__ = ["AssignmentFolder", "Control"]

_KEPT = 16  # versions; Spark goes back by one batch at most, and there is one version a batch at most


class AssignmentFolder:
    """The versions in ``folder``, from 0 on; only the driver reads and writes them."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def newest(self) -> int:
        """Return the last version; -1: there is none."""
        return max(self._versions(), default=-1)

    def read(self, version: int) -> Assignments:
        """Return the assignments of a version; raises ``SnapshotError`` if they cannot be read."""
        path = self._path(version)
        try:
            content = json.loads(path.read_text())
            return {int(component): tuple(map(int, places)) for component, places in content.items()}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            state = "is damaged" if path.exists() else "is missing"
            msg = f"{path} {state}: restore the file, or start with an empty folder"
            raise SnapshotError(msg) from error

    def add(self, assignments: Assignments) -> None:
        """Write the next version, whole or not at all; forget old ones."""
        self._folder.mkdir(parents=True, exist_ok=True)
        version = self.newest() + 1
        unfinished = self._folder / f"{version}.part"
        unfinished.write_text(json.dumps(assignments))
        unfinished.replace(self._path(version))
        for old in sorted(self._versions())[:-_KEPT]:
            self._path(old).unlink()

    def _versions(self) -> list[int]:
        return [int(path.stem) for path in self._folder.glob("*.json") if path.stem.isdigit()]

    def _path(self, version: int) -> Path:
        return self._folder / f"{version}.json"


class Control:
    """Watches micro-batches at the driver, and writes the next version when groups are to move.

    It goes on from the newest version that is there, or begins with even assignments.
    """

    def __init__(self, how: Balance, cut: Cut, folder: str) -> None:
        self._folder = AssignmentFolder(folder)
        components = cut.at(SHARDS)
        even = {component.number: even_assignment(how.groups, component.groups) for component in components}
        known = self._folder.newest()
        assignments = self._folder.read(known) if known >= 0 else {}
        if any(not 0 <= place < components[0].groups for places in assignments.values() for place in places):
            msg = f"{folder}: assignment {known} has other shards than there are: start with an empty folder"
            raise SnapshotError(msg)
        if {number: len(places) for number, places in assignments.items()} != dict.fromkeys(even, how.groups):
            assignments = even  # the first start, or another number of groups
            self._folder.add(assignments)
        self._balancer = Balancer(how, assignments, components[0].groups)

    @property
    def moves(self) -> list[Move]:
        """All that was moved since the start."""
        return self._balancer.moves

    def take(self, batch: int, loads: Mapping[int, Sequence[int]]) -> None:
        """Take the tuples of each key group in a micro-batch, by component."""
        if self._balancer.take(batch, loads):
            self._folder.add(self._balancer.assignments)
