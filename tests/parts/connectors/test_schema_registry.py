"""Avro and Protobuf with a schema registry: schemas that change, registries that are away."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from oop_engine import Graph, GraphError, Page, Schema, serve
from oop_engine.connectors.by_name import source_of
from oop_engine.connectors.registry.wire import with_head
from oop_engine.core.errors import UsageError
from oop_engine.errors import SetupError
from oop_engine.extend import LiveSource
from oop_engine.formats import Avro, Protobuf
from oop_engine.operators import Ordered, Punctuate
from oop_engine.service.letters.letter_folder import LetterFolder
from oop_engine.sinks import Gathered, PartFiles

fastavro = pytest.importorskip("fastavro", reason="fastavro is not installed (the extra avro)")
registries = pytest.importorskip(
    "confluent_kafka.schema_registry", reason="confluent-kafka has no registry client"
)
pytest.importorskip(
    "google.type.date_pb2", reason="googleapis-common-protos is not installed (the extra protobuf)"
)


class Messages(LiveSource):
    """Some messages, one after the other."""

    replayable = True

    def __init__(self, format: Any, *payloads: bytes) -> None:
        self.format, self._payloads = format, payloads

    async def read(self, position: Any) -> AsyncIterator[tuple[Any, Any]]:
        for number in range(position or 0, len(self._payloads)):
            yield [self._payloads[number]], number + 1


def rows(source: LiveSource, kinds: dict[str, pa.DataType], dead: Path | None = None) -> list[dict[str, Any]]:
    graph, results = Graph("typed"), Gathered()
    graph.sink("out", graph.add("edge", Punctuate(Ordered()), graph.source("in", Schema(kinds, "ts", "s"))))
    letters = None if dead is None else PartFiles(dead, "jsonl")
    asyncio.run(serve(graph, {"in": source}, {"out": results}, dead_letters=letters))
    return results.rows


def letters_of(dead: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for file in sorted(dead.glob("*.jsonl")) for line in file.read_text().splitlines()
    ]


@pytest.fixture
def registry() -> Any:
    return registries.SchemaRegistryClient.new_client({"url": "mock://"})


def avro(
    registry: Any, fields: list[Any], *contents: dict[str, Any], subject: str = "in-value"
) -> list[bytes]:
    """Return messages of a record with these fields."""
    schema = {"type": "record", "name": "Row", "fields": fields}
    number = registry.register_schema(subject, registries.Schema(json.dumps(schema), "AVRO"))
    found = []
    for content in contents:
        sink = io.BytesIO()
        fastavro.schemaless_writer(sink, fastavro.parse_schema(schema), content)
        found.append(with_head(number, sink.getvalue()))
    return found


def field(name: str, of: Any) -> dict[str, Any]:
    return {"name": name, "type": of}


def logical(of: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": of, "logicalType": name, **more}


TS = field("ts", "long")


def test_logical_types_of_avro_are_exact(registry: Any) -> None:
    fields = [TS, field("ms", logical("long", "timestamp-millis")),
              field("us", logical("long", "timestamp-micros")),
              field("ns", logical("long", "timestamp-nanos")),
              field("local", logical("long", "local-timestamp-micros")),
              field("day", logical("int", "date")), field("at", logical("long", "time-micros")),
              field("sum", logical("bytes", "decimal", precision=30, scale=2)), field("id", logical("string", "uuid")),
              field("kind", {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}),
              field("maybe", ["null", "string"])]  # fmt: skip
    far = 2**55
    sent = avro(registry, fields, {
        "ts": 1, "ms": 1_700_000_000_123, "us": far, "ns": 1_700_000_000_123_456_789, "local": 5,
        "day": date(1969, 12, 31),
        "at": time(23, 59, 59, 999_999), "sum": Decimal("-1234567890123456789012345.25"),
        "id": "12345678-1234-5678-1234-567812345678", "kind": "B", "maybe": None,
    })  # fmt: skip
    kinds = {"ts": pa.int64(), "ms": pa.timestamp("us", "UTC"), "us": pa.timestamp("us", "UTC"),
             "ns": pa.timestamp("ns", "UTC"),
             "local": pa.timestamp("ns"), "day": pa.date32(), "at": pa.time64("ns"), "sum": pa.decimal128(38, 3),
             "id": pa.string(), "kind": pa.dictionary(pa.int32(), pa.string()), "maybe": pa.string()}  # fmt: skip
    graph, results = Graph("typed"), Pages()
    graph.sink("out", graph.add("edge", Punctuate(Ordered()), graph.source("in", Schema(kinds, "ts", "s"))))
    asyncio.run(serve(graph, {"in": Messages(Avro(registry), *sent)}, {"out": results}))
    found = {
        name: column for page in results.pages for name, column in zip(kinds, page.batch.columns, strict=True)
    }
    numbers = {name: found[name].cast(pa.int64()).to_pylist() for name in ("ms", "us", "ns", "local", "at")}
    assert numbers == {"ms": [1_700_000_000_123_000], "us": [far], "ns": [1_700_000_000_123_456_789],
                       "local": [5000], "at": [86_399_999_999_000]}  # fmt: skip
    rest = {name: found[name].to_pylist() for name in ("day", "sum", "id", "kind", "maybe")}
    assert rest == {"day": [date(1969, 12, 31)], "sum": [Decimal("-1234567890123456789012345.250")],
                    "id": ["12345678-1234-5678-1234-567812345678"], "kind": ["B"], "maybe": [None]}  # fmt: skip


class Pages(Gathered):
    """Keeps pages as they come."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: list[Page] = []

    async def write(self, epoch: int, page: Page) -> None:
        self.pages.append(page)

    async def prepare(self, epoch: int) -> Any:
        return None

    async def commit(self, prepared: Any) -> None:
        return


