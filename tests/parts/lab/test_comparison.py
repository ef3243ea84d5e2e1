from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import Graph, Linear, Page, Schema, UsageError
from oop_engine.lab.answers import Match, missing_and_wrong
from oop_engine.lab.comparison import compare
from oop_engine.lab.origin import changed_figures
from oop_engine.lab.scenario import COMPLETE_AT, Scenario, Variant, find, load
from oop_engine.operators import Count, Filter, Ordered, Punctuate, Tumbling, Upstream, WindowAggregate
from oop_engine.operators.rewrites.in_order import in_order

TOY = """
import pyarrow as pa

from oop_engine.lab.scenario import COMPLETE_AT, Claim, Parameter, Scenario, Sweep, Variant
from tests.parts.toys import Hold, Promise, chain, page_of

ROWS = [(10, 0, 100), (12, 1, 101), (30, 2, 120), (22, 3, 121), (50, 4, 140)]  # time, id, arrival


def feeds(values):
    return {"source": iter([page_of([r[:2] for r in ROWS], [r[2] for r in ROWS])])}


def variants(values):
    return [
        Variant("late promises", "in", chain(Promise(values["slack"] + 10), Hold())),
        Variant("promises", "out", chain(Promise(values["slack"]), Hold())),
    ]


def truth(values):
    ts, ids, arrivals = zip(*ROWS)
    return pa.table({"ts": ts, "id": ids, COMPLETE_AT: arrivals})


def claims(runs):
    kept = {order: max(r.peak_tuples for r in runs if r.order == order) for order in ("in", "out")}
    return [Claim("out of order keeps no more", kept["out"] <= kept["in"], kept)]


SCENARIO = Scenario(
    name="toy", title="Toy", about="Tuples, once they are complete.", feeds=feeds, variants=variants, truth=truth,
    keys=("id",), claims=claims, sweep=Sweep("slack", (8, 20), "s"),
    parameters={"slack": Parameter(8, "how late", least=0), "other": Parameter("x", "nothing")},
)
"""

RUN_KEYS = [
    "order", "variant", "parameters", "tuples", "results", "missing", "wrong", "late", "peak_tuples",
    "peak_partials", "peak_state_bytes", "delay_p50_s", "delay_p99_s", "excess_delay_p50_s", "excess_delay_p99_s",
    "delays_of", "excess_delays_of", "latency_p50_ms", "latency_p99_ms", "cpu_s", "tuples_per_s", "held_to",
    "first_delay_p50_s", "first_delay_p99_s", "first_wrong", "revised",
]  # fmt: skip


@pytest.fixture
def toy(tmp_path: Path) -> Scenario:
    return written(tmp_path, TOY)


def written(folder: Path, text: str) -> Scenario:
    path = folder / "toy.py"
    path.write_text(text)
    return load(str(path))


def test_every_plan_is_run_for_every_value_of_the_sweep(toy: Scenario) -> None:
    told: list[tuple[str, int, int]] = []
    tuples: list[int] = []
    found = compare(toy, on_run=lambda *what: told.append(what), on_tuples=tuples.append)
    assert [(r.order, r.parameters["slack"]) for r in found.runs] == [
        ("in", 8),
        ("out", 8),
        ("in", 20),
        ("out", 20),
    ]
    assert told == [
        ("in order, late promises, slack 8 s", 0, 4),
        ("out of order, promises, slack 8 s", 1, 4),
        ("in order, late promises, slack 20 s", 2, 4),
        ("out of order, promises, slack 20 s", 3, 4),
    ]
    assert tuples == [5] * 4
    assert found.holds
    assert [c.holds for c in found.claims] == [True, True]


