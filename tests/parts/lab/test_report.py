"""The report: it loads nothing, its drawings are sound, and its words say what the runs say."""

from __future__ import annotations

import csv
import html
import json
import math
import re
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import fields, replace
from html.parser import HTMLParser
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from oop_engine.core.graphs.graph import Graph
from oop_engine.core.graphs.statistics import Sample
from oop_engine.core.operator import Operator, State
from oop_engine.lab.comparison import Comparison, compare
from oop_engine.lab.report.columns import columns, shown_runs
from oop_engine.lab.report.drawing import draw, punctuated
from oop_engine.lab.report.headline import headline
from oop_engine.lab.report.layout import layered
from oop_engine.lab.report.opponent import FAIR, buffers
from oop_engine.lab.report.page import UPLOT, page
from oop_engine.lab.report.sheet import sheet
from oop_engine.lab.report.table import claim_lines, result_table, run_table
from oop_engine.lab.report.words import plain, size
from oop_engine.lab.scenario import Claim, Parameter, Sweep, Variant, find, load
from tests.parts.toy_scenario import PACKETS, SCENARIO, Promise

LONG = "an_operator_whose_name_is_longer_than_any_box_could_ever_be_wide"


class Tree(HTMLParser):
    """Reads a page: its tags are balanced, its ids counted."""

    VOID = ("meta", "br", "img", "link", "hr")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen[tag] += 1
        self.ids.update(value for name, value in attrs if name == "id" and value)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids.update(value for name, value in attrs if name == "id" and value)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


class Wide(Operator):
    """Takes two inputs and says much of itself."""

    inputs = ("left", "right")
    outputs = ("out", "late")

    def describe(self) -> str:
        return "Wide(" + ", ".join(f"parameter_{i}=<{i} & more>" for i in range(30)) + ")"


@pytest.fixture(scope="module")
def toy() -> Comparison:
    return compare(SCENARIO, {"tuples": "300"})


@pytest.fixture(scope="module")
def text(toy: Comparison) -> str:
    return page(toy)


def data_of(text: str) -> dict[str, Any]:
    """Return what the page's script is given."""
    [told] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    found: dict[str, Any] = json.loads(told)
    return found


def svgs(text: str) -> list[str]:
    return re.findall(r"<svg .*?</svg>", text, re.DOTALL)


def read(text: str) -> Tree:
    tree = Tree()
    tree.feed(text)
    assert tree.open == []
    return tree


def test_the_page_loads_nothing_from_anywhere(text: str) -> None:
    assert not re.search(r"https?:|@import|<link|<img|<iframe|\bsrc=|XMLHttpRequest|fetch\(", text)
    assert not re.search(r"[\"'(]//[a-z]", text)
    assert "default-src 'none'" in text  # and a browser would refuse
    assert set(re.findall(r'href="(.)', text)) <= {"#"}
    assert set(re.findall(r"url\((.)", text)) <= {"#"}


def test_the_page_is_sound(text: str) -> None:
    tree = read(text)
    assert [name for name, times in tree.ids.items() if times > 1] == []
    assert set(re.findall(r'(?:href="|url\()#([^")]+)', text)) <= tree.ids.keys()
    assert tree.seen["h1"] == 1
    drawings = svgs(text)
    assert sum('class="plot"' in drawing for drawing in drawings) == 4  # with the scene of the play
    for drawing in drawings:
        ET.fromstring(drawing)
        assert "aria-label=" in drawing or 'aria-hidden="true"' in drawing


def test_no_colour_of_a_plot_is_fixed(text: str) -> None:
    """A fixed colour could not be read both by day and by night."""
    plots = "".join(drawing for drawing in svgs(text) if 'class="plot"' in drawing)
    assert re.findall(r"#[0-9a-f]{6}\b(?!\")", plots) == []


