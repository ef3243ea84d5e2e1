"""Pages as bytes: Arrow's stream of one batch, with those words of a dictionary that occur in the page."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from oop_engine.core.page import Page

__all__ = ["page_bytes"]


def page_bytes(page: Page) -> bytes:
    """Return the columns of a page as bytes; O(bytes of its own rows), however many words its dictionaries have."""
    batch = page.batch
    if any(pa.types.is_dictionary(field.type) for field in batch.schema):
        batch = pa.RecordBatch.from_arrays(
            [_own_words(column) for column in batch.columns], schema=batch.schema
        )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _own_words(column: pa.Array) -> pa.Array:
    """Return a dictionary column with the words that occur, in the order of its dictionary."""
    kind = column.type
    if not pa.types.is_dictionary(kind) or len(column.dictionary) <= len(column):
        return column
    numbers = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
    used, places = np.unique(numbers, return_inverse=True)
    nulls = column.indices.is_null().to_numpy(zero_copy_only=False)
    indices = pa.array(places, kind.index_type, mask=nulls)
    return pa.DictionaryArray.from_arrays(
        indices, column.dictionary.take(pa.array(used)), ordered=kind.ordered
    )
