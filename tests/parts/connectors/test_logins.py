"""Logins and TLS on the command line, tried on servers on loopback."""

from __future__ import annotations

import json
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Schema, UsageError
from oop_engine.connectors.by_name import sink_of, source_of
from oop_engine.errors import SetupError
from oop_engine.extend import LiveSource
from oop_engine.runners.event_loop import run_async
from tests.children import MOST_S
from tests.parts.connectors.servers import IN_A_ROW, free_port, program, served

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")
SECRET = "open sesame/@:"
pytestmark = IN_A_ROW


@pytest.fixture(autouse=True)
def passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KAFKA", "NATS", "MQTT", "REDIS"):
        monkeypatch.setenv(f"{name}_PASSWORD", SECRET)


@pytest.mark.parametrize("kind", ["kafka", "nats", "redis", "mqtt"])
def test_a_user_needs_a_password_in_the_environment(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{kind}:127.0.0.1:1/name?user=me{'&client=c' * (kind == 'mqtt')}"
    source_of(text, SCHEMA)
    monkeypatch.delenv(f"{kind.upper()}_PASSWORD")
    with pytest.raises(
        UsageError, match=f"needs a password: set the environment variable {kind.upper()}_PASSWORD"
    ):
        source_of(text, SCHEMA)
    if kind != "mqtt":
        with pytest.raises(UsageError, match="needs a password"):
            sink_of(text)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("tls=maybe", "tls must be yes or no; got 'maybe'"),
        ("ca=no-such.pem", r"ca must be a file \(PEM\); there is none at no-such.pem"),
        ("mechanism=MD5", "mechanism must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512; got 'MD5'"),
        ("mechanism=PLAIN", "mechanism is that of a user: add user=NAME"),
        ("passwd=x", "unknown option 'passwd'"),
    ],
)
def test_a_wrong_option_is_told(option: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        source_of(f"kafka:127.0.0.1:1/name?{option}", SCHEMA)


def test_options_of_kafka_and_postgres(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text("")
    found: Any = source_of(f"kafka:127.0.0.1:1/name?user=me&mechanism=SCRAM-SHA-512&ca={ca}", SCHEMA)
    wanted = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "me",
              "sasl.password": SECRET, "ssl.ca.location": str(ca)}  # fmt: skip
    assert wanted.items() <= found._options.items()
    made: Any = sink_of(f"kafka:127.0.0.1:1/name?user=me&tls=yes&ca={ca}")
    assert made._options["security.protocol"] == "SASL_SSL"
    plain: Any = source_of("kafka:127.0.0.1:1/name", SCHEMA)
    assert "security.protocol" not in plain._options
    table: Any = sink_of(f"postgres:127.0.0.1:1/shop?table=t&user=a b&ca={ca}")
    assert table._dsn.startswith("postgresql://a%20b@127.0.0.1:1/shop?sslmode=verify-full&sslrootcert=")
    changes: Any = source_of("postgres:127.0.0.1:1/shop?publication=t", SCHEMA)
    assert changes._dsn == "postgresql://127.0.0.1:1/shop"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an authority (``ca.pem``), and a certificate of 127.0.0.1 (``server.pem``, ``server.key``)."""
    folder, openssl = tmp_path_factory.mktemp("tls"), program("openssl", "openssl")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    for command in (
        ["req", "-x509", *made, "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem"],
        ["req", *made, "-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr"],
        ["x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
         "-extfile", "names", "-out", "server.pem"],
    ):  # fmt: skip
        subprocess.run([openssl, *command], cwd=folder, check=True, capture_output=True, timeout=MOST_S)
    for each in folder.iterdir():
        each.chmod(0o644)
    return folder


async def first(source: LiveSource) -> Any:
    async with aclosing(source.read(None)) as pieces:  # type: ignore[type-var]
        async for data, _ in pieces:
            if data:
                return json.loads(data[0])
    return None


@pytest.fixture(scope="module")
def nats_server(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("nats", reason="nats-py is not installed (the extra nats)")
    folder, port = tmp_path_factory.mktemp("nats"), free_port()
    files = f'cert_file: "{certificates}/server.pem", key_file: "{certificates}/server.key"'
    (folder / "nats.conf").write_text(
        f'listen: "127.0.0.1:{port}"\njetstream {{ store_dir: "{folder}" }}\ntls {{ {files} }}\n'
        f'authorization {{ user: me, password: "{SECRET}" }}\n'
    )
    with served([program("nats-server", "nats-server"), "-c", "nats.conf"], "Server is ready", folder):
        yield f"127.0.0.1:{port}"


def test_nats_with_a_login_over_tls(
    nats_server: str, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nats

    async def send() -> None:
        context = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
        client = await nats.connect(f"nats://{nats_server}", user="me", password=SECRET, tls=context)
        await client.jetstream().add_stream(name="in", subjects=["in"])
        await client.jetstream().publish("in", b'{"ts": 7}')
        await client.close()

    run_async(send())
    text = f"nats:{nats_server}/in?user=me&follow=no&ca={certificates / 'ca.pem'}"
    assert run_async(first(source_of(text, SCHEMA))) == {"ts": 7}
    monkeypatch.setenv("NATS_PASSWORD", "wrong-password")
    for wrong in (text, text.replace(f"&ca={certificates / 'ca.pem'}", "&tls=yes")):
        with pytest.raises(SetupError) as told:
            run_async(first(source_of(wrong, SCHEMA)))
        assert ("certificate is not trusted" in str(told.value)) == ("tls=yes" in wrong)
        assert "wrong-password" not in str(told.value)
        assert "\n" not in str(told.value)


def test_mqtt_with_a_login_over_tls(certificates: Path, tmp_path: Path) -> None:
    pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed (the extra mqtt)")
    port = free_port()
    passwords, chosen = program("mosquitto_passwd", "mosquitto"), tmp_path / "passwords"
    subprocess.run(
        [passwords, "-c", "-b", str(chosen), "me", SECRET], check=True, capture_output=True, timeout=MOST_S
    )
    chosen.chmod(0o644)
    tmp_path.chmod(0o755)
    (tmp_path / "mosquitto.conf").write_text(
        f"user root\nlistener {port} 127.0.0.1\ncertfile {certificates}/server.pem\nkeyfile {certificates}/server.key\n"
        f"password_file {chosen}\n"
    )
    send = [program("mosquitto_pub", "mosquitto-clients"), "-h", "127.0.0.1", "-p", str(port), "-u", "me", "-P", SECRET,
            "--cafile", str(certificates / "ca.pem"), "-t", "in", "-m", '{"ts": 7}', "-r", "-q", "1"]  # fmt: skip
    with served([program("mosquitto", "mosquitto"), "-v", "-c", "mosquitto.conf"], "running", tmp_path):
        subprocess.run(send, check=True, timeout=MOST_S, capture_output=True)
        text = f"mqtt:127.0.0.1:{port}/in?client=c&user=me&ca={certificates / 'ca.pem'}"
        assert run_async(first(source_of(text, SCHEMA))) == {"ts": 7}


def test_redis_with_a_login_over_tls(certificates: Path, tmp_path: Path) -> None:
    redis = pytest.importorskip("redis", reason="redis is not installed (the extra redis)")
    port = free_port()
    command = [program("redis-server", "redis-server"), "--port", "0", "--tls-port", str(port), "--bind", "127.0.0.1",
               "--save", "", "--tls-cert-file", str(certificates / "server.pem"), "--tls-key-file",
               str(certificates / "server.key"), "--tls-ca-cert-file", str(certificates / "ca.pem"),
               "--tls-auth-clients", "no",
               "--user", "me", "on", f">{SECRET.replace(' ', '')}", "~*", "+@all"]  # fmt: skip
    try:
        with served(command, "eady to accept connections", tmp_path), pytest.MonkeyPatch.context() as patch:
            patch.setenv("REDIS_PASSWORD", SECRET.replace(" ", ""))
            text = f"redis:127.0.0.1:{port}/in?user=me&ca={certificates / 'ca.pem'}"
            made: Any = source_of(f"{text}&follow=no", SCHEMA)
            with redis.Redis.from_url(made._url) as client:
                client.xadd("in", {"data": '{"ts": 7}'})
            assert run_async(first(made)) == {"ts": 7}
    except AssertionError as error:
        if "tls" in str(error).lower():
            pytest.skip("this redis-server has no TLS")
        raise
