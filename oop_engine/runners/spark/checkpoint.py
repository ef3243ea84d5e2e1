"""The checkpoint of a query: a folder in which it keeps where it is, and what it is.

query.json   the graph, a line a node, and how it was spread out; a checkpoint is of one graph
feeds/       what was spooled
heads/       states of heads, by offset
spark/       Spark's own: offsets, commits, the state of components
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from oop_engine.errors import UsageError
from oop_engine.graph import Node, Plan

__all__ = ["Checkpoint"]

GROUPS_A_PARTITION = 2


class Checkpoint:
    """What is in ``folder``, which need not be there yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = folder / "query.json"

    def check(self, plan: Plan) -> None:
        """Raise ``UsageError`` if the folder is the checkpoint of another graph."""
        known = self._known()
        if known is None:
            return
        now, then = _described(plan), known["graph"]
        changed = [name for name in [*now, *then] if now.get(name) != then.get(name)]
        if changed:
            name = changed[0]
            was = then.get(name, ["not there"])[0]
            msg = (
                f"checkpoint {self.folder}: it is of another graph; node {name!r} was {was!r} and is "
                f"{now.get(name, ['not there'])[0]!r} (or has other parameters): take another folder, or that graph"
            )
            raise UsageError(msg)

    def sizes(self, partitions: int, groups: int | None, plan: Plan) -> tuple[int, int]:
        """Return the numbers of partitions and key groups: those of the first start.

        They are written down with the graph.  Raises ``UsageError`` if other ``groups`` are asked for now.
        """
        known = self._known()
        if known is None:
            sizes = [partitions, groups or GROUPS_A_PARTITION * partitions]
            self.folder.mkdir(parents=True, exist_ok=True)
            unfinished = self._file.with_suffix(".part")
            unfinished.write_text(json.dumps({"graph": _described(plan), "sizes": sizes}, indent=1))
            unfinished.replace(self._file)
            return sizes[0], sizes[1]
        partitions, then = known["sizes"]
        if groups not in (None, then):
            msg = f"checkpoint {self.folder}: it has {then} key groups; got groups={groups}: leave it out"
            raise UsageError(msg)
        return partitions, then

    def _known(self) -> dict[str, Any] | None:
        if not self._file.exists():
            return None
        try:
            known: dict[str, Any] = json.loads(self._file.read_text())
        except ValueError as error:
            msg = f"checkpoint {self.folder}: {self._file.name} cannot be read ({error}): use another folder"
            raise UsageError(msg) from error
        return known


def _described(plan: Plan) -> dict[str, list[str]]:
    return {
        node.name: [node.describe(), " ".join(map(str, node.inputs)), _digest(node)] for node in plan.nodes
    }


def _digest(node: Node) -> str:
    """Return a number that tells whether a node has the parameters it had."""
    from pyspark import cloudpickle

    what = cloudpickle.dumps(node.operator) if node.operator is not None else str(node.schema).encode()
    return hashlib.sha256(what).hexdigest()[:16]
