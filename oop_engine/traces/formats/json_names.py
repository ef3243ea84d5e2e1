"""JSON names: the columns of lines whose types a schema has, so that none is guessed."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.json

from oop_engine.traces.formats.json_rows import MOST_KEYS, plain_rows

__all__ = ["named"]


def named(head: bytes) -> pa.Schema | None:
    """Return the columns of a block, all as text: their names without a guess of types.

    None: only a look at each line finds them, for Arrow does not read the block, or something in it is nested.
    """
    text = head.strip(b" \t\r\n")
    rows = plain_rows(text)
    if rows is None or text.count(b"{") != rows or b"[" in text:
        return None
    try:
        table = pa.json.read_json(
            pa.py_buffer(text), pa.json.ReadOptions(use_threads=False, block_size=len(text) + 1)
        )
        names = table.column_names
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    if table.num_rows != rows or len(names) > MOST_KEYS:
        return None
    return pa.schema([(name, pa.string()) for name in names])
