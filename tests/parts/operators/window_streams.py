"""Streams to try window operators with: rows, page cuts, and promises that hold.

A promise is drawn from the rows that are still to come, so that the stream is grammatical:
linear, group-wise on any columns, and joint.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from oop_engine import FOREVER, GroupWise, Joint, Linear, Page, Schema
from oop_engine.extend import Message
from oop_engine.testing import Driver

__all__ = ["MOVE", "SCHEMA", "Checked", "events", "rows"]

Row = dict[str, Any]
SCHEMA = Schema(
    {"ts": pa.int64(), "k": pa.string(), "j": pa.int32(), "v": pa.int64(), "x": pa.float64()}, "ts", "s"
)
MOVE = "move"
_STEP = st.sampled_from([3, 0, 1, 2, 4, 5, 6])  # the simplest is not 0: with that a stream would never end


def rows(times: st.SearchStrategy[int] | None = None, size: int = 25) -> st.SearchStrategy[list[Row]]:
    """Return rows of ``SCHEMA`` in any order."""
    row = st.fixed_dictionaries(
        {
            "ts": times if times is not None else st.integers(-20, 60),
            "k": st.sampled_from(["a", "b", None]),
            "j": st.integers(0, 2),
            "v": st.none() | st.integers(-9, 9),
            "x": st.none() | st.sampled_from([-1.5, 0.0, 0.25, 3.0, float("nan")]),
        }
    )
    return st.lists(row, max_size=size)


@st.composite
def events(
    draw: st.DrawFn, of: list[Row], schema: Schema = SCHEMA, kinds: str = "plgjm"
) -> list[Message | str]:
    """Return ``of`` cut into pages, with promises between them.

    ``kinds``: p another cut of pages, l linear, g group-wise, j joint promises, m snapshots.
    """
    said: list[Message | str] = []
    promised: dict[Any, int] = {}
    at = 0
    while at < len(of):
        step = draw(_STEP)
        said.append(page(of[at : at + step], schema))
        at += step
        for kind in draw(st.lists(st.sampled_from(kinds), max_size=2)):
            said += [m for p in _promise(draw, kind, of[at:], of) if (m := _news(p, promised)) is not None]
    return said


def page(of: list[Row], schema: Schema = SCHEMA) -> Page:
    return Page.of(schema, {name: [row[name] for row in of] for name in schema.names})


def _promise(draw: st.DrawFn, kind: str, coming: list[Row], all_rows: list[Row]) -> list[Message | str]:
    slack = draw(st.sampled_from([0, 0, 1, 7]))
    lowest = min((row["ts"] for row in coming), default=100)
    match kind:
        case "l":
            return [Linear(lowest - slack)]
        case "g":
            names = draw(st.sampled_from([("k",), ("j",), ("k", "j"), ("j", "k"), ("x",)]))
            return [_group_wise(draw, names, coming, slack)]
        case "j":
            return [_joint(draw, coming)]
        case "m":
            return [MOVE]
    return []


def _news(promise: Message | str, promised: dict[Any, int]) -> Message | str | None:
    """Return what a group-wise promise adds to the earlier ones: none is taken back."""
    if not isinstance(promise, GroupWise):
        return promise
    keys = [
        tuple(sorted(row.items())) for row in promise.groups.to_pylist()
    ]  # in whichever order it names them
    below = promise.below.tolist()
    new = [b > promised.get(key, -(2**63)) for key, b in zip(keys, below, strict=True)]
    promised.update({key: b for key, b, more in zip(keys, below, new, strict=True) if more})
    return promise.filter(np.array(new)) if any(new) else None


def _group_wise(draw: st.DrawFn, names: tuple[str, ...], coming: list[Row], slack: int) -> GroupWise:
    values: dict[str, list[Any]] = {"k": ["a", "b", "never", None], "j": [0, 1, 2, 9], "x": [0.25]}
    keys = draw(
        st.lists(st.tuples(*(st.sampled_from(values[n]) for n in names)), min_size=1, max_size=3, unique=True)
    )
    below = []
    for key in keys:
        times = [r["ts"] for r in coming if all(r[n] == v for n, v in zip(names, key, strict=True))]
        below.append(min(times) - slack if times else draw(st.sampled_from([FOREVER, 100])))
    columns = zip(*keys, strict=True)
    arrays = [pa.array(c, SCHEMA.type_of(n)) for n, c in zip(names, columns, strict=True)]
    return GroupWise(pa.RecordBatch.from_arrays(arrays, names=list(names)), np.array(below, np.int64))


def _joint(draw: st.DrawFn, coming: list[Row]) -> Joint:
    bound = draw(st.integers(0, 4))
    times = [row["ts"] for row in coming if row["j"] < bound]
    if not times and draw(st.booleans()):
        return Joint.of(j=bound)
    return Joint.of(j=bound, ts=min(times, default=100))


class Checked(Driver):
    """A driver that refuses results which contradict an earlier promise, and idle promises."""

    def play(self, said: list[Message | str]) -> Checked:
        for message in said:
            if message == MOVE:
                self.move()
            else:
                self.feed(0, message)
        self.feed(0, "end")
        self._check()
        return self

    def _check(self) -> None:
        linear, groups, joints = -(2**63), {}, []
        for message in self.out[0]:
            match message:
                case Page():
                    names = message.schema.names
                    for time, row in zip(message.times.tolist(), message.to_pylist(), strict=True):
                        assert time >= linear, (row, linear)
                        assert not any(all(row[a] < b for a, b in joint.bounds) for joint in joints)
                        for (attributes, key), below in groups.items():
                            if set(attributes) <= set(names) and tuple(row[a] for a in attributes) == key:
                                assert time >= below, (row, below)
                case Linear(below):
                    assert below > linear
                    linear = below
                case GroupWise():
                    for row, below in zip(message.groups.to_pylist(), message.below.tolist(), strict=True):
                        key = (message.attributes, tuple(row.values()))
                        assert below > max(groups.get(key, linear), linear)
                        groups[key] = below
                case Joint():
                    joints.append(message)
        assert linear == FOREVER
