"""What is public: every name in ``__all__`` is there; shelves are in ``test_shelves.py``."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import pytest

import oop_engine

SKIPPED = {"__main__", "kernels", "spark"}


def modules_of(package: ModuleType) -> list[str]:
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [m.name for m in found if not SKIPPED & set(m.name.split("."))]


MODULES = modules_of(oop_engine)


@pytest.mark.filterwarnings("ignore:.* has moved:DeprecationWarning")
@pytest.mark.parametrize("name", MODULES)
def test_all_is_there_and_sorted(name: str) -> None:
    module = importlib.import_module(name)
    public = getattr(module, "__all__", [])
    assert sorted(set(public)) == sorted(public)
    assert [n for n in public if not hasattr(module, n)] == []
