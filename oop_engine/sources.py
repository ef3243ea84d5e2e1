"""Sources: where a service reads records as they arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
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
else:
    __getattr__, __dir__ = shelf(__name__)