def test_the_page_says_what_the_runs_say(toy: Comparison, text: str) -> None:
    for claim in toy.claims:
        assert claim.claim in text
    assert "all 2 claims hold" in text
    for run in toy.runs:
        assert all(column.show(run) in text for column in columns(toy))


def test_terminal_page_and_json_have_the_same_numbers(toy: Comparison, text: str) -> None:
    printed = StringIO()
    Console(file=printed, width=1000).print(run_table(toy, 1000))
    rows = [line.split() for line in printed.getvalue().splitlines()]
    on_page = [
        "".join(html.unescape(re.sub("<.*?>", "", row)).split())
        for row in re.findall(r"<tr[^>]*>(.*?)</tr>", text, re.DOTALL)
    ]
    assert size(toy.peak_rss_bytes) in text
    for run, told in zip(toy.runs, json.loads(json.dumps(plain(toy.to_dict())))["runs"], strict=True):
        names = {each.name for each in fields(run)} - {"parameters"}
        of_json: dict[str, Any] = {
            name: math.nan if told[name] is None else told[name] for name in names & told.keys()
        }
        shown = [column.show(run) for column in columns(toy)]
        assert [column.show(replace(run, **of_json)) for column in columns(toy)] == shown
        assert " ".join(shown).split() in rows
        assert "".join("".join(shown).split()) in on_page


def test_rows_of_csv_have_the_numbers_of_json_and_say_how_they_were_made(toy: Comparison) -> None:
    whole = json.loads(json.dumps(plain(toy.to_dict())))
    rows = list(csv.DictReader(StringIO(sheet(toy))))
    assert len(rows) == len(whole["runs"])
    for row, run in zip(rows, whole["runs"], strict=True):
        run |= {f"parameters.{name}": value for name, value in run.pop("parameters").items()}
        assert {name: row[name] for name in run} == {k: "" if v is None else str(v) for k, v in run.items()}
        assert {name: row[f"versions.{name}"] for name in whole["versions"]} == whole["versions"]
        assert row["data"] == whole["data"]
        assert int(row["peak_rss_bytes"]) == whole["peak_rss_bytes"] > int(row["peak_state_bytes"])


def test_the_page_tells_how_the_opponent_was_made() -> None:
    compared = compare(find("union_count"), {"groups": "3", "minutes": "2", "skew": "0"})
    whole = page(compared)
    assert html.escape(FAIR) in whole
    [ordered, free] = compared.plans
    assert buffers(free) == ""
    assert buffers(ordered) in html.unescape(whole)
    assert buffers(ordered).startswith("Buffers: ")


def test_the_same_runs_give_the_same_page(toy: Comparison, text: str) -> None:
    assert page(toy) == text


def test_a_failing_claim_is_told_first(toy: Comparison) -> None:
    failing = replace(toy, claims=[*toy.claims, Claim("<pigs> fly", False, {"pigs": [1, {"out": [2, 3]}]})])
    found = page(failing)
    assert "1 of 3 claims fail" in found
    assert "&lt;pigs&gt; fly" in found
    assert "1, out: (2, 3)" in found


def test_figures_along_a_sweep_are_a_table(toy: Comparison) -> None:
    figures = {"in": {0: 1, 5: 2345}, "out": {0: 3, 5: float("nan")}, "ratio": 2.5}
    found = page(replace(toy, claims=[Claim("it grows", True, figures)]))
    assert '<th scope="row" class="word">in</th><td>1</td><td>2,345</td>' in found
    assert '<th scope="row" class="word">out</th><td>3</td><td>n/a</td>' in found
    assert "<dt>ratio</dt><dd>2.5</dd>" in found


def test_one_run_and_no_sweep_is_a_page_too() -> None:
    whole = compare(replace(SCENARIO, sweep=None), {"tuples": "100"})
    read(page(whole))
    alone = replace(whole, runs=whole.runs[1:], plans=whole.plans[1:], claims=[])
    text = page(alone)
    read(text)
    assert "No plan in order was run to set it against." in text
    assert "How it grows" not in text


