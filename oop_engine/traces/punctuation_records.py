"""Punctuation in a file: a record is decoded into a punctuation of the right shape, or it is an error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.punctuation import (
    FOREVER,
    NEVER,
    GroupWise,
    Joint,
    Linear,
    Punctuation,
    Watermark,
    arriving,
)
from oop_engine.core.values.arrays import converted
from oop_engine.core.values.kinds import converts
from oop_engine.traces.formats.json_rows import object_of
from oop_engine.traces.formats.repeated_keys import once

__all__ = [
    "fit_punctuation",
    "is_punctuation",
    "punctuation_of",
    "punctuation_of_body",
    "punctuation_of_json",
]

_MOST_NAMES = 1000


def punctuation_of(frame: list[Any]) -> Punctuation:
    """Return the punctuation in a frame (see ``msgpack_frames``); raises ``ValueError`` if there is none."""
    match frame:
        case ["arrival", arrival, ["linear" | "group-wise" | "joint" | "watermark", *_] as inside]:
            return arriving(punctuation_of(inside), _integer("arrival", arrival))
        case ["linear", below]:
            return Linear(_bound(below))
        case ["group-wise", bytes(groups), bytes(below)]:
            batches = list(pa.ipc.open_stream(groups))
            if len(batches) != 1:
                msg = f"a group-wise punctuation must have one batch of groups; got {len(batches)}"
                raise ValueError(msg)
            return _group_wise(batches[0], np.frombuffer(below, "<i8").astype(np.int64))
        case ["joint", list(bounds)]:
            return _joint(bounds)
        case ["watermark", ["linear" | "group-wise", *_] as body]:
            return _soft(punctuation_of(body))
    msg = f"unknown frame {str(frame[:1])[:40]}"
    raise ValueError(msg)


def punctuation_of_json(line: bytes, columns: pa.Schema) -> Punctuation:
    """Return the punctuation in a line; raises ``ValueError`` if there is none."""
    if isinstance(problem := object_of(line), str):
        msg = f"punctuation: {problem}"
        raise ValueError(msg)
    body = json.loads(line, object_pairs_hook=once)["punctuation"]
    return punctuation_of_body(body, columns)


def is_punctuation(record: Mapping[str, Any], names: Sequence[str]) -> bool:
    """Return whether an object is a punctuation, not a row of the columns ``names``.

    Its only key is ``"punctuation"`` then.  Where a column has that name, too, the value is an object, as none has.
    """
    if len(record) != 1 or "punctuation" not in record:
        return False
    return "punctuation" not in names or isinstance(record["punctuation"], dict)


def punctuation_of_body(body: Any, columns: pa.Schema) -> Punctuation:
    """Return the punctuation that an object describes, as JSON has it; raises ``ValueError`` if there is none."""
    if (punctuation := _of_body(body, columns)) is not None:
        arrival = body.get("arrival")
        return punctuation if arrival is None else arriving(punctuation, _integer("arrival", arrival))
    msg = (
        'a punctuation must read like {"below": 60}, {"groups": {"src": ["a", "b"]}, "below": [60, 120]}, '
        f'{{"joint": {{"ts": 10}}}} or {{"watermark": {{"below": 60}}}}; got {str(body)[:80]!r}'
    )
    raise ValueError(msg)


def _of_body(body: Any, columns: pa.Schema) -> Punctuation | None:
    match body:
        case {"watermark": {"below": _} as inner}:
            soft = _of_body(inner, columns)
            return None if soft is None else _soft(soft)
        case {"joint": dict(bounds)}:
            return _joint(list(bounds.items()))
        case {"groups": dict(groups), "below": list(below)}:
            keys = {name: _keys(name, values, columns) for name, values in groups.items()}
            if len({len(values) for values in keys.values()}) == 1:
                below_each = np.array([_bound(value) for value in below], np.int64)
                return _group_wise(pa.RecordBatch.from_pydict(keys), below_each)
        case {"below": below, **more} if "groups" not in more:
            return Linear(_bound(below))
    return None


def _soft(bounds: Punctuation) -> Watermark:
    assert isinstance(bounds, Linear | GroupWise)
    return Watermark(bounds)


def fit_punctuation(punctuation: Punctuation, columns: pa.Schema) -> Punctuation:
    """Return a punctuation, its groups in the types of ``columns``.

    Raises ``ValueError`` if an attribute is no column, or a key does not fit the column's type.
    """
    if isinstance(punctuation, Watermark):
        return arriving(_soft(fit_punctuation(punctuation.of, columns)), punctuation.arrival)
    if not isinstance(punctuation, GroupWise):
        return punctuation
    keys = {}
    for name, column in zip(punctuation.groups.schema.names, punctuation.groups.columns, strict=True):
        if name not in columns.names:
            msg = f"a punctuation is for groups by {name!r}, which is no column that is read: ask for it"
            raise ValueError(msg)
        kind = columns.field(name).type
        values, bad = converted(column, kind) if converts(column.type, kind) else (column, True)
        if bad is not None:
            got = f"{column.type}: {str(column[:3].to_pylist())[:60]}"
            msg = f"a punctuation is for groups by {name!r}, which is {kind}; got {got}"
            raise ValueError(msg)
        keys[name] = values
    return replace(punctuation, groups=pa.RecordBatch.from_pydict(keys))


def _bound(value: Any) -> int:
    return _integer("bound", value)


def _integer(kind: str, value: Any) -> int:
    if type(value) is not int or not NEVER <= value <= FOREVER:
        msg = f"the {kind} of a punctuation must be an integer of 64 bits; got {str(value)[:40]}"
        raise ValueError(msg)
    return value


def _group_wise(groups: pa.RecordBatch, below: NDArray[np.int64]) -> GroupWise:
    groups.validate(full=True)
    names = groups.schema.names
    if not names or len(set(names)) < len(names) or groups.num_rows != len(below):
        msg = (
            "a group-wise punctuation must have columns of different names, and a bound a group; "
            f"got {names[:10]}, {groups.num_rows} groups and {len(below)} bounds"
        )
        raise ValueError(msg)
    return GroupWise(groups, below)


def _joint(bounds: list[Any]) -> Joint:
    pairs = {}
    for pair in bounds:
        match pair:
            case [str(name), below] | (str(name), below) if name not in pairs:
                pairs[name] = _bound(below)
            case _:
                msg = f"a joint punctuation must have pairs of a name and a bound, no name twice; got {str(pair)[:40]}"
                raise ValueError(msg)
    if not 0 < len(pairs) <= _MOST_NAMES:
        msg = f"a joint punctuation must name 1 to {_MOST_NAMES:,} attributes; got {len(pairs)}"
        raise ValueError(msg)
    return Joint(tuple(sorted(pairs.items())))


def _keys(name: str, values: Any, columns: pa.Schema) -> pa.Array:
    """Return keys as JSON has them; ``fit_punctuation`` casts them to the column's type."""
    if not isinstance(values, list):
        msg = f"groups: {name!r} must have a list of keys; got {str(values)[:40]}"
        raise ValueError(msg)
    if name in columns.names and not pa.types.is_temporal(kind := columns.field(name).type):
        return pa.array(values, kind)
    return pa.array(values, pa.string())
