"""The laws, tried on operators that break one each: a law that cannot fail says nothing."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, settings

from oop_engine import (
    ContractError,
    EngineError,
    Graph,
    Linear,
    Operator,
    Page,
    Punctuation,
    Schema,
    UsageError,
    replay,
)
from oop_engine.aggregates import UserDefined
from oop_engine.core.page import concat
from oop_engine.core.punctuation import shift
from oop_engine.extend import Emission, State
from oop_engine.operators import Tumbling, WindowAggregate
from oop_engine.testing import LAWS, Case, Driver, check, contract_suite, laws
from tests.children import MOST_S

SCHEMA = Schema({"ts": pa.int64(), "n": pa.int64()}, "ts", "s")


class FirstOnly(Operator):
    """Lets the first tuple of each page through."""

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        yield 0, page.slice(0, 1)


class FirstEver(Operator):
    """Lets one tuple through: which, depends on the order."""

    def open(self) -> None:
        self.open_yet = True

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        if self.open_yet and len(page):
            self.open_yet = False
            yield 0, page.slice(0, 1)

    def save(self) -> dict[str, Any]:
        return {"open": self.open_yet}

    def load(self, state: dict[str, Any]) -> None:
        self.open_yet = state["open"]


class Ahead(Operator):
    """Promises more than it was promised."""

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        yield 0, Linear(shift(punctuation.below, 5)) if isinstance(punctuation, Linear) else punctuation


class AnotherSchema(Operator):
    """Announces a column that it does not have."""

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return (Schema({"ts": pa.int64(), "n": pa.int64(), "m": pa.int64()}, "ts", "s"),)


class Hoards(Operator):
    """Says that it keeps a tuple for each punctuation, for ever."""

    def open(self) -> None:
        self.kept = 0

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        self.kept += 1
        yield 0, punctuation

    def state(self) -> State:
        return State(tuples=self.kept)

    def save(self) -> dict[str, Any]:
        return {"kept": self.kept}

    def load(self, state: dict[str, Any]) -> None:
        self.kept = state["kept"]


class Forgets(Operator):
    """Counts its pages, and does not take the count along."""

    def open(self) -> None:
        self.pages = 0

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        self.pages += 1
        yield 0, page

    def state(self) -> State:
        return State(partials=self.pages)

    def save(self) -> dict[str, Any]:
        return {}

    def load(self, state: dict[str, Any]) -> None: ...


class ForgetsToStop(Forgets):
    """Passes two pages alone, and begins anew where it comes back."""

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        self.pages += 1
        if self.pages <= 2:
            yield 0, page

    def state(self) -> State:
        return State()


class WritesIntoInput(Operator):
    """Sets the first time of a page to 0, where it lies."""

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        if len(page):
            buffer = page.batch.column(0).buffers()[1]
            raw = (ctypes.c_int64 * 1).from_address(buffer.address)
            raw[0] = -1
        yield 0, page


class FailsOnEmpty(Operator):
    """Doubles what it has seen last whenever a page is empty."""

    def open(self) -> None:
        self.last = Page.empty(self.schemas_in[0])

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        yield 0, self.last if not len(page) else page
        self.last = page

    def save(self) -> dict[str, Any]:
        return {"last": self.last.batch}

    def load(self, state: dict[str, Any]) -> None:
        self.last = Page(self.schemas_in[0], state["last"])


class CountsInItself(Operator):
    """Remembers in the description what it has seen."""

    seen: list[int] = []  # noqa: RUF012

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        self.seen.append(len(page))
        yield 0, page if len(self.seen) % 2 else concat(page.schema, [page, page])


class DividedBlindly(FirstEver):
    """Says that each key can be worked off by itself, and looks at all of them."""

    def partition_keys(self, inputs: tuple[Schema, ...]) -> list[tuple[str, ...]] | None:
        return [("n",)]


class FalseDescent(Operator):
    """Says that its column n repeats the column n, and adds one."""

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        more = page.column("n").to_numpy(zero_copy_only=False)
        columns = [page.batch.column(0), pa.array(np.nan_to_num(more) + 1000).cast(pa.int64())]
        yield 0, Page(page.schema, pa.RecordBatch.from_arrays(columns, schema=page.schema.fields))

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column,)


class ReadsInSecret(Operator):
    """Reads no column, it says, and lets through the tuples with an n."""

    def reads(
        self, inputs: tuple[Schema, ...], downstream: tuple[frozenset[str], ...]
    ) -> tuple[frozenset[str], ...]:
        return downstream

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        number = page.batch.column("n") if page.schema.has(["n"]) else pa.array([0] * len(page))
        yield 0, page.filter(number.is_valid().to_numpy(zero_copy_only=False))


class Reverses(Operator):
    """Says that it keeps order, and turns each page round."""

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return True

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        yield 0, page.take(np.arange(len(page))[::-1])


@pytest.fixture(autouse=True)
def _no_shrinking() -> Iterator[None]:
    """That a law fails is the question, not the smallest stream on which it does."""
    settings.register_profile("first", settings(), phases=[Phase.generate])
    settings.load_profile("first")
    yield
    settings.load_profile("deterministic")


def law_named(name: str) -> Any:
    return next(law for law in LAWS if law.__name__ == name)


@pytest.mark.parametrize(
    ("law", "operator"),
    [
        ("oracle", FirstOnly),
        ("order", FirstEver),
        ("cuts", FirstOnly),
        ("grammar", Ahead),
        ("schema", AnotherSchema),
        ("purge", Hoards),
        ("end", Hoards),
        ("snapshot", ForgetsToStop),
        ("keeping", Forgets),
        ("untouched", WritesIntoInput),
        ("empty", FailsOnEmpty),
        ("fresh", CountsInItself),
        ("division", DividedBlindly),
        ("descent", FalseDescent),
        ("reading", ReadsInSecret),
        ("sorting", Reverses),
    ],
)
def test_a_law_finds_who_breaks_it(law: str, operator: type[Operator]) -> None:
    case = Case("broken", operator(), (SCHEMA,), lambda inputs: inputs[0])
    with pytest.raises((AssertionError, ContractError)):
        check(case, law_named(law), examples=50)


def test_every_law_is_broken_by_somebody() -> None:
    marks = test_a_law_finds_who_breaks_it.pytestmark  # type: ignore[attr-defined]
    assert [law for law, _ in marks[0].args[1]] == [law.__name__ for law in LAWS]


def test_what_is_missing_is_told() -> None:
    case = Case("first", FirstOnly(), (SCHEMA,), lambda inputs: inputs[0])
    with pytest.raises(
        AssertionError, match=r"the output is not the oracle's: missing \[\{'n': .*\], extra \[\]"
    ):
        check(case, law_named("oracle"), examples=50)


def passing(**more: Any) -> Case:
    return Case("pass", Operator(), (SCHEMA,), lambda inputs: inputs[0], **more)


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        ([], "at least one"),
        ([passing(), passing()], "different ids; got \\['pass', 'pass'\\]"),
        (
            [passing(exempt={"gravity": "apples do not fall here"})],
            "'gravity', which is no law; there are oracle",
        ),
        (
            [passing(exempt={"order": "because"})],
            "say in a sentence why it is exempt from 'order'; got 'because'",
        ),
    ],
)
def test_cases_that_say_nothing_are_refused(cases: list[Case], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        contract_suite(cases)


def test_a_type_without_values_asks_for_them() -> None:
    nested = Schema({"ts": pa.int64(), "tags": pa.list_(pa.string())}, "ts", "s")
    case = Case("nested", Operator(), (nested,), lambda inputs: inputs[0])
    with pytest.raises(UsageError, match=r"column 'tags' is list.* give the case domains="):
        check(case, law_named("oracle"), examples=1)
    check(Case("nested", Operator(), (nested,), case.oracle, {"tags": [["a"], None]}), law_named("oracle"))


SUITE = '''
import pyarrow as pa
from hypothesis import Phase, settings
from oop_engine import Operator, Schema
from oop_engine.testing import Case, contract_suite

class Pass(Operator):
    """Passes everything on."""

class Loses(Operator):
    """Passes nothing on."""
    def on_page(self, port, page):
        yield from ()

settings.register_profile("first", phases=[Phase.generate], database=None)
settings.load_profile("first")
S = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
test_pass = contract_suite([Case("pass", Pass(), (S,), oracle=lambda inputs: inputs[0])], examples=3)
test_loses = contract_suite([Case("loses", Loses(), (S,), oracle=lambda inputs: inputs[0])], examples=30)
'''


@pytest.mark.slow
def test_a_suite_runs_outside_of_this_project(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(SUITE)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=MOST_S)
    assert f"1 failed, {2 * len(LAWS) - 1} passed" in done.stdout, done.stdout + done.stderr
    assert "FAILED test_mine.py::test_loses[loses-oracle]" in done.stdout


def test_the_kit_loads_no_hypothesis_before_it_is_asked() -> None:
    code = "import sys, oop_engine.testing as t; t.Driver; t.GraphDriver; print('hypothesis' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_what_the_laws_need_is_told() -> None:
    code = "import sys; sys.modules['hypothesis'] = None; from oop_engine.testing import check"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (
        "SetupError: oop_engine.testing.check needs hypothesis, not installed here: pip install 'oop-engine[testing]'"
        in done.stderr
    )


class _Promises(Operator):
    """Announces a column that its pages lack."""

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return (Schema(inputs[0].fields.append(pa.field("more", pa.int64())), "ts", "s"),)


def test_a_column_that_pages_lack_is_named_with_the_node() -> None:
    schema = Schema({"ts": pa.int64()}, "ts", "s")
    page = Page.of(schema, {"ts": [1]})
    with pytest.raises(ContractError, match=r"_Promises, output 'out': .* it lacks 'more'"):
        Driver(_Promises(), schema).feed(0, page)
    graph = Graph("g")
    graph.sink("out", graph.add("mine", _Promises(), graph.source("in", schema)))
    for checked in (True, False):
        with pytest.raises(EngineError, match=r"operator 'mine': .* it lacks 'more'"):
            replay(graph, {"in": page}, check=checked)


class _Counts(Operator):
    """Breaks the law of fresh descriptions, by NaN and by a number that grows from run to run."""

    runs = 0

    def open(self) -> None:
        _Counts.runs += 1

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        values = pa.array([float("nan") if at else float(_Counts.runs) for at in range(page.rows)])
        columns = [page.column("ts"), values]
        yield 0, Page(page.schema, pa.RecordBatch.from_arrays(columns, schema=page.schema.fields))


def test_nan_is_equal_to_nan_and_rows_that_differ_are_shown() -> None:
    schema = Schema({"ts": pa.int64(), "x": pa.float64()}, "ts", "s")
    nan = lambda column: (column.to_numpy() * float("nan"),)
    undefined = UserDefined(nan, lambda a, b: a, lambda s: s[0], ("x",), ("float64",), pa.float64())
    operator, domains = WindowAggregate(Tumbling(9), {"x": undefined}), {"x": [1.0]}
    case = Case("nan", operator, (schema,), oracle=lambda _: [], domains=domains)
    check(case, laws.fresh, laws.snapshot, examples=5)
    counts = Case("counts", _Counts(), (schema,), oracle=lambda _: [], domains=domains)
    with pytest.raises(
        AssertionError, match=r"1 of \d+ differ from number \d+ on: .*'x': \d+.0}, not .*'x': \d+.0}"
    ):
        check(counts, laws.fresh)