def test_figures_are_those_of_the_trace(toy: Scenario) -> None:
    run = next(r for r in compare(toy, {"slack": "8"}).runs if r.order == "out")
    # 30 promises 20, and releases 10 and 12; 50 promises 40, and releases 22 and 30; the end releases 50
    assert run.delays_s.tolist() == [110, 108, 118, 110, 90]
    assert run.excess_s.tolist() == [20, 19, 19, 20, 0]
    assert (run.delay_p50_s, run.excess_delay_p50_s) == (110, 19)
    assert (run.tuples, run.results, run.missing, run.wrong, run.late) == (5, 5, 0, 0, 0)
    assert (run.peak_tuples, run.peak_state_bytes) == (3, 48)
    assert [(s.now, s.state.tuples) for s in run.series] == [(100, 1), (120, 3), (140, 3)]


def test_every_run_counts_all_tuples_of_its_feeds() -> None:
    feed = [{"ts": time} for time in range(250)]
    found = compare(counted(Punctuate(Ordered())), {"in": feed})
    assert {run.tuples for run in found.runs} == {250}


def test_the_json_has_the_keys_that_are_documented(toy: Scenario) -> None:
    found = json.loads(json.dumps(compare(toy).to_dict()))
    assert list(found) == [
        "scenario",
        "parameters",
        "versions",
        "data",
        "float_error",
        "peak_rss_bytes",
        "runs",
        "claims",
    ]
    assert found["scenario"] == "toy"
    assert found["parameters"] == {"slack": 8, "other": "x"}
    assert all(list(run) == RUN_KEYS for run in found["runs"])
    assert [list(claim) for claim in found["claims"]] == [["claim", "holds", "figures"]] * 2


def test_a_parameter_that_is_set_is_not_swept(toy: Scenario) -> None:
    found = compare(toy, {"slack": "15"})
    assert [r.parameters["slack"] for r in found.runs] == [15, 15]
    assert len(compare(toy, {"other": "y"}).runs) == 4
    with pytest.raises(UsageError, match="did you mean slack"):
        compare(toy, {"slak": "15"})


def test_a_wrong_answer_breaks_the_first_claim(tmp_path: Path) -> None:
    text = TOY.replace('{"ts": ts,', '{"ts": (11, *ts[1:]),')
    found = compare(written(tmp_path, text), {"slack": "8"})
    assert not found.holds
    assert {(r.missing, r.wrong) for r in found.runs} == {(0, 1)}
    assert found.claims[0].figures["missing and wrong"] == {
        "in order, late promises, slack=8, other=x": "0 missing, 1 wrong",
        "out of order, promises, slack=8, other=x": "0 missing, 1 wrong",
    }


def test_a_plan_that_is_not_exact_may_be_off(tmp_path: Path) -> None:
    text = TOY.replace('{"ts": ts,', '{"ts": (11, *ts[1:]),').replace("Hold()))", "Hold()), exact=False)")
    assert compare(written(tmp_path, text), {"slack": "8"}).holds


def test_a_claim_that_fails_is_told(tmp_path: Path) -> None:
    found = compare(written(tmp_path, TOY.replace('kept["out"] <= kept["in"]', "False")), {"slack": "8"})
    assert [c.holds for c in found.claims] == [True, False]
    assert not found.holds


def test_without_a_truth_nothing_is_called_true(tmp_path: Path) -> None:
    """Operators of one's own have no definition that could be evaluated: plans are held to each other."""
    found = compare(written(tmp_path, TOY.replace("truth=truth,", "")), {"slack": "8"})
    assert found.holds  # nothing fails
    assert [(c.claim, c.holds) for c in found.claims[:2]] == [
        ("every plan gives the brute-force answer: nothing missing, nothing wrong", None),
        ("every plan gives the answer of the first one", True),
    ]
    assert "(Hold) is not evaluated by brute force" in found.claims[0].figures["not checked"]
    first, second = found.runs
    assert (first.held_to, first.missing, first.wrong) == ("nothing", None, None)
    assert (second.held_to, second.missing, second.wrong) == ("first plan", 0, 0)
    assert all(run.excess_s.size == 0 and math.isnan(run.excess_delay_p50_s) for run in found.runs)


