"""Sources and sinks by name, as a command line has them: ``tail:access.log``, ``parquet:results``.

``register_source`` and ``register_sink`` add one of your own, in one file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode

from oop_engine.connectors.formats import format_by_suffix
from oop_engine.connectors.registry.avro import Avro
from oop_engine.connectors.registry.declared_format import DeclaredFormat
from oop_engine.connectors.registry.protobuf import Protobuf
from oop_engine.connectors.servers.login_options import LOGIN, login_of
from oop_engine.connectors.sink import LiveSink
from oop_engine.connectors.sinks.callback import Callback
from oop_engine.connectors.sinks.delta_folder import DeltaFolder
from oop_engine.connectors.sinks.jet_stream_subject import JetStreamSubject
from oop_engine.connectors.sinks.kafka_topic import KafkaTopic
from oop_engine.connectors.sinks.one_file import OneFile
from oop_engine.connectors.sinks.part_files import PartFiles
from oop_engine.connectors.sinks.postgres_table import PostgresTable
from oop_engine.connectors.sinks.redis_entries import RedisEntries
from oop_engine.connectors.source import LiveSource
from oop_engine.connectors.sources.file_tail import FileTail
from oop_engine.connectors.sources.growing_folder import GrowingFolder
from oop_engine.connectors.sources.jet_stream import JetStream
from oop_engine.connectors.sources.journal import Journal
from oop_engine.connectors.sources.kafka import Kafka
from oop_engine.connectors.sources.mqtt import Mqtt
from oop_engine.connectors.sources.postgres_changes import PostgresChanges
from oop_engine.connectors.sources.redis_stream import RedisStream
from oop_engine.connectors.sources.server_events import ServerEvents
from oop_engine.connectors.sources.tcp_lines import TcpLines
from oop_engine.connectors.sources.web_socket import WebSocket
from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import EngineError, UsageError
from oop_engine.core.groups.in_python import as_json
from oop_engine.core.page import Page
from oop_engine.core.registry import Registry
from oop_engine.core.schema import Schema
from oop_engine.system.addresses import Address, printable
from oop_engine.traces.compressed import CODECS
from oop_engine.traces.csv_format import CsvFormat
from oop_engine.traces.format_registry import FORMATS

__all__ = ["SINKS", "SOURCES", "WITH_REGISTRY", "register_sink", "register_source", "sink_of", "source_of"]

WITH_REGISTRY: dict[str, Callable[..., DeclaredFormat]] = {
    "avro": Avro,
    "protobuf": Protobuf,
    "debezium-avro": partial(Avro, debezium=True),
}
"""The formats of messages whose schemas are in a registry, by name."""
_LOGIN = "SCHEMA_REGISTRY_BASIC_AUTH_USER_INFO"
"""The variable of the environment that has name and password of a schema registry, with a colon in between."""

T = TypeVar("T")
SourceMaker = Callable[[str, dict[str, str], Schema], LiveSource]
"""Makes a source of an address, its options, and the schema of the graph's source."""
SinkMaker = Callable[[str, dict[str, str]], LiveSink]

SOURCES = Registry[SourceMaker]("source")
SINKS = Registry[SinkMaker]("sink")
"""All kinds of sources and of sinks, by name."""


def register_source(name: str) -> Callable[[SourceMaker], SourceMaker]:
    """Make a kind of source known: ``@register_source("tail")`` over a function that makes one."""
    return lambda made: SOURCES.register(name, made, made.__module__)


def register_sink(name: str) -> Callable[[SinkMaker], SinkMaker]:
    """Make a kind of sink known: ``@register_sink("parquet")`` over a function that makes one."""
    return lambda made: SINKS.register(name, made, made.__module__)


def source_of(text: str, schema: Schema, csv: CsvFormat | None = None) -> LiveSource:
    """Return the source that ``kind:address?option=value`` names; with ``journal=DIR`` one that is kept there.

    ``csv``: how CSV is written, unless the text tells it: ``tail:access.csv?csv=delimiter=;,decimal=,``.

    Raises ``UsageError`` if there is none such.

    >>> import pyarrow as pa
    >>> source_of("tail:access.log?format=csv", Schema({"ts": pa.int64()}, "ts", "s")).format
    'csv'
    """
    kind, address, options = _parts("source", text, SOURCES)
    journal = options.pop("journal", None)
    own = options.pop("csv", None)
    with _printable(text):
        source = _made(f"source {printable(text)!r}", SOURCES, kind, LiveSource, address, options, schema)
    if own is not None or csv is not None:
        _set_csv(
            f"source {printable(text)!r}",
            source,
            csv if own is None else CsvFormat.of(own),
            must=own is not None,
        )
    return source if journal is None else Journal(source, journal)


