"""The laws that every operator keeps, tried on random streams: tuples, arrival orders, page cuts, punctuation.

A law takes a ``Case`` and Hypothesis' ``data`` and raises ``AssertionError`` where the operator breaks it.
``contract_suite`` makes a pytest test of all laws for all cases::

    from oop_engine.testing import Case, contract_suite

    test_law = contract_suite([Case("hold", Hold(), (schema,), oracle=lambda inputs: inputs[0])])
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.contract import EdgeContract
from oop_engine.core.operator import Message, Operator
from oop_engine.core.page import Page
from oop_engine.testing.case import Case, Row
from oop_engine.testing.driver import Driver, as_bytes, multiset
from oop_engine.testing.graph_driver import pushed_by_row
from oop_engine.testing.streams import Script, as_messages, row_lists, rows_of, scripts

__all__ = ["LAWS", "Law", "check", "contract_suite", "draw_script"]

Law = Callable[[Case, st.DataObject], None]
_REASON = 20  # characters: an exemption is worth a sentence
_COPIES = 3
_WIDER = {
    pa.string(): pa.dictionary(pa.int8(), pa.large_string()),
    pa.int32(): pa.float64(),
    pa.int64(): pa.decimal128(38, 3),
    pa.float64(): pa.decimal128(38, 6),
    pa.timestamp("ms"): pa.timestamp("ns"),
}


def oracle(case: Case, data: st.DataObject) -> None:
    """The output (here and below its net content) is that of the definition, wherever pages are cut."""
    script = draw_script(case, data)
    expected = case.oracle(rows_of(script, len(case.inputs)))
    _same_rows("the output is not the oracle's", _run(case, script).content(), expected)


def order(case: Case, data: st.DataObject) -> None:
    """Order within the punctuation does not matter."""
    script = draw_script(case, data)
    other = draw_script(case, data, rows_of(script, len(case.inputs)))
    failure = "another order of arrival gives another output"
    _same_rows(failure, _run(case, other).content(), _run(case, script).content())


def cuts(case: Case, data: st.DataObject) -> None:
    """Where pages are cut does not matter, nor that rows are pushed one by one and wait for each other."""
    script = draw_script(case, data)
    whole, pushed = _run(case, script), pushed_by_row(case.operator, case.inputs, script)
    for other, (port, name) in product(
        (_run(case, script, page_rows=1), pushed), enumerate(case.operator.outputs)
    ):
        _same_rows(f"cut into rows, another output {name!r}", other.content(port), whole.content(port))


def grammar(case: Case, data: st.DataObject) -> None:
    """No output contradicts earlier punctuation, and bounds never shrink."""
    driver = _run(case, draw_script(case, data))
    for port, messages in enumerate(driver.out):
        contract = EdgeContract(f"{case.id}.{case.operator.outputs[port]}")
        for message in messages:
            contract.check(message)


def schema(case: Case, data: st.DataObject) -> None:
    """Every page has the schema that was announced."""
    driver = _run(case, draw_script(case, data))
    for port, announced in enumerate(driver.operator.schemas_out):
        for page in driver.pages(port):
            _must(page.schema == announced, f"port {port}: announced {announced!r}, put out {page.schema!r}")


def purge(case: Case, data: st.DataObject) -> None:
    """Punctuation never makes an operator keep more; it may turn tuples into partial aggregates."""
    driver = Driver(case.operator, *case.inputs)
    for port, message in as_messages(draw_script(case, data), case.inputs):
        before = driver.operator.state()
        driver.feed(port, message)
        if not isinstance(message, Page):
            after = driver.operator.state()
            less = after.tuples <= before.tuples and sum(after.in_use[:2]) <= sum(before.in_use[:2])
            _must(less, f"{message} made it keep {after}, before {before}")


def end(case: Case, data: st.DataObject) -> None:
    """The end closes everything."""
    state = _run(case, draw_script(case, data)).operator.state()
    _must(state.in_use == (0, 0, 0), f"after the end it keeps {state}")


def snapshot(case: Case, data: st.DataObject) -> None:
    """To leave midway and come back elsewhere changes nothing, to the last message, but the room that is left."""
    messages = as_messages(draw_script(case, data), case.inputs)
    stayed = Driver(case.operator, *case.inputs)
    moved = Driver(case.operator, *case.inputs)
    for port, message in messages:
        stayed.feed(port, message)
        moved.feed(port, message)
        moved.move()
        here, there = stayed.operator.state().in_use, moved.operator.state().in_use
        _must(here == there, f"after {message} it keeps {here}, restored {there}")
    _same_messages("restored midway it goes on in another way", moved.run([]).out, stayed.run([]).out)


def untouched(case: Case, data: st.DataObject) -> None:
    """Input arrays are left as they were."""
    messages = as_messages(draw_script(case, data), case.inputs)
    before = [as_bytes(message) for _, message in messages]
    Driver(case.operator, *case.inputs).run(messages)
    changed = [m for (_, m), was in zip(messages, before, strict=True) if as_bytes(m) != was]
    _must(not changed, f"its input was written into: {changed}")


def empty(case: Case, data: st.DataObject) -> None:
    """Empty pages are harmless."""
    messages = as_messages(draw_script(case, data), case.inputs)
    with_empty = [
        (p, m)
        for port, message in messages
        for p, m in ((port, Page.empty(case.inputs[port])), (port, message))
    ]
    plain = Driver(case.operator, *case.inputs).run(messages)
    padded = Driver(case.operator, *case.inputs).run(with_empty)
    _same_rows("empty pages in between give another output", padded.content(), plain.content())


def fresh(case: Case, data: st.DataObject) -> None:
    """A description survives pickling, and running it leaves no trace in it."""
    script = draw_script(case, data)
    copy: Operator = pickle.loads(pickle.dumps(case.operator))
    first = _run(case, script).out
    again = Driver(copy, *case.inputs).run(as_messages(script, case.inputs)).out
    _same_messages("a pickled copy goes another way", again, first)
    _same_messages("a second run goes another way", _run(case, script).out, first)


def division(case: Case, data: st.DataObject) -> None:
    """Copies that divide the tuples by partition keys give together the output of one operator."""
    keys = case.operator.partition_keys(case.inputs)
    if keys == []:
        return  # one operator has to see everything
    script = draw_script(case, data)
    chosen = [data.draw(st.sampled_from(keys))] if keys else None
    copies = [Driver(case.operator, *case.inputs) for _ in range(_COPIES)]
    for port, message in as_messages(script, case.inputs):
        names = [key[port] for key in chosen or ()]
        for copy, part in zip(copies, _shares(message, names), strict=True):
            copy.feed(port, part)
    for copy in copies:
        copy.run([])
    whole = _run(case, script)
    for port in range(len(case.operator.outputs)):
        divided = [row for copy in copies for row in copy.content(port)]
        _same_rows(f"copies divided by {chosen} give another output", divided, whole.content(port))


def descent(case: Case, data: st.DataObject) -> None:
    """A column that repeats one of the input has values of it, and of its row."""
    script = draw_script(case, data)
    given = rows_of(script, len(case.inputs))
    driver = _run(case, script)
    for number, announced in enumerate(driver.operator.schemas_out):
        for name in announced.names:
            sources = case.operator.lineage(name, case.inputs)
            _come_from(name, driver.rows(number), sources, _as_put_in(case, given))


def sorting(case: Case, data: st.DataObject) -> None:
    """An operator that keeps order puts sorted streams out sorted."""
    if not case.operator.keeps_order(case.inputs):
        return
    driver = _run(case, draw_script(case, data, ordered=True))
    for port, announced in enumerate(driver.operator.schemas_out):
        times = [time for page in driver.pages(port) for time in page.times.tolist()]
        _must(times == sorted(times), f"sorted streams leave unsorted by {announced.progressing!r}: {times}")


LAWS: list[Law] = [
    oracle,
    order,
    cuts,
    grammar,
    schema,
    purge,
    end,
    snapshot,
    untouched,
    empty,
    fresh,
    division,
    descent,
    sorting,
]


def check(case: Case, law: Law, examples: int = 20) -> None:
    """Try ``law`` on ``case`` with ``examples`` random streams; Hypothesis shrinks a counterexample.

    Raises ``AssertionError`` or ``ContractError`` if the law does not hold.
    """

    @settings(max_examples=examples, deadline=None, report_multiple_bugs=False)
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        law(case, data)

    holds()


def contract_suite(cases: Sequence[Case], examples: int = 20) -> Callable[..., None]:
    """Return a pytest test of every law for every case; give it to a name that starts with ``test_``.

    A law that a case is exempt from is skipped with the reason.  Raises ``UsageError`` for exemptions from laws
    that do not exist or without a sentence why, for two cases of one ``id``, and if there is no case.
    """
    import pytest

    _check_cases(cases)

    @pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
    @pytest.mark.parametrize("case", cases, ids=str)
    def test_law(case: Case, law: Law) -> None:
        if law.__name__ in case.exempt:
            pytest.skip(case.exempt[law.__name__])
        check(case, law, examples)

    found: Callable[..., None] = test_law
    return found


def draw_script(
    case: Case, data: st.DataObject, rows: list[list[Row]] | None = None, *, ordered: bool = False
) -> Script:
    """Draw a stream for ``case``: tuples (or ``rows``, of each input) in an order it takes, with true punctuation.

    ``ordered``: sorted, even if it takes any order.
    """
    rows = rows or [data.draw(tuples) for tuples in _tuples(case)]
    ordered, ports = ordered or case.operator.needs_order, range(len(case.inputs))
    keys = [[key[port] for key in case.operator.partition_keys(case.inputs) or ()] for port in ports]
    return data.draw(scripts(case.inputs, rows, ordered=ordered, grouped=not ordered, keys=keys))


@lru_cache
def _tuples(case: Case) -> list[st.SearchStrategy[list[Row]]]:
    return [row_lists(schema, case.domains) for schema in case.inputs]


def _check_cases(cases: Sequence[Case]) -> None:
    names = [law.__name__ for law in LAWS]
    ids = [case.id for case in cases]
    if not cases or len(set(ids)) < len(ids):
        msg = f"contract_suite: cases must be at least one, with different ids; got {ids}"
        raise UsageError(msg)
    for case in cases:
        for name, reason in case.exempt.items():
            if name not in names:
                msg = f"case {case.id!r}: exempt from {name!r}, which is no law; there are {', '.join(names)}"
                raise UsageError(msg)
            if len(reason) <= _REASON:
                msg = f"case {case.id!r}: say in a sentence why it is exempt from {name!r}; got {reason!r}"
                raise UsageError(msg)


def _run(case: Case, script: Script, **cut: int) -> Driver:
    return Driver(case.operator, *case.inputs).run(as_messages(script, case.inputs, **cut))


def _shares(message: Message, names: list[str]) -> list[Message]:
    """Return the input of each copy: of a page the tuples of its keys, of punctuation all."""
    if not isinstance(message, Page):
        return [message] * _COPIES
    owner = np.arange(len(message)) % _COPIES
    if names:
        from oop_engine.spark.plan.key_groups import key_groups

        owner = key_groups([message.column(name) for name in names], _COPIES)
    return [message.filter(owner == copy) for copy in range(_COPIES)]


def _as_put_in(case: Case, given: list[list[Row]]) -> list[list[Row]]:
    """Return rows as pages give them back: with values of their columns' types."""
    return [
        Page.of(schema, {name: [row[name] for row in rows] for name in schema.names}).to_pylist()
        for schema, rows in zip(case.inputs, given, strict=True)
    ]


def _come_from(name: str, rows: list[Row], sources: Sequence[str | None], given: list[list[Row]]) -> None:
    known = {str(r[c]) for inputs, c in zip(given, sources, strict=True) if c for r in inputs}
    unknown = [row[name] for row in rows if str(row[name]) not in known] if known else []
    _must(
        not unknown,
        f"column {name!r} is declared to repeat {sources}, and has {unknown}, which are not there",
    )


def _same_rows(failure: str, got: list[Row], wanted: list[Row]) -> None:
    found, expected = multiset(got), multiset(wanted)
    missing, extra = ([dict(r) for r in rest.elements()] for rest in (expected - found, found - expected))
    _must(found == expected, f"{failure}: missing {missing}, extra {extra}")


def _same_messages(failure: str, got: list[list[Message]], wanted: list[list[Message]]) -> None:
    _must(got == wanted, f"{failure}: {got}, not {wanted}")


def _must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)