def test_plans_that_differ_from_the_first_are_told(tmp_path: Path) -> None:
    text = TOY.replace("truth=truth,", "").replace(
        "import pyarrow as pa", "import pyarrow as pa\nfrom oop_engine.operators import Filter"
    )
    text = text.replace(
        '(values["slack"]), Hold', '(values["slack"]), Filter(lambda rows: rows["id"].to_numpy() > 0), Hold'
    )
    found = compare(written(tmp_path, text), {"slack": "8"})
    assert [claim.verdict for claim in found.claims[:2]] == ["not checked", "fails"]
    assert (found.runs[1].missing, found.runs[1].wrong) == (1, 0)
    assert not found.holds


LATE = """
import pyarrow as pa

from oop_engine import Graph, Page, Schema
from oop_engine.lab.scenario import Scenario, Variant
from oop_engine.operators import BoundedDisorder, Count, Punctuate, Tumbling, WindowAggregate

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")


def feeds(values):
    return {"source": [Page.of(SCHEMA, {"ts": [1, 12, 25, 3, 40, 60]}, arrival=[1, 12, 25, 26, 40, 60])]}


def variants(values):
    graph = Graph("counts")
    edge = graph.add("edge", Punctuate(BoundedDisorder(SLACK), granularity=10), graph.source("source", SCHEMA))
    graph.sink("answers", graph.add("query", WindowAggregate(Tumbling(10), {"n": Count()}), edge))
    return [Variant("alone", "out", graph)]


SCENARIO = Scenario(
    name="late", title="Late", about="One plan and no truth.", feeds=feeds, variants=variants, keys=("window_end",)
)
"""


def test_without_a_truth_one_is_computed(tmp_path: Path) -> None:
    """One plan that loses a tuple, and nobody says what is right: it is found out."""
    found = compare(written(tmp_path, LATE.replace("SLACK", "5")))
    [run] = found.runs
    assert (run.held_to, run.late, run.missing, run.wrong) == ("brute force", 1, 0, 1)
    assert [claim.verdict for claim in found.claims] == ["fails"]
    [run] = compare(written(tmp_path, LATE.replace("SLACK", "25"))).runs
    assert (run.late, run.missing, run.wrong) == (0, 0, 0)
    # 40 brings the promise 10, 60 that of 30, and the end, at 60, the rest of what ended before
    assert run.excess_s.tolist() == [40 - 26, 60 - 12, 60 - 25, 60 - 40]


def test_inexact_plans_are_counted_and_not_claimed(tmp_path: Path) -> None:
    loses = LATE.replace("SLACK", "5").replace('"out", graph)', '"out", graph, exact=False)')
    found = compare(written(tmp_path, loses))
    assert [(c.verdict, c.figures["missing and wrong in those"]) for c in found.claims] == [
        ("not checked", 1)
    ]
    assert found.claims[0].claim.startswith("every plan that is to be exact")


TRUTH = {
    "end": [1, 1, 2],
    "k": ["a", None, "a"],
    "n": [10, 20, 30],
    "mean": [1.0, float("nan"), None],
    COMPLETE_AT: [5, 6, 7],
}


@pytest.mark.parametrize(
    ("rows", "missing", "wrong"),
    [
        ([(1, "a", 10, 1.0), (1, None, 20, float("nan")), (2, "a", 30, None)], 0, 0),
        ([(2, "a", 30, None), (1, "a", 10, 1.0 + 1e-13), (1, None, 20, float("nan"))], 0, 0),
        ([], 3, 0),
        ([(1, "a", 10, 1.0)], 2, 0),
        ([(1, "a", 11, 1.0)], 2, 1),
        ([(1, "a", None, 1.0)], 2, 1),
        ([(1, "a", 10, 1.1)], 2, 1),
        ([(1, "a", 10, None)], 2, 1),
        ([(1, "a", 10, 1.0), (1, "a", 10, 1.0)], 2, 1),
        ([(1, "a", 10, 1.0), (1, "a", 11, 1.0)], 2, 1),
        ([(9, "a", 10, 1.0), (1, "b", 10, 1.0)], 3, 2),
    ],
    ids=range(11),
)  # fmt: skip
def test_results_are_held_to_the_truth(rows: list[tuple], missing: int, wrong: int) -> None:
    truth = pa.table(TRUTH)
    schema = pa.schema([truth.schema.field(n) for n in ("end", "k", "n", "mean")])
    table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)
    match = Match(table, truth, ("end", "k"))
    assert (match.missing, match.wrong) == (missing, wrong)
    known = {(1, "a"): 5, (1, None): 6, (2, "a"): 7}
    assert match.complete_at[match.known].tolist() == [known[row[:2]] for row in rows if row[:2] in known]