def test_a_run_without_results_is_a_page_too() -> None:
    nothing = replace(SCENARIO, sweep=None, feeds=lambda values: {"packets": iter(())}, truth=None)
    read(page(compare(nothing)))


@pytest.mark.slow
def test_many_points_and_many_plans_are_a_page_too(toy: Comparison) -> None:
    first = toy.runs[0]
    runs = [
        replace(
            first, variant=f"{LONG} {plan}", order=order, parameters={**first.parameters, "skew": f"s{i}"}
        )
        for i in range(40)
        for plan in range(6)
        for order in ("in", "out")
    ]
    text = page(replace(toy, runs=runs))
    read(text)
    assert len(text) < 3_000_000


def test_moments_before_all_time_are_no_moments(toy: Comparison) -> None:
    odd = [Sample(-(2**63), State(tuples=9)), Sample(5, State(tuples=1)), Sample(2**63 - 1, State(tuples=9))]
    nowhere = np.array([np.nan, np.inf, 1.0, 9e18])
    runs = [replace(run, series=odd, delays_s=nowhere, excess_s=nowhere) for run in toy.runs]
    read(page(replace(toy, runs=runs)))


def test_the_headline_is_honest(toy: Comparison) -> None:
    ordered, free = (run for run in shown_runs(toy))
    worse = [
        replace(ordered, peak_state_bytes=10),
        replace(free, peak_state_bytes=40, delay_p50_s=1e4, wrong=3),
    ]
    said = headline(replace(toy, runs=worse))
    assert "keeps 4 times more state" in said
    assert "later" in said
    assert "3 wrong" in said
    assert "about as much" in headline(
        replace(toy, runs=[replace(run, peak_state_bytes=10) for run in worse])
    )
    slower = replace(ordered, delay_p50_s=free.delay_p50_s + 90)
    assert "1 min 30 s earlier" in headline(replace(toy, runs=[slower, free]))


def test_the_headline_says_of_which_plan_no_right_answer_has_a_delay(toy: Comparison) -> None:
    ordered, free = (run for run in shown_runs(toy))
    wrong = replace(ordered, delay_p50_s=math.nan, all_delays_s=np.array([5.0]))
    said = headline(replace(toy, runs=[wrong, free]))
    assert "in order gave no right answer before the end of the trace" in said
    flushed = [replace(run, delay_p50_s=math.nan, all_delays_s=np.empty(0)) for run in (ordered, free)]
    said = headline(replace(toy, runs=flushed))
    assert "in order and out of order gave no answer before the end of the trace" in said


def test_the_default_point_is_shown_or_the_last(toy: Comparison) -> None:
    assert {run.parameters["skew"] for run in shown_runs(toy)} == {20}
    elsewhere = replace(toy, parameters={**toy.parameters, "skew": 7})
    assert {run.parameters["skew"] for run in shown_runs(elsewhere)} == {60}


def diamond() -> Graph:
    graph = Graph("diamond")
    one = graph.source("one", PACKETS)
    progress = graph.add("progress", Promise(5), one)
    wide = graph.add(LONG, Wide(), progress, one)
    again = graph.add("again", Wide(), wide["late"], progress)
    for number, stream in enumerate((wide, again, again["late"])):
        graph.sink(f"sink{number}", stream)
    return graph


def test_a_drawing_is_svg_with_each_node_once() -> None:
    drawing = draw([Variant("one <two>", "in", diamond()), Variant("other", "out", diamond())])
    root = ET.fromstring(drawing)
    names = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text") if e.get("class") == "g-name"]
    assert len(names) == 2 * len(diamond().nodes)
    assert "In order: one &lt;two&gt;" in drawing


def test_punctuation_travels_behind_generators_only() -> None:
    assert punctuated(diamond().plan()) == {"progress", LONG, "again", "sink0", "sink1", "sink2"}


