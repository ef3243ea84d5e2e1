"""The files of the packages as they are written: where they are, what they load, what they name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from oop_engine.system.lazy_names import listed

__all__ = ["FILES", "MODULES", "ROOT", "homes", "is_for_types", "loaded", "module", "parsed", "text_of"]

ROOT = Path(__file__).parents[1]
FILES = sorted(path.relative_to(ROOT) for path in (ROOT / "oop_engine").rglob("*.py"))


def module(path: Path) -> str:
    """Return the name by which a file is imported."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


MODULES = {module(path): path for path in FILES}


@cache
def text_of(path: Path) -> str:
    return (ROOT / path).read_text()


@cache
def parsed(text: str) -> ast.Module:
    return ast.parse(text)


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def is_lazy(path: Path) -> bool:
    """Tell whether a module loads its names when they are used."""
    return "__getattr__" in text_of(path) and any(is_for_types(node) for node in parsed(text_of(path)).body)


@cache
def homes() -> dict[str, str]:
    """Return where the names of packages that load them when they are used come from."""
    lazy = {name: listed(text_of(path)) for name, path in MODULES.items() if is_lazy(path)}
    return {f"{package}.{name}": home for package, names in lazy.items() for name, home in names.items()}


def loaded(text: str, *, for_types: bool = False) -> set[str]:
    """Return the modules that a file loads at any time: the bodies of functions count.

    A name that a package loads when it is used counts as its own module, and so does the module in a call of
    ``import_module`` that is spelled out.  What only a type checker reads counts if ``for_types``.
    """
    tree = parsed(text)
    skipped = {n for block in ast.walk(tree) if is_for_types(block) for n in ast.walk(block)}
    found: set[str] = set()
    for node in set(ast.walk(tree)) - (set() if for_types else skipped):
        found.update(_modules_of(node))
    return found


def _modules_of(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(name, names, level):
            assert level == 0, f"imports are absolute: {ast.unparse(node)}"
            for alias in names:
                whole = f"{name}.{alias.name}"
                yield homes().get(whole, whole if whole in MODULES else name or "")
        case ast.Call(
            ast.Name("import_module") | ast.Attribute(_, "import_module"), [ast.Constant(str(name)), *_]
        ):
            yield name
