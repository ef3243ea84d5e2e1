"""What is public: every name in ``__all__`` is there, and the root of a package brings all of it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

import oop_engine
from oop_engine import Operator, operators

SKIPPED = {"__main__", "kernels", "spark"}


def modules_of(package: ModuleType) -> list[str]:
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [m.name for m in found if not SKIPPED & set(m.name.split("."))]


MODULES = modules_of(oop_engine)


@pytest.mark.parametrize("name", MODULES)
def test_all_is_there_and_sorted(name: str) -> None:
    module = importlib.import_module(name)
    public = getattr(module, "__all__", [])
    assert sorted(set(public)) == sorted(public)
    assert [n for n in public if not hasattr(module, n)] == []


@pytest.mark.parametrize("package", [oop_engine, operators], ids=lambda p: p.__name__)
def test_the_root_brings_each_of_its_names(package: ModuleType) -> None:
    for name in getattr(package, "__all__", []):
        assert getattr(package, name) is not None
        assert name in dir(package)


def test_every_operator_is_in_the_root() -> None:
    public = set(dir(operators))
    for name in modules_of(operators):
        module = importlib.import_module(name)
        for member in getattr(module, "__all__", []):
            value = getattr(module, member)
            if inspect.isclass(value) and issubclass(value, Operator) and value.__module__ == name:
                assert member in public, f"{name}.{member} is not exported by operators/__init__.py"
