"""Python files of the user: loaded as modules whose functions can be pickled, beside files that they import."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import sysconfig
import traceback
from pathlib import Path
from types import ModuleType

from oop_engine.core.errors import EngineError, UsageError

__all__ = ["file_and_name", "forget", "load_file", "raised", "user_modules"]


def load_file(path: Path, kind: str) -> ModuleType:
    """Return the module in ``path``, a file of this ``kind``.

    The file imports its neighbours as a program does that Python runs: its folder is on ``sys.path``, until the next
    file is loaded, so that its functions can import, too.  The folder comes behind the standard library, which a
    neighbour ``json.py`` does not hide, and before installed packages.  Neighbours of earlier files are forgotten:
    two folders may each have a ``helper.py``.

    Raises ``UsageError`` if there is none, or it cannot be loaded; an ``EngineError`` of its own passes.
    """
    if not path.is_file():
        msg = f"no {kind} file at {path}"
        raise UsageError(msg)
    name = f"{kind.lower()}_at_{path.stem}"  # a file json.py must not hide the module json
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        msg = f"{path} is not a Python file"
        raise UsageError(msg)
    _BESIDE.move(path.resolve().parent)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _FILES.add(name)
    try:
        spec.loader.exec_module(module)
    except EngineError:
        raise
    except Exception as error:
        msg = f"{path}: cannot be loaded: {raised(path, error)}"
        raise UsageError(msg) from error
    return module


def file_and_name(path: Path) -> tuple[Path, str]:
    """Return the file of ``graph.py:name``, and the name; without one it is ``graph``.

    >>> file_and_name(Path("graph.py:hourly"))[1], file_and_name(Path("graph.py"))[1]
    ('hourly', 'graph')
    """
    file, colon, name = str(path).rpartition(":")
    return (Path(file), name) if colon and file.endswith(".py") and name.isidentifier() else (path, "graph")


def forget() -> None:
    """Take the folder of the last file off ``sys.path``, and forget the modules that were imported from it."""
    _BESIDE.leave()


def user_modules() -> list[ModuleType]:
    """Return the files that were loaded, and the neighbours that the last one imported.

    Another process cannot import them by their names.
    """
    return [sys.modules[name] for name in (*_FILES, *_BESIDE.names()) if name in sys.modules]


def raised(path: Path, error: Exception) -> str:
    """Return an exception of a user's file in words, with the last line of the file that it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path.resolve())]
    return f"{type(error).__name__}: {error}{f' (line {lines[-1]})' if lines else ''}"


class _Beside:
    """The folder of the last file: on ``sys.path``, with the names that were imported before it was there."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._before: frozenset[str] = frozenset()

    def leave(self) -> None:
        """Forget the folder and its modules."""
        for name in self.names():
            del sys.modules[name]
        if self._folder is not None and str(self._folder) in sys.path:
            sys.path.remove(str(self._folder))
        self._folder = None

    def move(self, folder: Path) -> None:
        """Forget the earlier folder, and look for modules in ``folder``."""
        self.leave()
        self._before = frozenset(name.partition(".")[0] for name in sys.modules)
        if str(folder) not in sys.path:
            self._folder = folder
            sys.path.insert(_behind_the_standard_library(), str(folder))
        importlib.invalidate_caches()  # a neighbour may have been written a moment ago

    def names(self) -> list[str]:
        """Return the modules that were imported from the folder."""
        new = {name.partition(".")[0] for name in sys.modules} - self._before
        tops = {top for top in new if self._is_of_folder(top)}
        return [name for name in sys.modules if name.partition(".")[0] in tops]

    def _is_of_folder(self, name: str) -> bool:
        if self._folder is None:
            return False
        spec = getattr(sys.modules.get(name), "__spec__", None)
        places = [] if spec is None else [spec.origin or "", *(spec.submodule_search_locations or ())]
        wanted = {self._folder / f"{name}.py", self._folder / name, self._folder / name / "__init__.py"}
        return any(Path(place) in wanted for place in places)


def _behind_the_standard_library() -> int:
    """Return the place on ``sys.path`` behind the standard library."""
    homes = [Path(sysconfig.get_path(which)) for which in ("stdlib", "platstdlib")]
    homes += [home / "lib-dynload" for home in homes]
    places = [place for place, each in enumerate(sys.path) if Path(each or ".").resolve() in homes]
    return max(places, default=-1) + 1


_BESIDE = _Beside()
_FILES: set[str] = set()
