"""Revision streams: which operators pass them, take them, refuse them; the law ``final``."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import (
    ContractError,
    Graph,
    GraphError,
    GroupWise,
    Linear,
    Operator,
    Page,
    Schema,
    Watermark,
    replay,
)
from oop_engine.core.graphs.contract import EdgeContract
from oop_engine.extend import Message
from oop_engine.operators import (
    Avg,
    Band,
    Count,
    Distinct,
    Emit,
    Filter,
    Finalize,
    Max,
    Meld,
    OAJoin,
    Project,
    PrunePunctuation,
    Punctuate,
    Session,
    Sliding,
    Split,
    Sum,
    Tumbling,
    Upstream,
    WindowAggregate,
    WithColumns,
)
from oop_engine.operators.in_order.merge import Merge
from oop_engine.operators.in_order.sort import Sort
from oop_engine.operators.triggers.emit import Mode as EmitMode
from oop_engine.testing import END, Driver, multiset
from oop_engine.thesis import Aggregate, Bucket
from oop_engine.windows import SlideByTuple, TupleBased
from tests.naive.revisions import net

PLAIN = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "s")
CHANGES = Schema(pa.schema([*PLAIN.fields, pa.field("change", pa.int8())]), "ts", "s", change="change")

Row = dict[str, Any]


def drawn(seed: int, rows: int = 30) -> list[Row]:
    """Rows that are put out, some of them twice, and some taken back; by time of arrival."""
    draw = random.Random(seed)
    found = []
    for i in range(rows):
        row = {
            "ts": max(i - draw.randrange(9), 0),
            "k": draw.choice(["a", "b", None]),
            "v": draw.randrange(3),
        }
        changes = draw.choice([[1], [1, 1], [1, -1], [1, -1, 1], [1, 1, -1]])
        found += [
            row | {"change": change, "at": i + draw.randrange(4) * place}
            for place, change in enumerate(changes)
        ]
    return sorted(found, key=lambda row: row["at"])


def streamed(rows: list[Row], seed: int, schema: Schema = CHANGES) -> Iterator[Message]:
    """Pages of the rows in this order, and punctuation of the stream and of groups that holds."""
    draw = random.Random(seed)
    while rows:
        size = draw.randrange(1, 6)
        page, rows = rows[:size], rows[size:]
        yield Page.of(schema, {name: [row[name] for row in page] for name in schema.names})
        group = draw.choice(["a", "b"])
        of_group = min((row["ts"] for row in rows if row["k"] == group), default=40)
        linear = Linear(min((row["ts"] for row in rows), default=40))
        yield linear if draw.randrange(2) else GroupWise.of({"k": [group]}, [of_group])
        yield Watermark(Linear(linear.below + 3))


def taken(operator: Operator, seed: int) -> list[Row]:
    """What an operator makes of a revision stream, at the end; restored after each message."""
    contract = EdgeContract("out")
    driver = Driver(operator, CHANGES)
    for message in streamed(drawn(seed), seed):
        for port, out in driver.feed(0, message):
            if port == 0:
                contract.check(out)
        driver.move()
    driver.feed(0, END)
    assert driver.operator.state().in_use == (0, 0, 0)
    rows = driver.rows()
    return net(rows) if driver.operator.schemas_out[0].change else rows


def without(operator: Operator, seed: int) -> list[Row]:
    """What it makes of the plain stream of the rows that are left."""
    rows = net([{name: row[name] for name in CHANGES.names} for row in drawn(seed)])
    driver = Driver(operator, PLAIN)
    driver.feed(0, Page.of(PLAIN, {name: [row[name] for row in rows] for name in PLAIN.names}))
    driver.feed(0, END)
    return driver.rows()


OPERATORS: dict[str, Callable[[], Operator]] = {
    "finalize": Finalize,
    "select": lambda: Filter(pc.field("v") > 0),
    "split": lambda: Split({"out": pc.field("k") == "a"}, rest="rest"),
    "apply": lambda: WithColumns({"w": pc.field("v") * 2}),
    "project": lambda: Project({"ts": "ts", "w": "v"}),
    "describe": lambda: PrunePunctuation(granularity=5),
    "meld": lambda: Meld(1),
    "punctuate": lambda: Punctuate(Upstream()),
    "distinct": lambda: Distinct(by=("k",)),
    "distinct of all": Distinct,
    "tumbling": lambda: WindowAggregate(Tumbling(5), {"n": Count(), "s": Sum("v")}, by=("k",)),
    "sliding": lambda: WindowAggregate(Sliding(10, 5), {"m": Max("v"), "a": Avg("v")}),
    "sessions": lambda: WindowAggregate(Session(1), {"n": Count(), "m": Max("v")}, by=("k",)),
    "several": lambda: WindowAggregate({"a": Tumbling(5), "b": Tumbling(10)}, {"n": Count()}, by=("k",)),
    "in time order": lambda: WindowAggregate(
        TupleBased(4, 2, order="time", tie=("k", "v")), {"n": Count(), "s": Sum("v")}
    ),
    "by tuple": lambda: WindowAggregate(SlideByTuple(6), {"n": Count()}, by=("k",)),
}


@pytest.mark.slow(keep=3)
@pytest.mark.parametrize("name", OPERATORS)
def test_what_is_left_is_what_the_plain_stream_gives(name: str) -> None:
    for seed in range(4):
        assert multiset(taken(OPERATORS[name](), seed)) == multiset(without(OPERATORS[name](), seed)), seed


@pytest.mark.parametrize("changes", [(True, True), (True, False), (False, True)])
def test_joins_of_revisions(changes: tuple[bool, bool]) -> None:
    join = OAJoin(keys=[("k", "k")], band=Band(2, 3))
    for seed in range(4):
        sides = [drawn(2 * seed), drawn(2 * seed + 1)]
        whole = Driver(OAJoin(keys=[("k", "k")], band=Band(2, 3)), PLAIN, PLAIN)
        schemas = [CHANGES if revised else PLAIN for revised in changes]
        driver = Driver(join, *schemas)
        for port, rows in enumerate(sides):
            left = net([{name: row[name] for name in CHANGES.names} for row in rows])
            whole.feed(port, Page.of(PLAIN, {name: [row[name] for row in left] for name in PLAIN.names}))
            sides[port] = rows if changes[port] else left
        streams = [streamed(rows, seed, schema) for rows, schema in zip(sides, schemas, strict=True)]
        draw, open_ = random.Random(seed), [0, 1]
        while open_:
            port = draw.choice(open_)
            message = next(streams[port], None)
            if message is None:
                open_.remove(port)
                driver.feed(port, END)
            else:
                driver.feed(port, message)
                driver.move()
        assert driver.operator.schemas_out[0].change == "change"
        assert multiset(net(driver.rows())) == multiset(whole.rows())


@pytest.mark.parametrize(
    "operator",
    [
        Sort(Upstream()),
        Merge(1),
        Bucket(Tumbling(5)),
        WindowAggregate(TupleBased(2, 2), {"n": Count()}),
        WindowAggregate(SlideByTuple(5, every=2, of="arrival"), {"n": Count()}),
    ],
    ids=lambda operator: operator.describe(),
)
def test_who_cannot_take_them_refuses_when_the_graph_is_built(operator: Operator) -> None:
    graph = Graph("refused")
    source = graph.source("in", CHANGES)
    with pytest.raises(GraphError, match=r"node 'x': .* cannot take revisions: put a Finalize before it"):
        graph.add("x", operator, source)
    finalized = graph.add("final", Finalize(), graph.add("edge", Punctuate(Upstream()), source))
    graph.add("y", operator, finalized)


def test_a_bucket_before_an_aggregate_refuses_as_well() -> None:
    rows = Schema(
        {"ts": pa.int64(), "first_wid": pa.int64(), "last_wid": pa.int64(), "c": pa.int8()}, "ts", "s", "c"
    )
    graph = Graph("refused")
    with pytest.raises(GraphError, match="put a Finalize"):
        graph.add("x", Aggregate(Tumbling(5), {"n": Count()}), graph.source("in", rows))


def test_a_row_that_was_never_there_cannot_be_taken_back() -> None:
    driver = Driver(Finalize(), CHANGES)
    driver.feed(0, Page.of(CHANGES, {"ts": [1], "k": ["a"], "v": [2], "change": [-1]}))
    with pytest.raises(ContractError, match="at most as often"):
        driver.feed(0, Linear(2))


def test_explain_says_that_rows_wait_to_be_final() -> None:
    words = WindowAggregate(Tumbling(10), {"n": Count()}).explain((CHANGES,))
    assert words.startswith(
        "rows that may be taken back wait until a bound has passed them; of those left: panes"
    )


def test_the_column_of_changes_is_int8_and_stays() -> None:
    with pytest.raises(GraphError, match="int8"):
        Schema({"ts": pa.int64(), "c": pa.int64()}, "ts", "s", change="c")
    with pytest.raises(GraphError, match="retracted"):
        WithColumns({"change": pc.scalar(1)}).opened(CHANGES)
    renamed = Project({"ts": "ts", "sign": "change"}).opened(CHANGES).schemas_out[0]
    assert (renamed.change, renamed.plain().names) == ("sign", ["ts"])
    assert "emits a row" in CHANGES._repr_html_()


def test_the_net_content_of_a_run() -> None:
    graph = Graph("net")
    graph.sink("out", graph.add("edge", Punctuate(Upstream()), graph.source("in", CHANGES)))
    columns = {"ts": [1, 1, 2, 2], "k": ["a", "a", "b", "b"], "v": [1, 1, 5, 5], "change": [1, -1, 1, 1]}
    outcome = replay(graph, {"in": [Page.of(CHANGES, columns)]})
    assert outcome.results["out"].num_rows == 4
    assert outcome.final("out").to_pylist() == [{"ts": 2, "k": "b", "v": 5}] * 2


@pytest.mark.parametrize(
    ("mode", "words"), [("accumulating", "replace earlier ones"), ("discarding", "add to earlier ones")]
)
def test_versions_that_no_operator_understands_are_for_sinks(mode: EmitMode, words: str) -> None:
    graph = Graph("for-sinks")
    edge = graph.add("edge", Punctuate(Upstream()), graph.source("in", Schema({"ts": pa.int64()}, "ts", "s")))
    counts = graph.add("count", WindowAggregate(Tumbling(5), {"n": Count()}, emit=Emit(mode=mode)), edge)
    graph.sink("out", counts)
    with pytest.raises(
        GraphError, match=rf"node 'sum': behind 'count' there can be sinks only, for rows .* {words}"
    ):
        graph.add("sum", WindowAggregate(Tumbling(10), {"n": Sum("n")}), counts)