def _set_csv(place: str, source: LiveSource, csv: CsvFormat | None, *, must: bool) -> None:
    """Set the dialect of a CSV source; ``must``: raise if the source does not read CSV."""
    if isinstance(source, GrowingFolder):
        source.csv = csv
    elif source.format == "csv" and csv is not None:
        source.format = csv
    elif must:
        msg = f"{place}: csv tells how CSV is written; its format is {source.format!r}: add format=csv"
        raise UsageError(msg)


def sink_of(text: str) -> LiveSink:
    """Return the sink that ``kind:address`` names.  Raises ``UsageError`` if there is none such."""
    kind, address, options = _parts("sink", text, SINKS)
    with _printable(text):
        return _made(f"sink {printable(text)!r}", SINKS, kind, LiveSink, address, options)


def _made(place: str, kinds: Registry[Any], kind: str, base: type[T], *given: Any) -> T:
    """Return a source or a sink; a maker of another package is named where it fails, or makes another thing."""
    maker, home = kinds[kind], kinds.home(kind)
    try:
        made: object = maker(*given)
    except EngineError:
        raise
    except Exception as error:
        if home.startswith("oop_engine."):
            raise
        msg = f"{place}: the kind {kind!r} of {home} failed: {type(error).__name__}: {error}"
        raise UsageError(msg) from error
    if isinstance(made, base):
        return made
    got = f"{made!r:.60} ({type(made).__name__})"
    msg = f"{place}: the kind {kind!r} of {home} must return a {base.__name__}; got {got}"
    raise UsageError(msg)


@contextmanager
def _printable(text: str) -> Iterator[None]:
    """Leave secrets of an address out of the error of its maker."""
    try:
        yield
    except UsageError as error:
        msg = Address(text.partition("?")[0]).clean(error)  # options are not secrets here, and may be wrong
        raise UsageError(msg) from None


def _parts(
    noun: str, text: str, kinds: Registry[SourceMaker] | Registry[SinkMaker]
) -> tuple[str, str, dict[str, str]]:
    kind, _, rest = text.partition(":")
    address, _, query = rest.partition("?")
    if kind not in kinds:
        there = f"use one of {', '.join(kinds)}, as in {next(iter(kinds))}:path{did_you_mean(kind, kinds)}"
        msg = f"{noun} {printable(text)!r}: there is no kind {kind!r}: {there}"
        raise UsageError(msg)
    if not address and kind in {"tail", "folder", "delta", "file", *FORMATS}:
        msg = f"{noun} {text!r}: must have a path, as in {kind}:{'access.jsonl' if kind == 'tail' else 'results'}"
        raise UsageError(msg)
    return kind, address, dict(parse_qsl(query, keep_blank_values=True))


def _only(text: str, options: dict[str, str], *known: str) -> None:
    if "format" in known:
        known = (*known, "registry")
    if unknown := options.keys() - {*known}:
        msg = f"{text}: unknown option {min(unknown)!r}; there are {', '.join(known) or 'none'}"
        msg += did_you_mean(min(unknown), known)
        raise UsageError(msg)


def _yes(text: str, options: dict[str, str], name: str = "follow", default: str = "yes") -> bool:
    """Return whether an option is yes, not no."""
    if (given := options.get(name, default)) not in {"yes", "no"}:
        msg = f"{text}: {name} must be yes or no; got {given!r}"
        raise UsageError(msg)
    return given == "yes"


def _is_port(text: str) -> bool:
    return text.isdecimal() and int(text) < 1 << 16


def _server(place: str, address: str, example: str) -> tuple[str, str]:
    """Return the server (with its port) and the name behind it."""
    server, _, name = address.partition("/")
    if not name or not _is_port(server.rpartition(":")[2]):
        msg = f"{place}: must have a host, a port and a name, as in {example}"
        raise UsageError(msg)
    return server, name


def _key(options: dict[str, str]) -> list[str]:
    """Return the columns that ``?key=a,b`` names."""
    return [name for name in options.get("key", "").split(",") if name]


def _format(address: str, options: dict[str, str]) -> str | DeclaredFormat:
    """Return the format of messages: as given, or by the suffix, or JSON lines; some need ``registry``.

    Its name and password are in the environment, where nobody else sees them.
    """
    name = options.get("format", format_by_suffix(address))
    registry, made = options.get("registry"), WITH_REGISTRY.get(name)
    if made is None and registry is None:
        return name
    if made is None or not registry:
        with_one = " or ".join(WITH_REGISTRY)
        msg = f"format {name!r}: registry is the address of the schemas of {with_one}, "
        raise UsageError(msg + "as in ?format=avro&registry=http://127.0.0.1:8081")
    login = os.environ.get(_LOGIN)
    return made(registry, options={"basic.auth.user.info": login} if login else None)


