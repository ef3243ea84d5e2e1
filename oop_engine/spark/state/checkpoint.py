"""The checkpoint of a query: a folder with its graph and its progress.

id              the name of the query for sinks
query.json      the graph, a line a node, and how it was spread out; a checkpoint is of one graph
manifest.json   how far the query is, and hashes of all that it needs to go on
feeds/          spooled feeds
slices/         the names of files that were found in the folder of a source, in this order
maps/           which shard has which key groups, by version
changes.jsonl   how operators were asked to change while the query ran
heads/          states of source chains, by offset
copies/         states of the subtasks of components, by micro-batch
results.jsonl   the files that sinks have written, a line a micro-batch
spark/          Spark's own: offsets, commits; the states of subtasks, if they are in its store
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from oop_engine.core.errors import SnapshotError, UsageError
from oop_engine.core.graphs.fingerprint import described, difference
from oop_engine.core.graphs.graph import Plan
from oop_engine.spark.io.segments import Files, Segments
from oop_engine.spark.io.spool import SPOOLED
from oop_engine.spark.plan.pieces import Cut
from oop_engine.spark.state.ledger import NOTHING, Ledger, Mark
from oop_engine.spark.state.manifest import MANIFEST, Manifest
from oop_engine.spark.state.spark_log import METADATA, next_batch, offset_of
from oop_engine.spark.state.state_files import QUERY, SOURCE_CHAINS, SUBTASKS, StateFiles, version_of

__all__ = ["CHANGES", "Checkpoint"]

GROUPS_A_PARTITION = 2
_PARTS = {
    "graph": dict,
    "sizes": list,
    "components": list,
    "sources": dict,
    "batch": bool,
    "state": str,
    "hash": str,
}
_HASH = "polynomial"  # of keys: groups of another hash are others


_LEFT = ("spark", "heads", "copies")  # folders of a query that has begun
_RESULTS = "results.jsonl"
CHANGES = "changes.jsonl"


class Checkpoint:
    """The content of ``folder``, which need not be there yet.

    Its methods raise ``UsageError`` for a folder of another query, or of another version, and ``SnapshotError`` for
    files that are missing, damaged or exchanged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = folder / QUERY
        self._manifest = Manifest(folder)
        self._next = 0  # the micro-batch that is the next to run
        self._ledgers = {name: Ledger(folder / name) for name in (_RESULTS, CHANGES)}

    def check(self, plan: Plan, *, batch: bool = False, state: str = "files") -> None:
        """Make sure that the folder is not the checkpoint of another graph, or of the other way to run one.

        And that all is there, and as it was, with which the query goes on.  O(bytes of its states).
        """
        known, manifest = self._known(), Manifest.read(self.folder)
        if known is not None:
            self._check_known(known, plan, batch=batch, state=state)
        if manifest is not None:
            if known is None:
                raise self._missing(QUERY)
            self._manifest = manifest
            self._check_all()
        elif any((self.folder / name).exists() for name in _LEFT):
            raise self._missing(MANIFEST)

    def _check_known(self, known: dict[str, Any], plan: Plan, *, batch: bool, state: str) -> None:
        now, then = described(plan), known["graph"]
        changed = [name for name in [*now, *then] if now.get(name) != then.get(name)]
        if changed:
            name = changed[0]
            msg = f"it is of another graph; {difference(name, then.get(name), now.get(name))}: take another folder"
            raise self._error(msg)
        if known["batch"] != batch:
            was = "one batch" if known["batch"] else "micro-batches"
            msg = f"it is of a run in {was}, and batch={batch} would give its results again: take another folder"
            raise self._error(msg)
        if known["state"] != state:
            msg = f"it has states with state={known['state']!r}; got state={state!r}: leave it as it was"
            raise self._error(msg)

    def _check_all(self) -> None:
        manifest = self._manifest
        self._next = manifest.done + 1
        if manifest.done < 0 or _spark(METADATA) in manifest.files:  # else Spark has its folder elsewhere
            self._next = next_batch(self.folder / "spark", manifest.done)
        manifest.check(self._next)
        grown = [f"slices/{path.name}" for path in (self.folder / "slices").glob("*")]
        for name in {_RESULTS, CHANGES, *grown, *manifest.ledgers}:
            Ledger(self.folder / name).resume(manifest.ledgers.get(name, NOTHING))

    def query(self) -> str:
        """Return a name that no other query has; it is made when first asked for."""
        file = self.folder / "id"
        if not file.exists():
            self._write(file, uuid.uuid4().hex)
        return file.read_text()

    def sizes(self, partitions: int, groups: int | None) -> tuple[int, int]:
        """Return the numbers of partitions and key groups: those of the first start, if there was one."""
        known = self._known()
        if known is None:
            return partitions, groups or GROUPS_A_PARTITION * partitions
        partitions, then = known["sizes"]
        if groups not in (None, then):
            msg = f"it has {then} key groups; got groups={groups}: leave it out"
            raise self._error(msg)
        return partitions, then

    def halves(self) -> list[str] | None:
        """Return the aggregates with ``by`` that were split at the first start; None: there was none."""
        known = self._known()
        return None if known is None else list(known.get("halves", []))

    def keep(
        self,
        cut: Cut,
        sources: Mapping[str, Segments],
        sizes: tuple[int, int],
        *,
        batch: bool = False,
        state: str = "files",
        halves: Sequence[str] = (),
    ) -> dict[str, Segments]:
        """Write down how the query runs, or make sure that it runs as it did; clear away the remains of a kill.

        Returns ``sources``, with a place for the names of files that they find.
        """
        now: dict[str, Any] = {
            "graph": described(cut.plan),
            "sizes": sizes,
            "components": [list(component.nodes) for component in cut.components],
            "sources": {name: type(segments).__name__ for name, segments in sources.items()},
            "batch": batch,
            "state": state,
            "hash": _HASH,
            "halves": list(halves),
        }
        if (known := self._known()) is not None:
            self._compare(known, now)
        else:
            self._write(self._file, json.dumps(now, indent=1))
        if not self._manifest.fixed:
            self._manifest.fix(["id", QUERY, SPOOLED])
        for left in self.folder.glob("*/*/*.state.*"):
            left.unlink(missing_ok=True)
        return {name: self._looked(name, segments, batch=batch) for name, segments in sources.items()}

    def made(self) -> dict[str, int]:
        """Return the files that sinks have written in micro-batches that are over, with their bytes."""
        last: dict[int, dict[str, int]] = dict(self._ledgers[_RESULTS].lines())
        return {
            name: size for batch, files in last.items() if batch < self._next for name, size in files.items()
        }

    def begin(self, batch: int) -> dict[str, str]:
        """Write down that a micro-batch begins; return the names of the states it goes on from, by subtask."""
        assignments = sorted((self.folder / "maps").glob("*.json"), key=lambda path: int(path.stem))[-1:]
        names = [_spark(METADATA), _spark(offset_of(batch)), _spark(offset_of(batch - 1))]
        self._manifest.begin(batch, [*names, *(f"maps/{path.name}" for path in assignments)], self._marks())
        states = self._manifest.before(batch).items()
        return {owner.removeprefix(SUBTASKS): name for owner, name in states if owner.startswith(SUBTASKS)}

    def end(self, batch: int, states: Mapping[str, str], made: Mapping[str, int] | None) -> None:
        """Write down that the results of a micro-batch are in place: ``made`` are the files of its sink."""
        if made:
            self._ledgers[_RESULTS].append([batch, dict(made)])
        self._manifest.end(batch, states, self._marks())

    def changes(self) -> list[Any]:
        """Return the changes that were asked for so far, as they were written down."""
        return self._ledgers[CHANGES].lines()

    def change(self, frame: list[Any]) -> None:
        """Write down a change: for all micro-batches that begin from now on."""
        self._ledgers[CHANGES].append(frame)
        self._manifest.ledgers = self._marks()
        self._manifest.write()

    def state_of(self, subtask: str) -> bytes | None:
        """Return the state of a subtask, as the last micro-batch left it; None: it has none."""
        owner = f"{SUBTASKS}{subtask}"
        name = self._manifest.before(self._manifest.done + 1).get(owner)
        return None if name is None else StateFiles(str(self.folder)).load(owner, name)

    def _marks(self) -> dict[str, Mark]:
        return {name: ledger.mark() for name, ledger in self._ledgers.items()}

    def _looked(self, name: str, segments: Segments, *, batch: bool) -> Segments:
        """Store the names of a source's files, in the order in which they were found."""
        if not isinstance(segments, Files):
            return segments
        place = f"slices/{name}.jsonl"
        segments = replace(segments, known=str(self.folder / place))
        if batch:  # it reads all there is, each time
            Path(segments.known).unlink(missing_ok=True)
        self._ledgers[place] = Ledger(self.folder / place)
        chain = self._manifest.before(self._next).get(f"{SOURCE_CHAINS}{name}")
        segments.check(version_of(chain) if chain else 0)
        segments.look()
        return segments

    def _compare(self, then: dict[str, Any], now: dict[str, Any]) -> None:
        """Make sure that the operators are fused as they were, and that sources are of the kind they were."""
        if then["components"] != now["components"]:
            msg = "its operators were fused in another way: give the score and rates of then"
            raise self._error(msg)
        for name in [*now["sources"], *then["sources"]]:
            was, is_ = (known["sources"].get(name, "a DataFrame") for known in (then, now))
            if was != is_:
                msg = f"the feed of {name!r} was {was}, is {is_}: give it as then"
                raise self._error(msg)

    def _known(self) -> dict[str, Any] | None:
        if not self._file.exists():
            return None
        try:
            known = json.loads(self._file.read_text())
        except (OSError, ValueError) as error:
            msg = f"{self._file.name} cannot be read ({error}): take another folder"
            raise self._error(msg) from error
        if not isinstance(known, dict) or any(not isinstance(known.get(k), t) for k, t in _PARTS.items()):
            msg = f"{self._file.name} is not of this version, or of something else: take another folder"
            raise self._error(msg)
        return known

    def _missing(self, name: str) -> SnapshotError:
        msg = (
            f"checkpoint {self.folder}: {name} is missing, and the query has begun (or an earlier version of this "
            f"package made it): restore the file, or start with an empty folder"
        )
        return SnapshotError(msg)

    def _error(self, reason: str) -> UsageError:
        return UsageError(f"checkpoint {self.folder}: {reason}")

    def _write(self, file: Path, text: str) -> None:
        """Write a file whole or not at all."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            unfinished = file.with_name(f"{file.name}.part")
            unfinished.write_text(text)
            unfinished.replace(file)
        except OSError as error:
            msg = f"it cannot be written ({error}): take another folder"
            raise self._error(msg) from error


def _spark(name: str) -> str:
    return f"spark/{name}"
