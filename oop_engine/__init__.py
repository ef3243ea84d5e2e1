"""Out-of-order stream processing with punctuation: window queries that never wait for order.

``from oop_engine import ...`` brings what a user needs, on two shelves:

*To use*: a ``Graph`` of operators over a ``Schema``; ``Page`` and punctuation (``Linear``, ``GroupWise``, ``Joint``),
what travels in it, and ``Change``, other windows from a time on; ``run``, ``arun`` and ``replay``, which run it and
give an ``Outcome``; ``serve``, a service with checkpoints over live sources and sinks; ``Local``, into which a program
of yours pushes; ``in_order`` and ``consolidated``, which rewrite it; traces, sinks of Spark, scenarios, errors.

*To extend*: what an operator, an aggregate, a window, a policy, a format of traces and a sink of your own are made
of, and the kit that tests them.

The operators themselves, windows, aggregates and policies are in ``oop_engine.operators``.  Each name is
loaded when it is first used, so that the program answers at once.
"""

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import lazy_names

if TYPE_CHECKING:  # to use
    from oop_engine.connectors.registry.avro import Avro as Avro
    from oop_engine.connectors.registry.protobuf import Protobuf as Protobuf
    from oop_engine.connectors.sinks.callback import Callback as Callback
    from oop_engine.connectors.sinks.delta_folder import DeltaFolder as DeltaFolder
    from oop_engine.connectors.sinks.jet_stream_subject import JetStreamSubject as JetStreamSubject
    from oop_engine.connectors.sinks.kafka_topic import KafkaTopic as KafkaTopic
    from oop_engine.connectors.sinks.memory import Gathered as Gathered
    from oop_engine.connectors.sinks.one_file import OneFile as OneFile
    from oop_engine.connectors.sinks.part_files import PartFiles as PartFiles
    from oop_engine.connectors.sinks.postgres_table import PostgresTable as PostgresTable
    from oop_engine.connectors.sinks.redis_entries import RedisEntries as RedisEntries
    from oop_engine.connectors.sources.file_tail import FileTail as FileTail
    from oop_engine.connectors.sources.generated import Generated as Generated, Replayed as Replayed
    from oop_engine.connectors.sources.growing_folder import GrowingFolder as GrowingFolder
    from oop_engine.connectors.sources.jet_stream import JetStream as JetStream
    from oop_engine.connectors.sources.journal import Journal as Journal
    from oop_engine.connectors.sources.kafka import Kafka as Kafka
    from oop_engine.connectors.sources.mqtt import Mqtt as Mqtt
    from oop_engine.connectors.sources.postgres_changes import PostgresChanges as PostgresChanges
    from oop_engine.connectors.sources.pushed import Pushed as Pushed
    from oop_engine.connectors.sources.redis_stream import RedisStream as RedisStream
    from oop_engine.connectors.sources.server_events import ServerEvents as ServerEvents
    from oop_engine.connectors.sources.tcp_lines import TcpLines as TcpLines
    from oop_engine.connectors.sources.web_socket import WebSocket as WebSocket
    from oop_engine.core.change import Change as Change
    from oop_engine.core.errors import (
        ContractError as ContractError,
        EngineError as EngineError,
        GraphError as GraphError,
        LateTuple as LateTuple,
        OperatorError as OperatorError,
        SetupError as SetupError,
        SnapshotError as SnapshotError,
        TraceError as TraceError,
        UnitError as UnitError,
        UnknownNameError as UnknownNameError,
        UsageError as UsageError,
    )
    from oop_engine.core.graphs.graph import Graph as Graph, Stream as Stream
    from oop_engine.core.page import Page as Page
    from oop_engine.core.punctuation import (
        FOREVER as FOREVER,
        NEVER as NEVER,
        GroupWise as GroupWise,
        Joint as Joint,
        Linear as Linear,
        Punctuation as Punctuation,
        Watermark as Watermark,
    )
    from oop_engine.core.schema import Schema as Schema
    from oop_engine.core.graphs.statistics import Statistics as Statistics
    from oop_engine.face import run as run
    from oop_engine.lab.compare import Comparison as Comparison, compare as compare
    from oop_engine.lab.scenario import (
        Claim as Claim,
        Parameter as Parameter,
        Scenario as Scenario,
        Sweep as Sweep,
        Variant as Variant,
    )
    from oop_engine.operators.rewrites.in_order import in_order as in_order
    from oop_engine.core.graphs.halves import consolidated as consolidated
    from oop_engine.query.data_stream import DataStream as DataStream
    from oop_engine.query.running import as_graph as as_graph
    from oop_engine.query.sql.entry import sql as sql
    from oop_engine.query.sources import Columns as Columns, scan as scan, stream as stream
    from oop_engine.query.windowed import KeyedStream as KeyedStream, WindowedStream as WindowedStream
    from oop_engine.runners.dispatch import Result as Result
    from oop_engine.runners.feeds.bad_rows import BadRow as BadRow
    from oop_engine.runners.local import Local as Local
    from oop_engine.runners.outcome import Outcome as Outcome
    from oop_engine.runners.replay import arun as arun, replay as replay
    from oop_engine.lab.warm import warm as warm
    from oop_engine.service.dashboard.dashboard import Dashboard as Dashboard
    from oop_engine.service.serve import serve as serve
    from oop_engine.service.serve import serve_forever as serve_forever
    from oop_engine.service.served import Served as Served
    from oop_engine.service.why import why as why
    from oop_engine.spark.io.sinks import (
        Delta as Delta,
        ForeachBatch as ForeachBatch,
        Memory as Memory,
        Parquet as Parquet,
    )
    from oop_engine.spark.run import SparkOutcome as SparkOutcome
    from oop_engine.traces.csv_format import CsvFormat as CsvFormat
    from oop_engine.traces.disorder import Disorder as Disorder, Link as Link
    from oop_engine.traces.profile import Profile as Profile, profile as profile
    from oop_engine.traces.trace import Trace as Trace, open_trace as open_trace
    from oop_engine.traces.trace_writing import write_trace as write_trace

