"""Class archive: the classes of Spark as a JVM lays them out in memory, in a file that later JVMs map.

Half of the processor time of a start goes into some 15,000 classes that are read out of jars and verified.  A JVM that
maps an archive (class data sharing, JEP 350) spares that.  An archive fits one Java and one set of jars; a JVM ignores
one that does not fit, so that nothing but time depends on it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from oop_engine.core.errors import SetupError
from oop_engine.spark.session.java import cache_folder
from oop_engine.spark.session.settings import JVM_OPTIONS

__all__ = ["archive_of", "check_taken", "is_archived", "mapped", "written"]

_AT_EXIT = "-XX:ArchiveClassesAtExit="
_MAPPED = "-XX:SharedArchiveFile="
_DUMPS_WITHIN_S = 300


def archive_of(home: Path) -> Path:
    """Return the file of the archive for the Java at ``home`` and the Spark that is installed."""
    from pyspark.find_spark_home import _find_spark_home

    release = home / "release"
    jars = Path(_find_spark_home(), "jars")
    fits = [str(home.resolve()), release.read_text(errors="replace") if release.exists() else "", str(jars)]
    fits.append(str(jars.stat().st_mtime_ns))
    key = hashlib.sha256("\0".join(fits).encode()).hexdigest()[:12]
    return cache_folder() / "java" / f"spark-{version('pyspark')}-{key}.jsa"


def mapped(settings: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return settings in which the JVM maps the archive, if there is one and they name none."""
    options, file = settings.get(JVM_OPTIONS, ""), archive_of(home)
    if "Archive" in options or not file.exists():
        return dict(settings)
    return {**settings, JVM_OPTIONS: f"{options} {_quoted(_MAPPED, file)}".strip()}


def is_archived(settings: Mapping[str, str]) -> bool:
    """Return whether a JVM with these settings writes an archive at its end, for which it needs half a minute."""
    return _AT_EXIT in settings.get(JVM_OPTIONS, "")


@contextmanager
def written(home: Path) -> Iterator[str]:
    """Yield the options of a JVM that runs within the block, and whose classes become the archive.

    Raises ``SetupError`` if there is no archive afterwards, or if the folder cannot be made.
    """
    file = archive_of(home)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = (
            f"an archive of Spark's classes needs a folder that can be written: set XDG_CACHE_HOME ({error})"
        )
        raise SetupError(msg) from error
    new = file.with_name(f".{os.getpid()}-{file.name}")
    try:
        yield " ".join([*_upon(home, file), _quoted(_AT_EXIT, new)])
        if not new.exists():
            msg = f"the Java of {home} has written no archive of classes: sessions start without one"
            raise SetupError(msg)
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)


def _upon(home: Path, file: Path) -> list[str]:
    """Return the option that names the archive of Java's own classes: a new one where it comes without."""
    if any((home / "lib" / "server").glob("classes*.jsa")):
        return []
    base = _base_of(file)
    if not base.exists():
        _java(home, "-Xshare:dump", f"{_MAPPED}{base}")
    return [_quoted(_MAPPED, base)]


def _base_of(file: Path) -> Path:
    """Return the file for the archive of Java's own classes, upon which that of Spark's is."""
    return file.with_suffix(".base.jsa")


def check_taken(home: Path, class_path: str) -> None:
    """Make sure that the Java at ``home`` maps the archive with the class path of Spark's JVM, else remove it.

    Java 21 takes a class path with the same jar twice, as Spark's is, for another one than that of the archive.  Raises
    ``SetupError`` if the archive is refused.
    """
    file = archive_of(home)
    done = _java(home, "-Xshare:on", f"{_MAPPED}{file}", "-cp", class_path, "-version")
    if done.returncode:
        for each in (file, _base_of(file)):
            each.unlink(missing_ok=True)
        msg = f"the Java of {home} does not take its archive of Spark's classes, and sessions go without: Java 17 does"
        raise SetupError(msg)


def _java(home: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [str(home / "bin" / "java"), *arguments]
    return subprocess.run(command, capture_output=True, timeout=_DUMPS_WITHIN_S, check=False)


def _quoted(option: str, file: Path) -> str:
    """Return an option as Spark takes options of a JVM apart: at spaces, unless they are in quotes."""
    return f'"{option}{file}"'
