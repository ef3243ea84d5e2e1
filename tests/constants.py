"""Numbers that modules name: those that cut work are knobs, others are listed in ``no_knobs.toml``, with the reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

__all__ = ["numbers"]


def numbers(root: Path) -> Iterator[str]:
    """Yield the constants of modules that are a number in the source, as ``core.page.SHOWN``; knobs are calls."""
    for path in sorted((root / "oop_engine").rglob("*.py")):
        inside = path.relative_to(root / "oop_engine").with_suffix("").parts
        if inside[0] != "scenarios":
            module = ".".join(inside).removeprefix("operators.").removesuffix(".__init__")
            for name in _of(ast.parse(path.read_text())):
                yield f"{module}.{name}"


def _of(module: ast.Module) -> Iterator[str]:
    for statement in module.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                yield from _named(target, statement.value)


def _named(target: ast.expr, value: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, its in zip(target.elts, value.elts, strict=True):
            yield from _named(one, its)
    elif isinstance(target, ast.Name) and target.id.isupper() and _is_number(value):
        yield target.id


def _is_number(value: ast.expr) -> bool:
    """Tell whether an expression is made of numbers alone."""
    leaves = [node for node in ast.walk(value) if not isinstance(node, ast.operator | ast.unaryop)]
    kinds = ast.Constant | ast.BinOp | ast.UnaryOp
    constants = [node.value for node in leaves if isinstance(node, ast.Constant)]
    numeric = all(isinstance(one, int | float) and not isinstance(one, bool) for one in constants)
    return all(isinstance(node, kinds) for node in leaves) and bool(constants) and numeric