def test_an_empty_truth_knows_no_result() -> None:
    truth = pa.table({"end": pa.array([], pa.int64()), COMPLETE_AT: pa.array([], pa.int64())})
    empty = pa.table({"end": pa.array([], pa.int64())})
    assert (Match(empty, truth, ("end",)).missing, Match(empty, truth, ("end",)).wrong) == (0, 0)
    match = Match(pa.table({"end": [1, 2]}), truth, ("end",))
    assert (match.missing, match.wrong, match.known.tolist()) == (0, 2, [False, False])


def test_integers_and_timestamps_are_compared_by_value() -> None:
    truth = pa.table({"end": pa.array([1, 2]), "n": pa.array([1, 2], pa.int32()), COMPLETE_AT: [0, 0]})
    table = pa.table({"end": pa.array([1, 2]), "n": pa.array([1.0, 2.0])})
    match = Match(table, truth, ("end",))
    assert (match.missing, match.wrong) == (0, 0)
    assert np.array_equal(match.complete_at, [0, 0])


SECONDS = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")


def counted(edge: Punctuate, keys: tuple[str, ...] = (), only: str | None = None) -> Graph:
    """Return a graph that counts by windows of ten, and drops all keys but ``only``."""
    graph = Graph("counted")
    stream = graph.add("edge", edge, graph.source("in", SECONDS))
    if only is not None:
        stream = graph.add("only", Filter(lambda batch: pc.equal(batch["k"], only)), stream)
    graph.sink("out", graph.add("count", WindowAggregate(Tumbling(10), {"n": Count()}, keys), stream))
    return graph


def of_graphs(*graphs: Graph, feed: list[Any], truth: pa.Table | None = None) -> Scenario:
    return Scenario(
        name="own", title="", about="", feeds=lambda _: {"in": list(feed)},
        variants=lambda _: [Variant(str(number), "out", graph) for number, graph in enumerate(graphs)],
        truth=None if truth is None else lambda _: truth, keys=("window_end",),
    )  # fmt: skip


def page_at(*rows: tuple[int, str, int]) -> Page:
    times, names, arrivals = zip(*rows, strict=True)
    return Page.of(SECONDS, {"ts": list(times), "k": list(names)}, arrival=np.array(arrivals))


EARLY = [
    page_at((1, "a", 1), (4, "a", 4), (5, "a", 6)), Linear(10), page_at((12, "a", 14)), Linear(20),
    page_at((21, "a", 21), (25, "a", 50)),
]  # fmt: skip


def test_results_that_punctuation_releases_early_have_negative_delays() -> None:
    graph = counted(Punctuate(Upstream()))
    for run in compare(of_graphs(graph, in_order(graph), feed=EARLY)).runs:
        assert run.emitted.tolist() == [6, 14, 50]
        assert run.delays_s.tolist()[:2] == [-4.0, -6.0]
        assert run.delays_of == run.delays_s.size


def test_delays_are_of_right_results() -> None:
    graph = counted(Punctuate(Upstream()))
    truth = pa.table({
        "window_start": [0, 10, 20], "window_end": [10, 20, 30], "n": [3, 7, 2], COMPLETE_AT: [6, 14, 50]
    })  # fmt: skip
    [run] = compare(of_graphs(graph, feed=EARLY, truth=truth)).runs
    assert (run.wrong, run.missing) == (1, 0)
    assert -6.0 not in run.delays_s.tolist()
    assert -6.0 in run.all_delays_s.tolist()
    assert run.excess_delays_of == run.excess_s.size == 2


