"""What a reader can count on: the contract of each operator, documented names, kernels that explain themselves."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import sources

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "oop_engine").rglob("*.py"))
HEADINGS = ["Pass", "Keep", "Propagate", "Cost", "Source"]
KERNEL_LINES, KERNEL_PARAMETERS, KERNEL_COMMENTS = 60, 10, 5
HEADER = re.compile(r"^# (?:Layout|Not obvious) ", re.MULTILINE)

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def parsed(path: Path) -> ast.Module:
    return sources.parsed(path.read_text())


def defines_operator(path: Path) -> bool:
    classes = (n for n in ast.walk(parsed(path)) if isinstance(n, ast.ClassDef) and n.name[0] != "_")
    return any(isinstance(b, ast.Name) and b.id == "Operator" for c in classes for b in c.bases)


OPERATORS = [
    p for p in SOURCES if p.is_relative_to(ROOT / "oop_engine" / "operators") and defines_operator(p)
]
KERNELS = [p for p in SOURCES if p.parent.name == "kernels" and p.name != "__init__.py"]
EXPLAINED = [p for p in SOURCES if "kernels" in p.parts and p.name != "__init__.py"]


def public(tree: ast.Module | ast.ClassDef, prefix: str = "") -> Iterator[tuple[str, Definition]]:
    for node in tree.body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            yield prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from public(node, f"{node.name}.")


ASKED_FOR = {  # by a class that others derive from, which documents them
    name.partition(".")[2]
    for path, bases in {
        "oop_engine/core/operator.py": ["Operator"],
        "oop_engine/operators/policies/running_bound.py": ["RunningBound", "Policy", "Lag"],
        "oop_engine/operators/aggregates/base.py": ["Aggregation"],
        "oop_engine/operators/slicing/accumulator.py": ["Accumulator"],
        "oop_engine/operators/slicing/store.py": ["Holder", "Store"],
        "oop_engine/operators/windows/definition.py": ["Definition", "Windows"],
        "oop_engine/operators/windows/folding.py": ["Folding"],
        "oop_engine/operators/windows/merging.py": ["Merging"],
    }.items()
    for name, _ in public(parsed(ROOT / path))
    if name.partition(".")[0] in bases
}


@pytest.mark.parametrize("path", OPERATORS, ids=name_of)
def test_operator_states_its_contract(path: Path) -> None:
    text = ast.get_docstring(parsed(path), clean=False) or ""
    found = re.findall(rf"^(?: {{4}})?({'|'.join(HEADINGS)})\b", text, re.MULTILINE)
    assert found == HEADINGS, f"{name_of(path)}: the module docstring has {found}, wanted {HEADINGS}"


@pytest.mark.parametrize("path", OPERATORS, ids=name_of)
def test_operator_shows_an_example(path: Path) -> None:
    assert ">>> " in path.read_text(), f"{name_of(path)}: no example that runs"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_public_names_are_documented(path: Path) -> None:
    tree = parsed(path)
    assert not tree.body or ast.get_docstring(tree), f"{name_of(path)}: no module docstring"
    names = list(public(tree))
    told = {n.rpartition(".")[2] for n, node in names if "." in n and ast.get_docstring(node)}
    told |= ASKED_FOR  # a method is documented once, by the class that asks for it
    bare = [n for n, node in names if not ast.get_docstring(node) and not needs_no_words(n, node, told)]
    assert not bare, f"{name_of(path)}: no docstring for {', '.join(bare)}"


def needs_no_words(name: str, node: Definition, told: set[str]) -> bool:
    method = name.rpartition(".")[2] if "." in name else None
    return method in told or any(ast.unparse(d) == "overload" for d in node.decorator_list)


@pytest.mark.parametrize("path", KERNELS, ids=name_of)
def test_kernel_is_one_screen(path: Path) -> None:
    for name, node in public(parsed(path)):
        if isinstance(node, ast.FunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= KERNEL_LINES, f"{name}: {lines} lines"
            assert len(node.args.args) <= KERNEL_PARAMETERS, f"{name}: {len(node.args.args)} parameters"


def explains(text: str) -> bool:
    """Tell whether a file of kernels opens with its layout, or what is not obvious, and has enough comments."""
    lines = text.splitlines()
    own = [line for line in lines if line.lstrip().startswith("#")]
    return HEADER.search(text) is not None and 100 * len(own) >= KERNEL_COMMENTS * len(lines)


def test_kernels_explain_themselves() -> None:
    silent = [name_of(path) for path in EXPLAINED if not explains(path.read_text())]
    assert silent == [], "open it with the layout of its arrays, and say what is not obvious"


def test_a_planted_kernel_without_comments_is_found() -> None:
    layout, code = "# Layout       cells[row]\n", "x = 1\n"
    assert explains(f'"""Words."""\n\n{layout}{layout}{code * 30}')
    assert not explains(f'"""Words."""\n\n{layout}{layout}{code * 60}')
    assert not explains(f"# Kernels.\n{code}")