def test_schemas_of_avro_that_change_are_read_by_the_declared_one(registry: Any) -> None:
    address = {"type": "record", "name": "Address", "fields": [field("city", "string")]}
    longer = {"type": "record", "name": "Address", "fields": [field("zip", "int"), field("city", "string")]}
    sent = [
        *avro(registry, [TS, field("n", "int"), field("at", address)], {"ts": 1, "n": 5, "at": {"city": "Ulm"}}),
        *avro(registry, [field("n", "double"), TS, field("more", "string")], {"ts": 2, "n": 6.0, "more": "x"}),
        *avro(registry, [TS, field("n", "float"), field("at", ["null", longer])],
              {"ts": 3, "n": 0.5, "at": {"zip": 1, "city": "Bonn"}}),
    ]  # fmt: skip
    kinds = {
        "ts": pa.int64(),
        "n": pa.float64(),
        "at": pa.struct({"city": pa.string(), "street": pa.string()}),
    }
    assert rows(Messages(Avro(registry), *sent), kinds) == [
        {"ts": 1, "n": 5.0, "at": {"city": "Ulm", "street": None}},
        {"ts": 2, "n": 6.0, "at": None},
        {"ts": 3, "n": 0.5, "at": {"city": "Bonn", "street": None}},
    ]


def test_a_uuid_of_avro_is_a_text_whether_it_is_16_bytes_or_a_text(registry: Any) -> None:
    made = UUID("12345678-1234-5678-1234-567812345678")
    fixed = {"type": "fixed", "size": 16, "name": "Id", "logicalType": "uuid"}
    fields = [TS, field("bytes", fixed), field("maybe", ["null", "Id"]),
              field("many", {"type": "array", "items": "Id"}),
              field("either", ["long", logical("string", "uuid")])]  # fmt: skip
    sent = avro(
        registry, fields, {"ts": 1, "bytes": made.bytes, "maybe": None, "many": [made.bytes], "either": made}
    )
    kinds = {"ts": pa.int64(), "bytes": pa.string(), "maybe": pa.string(), "many": pa.list_(pa.string()),
             "either": pa.string()}  # fmt: skip
    assert rows(Messages(Avro(registry), *sent), kinds) == [
        {"ts": 1, "bytes": str(made), "maybe": None, "many": [str(made)], "either": str(made)}
    ]


def test_unions_lists_and_maps_of_avro(registry: Any) -> None:
    fields = [TS, field("either", ["null", "string", "long"]),
              field("tags", {"type": "array", "items": ["null", "string"]}),
              field("counts", {"type": "map", "values": "long"})]  # fmt: skip
    sent = avro(registry, fields, {"ts": 1, "either": 7, "tags": ["a", None], "counts": {"x": 1}},
                {"ts": 2, "either": "8", "tags": [], "counts": {}})  # fmt: skip
    kinds = {
        "ts": pa.int64(),
        "either": pa.int64(),
        "tags": pa.list_(pa.string()),
        "counts": pa.map_(pa.string(), pa.int8()),
    }
    assert rows(Messages(Avro(registry), *sent), kinds) == [
        {"ts": 1, "either": 7, "tags": ["a", None], "counts": [("x", 1)]},
        {"ts": 2, "either": 8, "tags": [], "counts": []},
    ]


