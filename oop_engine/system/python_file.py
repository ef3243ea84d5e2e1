"""Python files of the user: loaded as modules whose functions can be pickled."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from oop_engine.core.errors import EngineError, UsageError

__all__ = ["load_file", "raised"]


def load_file(path: Path, kind: str) -> ModuleType:
    """Return the module in ``path``, a file of this ``kind``.

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
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except EngineError:
        raise
    except Exception as error:
        msg = f"{path}: cannot be loaded: {raised(path, error)}"
        raise UsageError(msg) from error
    return module


def raised(path: Path, error: Exception) -> str:
    """Return an exception of a user's file in words, with the last line of the file that it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path.resolve())]
    return f"{type(error).__name__}: {error}{f' (line {lines[-1]})' if lines else ''}"