if TYPE_CHECKING:  # to extend
    from oop_engine.connectors.message_format import (
        MessageFormat as MessageFormat,
        register_message_format as register_message_format,
    )
    from oop_engine.connectors.sink import LiveSink as LiveSink
    from oop_engine.connectors.source import LiveSource as LiveSource
    from oop_engine.core.groups.group_index import GroupIndex as GroupIndex
    from oop_engine.core.operator import (
        Emission as Emission,
        Message as Message,
        Operator as Operator,
        State as State,
    )
    from oop_engine.core.progress import Progress as Progress
    from oop_engine.core.saved import Saved as Saved
    from oop_engine.operators.aggregates import Aggregation as Aggregation, Part as Part
    from oop_engine.query.registered import (
        register_aggregate as register_aggregate,
        register_windows as register_windows,
    )
    from oop_engine.operators.policies.running_bound import (
        Policy as Policy,
        RunningBound as RunningBound,
        register_policy as register_policy,
    )
    from oop_engine.operators.slicing.accumulators import (
        Accumulator as Accumulator,
        register_accumulator as register_accumulator,
    )
    from oop_engine.operators.windows import Extents as Extents, Windows as Windows
    from oop_engine.spark.io.sink import (
        BatchResults as BatchResults,
        Receipt as Receipt,
        Sink as Sink,
        SinkWork as SinkWork,
    )
    from oop_engine.testing import (
        Case as Case,
        Driver as Driver,
        GraphDriver as GraphDriver,
        contract_suite as contract_suite,
    )
    from oop_engine.traces.format import Reader as Reader, Writer as Writer
    from oop_engine.traces.format_registry import (
        TraceFormat as TraceFormat,
        register_format as register_format,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__, by_name_only={"contract_suite"}, elsewhere="oop_engine.operators"
    )
