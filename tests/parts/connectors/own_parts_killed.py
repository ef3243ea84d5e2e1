"""The parts of the pages about parts and operators of one's own in services that are killed, again and again.

``python -m tests.parts.connectors.own_parts_killed FOLDER``: the source and the sink of the page, for each point and
for each kind of part, in processes that SIGKILL themselves there, each time later, until one comes to its end; the
rows that the sink then shows have to be the results, each once.
"""

from __future__ import annotations

import ast
import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from oop_engine import Graph, UsageError
from oop_engine.operators import BoundedDisorder, Punctuate

DOCS = Path(__file__).parents[3] / "docs"
POINTS = ("read", "before write", "before prepare", "prepare", "before commit", "commit")
"""Where it dies: a method of source or sink, before it does something or behind it."""
PART_POINTS = ("read", "prepare")
"""Where a graph with a part of one's own dies: between checkpoints, and in one."""
MOST = 40


def defined(page: str, names: set[str]) -> dict[str, Any]:
    """Return the functions, classes and imports of a page, and the values of some names; nothing of it runs."""
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
    tree = ast.parse("\n".join(blocks))
    kept = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    tree.body = [
        each
        for each in tree.body
        if isinstance(each, kept)
        or (isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name) and each.targets[0].id in names)
    ]  # fmt: skip
    found: dict[str, Any] = {"__name__": "page"}
    exec(compile(tree, page, "exec", dont_inherit=True), found)  # a page of this project
    return found


def parts() -> dict[str, Any]:
    """Return all that the page about parts defines, and graphs with those of the page about operators."""
    page = defined("parts-of-your-own.md", {"schema", "rows", "any_bit", "PARTS"})
    others = defined("operators-of-your-own.md", set())

    def held() -> Graph:
        graph = Graph("held")
        edge = graph.add("edge", Punctuate(BoundedDisorder(5)), graph.source("log", page["schema"]))
        graph.sink("out", graph.add("hold", others["Hold"](), edge))
        return graph

    page["PARTS"] |= {"an operator": held, "folded windows": lambda: page["query"](windows=others["Pairs"]())}
    return page


def service(page: dict[str, Any], graph: Any, folder: Path, point: str, at: int) -> Any:
    """Return a service that dies when it is at ``point`` for the ``at``-th time."""
    left = at

    def pass_by(here: str) -> None:
        nonlocal left
        left -= here == point
        if here == point and not left:
            os.kill(os.getpid(), signal.SIGKILL)

    source: Any = page["Rows"]
    sink: Any = page["Lines"]

    class Source(source):  # type: ignore[misc]
        async def read(self, position: Any) -> AsyncIterator[tuple[Any, Any]]:
            async for data, behind in super().read(position):
                yield data, behind
                pass_by("read")
                await asyncio.sleep(0.01)  # several checkpoints

    class Sink(sink):  # type: ignore[misc]
        async def write(self, epoch: int, rows: Any) -> None:
            pass_by("before write")
            await super().write(epoch, rows)

        async def prepare(self, epoch: int) -> Any:
            pass_by("before prepare")
            prepared = await super().prepare(epoch)
            pass_by("prepare")
            return prepared

        async def commit(self, prepared: Any) -> None:
            pass_by("before commit")
            await super().commit(prepared)
            pass_by("commit")

    sources, sinks = {"log": Source(page["rows"])}, {"out": Sink(folder / "out")}
    return page["serve"](graph(), sources, sinks, checkpoint=folder / "state", every_s=0.02)


def lives(page: dict[str, Any], graph: Any, folder: Path, point: str) -> int:
    """Let processes follow each other until one ends; return how many were killed."""
    folder.mkdir(parents=True)
    for life in range(1, MOST):
        if not (child := os.fork()):
            with suppress(UsageError):  # the life before was killed behind its last commit
                asyncio.run(service(page, graph, folder, point, life))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0, f"life {life} failed"
            return life - 1
    raise AssertionError(f"killed {MOST} times")


def shown(page: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Return the rows that the sink shows, in their net content."""
    files = [file for file in (folder / "out").glob("*.jsonl") if file.name[0] != "."]
    return page["net"]([json.loads(line) for file in files for line in file.read_text().splitlines()])


def main(folder: Path) -> None:
    page, killed = parts(), {}
    for part, graph in page["PARTS"].items():
        expected = page["answer"](graph())  # kernels are loaded once, here
        for point in POINTS if part == "source and sink" else PART_POINTS:
            place = folder / part / point
            killed[f"{part}, {point}"] = lives(page, graph, place, point)
            found = shown(page, place)
            assert found == expected, f"{part}, killed at {point}: {found}, not {expected}"
    print(json.dumps(killed))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
