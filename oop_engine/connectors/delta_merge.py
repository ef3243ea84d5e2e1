"""Delta merge: the rows of a micro-batch or an epoch, merged into a Delta table by their key."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from oop_engine.connectors.change_feed import net_changes

__all__ = ["merge"]

_TYPE, _GONE = "_change_type", "_gone"


def merge(
    table: Path, columns: pa.Schema, key: Sequence[str], files: Sequence[Path], app: str, number: int
) -> None:
    """Merge the net content of ``files`` into a table, as transaction ``number`` of ``app``; once.

    ``columns``: those of the table, which is made if there is none.  The files have them, and those of a change feed
    if rows are retracted.  Equal rows of opposite changes are left out; a row that is emitted replaces the one of its
    key, and one that is retracted is removed if it is still there.  Raises errors of the package ``deltalake``, also
    where a transaction of the same app came in between.
    O(rows of the files + rows in files of the table that have one of their keys).
    """
    from deltalake import CommitProperties, DeltaTable, Schema, Transaction
    from deltalake.transaction import create_table_with_add_actions

    if not DeltaTable.is_deltatable(str(table)):
        create_table_with_add_actions(str(table), Schema.from_arrow(columns), [], mode="error")
    known = DeltaTable(str(table))
    done = known.transaction_version(app)
    if not files or (done is not None and done >= number):
        return
    changes = _changes(files, columns, key)
    tagged = CommitProperties(app_transactions=[Transaction(app, number)])
    if not changes.num_rows:  # also recorded, for the files go now
        known.create_write_transaction([], "append", known.schema(), commit_properties=tagged)
    else:
        matched = _matched(columns.names, key)
        merger = known.merge(changes, matched, source_alias="s", target_alias="t", commit_properties=tagged)
        values = {f'"{name}"': f's."{name}"' for name in columns.names}
        merger = merger.when_matched_delete(f"s.{_GONE} = true")
        merger = merger.when_matched_update(values, f"s.{_GONE} = false")
        merger.when_not_matched_insert(values, f"s.{_GONE} = false").execute()


def _matched(names: Sequence[str], key: Sequence[str]) -> str:
    """Return when a row of the table is that of a change: of its key, and equal if it is retracted."""
    here, there = ({name: f'{side}."{name}"' for name in names} for side in "ts")
    same = {n: f"({here[n]} = {there[n]} or ({here[n]} is null and {there[n]} is null))" for n in names}
    terms = [same[name] for name in key]
    if others := " and ".join(same[name] for name in names if name not in key):
        terms.append(f"(s.{_GONE} = false or ({others}))")
    return " and ".join(terms)


def _changes(files: Sequence[Path], columns: pa.Schema, key: Sequence[str]) -> pa.Table:
    """Return the net changes in files: each row with whether it is retracted."""
    parts = [pq.ParquetFile(file).read() for file in files]
    read = pa.concat_tables([part.select(columns.names) for part in parts] or [columns.empty_table()])
    changes = np.concatenate([_signs(part) for part in parts] or [np.empty(0, np.int64)])
    arrays = [column.combine_chunks() for column in read.columns]
    removed, put = net_changes(pa.RecordBatch.from_arrays(arrays, schema=columns), changes, key)
    merged = pa.Table.from_batches([removed, put], columns)
    flags = pa.array(np.arange(merged.num_rows) < removed.num_rows)
    return merged.append_column(_GONE, flags)


def _signs(part: pa.Table) -> NDArray[np.int64]:
    if _TYPE not in part.column_names:
        return np.ones(part.num_rows, np.int64)
    back = pc.is_in(part.column(_TYPE), pa.array(["delete", "update_preimage"]))
    return np.where(back.to_numpy(), -1, 1)
