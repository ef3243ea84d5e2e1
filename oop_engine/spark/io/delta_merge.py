"""Delta merge: the rows of a micro-batch, merged into a Delta table by their key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from oop_engine.connectors.change_feed import net_changes
from oop_engine.connectors.delta_log import version_of
from oop_engine.spark.io.parquet import ResultTable
from oop_engine.spark.io.result_folder import Written

__all__ = ["merge"]

_TYPE, _GONE = "_change_type", "_gone"


def merge(table: ResultTable, key: Sequence[str], files: list[Written], query: str, batch: int) -> None:
    """Let the table be the net content after a batch, in one transaction that carries its number; once.

    Equal rows of opposite changes are left out; a row that is put out replaces the one of its key, and one that is
    taken back is removed if it is still there.  O(rows of the batch + rows in files that have one of their keys).
    """
    from deltalake import CommitProperties, DeltaTable, Schema, Transaction
    from deltalake.transaction import create_table_with_add_actions

    where, names = str(table.folder.path), table.schema.plain().names
    columns = pa.schema([table.fields.field(name) for name in names])
    if not DeltaTable.is_deltatable(where):
        create_table_with_add_actions(where, Schema.from_arrow(columns), [], mode="error")
    done = version_of(table.folder.path, query) >= batch
    changes = columns.empty_table() if done else _changes(table, files, columns, key)
    if changes.num_rows:
        here, there = ({name: f'{side}."{name}"' for name in names} for side in "ts")
        same = {n: f"({here[n]} = {there[n]} or ({here[n]} is null and {there[n]} is null))" for n in names}
        terms = [same[name] for name in key]
        if others := " and ".join(same[name] for name in names if name not in key):
            terms.append(f"(s.{_GONE} = false or ({others}))")
        values = {f'"{name}"': there[name] for name in names}
        tagged = CommitProperties(app_transactions=[Transaction(query, batch)])
        merger = DeltaTable(where).merge(
            changes, " and ".join(terms), source_alias="s", target_alias="t", commit_properties=tagged
        )
        merger = merger.when_matched_delete(f"s.{_GONE} = true")
        merger = merger.when_matched_update(values, f"s.{_GONE} = false")
        merger.when_not_matched_insert(values, f"s.{_GONE} = false").execute()
    table.folder.drop(files)


def _changes(
    table: ResultTable, files: Sequence[Written], columns: pa.Schema, key: Sequence[str]
) -> pa.Table:
    """Return the net changes in files: each row with whether it is taken back."""
    parts = [pq.ParquetFile(table.folder.path / file.unfinished).read() for file in files]
    read = pa.concat_tables([table.fields.empty_table(), *parts]).combine_chunks()
    changes = np.ones(read.num_rows, np.int64)
    if table.schema.change is not None:
        back = pc.is_in(read.column(_TYPE), pa.array(["delete", "update_preimage"]))
        changes[back.to_numpy()] = -1
    arrays = [read.column(name).combine_chunks() for name in columns.names]
    gone, put = net_changes(pa.RecordBatch.from_arrays(arrays, schema=columns), changes, key)
    found = pa.Table.from_batches([gone, put], columns)
    flags = pa.array(np.arange(found.num_rows) < gone.num_rows)
    return found.append_column(_GONE, flags)
