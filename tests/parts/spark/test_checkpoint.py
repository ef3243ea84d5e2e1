"""A checkpoint knows how its query was run, and keeps no more than it has to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from oop_engine import UsageError
from oop_engine.operators import BoundedDisorder, Punctuate
from oop_engine.spark.io.segments import Files
from oop_engine.spark.run import pieces_of
from oop_engine.spark.state.checkpoint import Checkpoint
from oop_engine.spark.state.state_files import StateFiles, version_of
from tests.parts.spark.small_graph import SCHEMA, checkpoint_of, of, plus


def test_a_checkpoint_knows_how_it_was_run(tmp_path: Path) -> None:
    checkpoint_of(of(plus(1)), tmp_path)
    kept, pieces = Checkpoint(tmp_path), pieces_of(of(plus(1)))
    assert kept.sizes(7, None) == kept.sizes(7, 4) == (2, 4)
    assert kept.query() == Checkpoint(tmp_path).query() != Checkpoint(tmp_path / "other").query()
    with pytest.raises(UsageError, match="it has 4 key groups; got groups=5: leave it out"):
        kept.sizes(2, 5)
    kept.keep(pieces, {"source": Files(str(tmp_path), SCHEMA)}, (2, 4))
    with pytest.raises(UsageError, match="the feed of 'source' was Files, is a DataFrame: give it as then"):
        kept.keep(pieces, {}, (2, 4))
    other = pieces_of(of(Punctuate(BoundedDisorder(3))))
    with pytest.raises(UsageError, match="fused in another way: give the score and rates of then"):
        kept.keep(replace(other, components=()), {}, (2, 4))


def test_what_a_kill_left_is_cleared_away(tmp_path: Path) -> None:
    states = StateFiles(str(tmp_path / "heads"))
    name = states.save("source", 3, b"state")
    (tmp_path / "heads" / "source" / "000000000004.state.0123").write_bytes(b"half")
    checkpoint_of(of(plus(1)), tmp_path)
    assert [path.name for path in (tmp_path / "heads" / "source").iterdir()] == [name]


def test_old_states_of_source_chains_are_forgotten(tmp_path: Path) -> None:
    states = StateFiles(str(tmp_path))
    for offset in range(100):
        states.save("source", offset, b"state")
    kept = sorted(path.name for path in (tmp_path / "source").iterdir())
    assert [version_of(name) for name in kept] == list(range(84, 100))
    assert states.load("source", kept[-1]) == b"state"
