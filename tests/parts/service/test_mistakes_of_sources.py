"""Mistakes of sources of others: each is an error that names source, method, what came and what must come."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oop_engine import ContractError, Graph, UsageError, serve
from oop_engine.errors import OperatorError
from oop_engine.operators import Meld
from tests.parts.service.mistakes import ROWS, SCHEMA, Shown, served, source

PLACE = "source 'log' (Mine): "
FORM = "async def read(self, position), with `yield data, position`"
PAIR = "read must yield data and the position behind them, a tuple of two; got "


def yields(*pieces: Any) -> Callable[..., AsyncIterator[Any]]:
    async def read(self: Any, position: Any) -> AsyncIterator[Any]:
        for piece in pieces:
            yield piece

    return read


def plain(self: Any, position: Any) -> Any:
    yield ROWS[0], 1


async def no_generator(self: Any, position: Any) -> Any:
    return [(row, number) for number, row in enumerate(ROWS)]


async def no_position(self: Any) -> AsyncIterator[Any]:
    yield ROWS[0], 1


BEFORE: dict[str, tuple[dict[str, Any], str]] = {
    "no read": ({}, f"{PLACE}has no read: write {FORM}"),
    "plain generator": ({"read": plain}, f"{PLACE}read must be {FORM}; got a plain generator (def)"),
    "no generator": ({"read": no_generator}, f"{PLACE}read must be {FORM}; got one without yield"),
    "no method": ({"read": ROWS}, f"{PLACE}read must be {FORM}; got [{{'ts': 3"),
    "no parameter": ({"read": no_position}, "got async def read() (too many positional arguments)"),
    "metadata": ({"read": yields(), "metadata": ["offset"]}, f"{PLACE}metadata must have the types of columns"),
    "adds": ({"read": yields(), "adds": "host"}, f"{PLACE}adds must be a tuple of column names; got 'host'"),
    "format": ({"read": yields(), "format": "jsn"}, "unknown message format 'jsn'"),
    "close": ({"read": yields(), "close": 5}, f"{PLACE}close must be a method, async def close(self); got 5"),
    "acknowledge": ({"read": yields(), "acknowledge": lambda self: None}, "acknowledge must be async def acknowledge("),
}  # fmt: skip


@pytest.mark.parametrize("name", BEFORE)
def test_a_form_is_refused_before_anything_is_read(name: str, tmp_path: Path) -> None:
    members, words = BEFORE[name]
    with pytest.raises(UsageError) as caught:
        served(tmp_path, of=source(**members))
    assert words in str(caught.value)


class Colour(Enum):
    RED = 1


@dataclasses.dataclass
class Offset:
    n: int


def within_itself() -> Any:
    found: list[Any] = []
    found.append(found)
    return found


POSITIONS: dict[str, tuple[Any, str]] = {
    "set": ({1}, "got {1} (set): give sorted(...)"),
    "moment": (datetime.datetime(2026, 1, 1), "(datetime): give value.isoformat()"),
    "bytes": (b"1", "got b'1' (bytes): give value.hex(), or a text"),
    "nan": (float("nan"), "got nan (float): give None, or a text"),
    "numpy": (np.int64(1), "(int64): give value.item()"),
    "numpy within": ({"a": [np.float64(1)]}, "(float64): give value.item()"),
    "array": ([np.zeros(2)], "(ndarray): give array.tolist()"),
    "path": (Path("a"), "(PosixPath): give str(path)"),
    "integers as keys": ({0: 1}, "whose keys are texts; got the key 0 (int): give str(key)"),
    "dataclass": (Offset(1), "got Offset(n=1) (Offset)"),
    "member": (Colour.RED, "(Colour)"),
    "object": (SimpleNamespace(), "(SimpleNamespace)"),
    "within itself": (within_itself(), "got list that is within itself, or too deep"),
    "none": (None, "is replayable, and yields None as the position behind its data"),
}
ONE = yields((ROWS[0], 1))
READ: dict[str, tuple[dict[str, Any], str]] = {
    "returns none": ({"read": lambda self, position: None}, f"read must be an asynchronous generator, {FORM}; got N"),
    "returns rows": ({"read": lambda self, position: ROWS}, f"read must be an asynchronous generator, {FORM}; got ["),
    "row alone": ({"read": yields(ROWS[0])}, f"{PAIR}{{'ts': 3, 'k': 'b'}} (dict)"),
    "three": ({"read": yields((ROWS[0], 1, 2))}, f"{PAIR}({{'ts': 3, 'k': 'b'}}, 1, 2) (tuple)"),
    "list": ({"read": yields([ROWS[0], 1])}, f"{PAIR}[{{'ts': 3, 'k': 'b'}}, 1] (list)"),
    "two letters": ({"read": yields("ab")}, f"{PAIR}'ab' (str)"),
    "nothing": ({"read": yields(None)}, f"{PAIR}None (NoneType)"),
    "swapped": ({"read": yields((1, ROWS[0]))}, "got 1, {'ts': 3, 'k': 'b'}: are they swapped?"),
    "text": ({"read": yields(("{}\n", 1)), "format": "jsonl"}, "of the format 'jsonl' data are bytes, or a list"),
    "row of a format": ({"read": ONE, "format": "jsonl"}, "yield bytes, or take format = 'rows'"),
    "rest": ({"read": ONE, "rest": lambda self: None}, "rest must return a list of (data, position); got None"),
    "rest without": ({"read": ONE, "rest": lambda self: ROWS}, "rest must return a list of (data, position); got ["),
    "acknowledge": ({"read": ONE, "acknowledge": lambda self, at: None}, "acknowledge must be asynchronous; got N"),
    "close": ({"read": ONE, "close": lambda self: None}, "close must be asynchronous; got None"),
    **{f"position: {name}": ({"read": yields((ROWS[0], at))}, words) for name, (at, words) in POSITIONS.items()},
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_data_and_positions_are_refused_as_they_come(name: str, tmp_path: Path) -> None:
    members, words = READ[name]
    with pytest.raises(ContractError) as caught:
        served(tmp_path, of=source(**members))
    assert str(caught.value).startswith(PLACE)
    assert words in str(caught.value)


def test_the_latest_position_is_awaited(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"latest must be asynchronous; got 3 \(int\)"):
        served(tmp_path, of=source(yields(), latest=lambda self: 3), start_from={"log": "latest"})


@pytest.mark.parametrize(
    "position", [(0, 1), defaultdict(int, {"a": 1}), 2**70, "x", {"a": [None, 1.5, True]}]
)
def test_values_of_json_are_positions(position: Any, tmp_path: Path) -> None:
    assert served(tmp_path, of=source(yields((ROWS[0], position)))) == ROWS[:1]


def test_a_position_that_changes_later_stays_as_it_was(tmp_path: Path) -> None:
    async def read(self: Any, position: Any) -> AsyncIterator[Any]:
        offsets = {"0": [0]}
        for number, row in enumerate(ROWS):
            offsets["0"][0] = number + 1
            yield row, offsets
            offsets["0"].append(99)
            offsets["0"].pop()

    made = source(read)
    kept: list[Any] = []
    made.acknowledge = lambda position: _note(kept, position)  # type: ignore[method-assign]
    served(tmp_path, of=made)
    assert kept[-1] == {"0": [len(ROWS)]}


async def _note(kept: list[Any], position: Any) -> None:
    kept.append(position)


def test_an_error_of_a_source_has_its_place_and_position(tmp_path: Path) -> None:
    async def read(self: Any, position: Any) -> AsyncIterator[Any]:
        yield ROWS[0], 7
        raise RuntimeError("gone")

    with pytest.raises(RuntimeError) as caught:
        served(tmp_path, of=source(read))
    assert str(caught.value) == "gone"
    assert caught.value.__notes__ == [
        f"{PLACE}raised by read, behind position 7",
        "read until then: source 'log' to 7",
    ]


def test_a_source_that_cancels_itself_has_failed(tmp_path: Path) -> None:
    async def read(self: Any, position: Any) -> AsyncIterator[Any]:
        yield ROWS[0], 7
        raise asyncio.CancelledError

    with pytest.raises(OperatorError, match="read, behind position 7: CancelledError"):
        served(tmp_path, of=source(read))


def test_a_class_and_one_object_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="got the class Mine: give an object of it"):
        served(tmp_path, of=type(source(yields())))
    graph, one = Graph("two"), source(yields())
    graph.sink("out", graph.add("both", Meld(2), graph.source("a", SCHEMA), graph.source("b", SCHEMA)))
    with pytest.raises(
        UsageError, match="source 'a' and source 'b' are one Mine: give each an object of its own"
    ):
        asyncio.run(serve(graph, {"a": one, "b": one}, {"out": Shown()}))