@pytest.mark.parametrize(("only", "missing"), [(None, 0), ("b", 1)])
def test_rows_that_keys_do_not_identify_are_compared_whole(only: str | None, missing: int) -> None:
    feed = [page_at((1, "a", 1), (2, "b", 2), (3, "b", 3), (12, "b", 12))]
    truth = pa.table({
        "k": ["a", "b", "b"], "window_start": [0, 0, 10], "window_end": [10, 10, 20], "n": [1, 2, 1],
        COMPLETE_AT: [1, 3, 12],
    })  # fmt: skip
    found = compare(of_graphs(counted(Punctuate(Ordered(), 10), ("k",), only), feed=feed, truth=truth))
    assert (found.runs[0].missing, found.runs[0].wrong) == (missing, 0)
    assert found.holds == (missing == 0)


@pytest.mark.parametrize("small", [[0.0, 0.0, 0.3], [-3e-10, 2.5e-12, 0.3], [3e-12, 2.5e-12, 0.3]])
def test_small_floats_are_compared_by_their_own_size(small: list[float]) -> None:
    ends = {"window_end": [10, 20, 30]}
    truth = pa.table(ends | {"mean": [3e-10, 2.5e-12, 0.3]})
    near = pa.table(ends | {"mean": [3e-10 * (1 + 1e-15), 2.5e-12, 0.1 + 0.2]})
    assert missing_and_wrong(pa.table(ends | {"mean": small}), truth, ("window_end",))[1] > 0
    assert missing_and_wrong(near, truth, ("window_end",)) == (0, 0)


def test_truth_without_a_column_of_the_results_is_refused() -> None:
    graph = counted(Punctuate(Upstream()))
    truth = pa.table({"window_start": [0], "window_end": [10], COMPLETE_AT: [6]})
    with pytest.raises(UsageError, match="'own': its truth lacks the columns n of the results"):
        compare(of_graphs(graph, feed=EARLY, truth=truth))


def test_a_truth_of_more_columns_and_keys_of_others_than_the_results_are_refused() -> None:
    truth = pa.table({"window_start": [0], "window_end": [10], "n": [2], "more": [1], COMPLETE_AT: [6]})
    scenario = of_graphs(counted(Punctuate(Upstream())), feed=EARLY, truth=truth)
    with pytest.raises(UsageError, match="'own': its truth has the columns more, which the results lack"):
        compare(scenario)
    with pytest.raises(
        UsageError, match=r"its keys must be columns of the results, window_start, .*; got host"
    ):
        compare(replace(scenario, keys=("host",), truth=None))


def test_keys_are_found_by_value_whatever_their_types() -> None:
    table = pa.table({"end": pa.array([10, 20], pa.timestamp("s")), "n": [1, 2]})
    for kind in (pa.int64(), pa.timestamp("ms"), pa.timestamp("s")):
        truth = pa.table({"end": table["end"].cast(kind), "n": [1, 3]})
        assert missing_and_wrong(table, truth, ("end",)) == (0, 1)
    floats = pa.table({"end": [10.0, 20.0], "n": [1, 3]})
    assert missing_and_wrong(pa.table({"end": [10, 20], "n": [1, 2]}), floats, ("end",)) == (0, 1)


def test_comparisons_name_versions_and_data() -> None:
    graph = counted(Punctuate(Upstream()))
    one, again, other = (
        compare(of_graphs(graph, feed=feed)).to_dict() for feed in (EARLY, EARLY, EARLY[:-1])
    )
    assert one["versions"]["pyarrow"] == pa.__version__
    assert one["data"] == again["data"] != other["data"]
    assert next(line.split(":")[0] for line in changed_figures(one, other)) == "data"


def test_claims_are_not_checked_where_a_parameter_is_too_small_for_them() -> None:
    scenario = find("joint")
    assert scenario.parameters["rate"].enough == 20
    found = compare(replace(scenario, sweep=None), {"rate": "2", "seconds": "20", "band": "5"}).claims
    assert [claim.verdict for claim in found] == ["holds", "not checked", "not checked"]
    assert found[-1].figures == {"not checked": "rate 2 is below 20, seconds 20 is below 200"}
