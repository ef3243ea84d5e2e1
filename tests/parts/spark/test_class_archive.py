"""Class archive: a session maps the one that fits its Java and its Spark, and a new one is there as a whole or not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from oop_engine.core.errors import SetupError
from oop_engine.lab.warm_spark import warm_spark
from oop_engine.spark.session.class_archive import archive_of, check_taken, is_archived, mapped, written
from oop_engine.spark.session.java import java_home
from oop_engine.spark.session.settings import JVM_OPTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home of a Java that has an archive of its own classes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    server = tmp_path / "java" / "lib" / "server"
    server.mkdir(parents=True)
    (server / "classes.jsa").touch()
    return tmp_path / "java"


def archived(home: Path) -> Path:
    archive_of(home).parent.mkdir(parents=True, exist_ok=True)
    archive_of(home).touch()
    return archive_of(home)


def test_a_session_maps_the_archive_that_is_there(home: Path) -> None:
    given = {JVM_OPTIONS: "-Xss2m", "spark.master": "local[2]"}
    assert mapped(given, home) == given
    file = archived(home)
    assert mapped(given, home) == given | {JVM_OPTIONS: f'-Xss2m "-XX:SharedArchiveFile={file}"'}
    assert mapped({}, home) == {JVM_OPTIONS: f'"-XX:SharedArchiveFile={file}"'}


@pytest.mark.parametrize("option", ["-XX:SharedArchiveFile=mine.jsa", "-XX:ArchiveClassesAtExit=mine.jsa"])
def test_an_archive_that_is_named_is_taken(home: Path, option: str) -> None:
    archived(home)
    assert mapped({JVM_OPTIONS: option}, home) == {JVM_OPTIONS: option}
    assert is_archived({JVM_OPTIONS: option}) == ("AtExit" in option)


def test_another_java_has_another_archive(home: Path) -> None:
    before = archive_of(home)
    (home / "release").write_text('JAVA_VERSION="21.0.8"')
    assert archive_of(home) != before


def test_what_was_written_is_in_its_place_as_a_whole(home: Path) -> None:
    with written(home) as options:
        new = Path(options.strip('"').removeprefix("-XX:ArchiveClassesAtExit="))
        new.write_text("classes")
        assert not archive_of(home).exists()
    assert archive_of(home).read_text() == "classes"
    assert [*archive_of(home).parent.iterdir()] == [archive_of(home)]


def test_a_java_that_writes_none_is_named(home: Path) -> None:
    with pytest.raises(SetupError, match=f"the Java of {home} has written no archive"), written(home):
        pass
    assert [*archive_of(home).parent.iterdir()] == []


def test_a_folder_that_cannot_be_made_is_named(home: Path) -> None:
    (home.parent / "cache").touch()
    with pytest.raises(SetupError, match=r"set XDG_CACHE_HOME .*cache"), written(home):
        pass


def test_a_failure_within_leaves_nothing(home: Path) -> None:
    made = written(home)
    Path(made.__enter__().strip('"').removeprefix("-XX:ArchiveClassesAtExit=")).touch()
    error = KeyError()
    assert not made.__exit__(KeyError, error, None)
    assert [*archive_of(home).parent.iterdir()] == []


SCRIPT = pytest.mark.skipif(sys.platform == "win32", reason="the Java of this test is a shell script")


def java(home: Path, text: str) -> None:
    (home / "bin").mkdir()
    (home / "bin" / "java").write_text(f"#!/bin/sh\n{text}\n")
    (home / "bin" / "java").chmod(0o755)


@SCRIPT
def test_an_archive_that_its_java_does_not_take_goes(home: Path) -> None:
    java(home, '[ "$1$3$4" = "-Xshare:on-cpspark.jar" ]')
    file = archived(home)
    check_taken(home, "spark.jar")
    assert file.exists()
    file.with_suffix(".base.jsa").touch()
    with pytest.raises(SetupError, match=f"the Java of {home} does not take its archive"):
        check_taken(home, "spark.jar:spark.jar")
    assert [*file.parent.iterdir()] == []


@SCRIPT
def test_a_java_without_an_archive_of_its_own_classes_gets_one(home: Path) -> None:
    (home / "lib" / "server" / "classes.jsa").unlink()
    java(home, '[ "$1" = -Xshare:dump ] && touch "${2#-XX:SharedArchiveFile=}"')
    base = archive_of(home).with_suffix(".base.jsa")
    with pytest.raises(SetupError), written(home) as options:
        assert options.startswith(f'"-XX:SharedArchiveFile={base}" "-XX:ArchiveClassesAtExit=')
    assert base.exists()


@pytest.mark.spark
@pytest.mark.skipif(sys.platform != "linux", reason="it looks for mapped files as Linux has them")
def test_the_jvm_of_a_session_has_mapped_it(spark: SparkSession) -> None:
    file = archive_of(java_home())
    if not file.exists():
        pytest.skip("no archive on this machine: oop-engine warm --spark")
    assert warm_spark() == file
    assert spark._jvm is not None
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()
    assert str(file) in Path(f"/proc/{pid}/maps").read_text()