@register_source("tail")
def _tail(address: str, options: dict[str, str], schema: Schema) -> LiveSource:
    _only(f"tail:{address}", options, "format", "follow", "skip_lost")
    skip_lost = _yes(f"tail:{address}", options, "skip_lost", "no")
    follow = _yes(f"tail:{address}", options)
    return FileTail(address, _format(address, options), follow=follow, skip_lost=skip_lost)


@register_source("folder")
def _folder(address: str, options: dict[str, str], schema: Schema) -> LiveSource:
    _only(f"folder:{address}", options, "follow")
    return GrowingFolder(address, schema, follow=_yes(f"folder:{address}", options))


@register_source("tcp")
def _tcp(address: str, options: dict[str, str], schema: Schema) -> LiveSource:
    _only(f"tcp:{address}", options, "format", "connect", "again")
    host, _, port = address.rpartition(":")
    if not _is_port(port):
        msg = f"source 'tcp:{address}': must have a host and a port, as in tcp:127.0.0.1:9000"
        raise UsageError(msg)
    connect, again = (_yes(f"tcp:{address}", options, name, "no") for name in ("connect", "again"))
    return TcpLines(host, int(port), _format("", options), connect=connect, again=again)


@register_source("kafka")
def _kafka(address: str, options: dict[str, str], schema: Schema) -> LiveSource:
    _only(f"kafka:{address}", options, "format", "follow", "partition", "group", "mechanism", *LOGIN)
    servers, topic = _server(f"source 'kafka:{address}'", address, "kafka:127.0.0.1:9092/requests")
    numbers = options["partition"].split(",") if "partition" in options else []
    if wrong := [number for number in numbers if not number.strip().isdigit()]:
        msg = f"source 'kafka:{address}': partition must be numbers, as in ?partition=0,2; got {wrong[0]!r}"
        raise UsageError(msg)
    group = options.get("group", "oop-engine")
    follow = _yes(f"kafka:{address}", options)
    login = login_of(f"source 'kafka:{address}'", options, "KAFKA_PASSWORD").for_kafka()
    partitions = [*map(int, numbers)] or None
    return Kafka(servers, topic, partitions, _format("", options), group=group, follow=follow, options=login)


@register_source("redis")
def _redis(address: str, options: dict[str, str], schema: Schema) -> LiveSource:
    _only(f"redis:{address}", options, "format", "follow", "field", "db", *LOGIN)
    server, stream = _server(f"source 'redis:{address}'", address, "redis:127.0.0.1:6379/requests")
    login = login_of(f"source 'redis:{address}'", options, "REDIS_PASSWORD")
    url, field = login.redis_url(server, options.get("db", "0")), options.get("field", "data")
    follow = _yes(f"redis:{address}", options)
    return RedisStream(url, stream, _format("", options), field=field or None, follow=follow)


@register_source("nats")
def _nats(address: str, options: dict[str, str], schema: Schema) -> LiveSource:
    _only(f"nats:{address}", options, "format", "follow", "subject", *LOGIN)
    server, stream = _server(f"source 'nats:{address}'", address, "nats:127.0.0.1:4222/requests")
    follow = _yes(f"nats:{address}", options)
    login = login_of(f"source 'nats:{address}'", options, "NATS_PASSWORD").for_nats()
    subject, format = options.get("subject"), _format("", options)
    return JetStream(f"nats://{server}", stream, subject, format, follow=follow, options=login)


@register_source("mqtt")
def _mqtt(address: str, options: dict[str, str], schema: Schema) -> LiveSource:
    _only(f"mqtt:{address}", options, "format", "client", *LOGIN)
    example = "mqtt:127.0.0.1:1883/sensors/#?client=my-service"
    server, topic = _server(f"source 'mqtt:{address}'", address, example)
    host, _, port = server.rpartition(":")
    if "client" not in options:
        msg = f"source 'mqtt:{address}': must have a client id that stays the same, as in {example}"
        raise UsageError(msg)
    login = login_of(f"source 'mqtt:{address}'", options, "MQTT_PASSWORD").for_mqtt()
    return Mqtt(host, topic, options["client"], _format("", options), port=int(port), **login)


@register_source("postgres")
def _postgres(address: str, options: dict[str, str], schema: Schema) -> LiveSource:
    _only(f"postgres:{address}", options, "publication", "slot", "format", *LOGIN)
    example = "postgres:127.0.0.1:5432/shop?publication=orders"
    server, database = _server(f"source 'postgres:{address}'", address, example)
    if "publication" not in options:
        msg = f"source 'postgres:{address}': must have ?publication=NAME, of the tables that are read"
        raise UsageError(msg)
    slot = options.get("slot", "oop_engine")
    format = options.get("format", "jsonl")
    dsn = login_of(f"source 'postgres:{address}'", options, None).postgres_dsn(server, database)
    return PostgresChanges(dsn, options["publication"], slot, format=format)


