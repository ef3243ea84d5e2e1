"""A knob is set where it is read, and set back; a turn at each setting is compared with the knob as it is."""

from __future__ import annotations

from types import ModuleType

from benchmarks import knobs
from oop_engine.operators.slicing import checks, closing
from oop_engine.system.knobs import KNOBS

AT_ONCE = "slicing.checks.AT_ONCE"


def test_a_knob_is_set_where_it_is_read_and_set_back() -> None:
    home = knobs.knobs_of_python()[AT_ONCE]
    assert {checks, closing} <= {
        each for each in knobs.readers(home, "AT_ONCE") if isinstance(each, ModuleType)
    }
    with knobs.set_to(home, AT_ONCE, 7):
        assert (checks.AT_ONCE, vars(closing)["AT_ONCE"]) == (7, 7)
    assert checks.AT_ONCE == vars(closing)["AT_ONCE"] == KNOBS[AT_ONCE].size


def test_no_knob_of_a_kernel_is_among_them() -> None:
    found = knobs.knobs_of_python()
    assert "slicing.panes.open_spans._MORE" in found
    assert not [name for name, home in found.items() if ".kernels." in home]


def test_settings_are_compared_with_the_knob_as_it_is() -> None:
    home = knobs.knobs_of_python()[AT_ONCE]

    def run() -> int:
        sum(range(20_000))
        return checks.AT_ONCE

    found = knobs.measured(home, AT_ONCE, run)
    assert [*found] == ["half", "double", "small", "large"]
    assert [one.state for one in found.values()] == [0.5, 2, 1 / 32, 32]
    assert all(one.cpu > 0 for one in found.values())


def test_a_question_tells_which_names_its_functions_read() -> None:
    run = knobs.QUESTIONS["W3"]()
    run()
    assert knobs.reached(run)[closing.__file__ or "", "AT_ONCE"] > 0
