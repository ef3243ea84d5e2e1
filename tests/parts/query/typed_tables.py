"""Tables of odd values for queries: texts, moments with and without a zone, decimals and small numbers, with nulls."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.parts.query.duck import START

__all__ = ["typed"]

TEXTS = [
    "", " a b ", "Ünïcode", "12", "-3.5", "true", "a%b", "a_b", "x\\y", "ABC", "abc", "2026-01-01", "a,b,,c", "a(b",
    None, "éa", "😀x", "NaN", " 7 ", "1e3", "f",
]  # fmt: skip


def typed(seed: int, rows: int = 42) -> dict[str, pa.Table]:
    """Return the tables ``txt``, ``zoned`` and ``dec``, out of order."""
    of = random.Random(seed)

    def drawn(*values: Any) -> list[Any]:
        return [of.choice([None, *values]) for _ in range(rows)]

    def moments() -> list[dt.datetime]:
        return [START + dt.timedelta(seconds=of.randint(0, 300)) for _ in range(rows)]

    def decimals(most: int, digits: int) -> list[Any]:
        return drawn(*(Decimal(of.randint(-most, most)).scaleb(-digits) for _ in range(rows)))

    def table(zone: str | None, **columns: pa.Array) -> pa.Table:
        time = pa.array(moments(), pa.timestamp("us", zone))
        return pa.table({"ts": time, "id": pa.array(range(rows), pa.int64()), **columns})

    texts = [TEXTS[i % len(TEXTS)] for i in range(rows)]
    return {
        "txt": table(None, s=pa.array(texts, pa.string()), u=pa.array(drawn(*TEXTS), pa.string())),
        "zoned": table(
            "UTC", k=pa.array(drawn("a", "b"), pa.string()), w=pa.array(drawn(*moments()), pa.timestamp("us")),
            z=pa.array(drawn(*moments()), pa.timestamp("us", "UTC")),
        ),
        "dec": table(
            None, k=pa.array(drawn(1, 2), pa.int16()), a=pa.array(decimals(99_999, 4), pa.decimal128(18, 4)),
            b=pa.array(decimals(999, 1), pa.decimal128(5, 1)), c=pa.array(decimals(10**15, 6), pa.decimal128(30, 6)),
            t=pa.array(drawn(-128, 127, 5), pa.int8()), us=pa.array(drawn(0, 65_535, 7), pa.uint16()),
            u64=pa.array(drawn(0, 2**63 - 1, 7), pa.uint64()), f=pa.array(drawn(0.1, 2.5, -1.5, 1e30), pa.float32()),
            g=pa.array(drawn(0.1, 2.5, -2.5, float("nan"), float("inf"), -0.0), pa.float64()),
        ),
    }  # fmt: skip
