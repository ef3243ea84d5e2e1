"""Mistakes of sinks of others: each is an error that names sink, method, what came and what must come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oop_engine import ContractError, Graph, Page, UsageError, serve
from oop_engine.extend import LiveSink
from tests.parts.service.mistakes import SCHEMA, Shown, graph_of, served, sink

PLACE = "sink 'out' (Mine): "


async def one_parameter(self: Any, page: Page) -> None: ...


async def yielding(self: Any, epoch: int, page: Page) -> AsyncIterator[Any]:
    yield page


def of_pages(page: Page) -> Iterator[Any]:
    yield page


async def of_pages_too(page: Page) -> AsyncIterator[Any]:
    yield page


class NoPrepare(LiveSink):
    async def write(self, epoch: int, page: Page) -> None: ...

    async def commit(self, prepared: Any) -> None: ...


NO_YIELD = "a function of a page does its work when it is called; got a generator"
BEFORE: dict[str, tuple[Any, str]] = {
    "class": (Shown, "got the class Shown: give an object of it, Shown(...)"),
    "another class": (list, "got the class list: give a function of a page"),
    "none": (None, "must be a LiveSink or a function of a page; got NoneType"),
    "list": ([], "must be a LiveSink or a function of a page; got list"),
    "no write": (LiveSink(), "has no write: write async def write(self, epoch, page)"),
    "one parameter": (sink(write=one_parameter), f"{PLACE}write must be async def write(self, epoch, page); got async"),
    "yields": (sink(write=yielding), f"{PLACE}write must be async def write(self, epoch, page), without yield"),
    "no method": (sink(write=5), f"{PLACE}write must be a method, async def write(self, epoch, page); got 5"),
    "no prepare": (NoPrepare(), "has commit and no prepare, so commit is never called: write async def prepare("),
    "failures": (sink(failures=[OSError]), f"{PLACE}failures must be a tuple of classes of errors, such as (OSError,)"),
    "name of failures": (sink(failures="OSError"), f"{PLACE}failures must be a tuple of classes of errors"),
    "function without": (lambda: None, "<lambda> must be a function of a page; got def <lambda>()"),
    "function of two": (lambda epoch, page: None, "(missing a required argument: 'page')"),
    "generator": (of_pages, NO_YIELD),
    "asynchronous generator": (of_pages_too, NO_YIELD),
}  # fmt: skip


@pytest.mark.parametrize("name", BEFORE)
def test_a_form_is_refused_before_anything_is_written(name: str) -> None:
    given, words = BEFORE[name]
    with pytest.raises(UsageError) as caught:
        asyncio.run(serve(graph_of(), {"log": []}, {"out": given}))
    assert words in str(caught.value)


PREPARED: dict[str, tuple[Any, str]] = {
    "set": ({1}, "got {1} (set): give sorted(...)"),
    "path": (Path("a"), "(PosixPath): give str(path)"),
    "bytes": (b"a", "(bytes): give value.hex(), or a text"),
    "infinite": (float("inf"), "got inf (float)"),
    "integers as keys": ({1: 2}, "got the key 1 (int): give str(key)"),
    "numpy": (np.int64(1), "(int64): give value.item()"),
    "object": (SimpleNamespace(), "(SimpleNamespace)"),
    "page": (Page.of(SCHEMA, {"ts": [1], "k": ["a"]}), "got Page(1 rows of ts, k) (Page)"),
}


@pytest.mark.parametrize("name", PREPARED)
def test_what_was_prepared_must_be_a_value_of_json(name: str, tmp_path: Path) -> None:
    value, words = PREPARED[name]

    async def prepare(self: Any, epoch: int) -> Any:
        return value

    with pytest.raises(ContractError) as caught:
        served(tmp_path, into=sink(prepare=prepare))
    assert str(caught.value).startswith(f"{PLACE}the value of prepare must be a value of JSON")
    assert words in str(caught.value)


def test_a_sink_without_commit_prepares_nothing(tmp_path: Path) -> None:
    class NoCommit(LiveSink):
        async def write(self, epoch: int, page: Page) -> None: ...

        async def prepare(self, epoch: int) -> Any:
            return "file"

    with pytest.raises(
        ContractError, match="prepare returns 'file' and commit does nothing, so results stay hidden"
    ):
        served(tmp_path, into=NoCommit())


METHODS = {"open": 3, "write": 2, "prepare": 1, "commit": 1, "close": 0}


@pytest.mark.parametrize("method", METHODS)
def test_methods_are_awaited(method: str, tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=f"{method} must be asynchronous; got None"):
        served(tmp_path, into=sink(**{method: lambda self, *given: None}))


@pytest.mark.parametrize("method", METHODS)
def test_errors_have_sink_and_method(method: str, tmp_path: Path) -> None:
    async def fails(self: Any, *given: Any) -> None:
        raise RuntimeError("disk")

    with pytest.raises(RuntimeError) as caught:
        served(tmp_path, into=sink(**{method: fails}))
    assert str(caught.value) == "disk"
    assert any(
        note.startswith("sink 'out'") and f"raised by {method}" in note for note in caught.value.__notes__
    )


def test_a_sink_for_two_names_is_refused() -> None:
    graph, one = Graph("two"), Shown()
    stream = graph.source("log", SCHEMA)
    graph.sink("a", stream)
    graph.sink("b", stream)
    with pytest.raises(UsageError, match="sink 'a' and sink 'b' are one Shown"):
        asyncio.run(serve(graph, {"log": []}, {"a": one, "b": one}))
