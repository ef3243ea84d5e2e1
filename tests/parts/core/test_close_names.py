"""Every name that is looked up: one that is not known is refused with the closest name that is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import oop_engine.face as face
from oop_engine import Graph, Linear, Page, Schema, open_trace, replay
from oop_engine.aggregates import Quantile
from oop_engine.cli.app import app
from oop_engine.cli.running.positions import positions_of
from oop_engine.connectors.by_name import sink_of, source_of
from oop_engine.connectors.formats.payloads import check_payloads
from oop_engine.connectors.sinks.one_file import OneFile
from oop_engine.core.change import Change
from oop_engine.core.close_names import renamed
from oop_engine.core.errors import EngineError
from oop_engine.core.values.type_names import type_named
from oop_engine.lab.own_graph import scenario_of
from oop_engine.operators import (
    BoundedDisorder,
    Count,
    Emit,
    Guard,
    OAJoin,
    Punctuate,
    Sum,
    Tumbling,
    WindowAggregate,
)
from oop_engine.pipeline.policy import read_policy
from oop_engine.runners.dispatch import not_open
from oop_engine.service.checkpoint_manifest import check_names
from oop_engine.testing import Case, GraphDriver, contract_suite
from oop_engine.thesis import Sort
from oop_engine.traces.csv_format import CsvFormat
from oop_engine.traces.format_registry import format_of
from oop_engine.triggers import AfterChange

SCHEMA = Schema({"ts": pa.int64(), "host": pa.string()}, "ts", "s")
PAGE = Page.of(SCHEMA, {"ts": [1], "host": ["a"]})


def graph() -> Graph:
    """Return a graph of one source and one sink."""
    made = Graph("g")
    edge = made.add("edge", Punctuate(BoundedDisorder(5)), made.source("log", SCHEMA))
    made.sink("counts", made.add("count", WindowAggregate(Tumbling(10), {"n": Count()}), edge))
    return made


LOOKED_UP: dict[str, tuple[Callable[[], Any], str]] = {
    "--without-state-of": (lambda: check_names("state", ["edge", "count"], ["cuont"]), "count"),
    "a kind of source": (lambda: source_of("tial:log.jsonl", SCHEMA), "tail"),
    "a kind of sink": (lambda: sink_of("parqet:out"), "parquet"),
    "an option of a source": (lambda: source_of("tail:log.jsonl?folow=no", SCHEMA), "follow"),
    "an option of a sink": (lambda: sink_of("postgres:127.0.0.1:5432/shop?tabel=t"), "table"),
    "a format of traces": (lambda: format_of("log", "jsnol"), "jsonl"),
    "a format of results": (
        lambda: check_payloads("sink 'out'", "josn", SCHEMA.fields, keyed=False),
        "jsonl",
    ),
    "an option of CSV": (lambda: CsvFormat.of("delimeter=;"), "delimiter"),
    "a type": (lambda: type_named("int46"), "int64"),
    "a policy": (lambda: read_policy("BoundedDisoder('5 s')", "--policy"), "BoundedDisorder"),
    "a feed": (lambda: replay(graph(), {"lgo": [PAGE]}), "log"),
    "a feed of run": (lambda: face.run(graph(), {"lgo": [PAGE]}), "log"),
    "a feed of compare": (lambda: scenario_of(graph(), {"lgo": [PAGE]}), "log"),
    "a source that is fed": (lambda: GraphDriver(graph()).feed("lgo", Linear(1)), "log"),
    "a sink that is read": (lambda: GraphDriver(graph()).rows("count_"), "counts"),
    "a source that ends": (lambda: _raised(not_open("g", "lgo", ["log"])), "log"),
    "a position": (lambda: positions_of(("eastt=latest",), ["east", "west"]), "east"),
    "windows to drop": (lambda: _changed(Change(2, 60, drop=("hourli",))), "hourly"),
    "a column of a page": (lambda: Page.of(SCHEMA, {"ts": [1], "hots": ["a"]}), "hots"),
    "the column of changes": (lambda: Schema(SCHEMA.fields, "ts", "s", change="hots"), "host"),
    "a member of an enumeration": (lambda: Punctuate(BoundedDisorder(5), late="divrt"), "DIVERT"),  # type: ignore[arg-type]
    "a choice of Guard": (lambda: Guard(5, of="arival"), "arrival"),
    "a choice of Sort": (lambda: Sort(BoundedDisorder(5), late="generos"), "generous"),
    "a kind of join": (lambda: OAJoin(["host"], _band(), how="lefft"), "left"),
    "the option of a kind of join": (lambda: OAJoin(["host"], _band(), kind="left"), "how"),  # type: ignore[call-arg]
    "a method of a quantile": (lambda: Quantile("ts", 0.5, method="linaer"), "linear"),  # type: ignore[arg-type]
    "a mode of Emit": (lambda: Emit(mode="retracts"), "retracting"),  # type: ignore[arg-type]
    "a result of a trigger": (lambda: AfterChange("totl", 1).check(["total"], SCHEMA, "emit"), "total"),
    "a column of an aggregate": (
        lambda: WindowAggregate(Tumbling(1), {"n": Sum("tss")}).opened(SCHEMA),
        "ts",
    ),
    "a law": (lambda: contract_suite([_case({"snapshto": "x" * 40})]), "snapshot"),
}


def _raised(error: Exception) -> None:
    raise error


def _band() -> Any:
    from oop_engine.operators import Band

    return Band(1, 1)


def _changed(change: Change) -> None:
    windows = {"hourly": Tumbling(3600)}
    WindowAggregate(windows, {"n": Count()}, changing=True).changed(change, (SCHEMA,))


def _case(exempt: dict[str, str]) -> Case:
    return Case(
        "count", WindowAggregate(Tumbling(10), {"n": Count()}), (SCHEMA,), lambda inputs: [], exempt=exempt
    )


@pytest.mark.parametrize(("look_up", "meant"), LOOKED_UP.values(), ids=LOOKED_UP.keys())
def test_a_name_that_is_not_known_is_refused_with_the_one_that_was_meant(
    look_up: Callable[[], Any], meant: str
) -> None:
    with pytest.raises(EngineError, match=f"did you mean '?{meant}'?( by '[^']+')?\\?"):
        look_up()


def test_names_of_columns_of_a_file_are_looked_up_in_the_same_way(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("ts,host\n1,a\n")
    for call in (
        lambda: open_trace(path, time="ts", unit="s", types={"hots": pa.string()}),
        lambda: open_trace(path, time="tss", unit="s"),
    ):
        with pytest.raises(EngineError, match="did you mean"):
            call()


def test_options_of_the_command_line_are_looked_up_in_the_same_way() -> None:
    for words in (
        ["generate", "--unti", "s", "x.csv"],
        ["generate", "--links", "a:1", "--lull", "ab:1:2", "x.csv"],
    ):
        assert "did you mean" in CliRunner().invoke(app, words).output.lower()


def test_a_sink_of_one_file_knows_its_formats(tmp_path: Path) -> None:
    import asyncio

    with pytest.raises(EngineError, match="did you mean jsonl"):
        asyncio.run(OneFile(tmp_path / "out", "jsnol").open(SCHEMA, "run", []))


def test_names_that_were_swapped_are_not_meant() -> None:
    assert renamed(["a", "zebra"], ["a", "north"]) == ""
    assert renamed(["east", "wets"], ["east", "west"]) == "; did you mean west by 'wets'?"