def test_messages_that_are_none_of_the_registry_are_dead_letters(registry: Any, tmp_path: Path) -> None:
    good = avro(registry, [TS, field("n", "long")], {"ts": 1, "n": 2}, {"ts": 3, "n": 2**40})
    [other] = avro(registry, [TS, field("n", "boolean")], {"ts": 4, "n": True}, subject="other")
    sent = [good[0], b'{"ts": 1}', b"", with_head(99, b"\2"), good[0][:-1], good[0] + b"!", other, good[1]]
    assert rows(Messages(Avro(registry), *sent), {"ts": pa.int64(), "n": pa.int32()}, tmp_path) == [
        {"ts": 1, "n": 2}
    ]
    found = letters_of(tmp_path)
    parts = ["no schema id: it begins with the byte 0x7b", "no schema id: it has 0 bytes", "no schema 99",
             "the content is not of its schema", "1 bytes are left over", "n: cannot read bool as int32",
             "n: cannot read 1099511627776 as int32"]  # fmt: skip
    assert len(found) == len(parts)
    for letter, part in zip(found, parts, strict=True):
        assert part in letter["reason"]
    assert [json.loads(letter["position"]) for letter in found] == [*range(1, 8)]
    assert found[4]["coding"] in ("base64", "text")
    assert LetterFolder(tmp_path) is not None


def descriptor(fields: list[tuple[str, int, Any]], name: str = "Row", **more: Any) -> Any:
    """Return a file with a message type: name, number of the type, and whatever a field has besides."""
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", package="shop", syntax="proto3", **more)
    message = file.message_type.add(name=name)
    for number, (each, kind, rest) in enumerate(fields, 1):
        message.field.add(name=each, number=number, type=kind, label=rest.pop("label", 1), **rest)
    return file


def protobuf(registry: Any, file: Any, *contents: dict[str, Any], subject: str = "in-value") -> list[bytes]:
    from google.protobuf import json_format, message_factory

    from oop_engine.connectors.registry.protobuf_pool import message_types

    text = b64encode(file.SerializeToString()).decode()
    number = registry.register_schema(subject, registries.Schema(text, "PROTOBUF"))
    kind = message_factory.GetMessageClass(
        message_types(text, {}, "test").message_types_by_name[file.message_type[0].name]
    )
    return [
        with_head(number, b"\0" + json_format.ParseDict(content, kind()).SerializeToString())
        for content in contents
    ]


def test_fields_of_protobuf(registry: Any) -> None:
    file = descriptor(
        [("ts", 3, {}), ("name", 9, {}), ("at", 11, {"type_name": ".google.protobuf.Timestamp"}),
         ("maybe", 11, {"type_name": ".google.protobuf.Int64Value"}), ("day", 11, {"type_name": ".google.type.Date"}),
         ("sum", 11, {"type_name": ".google.type.Decimal"}), ("tags", 9, {"label": 3}), ("n", 4, {}), ("data", 12, {})],
        dependency=["google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto", "google/type/date.proto",
                    "google/type/decimal.proto"],
    )  # fmt: skip
    sent = protobuf(registry, file, {
        "ts": 1, "name": "a", "at": "1969-12-31T23:59:59.999Z", "maybe": 0,
        "day": {"year": 2024, "month": 2, "day": 29},
        "sum": {"value": "1.25"}, "tags": ["x", "y"], "n": 2**64 - 1, "data": "/w=="},
        {"ts": 2})  # fmt: skip
    kinds = {"ts": pa.int64(), "name": pa.string(), "at": pa.timestamp("ms", "UTC"), "maybe": pa.int8(),
             "day": pa.date32(),
             "sum": pa.decimal128(10, 2), "tags": pa.list_(pa.string()), "n": pa.uint64(), "data": pa.binary(),
             "gone": pa.string()}  # fmt: skip
    assert rows(Messages(Protobuf(registry), *sent), kinds) == [
        {"ts": 1, "name": "a", "at": datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC), "maybe": 0,
         "day": date(2024, 2, 29),
         "sum": Decimal("1.25"), "tags": ["x", "y"], "n": 2**64 - 1, "data": b"\xff", "gone": None},
        {"ts": 2, "name": "", "at": None, "maybe": None, "day": None, "sum": None, "tags": [], "n": 0,
         "data": b"", "gone": None},
    ]  # fmt: skip


