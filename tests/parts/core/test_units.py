from __future__ import annotations

import re
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import GraphError
from oop_engine.core.units import TIME_UNITS, to_seconds, to_units
from oop_engine.errors import UnitError


@pytest.mark.parametrize(
    ("length", "unit", "units"),
    [
        (90, "s", 90),
        (-3, "rows", -3),
        ("90", "s", 90),
        (" 15 min ", "s", 900),
        ("15min", "ms", 900_000),
        ("1.5 s", "ms", 1500),
        ("-2 h", "s", -7200),
        ("+1 d", "s", 86_400),
        ("3000 ms", "s", 3),
        ("7 rows", "rows", 7),
        ("0 ns", "s", 0),
        ("1 min", "ns", 60_000_000_000),
        (timedelta(minutes=2, milliseconds=5), "ms", 120_005),
        (timedelta(days=-1), "s", -86_400),
    ],
)
def test_lengths_become_whole_units(length: int | str | timedelta, unit: str, units: int) -> None:
    assert to_units(length, unit) == units


@pytest.mark.parametrize(
    ("length", "unit", "words"),
    [
        (True, "s", "must be an integer, a text such as '15 min' or a timedelta; got True"),
        (1.5, "s", "got 1.5"),
        (None, "s", "got None"),
        ("soon", "s", "must read like '15 min', '1 minute', '1h30m', 'PT15M' or '900'; got 'soon'"),
        ("", "s", "got ''"),
        ("1 2 s", "s", "got '1 2 s'"),
        (
            "2 months",
            "s",
            "must be a length of time; got '2 months': 'months' has no fixed length; write it like '15 min'",
        ),
        ("2 s", "rows", "must be in 'rows'; got '2 s': give a plain integer"),
        ("2 rows", "s", "must be a length of time; got '2 rows': there is no unit 'rows'"),
        (timedelta(seconds=2), "m", "give a plain integer"),
        ("1 min", "seconds", "where 'seconds' are times, the schema's unit must be one of s, ms, us, ns"),
        ("1.5 s", "s", "must be a whole number of 's'; got '1.5 s' = 1.5 s"),
        ("0.5", "rows", "must be a whole number of 'rows'"),
        (timedelta(milliseconds=1), "s", "whole number of 's'"),
    ],
)
def test_a_length_that_does_not_fit_is_refused_in_the_name_of_its_place(
    length: object, unit: str, words: str
) -> None:
    with pytest.raises(UnitError, match=f"^Sliding: slide .*{re.escape(words)}") as caught:
        to_units(length, unit, "Sliding: slide")  # type: ignore[arg-type]
    assert isinstance(caught.value, GraphError)


@given(
    st.integers(-(10**12), 10**12), st.sampled_from(sorted(TIME_UNITS)), st.sampled_from(sorted(TIME_UNITS))
)
def test_to_a_finer_unit_and_back_is_the_same(value: int, one: str, other: str) -> None:
    coarse, fine = sorted((one, other), key=TIME_UNITS.__getitem__)
    assert to_units(f"{to_units(f'{value} {coarse}', fine)} {fine}", coarse) == value


def test_integers_of_numpy_are_integers() -> None:
    assert to_units(np.int64(3), "rows") == 3  # type: ignore[arg-type]


def test_seconds() -> None:
    assert to_seconds(1500, "ms") == 1.5
    assert to_seconds(7, "rows") == 7
