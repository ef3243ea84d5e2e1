"""Mutants: good traces of each format, and what a fault or an attacker makes of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa

from oop_engine import write_trace
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.punctuation import GroupWise, Joint, Linear, Watermark
from oop_engine.core.schema import Schema
from oop_engine.traces.format_registry import FORMATS

SCHEMA = Schema(
    {"ts": pa.int64(), "link": pa.string(), "n": pa.int32(), "x": pa.float64(), "ok": pa.bool_(),
     "at": pa.timestamp("ms", "UTC"), "day": pa.date32()}, "ts", "s",
)  # fmt: skip
ENDS = [0, 1, 2**7, 2**15 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
WORDS = [
    b"null", b"{}", b"[]", b"[" * 200, b'{"a":' * 200, b"{" * 70 + b"}" * 70, b'"', b"\\", b"\\ud800", b"\xff",
    b"\x00", b"\xef\xbb\xbf", b"\n", b"\r", b"\r\n", b",", b",,", b"1e999", b"-0", b"NaN", b"Infinity", b"9" * 30,
    b"0x1F", b"1.5",
    b"9223372036854775807", b"-9223372036854775808", b"true", b"2013-01-01", b"2013-01-01T05:00Z", b'{"ts": 1}', b" ",
    b'{"punctuation": {"below": 5}}\n', b'{"punctuation": {"groups": {"link": ["a"]}, "below": [1e9]}}\n', b"x" * 300,
    b'{"ts": 1, "ts": 2}', b'"ts": "1"', b"caf\xc3\xa9", b"caf\xe9", b"\x1b[31m",
]  # fmt: skip
VALUES: list[Any] = [
    None,
    True,
    -1,
    2**63,
    2**64 - 1,
    1.5,
    float("inf"),
    float("nan"),
    "",
    "page",
    b"",
    b"x" * 50,
    [],
    [[]],
    [1],
]


def good(folder: Path) -> dict[str, bytes]:
    """Return a trace of 60 rows in each format."""
    found = {}
    for format in FORMATS:
        carries = format in ("arrow", "jsonl", "msgpack")
        messages = [m for m in _messages() if carries or isinstance(m, Page)]
        path = folder / f"good.{format}"
        write_trace(path, SCHEMA, messages)
        found[format] = path.read_bytes()
    return found


def _messages() -> Iterator[Message]:
    for start in range(0, 60, 20):
        ts = np.arange(start, start + 20)
        page = {
            "ts": ts, "link": ["a", "b", None, "café"] * 5, "n": ts * 7, "x": ts / 3, "ok": ts % 2 == 0,
            "at": pa.array(ts * 1000).cast(SCHEMA.type_of("at")), "day": pa.array(ts, pa.int32()).cast(pa.date32()),
        }  # fmt: skip
        yield Page.of(SCHEMA, page, ts)
        yield Linear(start)
        yield GroupWise.of({"link": ["a", None]}, [start, start + 1])
    yield Joint.of(ts=5, at=7)
    yield Watermark(Linear(61))


def mutant(whole: bytes, format: str, rng: random.Random) -> bytes:
    """Return ``whole`` with a change, or some."""
    changes = [_flip, _cut, _number, _copy, _drop, *([_frame] if format == "msgpack" else [])]
    if format in ("csv", "jsonl"):
        changes += [_word] * 5
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        whole = rng.choice(changes)(whole, rng) or b"\x00"
    return whole


def _flip(whole: bytes, rng: random.Random) -> bytes:
    changed = bytearray(whole)
    for _ in range(rng.choice([1, 1, 2, 8])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(whole: bytes, rng: random.Random) -> bytes:
    return whole[: rng.randrange(len(whole) + 1)]


def _number(whole: bytes, rng: random.Random) -> bytes:
    """Write a length or place that is at an end of its type, as lengths are stored."""
    value, width, order = rng.choice(ENDS), rng.choice([1, 2, 4, 8]), rng.choice(["little", "big"])
    at = rng.randrange(len(whole))
    wrapped = (value % 2 ** (8 * width)).to_bytes(width, order)  # type: ignore[arg-type]
    return whole[:at] + wrapped + whole[at + width :]


def _copy(whole: bytes, rng: random.Random) -> bytes:
    start, stop = sorted(rng.randrange(len(whole) + 1) for _ in range(2))
    at = rng.randrange(len(whole) + 1)
    return whole[:at] + whole[start : min(stop, start + 4000)] + whole[at:]


def _drop(whole: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(whole))
    return whole[:start] + whole[start + rng.choice([1, 4, 8, 100]) :]


def _word(whole: bytes, rng: random.Random) -> bytes:
    """Put a word that means something to a parser in front of a bracket, comma, quote or line."""
    places = [i for i, byte in enumerate(whole) if byte in b'{}[],:"\n'] or [0]
    at = rng.choice(places) + rng.randrange(2)
    return whole[:at] + rng.choice(WORDS) + whole[at + rng.choice([0, 0, 1, 5]) :]


def _frame(whole: bytes, rng: random.Random) -> bytes:
    """Change, copy or leave out something within a frame of msgpack."""
    try:
        frames = list(msgpack.Unpacker(BytesIO(whole)))
    except Exception:  # it is a mutant already
        return whole
    lists = [frame for frame in frames if isinstance(frame, list) and frame]
    if lists:
        frame = rng.choice(lists)
        at = rng.randrange(len(frame))
        change = rng.randrange(4)
        if change == 0:
            frame[at] = rng.choice(VALUES)
        elif change == 1:
            frame.append(rng.choice(VALUES))
        elif change == 2:
            del frame[at]
        elif isinstance(frame[at], bytes) and frame[at]:
            frame[at] = _flip(frame[at], rng)
    return b"".join(map(msgpack.packb, frames))
