"""Moved names: those of before the first release, found where they were, until that release removes this file.

``oop_engine`` and ``oop_engine.operators`` had nearly all names.  Whoever imports one from there gets it, with a
``DeprecationWarning`` that has the line to write; ``*`` brings them all, without one, for nobody knows which are used.
"""

from __future__ import annotations

import dis
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from types import FrameType

__all__ = ["before", "moved"]

_OF_THE_ROOT = """
Accumulator Aggregation Avro BadRow BatchResults Callback Case Claim Columns Comparison CsvFormat Dashboard
DataStream Delta DeltaFolder Disorder Driver Emission Extents FileTail ForeachBatch Gathered Generated
GraphDriver GroupIndex GrowingFolder JetStream JetStreamSubject Journal Kafka KafkaTopic KeyedStream LateTuple
Link LiveSink LiveSource Memory Message MessageFormat Mqtt OneFile OperatorError Parameter Parquet Part
PartFiles Policy PostgresChanges PostgresTable Profile Progress Protobuf Pushed Reader Receipt RedisEntries
RedisStream Replayed Result RunningBound Saved Scenario Served ServerEvents SetupError Sink SinkWork
SnapshotError SparkOutcome State Statistics Sweep TcpLines Trace TraceError TraceFormat UnitError
UnknownNameError Variant WebSocket WindowedStream Windows Writer as_graph compare consolidated contract_suite
in_order profile register_accumulator register_aggregate register_format register_message_format register_policy
register_windows serve_forever warm
"""
_OF_OPERATORS = """
Accumulator AfterAll AfterAny AfterChange AfterCount AfterDelay AfterEach AfterFraction AfterMatch Aggregate
Aggregation Ahead All Any Apply ApproxCountDistinct ApproxQuantile ArgMax ArgMin AtOnce BoundedCount Bucket
BufferingAggregate ByQuantile Collect Consolidate CountDistinct Delimited Describe Expression Extents First
FixedBand Flush Folding Frames FrequentItems GeometricMean Global Heartbeat HeavyHitters InOrder Intervals Kll
Lag Landmark Last LastRows Lazy LowLevelAggregate M4 MaxCount Median Merge MinCount Mode OPIBJoin OPOBJoin
OnRequest Once OrFinally Part PartialAggregate PartitionedTupleBased Policy Product Quantile RunningBound Select
Slack SlicedAggregate SlideByTuple Slow Sort Stamp Stddev Strategy TDigest Timer TopK Trigger TumblingBand
TupleBased UserDefined UserWindows Var WeightedAvg WindowIdBand WindowView Windows described multi_join
register_accumulator register_policy
"""
_HAD = {"oop_engine": _OF_THE_ROOT.split(), "oop_engine.operators": _OF_OPERATORS.split()}
_RENAMED = {
    "Apply": "WithColumns",
    "Describe": "PrunePunctuation",
    "Select": "Filter",
    "SlicedAggregate": "WindowAggregate",
    "Stamp": "ArrivalTime",
    "described": "prune_punctuation",
}
_BY_NAME_ALONE = {"contract_suite"}  # needs an extra
_STAR = ("IMPORT_STAR", "CALL_INTRINSIC_1")  # before Python 3.12, and since


def moved(
    package: str, name: str, shelves: Callable[[], Mapping[str, str]], frame: FrameType
) -> object | None:
    """Return the object that ``package`` had under a name, or None.  ``shelves``: the one of each name now."""
    if name not in _HAD.get(package, ()):
        return None
    now = _RENAMED.get(name, name)
    shelf = shelves()[now]
    if not _is_star(frame):
        line = f"from {shelf} import {now}"
        warnings.warn(f"{package}.{name} has moved: {line}", DeprecationWarning, stacklevel=4)
    value: object = getattr(import_module(shelf), now)
    return value


def before(package: str, frame: FrameType) -> set[str]:
    """Return the names that ``*`` brought from ``package``, if a frame asks for them."""
    return {*_HAD.get(package, ())} - _BY_NAME_ALONE if _is_star(frame) else set()


def _is_star(frame: FrameType) -> bool:
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] in _STAR