def _web_socket(kind: str) -> SourceMaker:
    def made(address: str, options: dict[str, str], schema: Schema) -> LiveSource:
        format = _format("", _own(options))  # the other options belong to the address
        return WebSocket(f"{kind}:{address}{'?' * bool(options)}{urlencode(options)}", format)

    return made


for _name in ("ws", "wss"):
    SOURCES.register(_name, _web_socket(_name), __name__)


@register_source("sse")
def _sse(address: str, options: dict[str, str], schema: Schema) -> LiveSource:
    format, event = _format("", _own(options)), options.pop("event", None)
    return ServerEvents(f"{address}{'?' * bool(options)}{urlencode(options)}", format, event=event)


def _own(options: dict[str, str]) -> dict[str, str]:
    """Take the options of the format out of those of an address."""
    return {name: options.pop(name) for name in ("format", "registry") if name in options}


def _part_files(format: str) -> SinkMaker:
    def made(address: str, options: dict[str, str]) -> LiveSink:
        _only(f"{format}:{address}", options, "compressed")
        codec = options.get("compressed", "")
        if codec and f".{codec}" not in CODECS:
            known = " or ".join(each[1:] for each in CODECS)
            msg = f"sink '{format}:{address}': compressed must be {known}; got {codec!r}"
            raise UsageError(msg)
        if Path(address).is_file():
            msg = (
                f"sink '{format}:{address}': must be a folder, to which each checkpoint adds a file; got a file: "
                f"file:{address} appends to it"
            )
            raise UsageError(msg)
        return PartFiles(address, f"{format}.{codec}" if codec else format)

    return made


for _name in FORMATS.registered():
    SINKS.register(_name, _part_files(_name), __name__)


@register_sink("file")
def _one_file(address: str, options: dict[str, str]) -> LiveSink:
    _only(f"file:{address}", options, "format")
    return OneFile(address, options.get("format"))


@register_sink("kafka")
def _kafka_topic(address: str, options: dict[str, str]) -> LiveSink:
    _only(f"kafka:{address}", options, "key", "format", "mechanism", *LOGIN)
    servers, topic = _server(f"sink 'kafka:{address}'", address, "kafka:127.0.0.1:9092/results")
    login = login_of(f"sink 'kafka:{address}'", options, "KAFKA_PASSWORD").for_kafka()
    return KafkaTopic(servers, topic, options.get("key"), _format("", options), options=login)


@register_sink("redis")
def _redis_entries(address: str, options: dict[str, str]) -> LiveSink:
    _only(f"redis:{address}", options, "format", "field", "db", "most", *LOGIN)
    place = f"sink 'redis:{address}'"
    server, stream = _server(place, address, "redis:127.0.0.1:6379/results")
    if not (most := options.get("most", "0")).isdigit():
        msg = f"{place}: most must be a number of entries; got {most!r}"
        raise UsageError(msg)
    login = login_of(place, options, "REDIS_PASSWORD")
    url, field = login.redis_url(server, options.get("db", "0")), options.get("field", "data")
    return RedisEntries(url, stream, _format("", options), field=field, most=int(most) or None)


@register_sink("nats")
def _jet_stream_subject(address: str, options: dict[str, str]) -> LiveSink:
    _only(f"nats:{address}", options, "format", *LOGIN)
    server, subject = _server(f"sink 'nats:{address}'", address, "nats:127.0.0.1:4222/results.per-minute")
    login = login_of(f"sink 'nats:{address}'", options, "NATS_PASSWORD").for_nats()
    return JetStreamSubject(f"nats://{server}", subject, _format("", options), options=login)


@register_sink("delta")
def _delta(address: str, options: dict[str, str]) -> LiveSink:
    _only(f"delta:{address}", options, "key")
    return DeltaFolder(address, key=_key(options))


@register_sink("postgres")
def _postgres_table(address: str, options: dict[str, str]) -> LiveSink:
    _only(f"postgres:{address}", options, "table", "key", *LOGIN)
    example = "postgres:127.0.0.1:5432/shop?table=per_minute&key=host,window_end"
    server, database = _server(f"sink 'postgres:{address}'", address, example)
    if "table" not in options:
        msg = f"sink 'postgres:{address}': must have a table, as in {example}"
        raise UsageError(msg)
    dsn = login_of(f"sink 'postgres:{address}'", options, None).postgres_dsn(server, database)
    return PostgresTable(dsn, options["table"], _key(options))


@register_sink("print")
def _print(address: str, options: dict[str, str]) -> LiveSink:
    """Print results as JSON lines, at once: after a crash some come again."""
    _only("print", options)
    if address:
        msg = f"sink 'print:{address}': has no address, for it prints results; into files they go with jsonl:DIR"
        raise UsageError(msg)

    def show(page: Page) -> None:
        for row in page.to_pylist():
            print(as_json(row), flush=True)

    return Callback(show)
