"""The source and the sink of ``docs/parts-of-your-own.md`` in a service that is killed, again and again.

``python -m tests.parts.connectors.own_parts_killed FOLDER``: for each point a process that
SIGKILLs itself there, each time later, until one comes to its end; the rows that the sink then shows have to be the
results, each once.
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

from oop_engine import UsageError, run, serve

PAGE = Path(__file__).parents[3] / "docs" / "parts-of-your-own.md"
POINTS = ("read", "before write", "before prepare", "prepare", "before commit", "commit")
"""Where it dies: a method of source or sink, before it does something or behind it."""
MOST = 40


def parts() -> dict[str, Any]:
    """Return what the page defines up to its sink, with its data; nothing of the page runs."""
    blocks = re.findall(
        r"```python\n(.*?)```", PAGE.read_text("utf-8").partition("\n## A policy")[0], re.DOTALL
    )
    tree, names = ast.parse("\n".join(blocks)), {"schema", "rows"}
    kept = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    tree.body = [
        each
        for each in tree.body
        if isinstance(each, kept)
        or (isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name) and each.targets[0].id in names)
    ]  # fmt: skip
    found: dict[str, Any] = {"__name__": "page"}
    exec(compile(tree, str(PAGE), "exec"), found)  # a page of this project
    return found


def service(page: dict[str, Any], folder: Path, point: str, at: int) -> Any:
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
    return serve(page["query"](), sources, sinks, checkpoint=folder / "state", every_s=0.02)


def lives(page: dict[str, Any], folder: Path, point: str) -> int:
    """Let processes follow each other until one ends; return how many were killed."""
    for life in range(1, MOST):
        if not (child := os.fork()):
            with suppress(UsageError):  # the life before was killed behind its last commit
                asyncio.run(service(page, folder, point, life))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0, f"life {life} failed"
            return life - 1
    raise AssertionError(f"killed {MOST} times")


def main(folder: Path) -> None:
    page = parts()
    expected = page["content"](
        run(page["query"](), {"log": page["rows"]}).table
    )  # kernels are loaded once, here
    killed = {point: lives(page, folder / point, point) for point in POINTS}
    for point in POINTS:
        files = (folder / point / "out").glob("*.jsonl")
        shown = [
            json.loads(line)
            for file in files
            if file.name[0] != "."
            for line in file.read_text().splitlines()
        ]
        assert sorted(shown, key=str) == expected, f"killed at {point}: {shown}"
    print(json.dumps(killed))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
