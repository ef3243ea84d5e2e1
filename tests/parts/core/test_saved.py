from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oop_engine.core.saved import Saved
from oop_engine.errors import SnapshotError

FIELDS = pa.schema([("k", pa.string())])
SAVED = Saved(
    {
        "n": 3,
        "x": 1.5,
        "yes": True,
        "small": np.array([0, 2, 1], np.int8),
        "huge": np.array([2**64 - 1], np.uint64),
        "matrix": np.zeros((2, 3)),
        "bits": np.packbits([1, 0, 1]),
        "batch": pa.record_batch({"k": ["a", None]}),
        "list": [{"n": 1}, [2]],
        "text": "word",
        "none": None,
    }
)


def test_what_is_there_is_returned_as_what_it_has_to_be() -> None:
    assert SAVED.integer("n", least=3, most=3) == 3
    assert SAVED.floating("x") == 1.5
    assert SAVED.flag("yes") is True
    assert SAVED.integers("small", (3,), least=0, below=3).tolist() == [0, 2, 1]
    assert SAVED.integers("small", (None,)).dtype == np.int64
    assert SAVED.numbers("matrix", (2, None), np.float64).shape == (2, 3)
    assert SAVED.numbers("small", (3,), np.float64).tolist() == [0.0, 2.0, 1.0]
    assert SAVED.bits("bits", 3).tolist() == [True, False, True]
    assert SAVED.batch("batch", FIELDS, 2).num_rows == 2
    one, other = SAVED.parts("list", 2)
    assert (one.integer("n"), other.integer(0)) == (1, 2)


def test_arrays_are_of_one_s_own() -> None:
    SAVED.integers("small", (3,))[:] = 9
    SAVED.numbers("matrix", (2, 3), np.float64)[:] = 9
    assert SAVED["small"].tolist() == [0, 2, 1]
    assert not SAVED["matrix"].any()


@pytest.mark.parametrize(
    ("take", "words"),
    [
        (lambda s: s.integer("m"), "there must be 'm'"),
        (lambda s: s.integer("n", most=2), "'n' must be an integer from .* to 2; got 3"),
        (lambda s: s.integer("x"), "'x' must be an integer"),
        (lambda s: s.integer("yes"), "'yes' must be an integer"),
        (lambda s: s.floating("n"), "'n' must be a float"),
        (lambda s: s.flag("n"), "'n' must be true or false"),
        (lambda s: s.integers("small", (2,)), r"'small' must be an array of 2; got \(3,\)"),
        (lambda s: s.integers("small", (3, 1)), "an array of 3 x 1"),
        (lambda s: s.integers("small", (3,), below=2), "integers from .* to 1; got 0 to 2"),
        (lambda s: s.integers("huge", (1,)), "'huge' must be integers"),
        (lambda s: s.integers("matrix", (2, 3)), "'matrix' must be an array of numbers; got float64"),
        (lambda s: s.numbers("matrix", (2, 3), np.int64), "of int64"),
        (lambda s: s.numbers("small", (3,), np.bool_), "of bool"),
        (lambda s: s.bits("bits", 9), "an array of 2"),
        (lambda s: s.batch("batch", pa.schema([("k", pa.int64())])), "a record batch of 'k: int64'"),
        (lambda s: s.batch("batch", FIELDS, 3), "3 rows; got 2"),
        (lambda s: s.batch("text"), "a record batch; got word"),
        (lambda s: s.part("none"), "a part with parts"),
        (lambda s: s.parts("list", 3), "a list of 3 parts"),
    ],
    ids=range(19),
)
def test_anything_else_is_refused(take: Callable[[Saved], Any], words: str) -> None:
    with pytest.raises(SnapshotError, match=words):
        take(SAVED)
