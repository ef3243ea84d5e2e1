"""The suite: contenders in processes of their own, figures, targets, studies, profile."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from benchmarks import profile
from benchmarks.__main__ import main
from benchmarks.field import Entry
from benchmarks.studies.cores import cores
from benchmarks.studies.journal import journal
from benchmarks.studies.memory import memory
from benchmarks.studies.promises import promises
from benchmarks.studies.recovery import recovery
from benchmarks.studies.sizes import held_bytes
from benchmarks.targets import of_workloads
from benchmarks.turns import Measured

FIELDS = [
    "workload", "contender", "rows", "rows_per_s", "cpu_s", "peak_rss_mb", "ratio_to_floor", "spread", "correct",
]  # fmt: skip


@pytest.mark.slow
def test_a_small_run_writes_right_results(tmp_path):
    asked = ["--rows", "3000", "--rounds", "2", "--seconds", "0", "--contenders", "engine"]
    assert main(["W3", *asked, "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "bench.json").read_text())
    assert [figures["contender"] for figures in found] == ["floor", "engine"]
    assert all(list(figures) == FIELDS and figures["correct"] for figures in found)
    assert json.loads((tmp_path / "machine.json").read_text())["cores"] > 0
    assert (tmp_path / "bench.png").stat().st_size


def measured(contender, wall_s, rows=100, workload="W1"):
    return Measured(workload, contender, rows, wall_s=wall_s, cpu_s=wall_s)


def test_ratios_are_taken_within_rounds():
    floor, engine = measured("floor", [1.0, 2.0, 4.0]), measured("engine", [2.0, 4.0, 4.0], rows=50)
    assert engine.ratios(floor) == [0.25, 0.25, 0.5]
    told = engine.told(floor)
    assert (told["ratio_to_floor"], told["spread"]) == (0.25, 1.0)


def test_targets_are_told_of_what_was_measured():
    found = [measured("floor", [1.0]), measured("engine", [4.0])]
    assert [(target.least, target.got, target.reached) for target in of_workloads(found)] == [
        (0.60, 0.25, False),
        (0.25, 0.25, True),
        (0.14, 0.25, True),
    ]


def test_small_pages_are_a_target_where_they_are_pushed():
    pushed, alone = ["engine, pushed", "engine, pushed, pages of 256"], ["engine", "engine, pages of 256"]
    found = [
        measured(name, [wall], workload="W3") for name, wall in zip(pushed + alone, [2, 4, 1, 9], strict=True)
    ]
    assert [(target.least, target.got, target.reached) for target in of_workloads(found)] == [
        (1 / 3, 1 / 2, True),
        (None, 1 / 9, True),
    ]


def test_who_is_not_installed_is_absent():
    assert Entry("Nobody", "benchmarks.peers.nobody", "no_such_package").python is None
    assert Entry("floor", "benchmarks.ours").python is not None


def test_memory_that_is_shared_counts_once():
    column = np.zeros(1000)
    assert 8000 <= held_bytes([[column, column[10:], {"again": column}]]) < 8600
    batch = pa.RecordBatch.from_pydict({"x": column})
    assert held_bytes([batch, batch.slice(5, 10)]) == 8000


def test_memory_is_told():
    found = memory("W3", 3000, 1000)
    assert found["open_bytes"] == 16 * found["open_partials"] > 0
    assert found["state_held_bytes"] > 0


def test_costs_of_checkpoints_and_of_a_restart_are_timed():
    found = recovery(0.0005)
    assert 0 < found["restart_s"] <= found["restart_first_s"]
    assert {"W2_cpu_share", "W3_cpu_share"} <= found.keys()


def test_the_cost_of_a_journal_is_timed():
    found = journal(600)
    assert min(found["messages_us"], found["messages_kept_us"]) > 0
    assert 0 < found["alone_p50_us"] <= found["alone_p99_us"]


def test_promises_are_timed():
    assert promises(100)["promise_of_page"] > 0


@pytest.mark.slow
def test_a_second_core_is_told_of():
    found = cores("W3", 3000, 1)
    assert found.keys() == {"threads", "processes", "threads_cpu", "processes_cpu", "busiest"}
    assert 0.5 <= found["busiest"] <= 1  # of two operators


def test_profile_tells_kinds_of_work(capsys):
    profile.main(["W1", "--rows", "2000", "--top", "3"])
    told = capsys.readouterr().out
    assert "kernels" in told
    assert "Python of operators" in told