def test_messages_that_are_no_protobuf_are_dead_letters(registry: Any, tmp_path: Path) -> None:
    [good] = protobuf(registry, descriptor([("ts", 3, {}), ("name", 9, {})]), {"ts": 1, "name": "abc"})
    sent = [good, good[:-2], good[:5], with_head(1, b"\x02\x0a") + good[6:], b"no"]
    assert rows(Messages(Protobuf(registry), *sent), {"ts": pa.int64(), "name": pa.string()}, tmp_path) == [
        {"ts": 1, "name": "abc"}
    ]
    reasons = [letter["reason"] for letter in letters_of(tmp_path)]
    parts = ["not of its schema", "ends before its content", "no message type at [5]", "no schema id"]
    assert all(part in reason for part, reason in zip(parts, reasons, strict=True))


OF_TEXT = """
syntax = "proto3"; package shop;
import "google/type/date.proto"; import "parts/place.proto";
message Other { string x = 1; }
message Row { int64 ts = 1; Place place = 2; google.type.Date day = 3; }
"""


def of_text(registry: Any, text: str, *references: Any) -> list[bytes]:
    """Return a message of the second type of a schema of text: a time, a place, a day."""
    number = registry.register_schema("in-value", registries.Schema(text, "PROTOBUF", list(references)))
    return [
        with_head(number, b"\x02\x02" + bytes.fromhex("08 05  12 04 0a 02 61 62  1a 07 08 e8 0f 10 02 18 1d"))
    ]


