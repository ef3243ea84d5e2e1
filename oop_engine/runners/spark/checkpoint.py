"""The checkpoint of a query: a folder in which it keeps where it is, and what it is.

id           what sinks know the query by
query.json   the graph, a line a node, and how it was spread out; a checkpoint is of one graph
feeds/       what was spooled
files/       the names of files of a folder, in the order in which they are read
maps/        which shard has which key groups, by version
heads/       states of heads, by offset
copies/      states of the copies of components, by micro-batch
spark/       Spark's own: offsets, commits; the states of copies, if they are in its store
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oop_engine.errors import UsageError
from oop_engine.graph import Node, Plan
from oop_engine.runners.spark.fingerprint import fingerprint
from oop_engine.runners.spark.slices import Files, Slices
from oop_engine.runners.spark.stages import Cut
from oop_engine.runners.spark.states import QUERY

__all__ = ["Checkpoint"]

GROUPS_A_PARTITION = 2
_PARTS = {
    "graph": dict,
    "sizes": list,
    "components": list,
    "sources": dict,
    "files": dict,
    "batch": bool,
    "state": str,
}


class Checkpoint:
    """What is in ``folder``, which need not be there yet.

    Its methods raise ``UsageError`` for what cannot be read, and for what is of another query.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = folder / QUERY

    def check(self, plan: Plan, *, batch: bool = False, state: str = "files") -> None:
        """Make sure that the folder is not the checkpoint of another graph, or of the other way to run one."""
        known = self._known()
        if known is None:
            return
        now, then = _described(plan), known["graph"]
        changed = [name for name in [*now, *then] if now.get(name) != then.get(name)]
        if changed:
            name = changed[0]
            msg = f"it is of another graph; {_difference(name, then.get(name), now.get(name))}: take another folder"
            raise self._error(msg)
        if known["batch"] != batch:
            was = "one batch" if known["batch"] else "micro-batches"
            msg = f"it is of a run in {was}, and batch={batch} would give its results again: take another folder"
            raise self._error(msg)
        if known["state"] != state:
            msg = f"it has states with state={known['state']!r}; got state={state!r}: leave it as it was"
            raise self._error(msg)

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

    def keep(
        self,
        cut: Cut,
        sources: Mapping[str, Slices],
        sizes: tuple[int, int],
        *,
        batch: bool = False,
        state: str = "files",
    ) -> None:
        """Write down how the query runs, or make sure that it runs as it did; clear away what a kill left."""
        now: dict[str, Any] = {
            "graph": _described(cut.plan),
            "sizes": sizes,
            "components": [list(component.nodes) for component in cut.components],
            "sources": {name: type(slices).__name__ for name, slices in sources.items()},
            "files": {
                name: [path.name for path in s.paths()] for name, s in sources.items() if isinstance(s, Files)
            },
            "batch": batch,
            "state": state,
        }
        if (known := self._known()) is not None:
            self._compare(known, now)
        self._write(self._file, json.dumps(now, indent=1))
        for left in self.folder.glob("*/*/*.state.*"):
            left.unlink(missing_ok=True)

    def _compare(self, then: dict[str, Any], now: dict[str, Any]) -> None:
        """Make sure that the operators are fused as they were, and that sources have what they had."""
        if then["components"] != now["components"]:
            msg = "its operators were fused in another way: give the score and rates of then"
            raise self._error(msg)
        for name in [*now["sources"], *then["sources"]]:
            was, is_ = (known["sources"].get(name, "a DataFrame") for known in (then, now))
            if was != is_:
                msg = f"the feed of {name!r} was {was}, is {is_}: give it as then"
                raise self._error(msg)
        for name, files in then["files"].items():
            if now["files"][name][: len(files)] != files:
                msg = (
                    f"the first {len(files)} files of {name!r} are not those of then, and it knows by their number "
                    f"what was read: leave files where they are, and give new ones names that sort behind"
                )
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

    def _error(self, what: str) -> UsageError:
        return UsageError(f"checkpoint {self.folder}: {what}")

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


def _described(plan: Plan) -> dict[str, list[str]]:
    return {
        node.name: [_words(node), " ".join(map(str, node.inputs)), fingerprint(node.operator)]
        for node in plan.nodes
    }


def _words(node: Node) -> str:
    return node.describe() if node.schema is None else f"{node.describe()} of {node.schema}"


def _difference(name: str, was: list[str] | None, now: list[str] | None) -> str:
    """Tell how two descriptions of a node differ: in what can be seen, or else in what cannot."""
    if was is None or now is None:
        there = (was or now or [""])[0]
        return f"node {name!r} {'was not' if was is None else 'is no longer'} there: {there}"
    if was[0] != now[0]:
        return f"node {name!r} was {was[0]} and is {now[0]}"
    if was[1] != now[1]:
        return f"node {name!r}, {now[0]}, was fed by {was[1]} and is by {now[1]}"
    return f"node {name!r}, {now[0]}, has other parameters or functions than it had"
