"""Python files of the user: loaded as modules whose functions can be pickled."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from oop_engine.core.errors import EngineError, UsageError

__all__ = ["load_file"]


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
        msg = f"{path}: cannot be loaded: {type(error).__name__}: {error}"
        raise UsageError(msg) from error
    return module