def test_boxes_do_not_overlap() -> None:
    sizes = dict.fromkeys("abcdefgh", (100.0, 40.0))
    edges = [("a", "c"), ("b", "c"), ("a", "d"), ("c", "e"), ("d", "e"), ("a", "e"), ("b", "f"), ("f", "h")]
    layout = layered(sizes, edges, (10, 20))
    assert all(layout.layer[one] < layout.layer[other] for one, other in edges)
    for one in sizes:
        for other in sizes:
            if one < other and layout.layer[one] == layout.layer[other]:
                assert abs(layout.x[one] - layout.x[other]) >= 110 - 1e-6


@pytest.mark.parametrize("width", [60, 80, 120, 240])
def test_a_table_fits_the_terminal_as_long_as_it_can(toy: Comparison, width: int) -> None:
    console = Console(width=width, record=True, file=StringIO())
    console.print(run_table(toy, width))
    shown = console.export_text()
    assert max(map(len, shown.splitlines())) <= width
    if width >= 80:
        assert "out of order" in shown
        assert "partials" in shown
        assert "peak state" in shown


def test_results_are_shown_from_both_ends() -> None:
    console = Console(width=100, record=True, file=StringIO())
    console.print(result_table("counts", pa.table({"n": range(1000), "x": [None, 0.5] * 500}), 2))
    shown = console.export_text()
    assert [line.split() for line in shown.splitlines()[4:9]] == [
        ["0", "null"], ["1", "0.5"], ["…", "…"], ["998", "null"], ["999", "0.5"],
    ]  # fmt: skip


def test_claims_are_lines_with_a_mark() -> None:
    assert [str(line) for line in claim_lines([Claim("a", True), Claim("b", False, {"n": 1200})])] == [
        "✓ a",
        "✗ b",
        "  n: 1,200",
    ]


def test_plain_values_are_those_of_json() -> None:
    odd = {
        1: np.float64("nan"),
        "a": (np.int32(3), np.bool_(True)),
        "b": np.array([1.5, np.inf]),
        "c": range(2),
    }
    assert plain(odd) == {"1": None, "a": [3, True], "b": [1.5, None], "c": [0, 1]}


def test_a_sweep_of_words_is_drawn() -> None:
    kind = Parameter("band", "what kind")
    worded = replace(
        SCENARIO,
        parameters={**SCENARIO.parameters, "kind": kind},
        sweep=Sweep("kind", ("band", "block")),
    )
    text = page(compare(worded, {"tuples": "100"}))
    read(text)
    assert "block" in text


def test_the_play_is_what_the_runs_did(toy: Comparison, text: str) -> None:
    play = data_of(text)["play"]
    runs = shown_runs(toy)
    first, last = play["first"], play["last"]
    assert [plan["label"] for plan in play["plans"]] == ["in order: buffer", "out of order: partials"]
    recording = runs[0].recording
    assert recording is not None
    inside = (recording.arrivals >= first) & (recording.arrivals <= last)
    assert [x + first for x in play["dots"]["x"]] == recording.arrivals[inside].tolist()
    assert [y + first for y in play["dots"]["y"]] == recording.times[inside].tolist()
    for run, plan in zip(runs, play["plans"], strict=True):
        told = {(x + first, y + first): n for x, y, n in zip(*plan["answers"].values(), strict=True)}
        came = [
            pair
            for pair in zip(run.emitted.tolist(), run.table["end"].to_pylist(), strict=True)
            if first <= pair[0] <= last
        ]
        assert told == Counter(came)
        assert max(plan["kept"]["bytes"]) <= run.peak_state_bytes
        assert run.recording is not None
        steps = [[x + first, y + first] for x, y in zip(*plan["linear"].values(), strict=True)]
        inside = [step for step in run.recording.bounds.tolist() if first < step[0] <= last]
        assert steps[-len(inside) :] == inside


