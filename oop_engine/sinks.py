"""Sinks: where a service writes results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.connectors.sinks.callback import Callback as Callback
    from oop_engine.connectors.sinks.delta_folder import DeltaFolder as DeltaFolder
    from oop_engine.connectors.sinks.jet_stream_subject import JetStreamSubject as JetStreamSubject
    from oop_engine.connectors.sinks.kafka_topic import KafkaTopic as KafkaTopic
    from oop_engine.connectors.sinks.memory import Gathered as Gathered
    from oop_engine.connectors.sinks.one_file import OneFile as OneFile
    from oop_engine.connectors.sinks.part_files import PartFiles as PartFiles
    from oop_engine.connectors.sinks.postgres_table import PostgresTable as PostgresTable
    from oop_engine.connectors.sinks.redis_entries import RedisEntries as RedisEntries
else:
    __getattr__, __dir__ = shelf(__name__)
