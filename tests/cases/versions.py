"""Windows whose results have versions: what is left in the end is what there is without them."""

from __future__ import annotations

from oop_engine.extend import Windows
from oop_engine.operators import Emit, Session, Sliding, Tumbling, WindowAggregate
from oop_engine.testing import Case
from oop_engine.triggers import AfterAny, AfterChange, AfterCount, AfterEach, AfterFraction, Once, OrFinally
from tests.cases import Row
from tests.cases.folded import CASES as of_folded
from tests.cases.revisions import CASES as of_revisions
from tests.cases.values import CASES as of_values
from tests.cases.windows import CASES as of_windows
from tests.cases.windows import DOMAINS, FUNCTIONS, MANY, SCHEMA
from tests.naive import windows as naive
from tests.naive.sessions import sessions

OFTEN = Emit(early=AfterCount(1))
SELDOM = Emit(early=AfterCount(2), on_time=False, late=None)
COMPOSED = Emit(
    early=AfterAny(AfterFraction(0.5), AfterChange("n", 1)),
    late=AfterEach(Once(AfterCount(1)), AfterCount(2)),
)
COMPOSED_OF_COUNTS = Emit(
    early=AfterEach(AfterCount(1), AfterCount(2)), late=OrFinally(AfterCount(1), AfterCount(3))
)
MIXED: dict[str, Windows] = {
    "four": Session(4),
    "ten": Tumbling(10),
    "nine": Session(9),
    "all": Sliding(20, 10),
}


def tumbling(of: list[list[Row]]) -> list[Row]:
    return naive.sliding(of[0], "ts", ("k",), FUNCTIONS, 10, 10)


def sliding(of: list[list[Row]]) -> list[Row]:
    return naive.sliding(of[0], "ts", (), FUNCTIONS, 20, 5)


def of_sessions(of: list[list[Row]]) -> list[Row]:
    return sessions(of[0], "ts", ("k",), FUNCTIONS, 7)


def mixed(of: list[list[Row]]) -> list[Row]:
    found = {
        "four": sessions(of[0], "ts", ("k",), FUNCTIONS, 4),
        "ten": naive.sliding(of[0], "ts", ("k",), FUNCTIONS, 10, 10),
        "nine": sessions(of[0], "ts", ("k",), FUNCTIONS, 9),
        "all": naive.sliding(of[0], "ts", ("k",), FUNCTIONS, 20, 10),
    }
    return [{**row, "window": name} for name, rows in found.items() for row in rows]


OTHERS = {
    "ranked-of-group": OFTEN, "delimited-by-the-stream": OFTEN, "slide-by-tuple": COMPOSED_OF_COUNTS,
    "wid-landmark": OFTEN, "values-many": OFTEN, "window_aggregate-of_changes": OFTEN,
}  # fmt: skip
"""Cases of windows that are read from copies, with the versions that they get."""


def with_versions(case: Case, emit: Emit) -> Case:
    """Return a case with versions: in the end the rows are the same."""
    of = case.operator
    assert isinstance(of, WindowAggregate)
    operator = WindowAggregate(of.windows, of.aggregates, of.by, stamp=of.stamp, emit=emit)
    return Case(f"versions-{case.id}", operator, case.inputs, case.oracle, case.domains, case.exempt | WHY)


WHY = {"purge": "a version that a watermark puts out is kept until it is final"}
CASES = [
    Case(f"versions-{name}", operator, (SCHEMA,), oracle, DOMAINS, WHY)
    for name, operator, oracle in [
        ("tumbling", WindowAggregate(Tumbling(10), MANY, ("k",), emit=OFTEN), tumbling),
        (
            "tumbling-composed",
            WindowAggregate(Tumbling(10), MANY, ("k",), emit=COMPOSED, stamp="start"),
            tumbling,
        ),
        ("sliding", WindowAggregate(Sliding(20, 5), MANY, emit=SELDOM), sliding),
        ("sessions", WindowAggregate(Session(7), MANY, ("k",), emit=OFTEN), of_sessions),
        (
            "sessions-composed",
            WindowAggregate(Session(7), MANY, ("k",), emit=COMPOSED, stamp="start"),
            of_sessions,
        ),
        ("mixed", WindowAggregate(MIXED, MANY, ("k",), emit=OFTEN), mixed),
    ]
]
CASES += [
    with_versions(case, OTHERS[case.id])
    for case in (*of_folded, *of_windows, *of_values, *of_revisions)
    if case.id in OTHERS
]
