"""Stored states: operators go on from them as if they had never been away.

``states.msgpack`` has the states of ``midway`` of each example, as the version wrote them that its key names.  To add
those of the version that is imported: ``python -m tests.parts.operators.test_stored_states VERSION``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pyarrow as pa
import pytest

from oop_engine import GroupWise, Linear, Operator, Page, Schema, Watermark
from oop_engine.aggregates import Last
from oop_engine.operators import (
    Avg,
    Band,
    Count,
    Distinct,
    Emit,
    Finalize,
    MultiJoin,
    OAJoin,
    Session,
    Sliding,
    Sum,
    Tumbling,
    WindowAggregate,
)
from oop_engine.thesis import Consolidate, PartialAggregate
from oop_engine.triggers import AfterCount
from oop_engine.windows import TupleBased

STATES = Path(__file__).parent / "states.msgpack"
COLUMNS = {"ts": pa.int64(), "key": pa.string(), "v": pa.int64()}
PLAIN = Schema(COLUMNS, "ts", "s")
REVISED = Schema({**COLUMNS, "change": pa.int8()}, "ts", "s", change="change")
OTHER = Schema({"at": pa.int64(), "key2": pa.string(), "w": pa.int64()}, "at", "s")
THIRD = Schema({"on": pa.int64(), "key3": pa.string(), "z": pa.int64()}, "on", "s")
SUMS = {"n": Count(), "sum": Sum("v"), "mean": Avg("v")}
PARTIALS = PartialAggregate(Sliding(range=20, slide=10), SUMS, ("key",))

EXAMPLES: dict[str, tuple[Operator, tuple[Schema, ...]]] = {
    "windows": (WindowAggregate(Sliding(range=20, slide=10), SUMS, by=("key",)), (PLAIN,)),
    "many-windows": (
        WindowAggregate({"ten": Tumbling(10), "six": Tumbling(6)}, {**SUMS, "last": Last("v")}, by=("key",)),
        (PLAIN,),
    ),
    "sessions": (WindowAggregate(Session(gap=4), SUMS, by=("key",)), (PLAIN,)),
    "windows-revised": (
        WindowAggregate(Tumbling(10), {"n": Count(), "sum": Sum("v")}, by=("key",)),
        (REVISED,),
    ),
    "ranked": (
        WindowAggregate(
            {name: TupleBased(rows, 2, order="time") for name, rows in (("four", 4), ("two", 2))},
            {"n": Count(), "sum": Sum("v")},
        ),
        (PLAIN,),
    ),
    "ranked-by-key": (WindowAggregate(TupleBased(2, 1, order="time"), {"n": Count()}, by=("key",)), (PLAIN,)),
    "versions": (
        WindowAggregate(
            Sliding(range=20, slide=10),
            {"n": Count(), "sum": Sum("v")},
            ("key",),
            emit=Emit(late=AfterCount(2)),
        ),
        (PLAIN,),
    ),
    "consolidate": (
        Consolidate(Sliding(range=20, slide=10), SUMS, ("key",), tuples=PLAIN),
        PARTIALS.output_schemas((PLAIN,)),
    ),
    "distinct": (Distinct(), (PLAIN,)),
    "distinct-revised": (Distinct(), (REVISED,)),
    "finalize": (Finalize(), (REVISED,)),
    "join": (OAJoin([("key", "key2")], Band(5, 5)), (PLAIN, OTHER)),
    "left-join": (OAJoin([("key", "key2")], Band(5, 5), how="left"), (PLAIN, OTHER)),
    "many-joins": (
        MultiJoin("one", {"other": Band(5, 5), "third": Band(5, 5)}, [("key", "key2", "key3")]),
        (PLAIN, OTHER, THIRD),
    ),
}


def page(schema: Schema, times: list[int]) -> Page:
    rest = {
        name: ["abc"[ts % 3] for ts in times] if kind == pa.string() else [1] * len(times)
        for name, kind in zip(schema.names, schema.fields.types, strict=True)
        if name != schema.progressing
    }
    return Page.of(schema, {schema.progressing: times} | rest)


def fed(name: str, times: list[int], bound: int) -> Iterator[tuple[int, Any]]:
    """Yield what each input gets: tuples, a bound of one key, and one of all keys."""
    operator, schemas = EXAMPLES[name]
    for port, schema in enumerate(schemas):
        if operator is EXAMPLES["consolidate"][0]:
            partial = PARTIALS.opened(PLAIN)
            yield from ((port, m) for _, m in [*partial.on_page(0, page(PLAIN, times))])
            yield from ((port, m) for _, m in partial.on_punctuation(0, Linear(bound)))
            continue
        if operator is EXAMPLES["versions"][0]:
            yield port, page(schema, times[:4])
            yield port, Watermark(Linear(bound + 12))
            times = times[4:]
        yield port, page(schema, times)
        yield port, GroupWise.of({schema.names[1]: ["a"]}, [bound + 3])
        yield port, Linear(bound)


def answers(operator: Operator, messages: Iterator[tuple[int, Any]]) -> list[str]:
    found = []
    for port, message in messages:
        handler = operator.on_page if isinstance(message, Page) else operator.on_punctuation
        for _, answer in [*handler(port, message)]:  # type: ignore[arg-type]
            found.append(str(answer.to_pylist() if isinstance(answer, Page) else answer))
    return found


def midway(name: str) -> Operator:
    operator, schemas = EXAMPLES[name]
    opened = operator.opened(*schemas)
    answers(opened, fed(name, [3, 12, 17, 25, 4, 17, 23], 15))
    return opened


def rest(name: str) -> Iterator[tuple[int, Any]]:
    yield from fed(name, [18, 26, 31, 19], 28)
    yield from fed(name, [40], 90)


def of_versions() -> dict[str, dict[str, bytes]]:
    found: dict[str, dict[str, bytes]] = msgpack.unpackb(STATES.read_bytes()) if STATES.exists() else {}
    return found


@pytest.mark.parametrize(
    ("version", "name"), [(v, name) for v, states in of_versions().items() for name in states]
)
def test_an_operator_goes_on_from_a_stored_state(version: str, name: str) -> None:
    never_away, operator = midway(name), midway(name)
    operator.restore(of_versions()[version][name])
    assert answers(operator, rest(name)) == answers(never_away, rest(name))
    found, wanted = operator.state(), never_away.state()
    assert found._replace(nbytes=0) == wanted._replace(nbytes=0)
    assert found.nbytes <= 1.1 * wanted.nbytes  # lists of rows have room to grow


def main(version: str) -> None:
    states = {name: midway(name).snapshot() for name in EXAMPLES}
    STATES.write_bytes(msgpack.packb(of_versions() | {version: states}))


if __name__ == "__main__":
    main(sys.argv[1])