def test_schemas_of_protobuf_that_are_texts(registry: Any, tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools", reason="grpcio-tools is not installed (the extra protobuf)")
    place = 'syntax = "proto3"; package shop; message Place { string name = 1; }'
    registry.register_schema("place", registries.Schema(place, "PROTOBUF"))
    kinds = {"ts": pa.int64(), "place": pa.struct({"name": pa.string()}), "day": pa.date32()}
    refers = registries.SchemaReference("parts/place.proto", "place", 1)
    sent = of_text(registry, OF_TEXT, refers)
    assert rows(Messages(Protobuf(registry), *sent), kinds) == [
        {"ts": 5, "place": {"name": "ab"}, "day": date(2024, 2, 29)}
    ]
    wrong = of_text(registry, OF_TEXT.replace("int64 ts", "int65 ts"), refers)
    assert rows(Messages(Protobuf(registry), *wrong), kinds, tmp_path) == []
    [letter] = letters_of(tmp_path)
    assert 'cannot be read: oop_engine_schema.proto:5:15: "int65" is not defined' in letter["reason"]


def test_connections_to_a_registry_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    made, make = list[Any](), registries.SchemaRegistryClient.new_client

    def remembered(conf: Any) -> Any:
        made.append(make(conf))
        return made[-1]

    monkeypatch.setattr(registries.SchemaRegistryClient, "new_client", remembered)
    with http_registry([(200, SCHEMA)]) as found:
        assert len(rows(Messages(Avro(found.url), ONE, TWO), {"ts": pa.int64()})) == 2
    assert [client._rest_client.session.is_closed for client in made] == [True, True]


@contextmanager
def http_registry(answers: list[tuple[int, bytes]]) -> Iterator[Any]:
    """Serve answers in turn, the last one for good, at an address on loopback; ``asked`` has the paths."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            status, body = answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: Any) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}", asked=asked)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


SCHEMA = json.dumps({"schema": json.dumps({"type": "record", "name": "Row", "fields": [TS]})}).encode()
ONE = with_head(1, b"\x02")
TWO = with_head(2, b"\x04")


def test_a_registry_that_fails_is_tried_again_and_one_that_refuses_ends_the_service(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setattr("oop_engine.connectors.link._FIRST_S", 0.01)
    unknown = b'{"error_code": 40403, "message": "Schema not found"}'
    with http_registry([(200, SCHEMA), (503, b"{}"), (500, b"no"), (200, SCHEMA), (404, unknown)]) as found:
        sent = [ONE, TWO, ONE, with_head(3, b"\x06"), with_head(3, b"\x06")]
        with caplog.at_level(logging.WARNING, "oop_engine"):
            got = rows(Messages(Avro(found.url), *sent), {"ts": pa.int64()}, tmp_path)
        assert [row["ts"] for row in got] == [1, 2]  # the third is late: it comes behind
        assert len(found.asked) == 5
        assert [letter["reason"] for letter in letters_of(tmp_path)] == [
            "the schema registry has no schema 3"
        ] * 2
    lines = [line for line in caplog.messages if "schema registry" in line]
    assert "the connection is lost" in lines[0]
    assert lines[0].count("schema registry at") == 1
    assert "is back" in lines[1]
    for status, body, words in (
        (401, b'{"error_code": 40101, "message": "Unauthorized"}', "refuses"),
        (200, b"<html>", "no schema registry answers"),
        (404, b"<html>", "refuses"),
    ):
        with http_registry([(status, body)]) as found, pytest.raises(SetupError, match=words) as told:
            rows(
                Messages(Avro(found.url.replace("http://", "http://me:open-sesame@")), ONE),
                {"ts": pa.int64()},
            )
        assert "open-sesame" not in str(told.value)
    with pytest.raises(SetupError, match=r"schema registry at http://127.0.0.1:1: does not answer"):
        rows(Messages(Avro("http://127.0.0.1:1"), ONE), {"ts": pa.int64()})


def test_a_service_whose_registry_is_away_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, results, stop = Graph("typed"), Gathered(), asyncio.Event()
    graph.sink(
        "out",
        graph.add("edge", Punctuate(Ordered()), graph.source("in", Schema({"ts": pa.int64()}, "ts", "s"))),
    )

    async def main(url: str, asked: list[str]) -> Any:
        running = asyncio.create_task(
            serve(graph, {"in": Messages(Avro(url), ONE, TWO)}, {"out": results}, stop=stop)
        )
        while len(asked) < 2:
            await asyncio.sleep(0.01)
        stop.set()
        return await running

    with http_registry([(200, SCHEMA), (503, b"{}")]) as found:
        assert asyncio.run(main(found.url, found.asked)).tuples == {"in": 1}


def test_formats_with_a_registry_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = Schema({"ts": pa.int64()}, "ts", "s")
    monkeypatch.setenv("SCHEMA_REGISTRY_BASIC_AUTH_USER_INFO", "me:open-sesame")
    text = "kafka:127.0.0.1:9092/in?format=avro&registry=http://127.0.0.1:8081"
    found = source_of(text, schema).format
    assert isinstance(found, Avro)
    assert found._options == {"basic.auth.user.info": "me:open-sesame"}
    assert isinstance(source_of(text.replace("avro", "protobuf"), schema).format, Protobuf)
    for wrong in (text.replace("avro", "csv"), text.partition("&")[0]):
        with pytest.raises(UsageError, match=r"as in \?format=avro&registry=http://127.0.0.1:8081"):
            source_of(wrong, schema)


@pytest.mark.parametrize("of", [Avro, Protobuf])
def test_a_column_that_the_format_cannot_have_is_told_when_a_sink_opens(of: Any, registry: Any) -> None:
    for fields in ({"a b": pa.int64()}, {"length": pa.duration("s")}):
        with pytest.raises(GraphError, match="column"):
            asyncio.run(of(registry).writer(pa.schema(fields), "topic", "sink"))


def test_envelopes_of_debezium_in_avro(registry: Any, tmp_path: Path) -> None:
    row = {"type": "record", "name": "Value", "namespace": "shop", "fields": [
        TS, field("at", {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}),
        field("sum", ["null", logical("bytes", "decimal", precision=10, scale=2)])]}  # fmt: skip
    fields = [field("before", ["null", row]), field("after", ["null", "shop.Value"]), field("op", "string")]
    old, new = {"ts": 1, "at": 1_500_000, "sum": Decimal("1.25")}, {"ts": 2, "at": 0, "sum": None}
    sent = avro(registry, fields, {"before": None, "after": old, "op": "c"}, {"before": old, "after": new, "op": "u"},
                {"before": None, "after": None, "op": "d"})  # fmt: skip
    kinds = {"ts": pa.int64(), "at": pa.timestamp("ms"), "sum": pa.decimal128(12, 3), "change": pa.int8()}
    told: list[str] = []
    schema = Schema(kinds, "ts", "s", "change")
    made = Avro(registry, debezium=True).reader(
        schema, "in", lambda reason, record, rows: told.append(reason), {}
    )
    payloads = [*sent, b"no", sent[0][:7]]
    asyncio.run(made.ready(payloads))
    found = [each for m in made.messages(payloads) if isinstance(m, Page) for each in m.to_pylist()]
    assert [(each["ts"], each["change"], each["sum"]) for each in found] == [
        (1, 1, Decimal("1.250")), (1, -1, Decimal("1.250")), (2, 1, None)
    ]  # fmt: skip
    assert found[0]["at"] == datetime(1970, 1, 1, 0, 0, 1, 500_000)
    assert len(told) == 3
    assert "delete of table None has no row before it" in told[0]