def test_curves_are_the_figures_of_the_runs(toy: Comparison, text: str) -> None:
    charts = data_of(text)["charts"]
    runs = shown_runs(toy)
    for chart, field in zip(
        charts["state"], ("peak_tuples", "peak_partials", "peak_state_bytes"), strict=True
    ):
        assert [max(series["y"]) for series in chart["series"]] == [getattr(run, field) for run in runs]
    by_title = {chart["title"]: chart for chart in charts["sweep"]}
    kept = by_title["peak bytes kept"]
    assert kept["x"] == [0, 20, 60]
    assert kept["series"][0]["y"] == [run.peak_state_bytes for run in toy.runs if run.order == "in"]
    for chart, pick in zip(charts["delays"], ("delays_s", "excess_s"), strict=True):
        for run, series in zip(runs, chart["series"], strict=True):
            scale = 60 if "min" in chart["xlabel"] else 1
            half = next(x for x, y in zip(chart["x"], series["y"], strict=True) if y >= 0.5)
            assert half * scale == pytest.approx(np.quantile(getattr(run, pick), 0.5, method="inverted_cdf"))


def test_a_long_run_is_shown_as_bands(toy: Comparison) -> None:
    many = [Sample(now, State(tuples=now % 7, nbytes=now % 100)) for now in range(0, 4000, 2)]
    text = page(replace(toy, runs=[replace(run, series=many) for run in toy.runs]))
    read(text)
    assert "each band goes from the lowest to the highest sample" in text
    low, high, middle = (data_of(text)["charts"]["state"][2]["series"][i]["y"] for i in (1, 0, 2))
    assert max(high) == 98
    assert all(a <= b <= c for a, b, c in zip(low, middle, high, strict=True))


def test_texts_of_a_scenario_cannot_leave_their_place(toy: Comparison) -> None:
    evil = "</script><script>alert(1)</script><!--"
    scenario = replace(toy.scenario, title=evil, about=f"{evil}\n\n* one ``{evil}``\n* *two*", name=evil)
    runs = [replace(run, variant=evil) for run in toy.runs]
    text = page(replace(toy, scenario=scenario, runs=runs, claims=[Claim(evil, None, {evil: evil})]))
    read(text)
    assert text.count("<script") == 2
    assert "<li><em>two</em></li>" in text
    assert data_of(text)["play"]["plans"][0]["label"] == f"in order: {evil}"


def test_the_same_runs_can_be_made_again(tmp_path: Path) -> None:
    """A scenario of a file by its path, and what was set."""
    path = tmp_path / "a toy.py"
    path.write_text("from tests.parts.toy_scenario import SCENARIO\n")
    text = page(compare(load(str(path)), {"tuples": "100", "skew": "20"}))
    assert f"oop-engine compare &#x27;{path}&#x27; --set tuples=100 --set skew=20" in text


def test_one_tuple_and_no_result_is_a_page_too() -> None:
    one = replace(SCENARIO, sweep=None, truth=None)
    text = page(compare(one, {"tuples": "1"}))
    read(text)
    assert len(data_of(text)["play"]["dots"]["x"]) == 1
    nothing = replace(one, feeds=lambda values: {"packets": iter(())})
    assert data_of(page(compare(nothing)))["play"] is None


def test_the_library_comes_with_its_licence(text: str) -> None:
    assert f"uPlot {UPLOT}" in text
    assert "Copyright (c) 2022 Leon Sorokin" in text
    vendor = files("oop_engine.lab.report").joinpath("vendor")
    assert UPLOT in vendor.joinpath("README.md").read_text()
    assert f"(v{UPLOT})" in vendor.joinpath("uPlot.iife.min.js").read_text()[:80]


def test_without_a_script_everything_can_be_read(toy: Comparison, text: str) -> None:
    still = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert still.count('class="still"') == 4
    assert all(claim.claim in still for claim in toy.claims)
    assert not re.search(r"<[^>]* hidden[ >]|display: ?none", still.partition("</style>")[2])
