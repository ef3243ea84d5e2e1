"""The laws that every operator keeps, tried on random streams: tuples, arrival orders, page cuts, punctuation.

A law takes a ``Trial``, which is a ``Case`` and a stream for it, and raises ``AssertionError`` where the operator
breaks it.
``contract_suite`` makes a pytest test of all laws for all cases::

    from oop_engine.testing import Case, contract_suite

    test_law = contract_suite([Case("hold", Hold(), (schema,), oracle=lambda inputs: inputs[0])])
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from copy import deepcopy
from itertools import pairwise, product

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.contract import EdgeContract
from oop_engine.core.operator import Message, Operator
from oop_engine.core.page import Page
from oop_engine.testing.case import Case
from oop_engine.testing.compared import must, same_messages, same_rows
from oop_engine.testing.descended import as_put_in, come_from
from oop_engine.testing.driver import Driver, as_bytes
from oop_engine.testing.graph_driver import pushed_by_row
from oop_engine.testing.narrow import without_unread
from oop_engine.testing.streams import as_messages
from oop_engine.testing.trial import Trial, draw_script

__all__ = ["LAWS", "Law", "check", "contract_suite"]

Law = Callable[[Trial], None]
_REASON = 20  # characters: an exemption is worth a sentence
_COPIES = 3
_WIDER = {
    pa.string(): pa.dictionary(pa.int8(), pa.large_string()),
    pa.int32(): pa.float64(),
    pa.int64(): pa.decimal128(38, 3),
    pa.float64(): pa.decimal128(38, 6),
    pa.timestamp("ms"): pa.timestamp("ns"),
}


def oracle(trial: Trial) -> None:
    """The output (here and below its net content) is that of the definition, wherever pages are cut."""
    expected = trial.case.oracle(trial.rows)
    same_rows("the output is not the oracle's", trial.whole.content(), expected)


def order(trial: Trial) -> None:
    """Order within the punctuation does not matter."""
    other = trial.run(draw_script(trial.case, trial.data, trial.rows))
    same_rows("another order of arrival gives another output", other.content(), trial.whole.content())


def cuts(trial: Trial) -> None:
    """Where pages are cut does not matter, nor that rows are pushed one by one and wait for each other."""
    case = trial.case
    pushed = pushed_by_row(case.operator, case.inputs, trial.script)
    for other, (port, name) in product((trial.run(page_rows=1), pushed), enumerate(case.operator.outputs)):
        same_rows(f"cut into rows, another output {name!r}", other.content(port), trial.whole.content(port))


def grammar(trial: Trial) -> None:
    """No output contradicts earlier punctuation, and bounds never shrink."""
    for port, messages in enumerate(trial.whole.out):
        contract = EdgeContract(f"{trial.case.id}.{trial.case.operator.outputs[port]}")
        for message in messages:
            contract.check(message)


def schema(trial: Trial) -> None:
    """Every page has the schema that was announced."""
    for port, announced in enumerate(trial.whole.operator.schemas_out):
        for page in trial.whole.pages(port):
            must(page.schema == announced, f"port {port}: announced {announced!r}, put out {page.schema!r}")


def purge(trial: Trial) -> None:
    """Punctuation never makes an operator keep more; it may turn tuples into partial aggregates."""
    states = pairwise(trial.states)
    for (_, message), (before, after) in zip(trial.messages, states, strict=True):
        less = after.tuples <= before.tuples and sum(after.in_use[:2]) <= sum(before.in_use[:2])
        must(isinstance(message, Page) or less, f"{message} made it keep {after}, before {before}")


def end(trial: Trial) -> None:
    """The end closes everything."""
    state = trial.whole.operator.state()
    must(state.in_use == (0, 0, 0), f"after the end it keeps {state}")


def snapshot(trial: Trial) -> None:
    """To leave midway and come back elsewhere changes no row and no bound."""
    same_messages("restored midway it goes on in another way", trial.moved.out, trial.whole.out)


def keeping(trial: Trial) -> None:
    """What comes back elsewhere keeps as many tuples, partial aggregates and groups as what stayed."""
    pairs = zip(trial.messages, trial.states[1:], trial.states_of_moved, strict=True)
    for (_, message), stayed, there in pairs:
        must(
            stayed.in_use == there.in_use,
            f"after {message} it keeps {stayed.in_use}, restored {there.in_use}",
        )


def untouched(trial: Trial) -> None:
    """Input arrays are left as they were."""
    given = as_messages(trial.script, trial.case.inputs)
    both = zip(given, trial.taken, strict=True)
    changed = [taken for (_, was), taken in both if as_bytes(taken) != as_bytes(was)]
    must(not changed, f"its input was written into: {changed}")


def empty(trial: Trial) -> None:
    """Empty pages are harmless."""
    case = trial.case
    with_empty = [
        (p, m)
        for port, message in trial.messages
        for p, m in ((port, Page.empty(case.inputs[port])), (port, message))
    ]
    padded = Driver(case.operator, *case.inputs).run(with_empty)
    same_rows("empty pages in between give another output", padded.content(), trial.whole.content())


def fresh(trial: Trial) -> None:
    """A description survives pickling (copying, if a function of it cannot be pickled); a run leaves no trace in it."""
    first = trial.whole.out
    try:
        copy: Operator = pickle.loads(pickle.dumps(trial.case.operator))
    except (
        pickle.PicklingError,
        AttributeError,
    ):  # a lambda or an inner function, which no other process gets
        copy = deepcopy(trial.case.operator)
    again = Driver(copy, *trial.case.inputs).run(as_messages(trial.script, trial.case.inputs)).out
    same_messages("a pickled copy goes another way", again, first)
    same_messages("a second run goes another way", trial.run().out, first)


def division(trial: Trial) -> None:
    """Copies that divide the tuples by partition keys give together the output of one operator."""
    case = trial.case
    keys = case.operator.partition_keys(case.inputs)
    if keys == []:
        return  # one operator has to see everything
    messages = trial.messages
    chosen = [trial.data.draw(st.sampled_from(keys))] if keys else None
    copies = [Driver(case.operator, *case.inputs) for _ in range(_COPIES)]
    for port, message in messages:
        names = [key[port] for key in chosen or ()]
        for copy, part in zip(copies, _shares(message, names), strict=True):
            copy.feed(port, part)
    for copy in copies:
        copy.run([])
    for port in range(len(case.operator.outputs)):
        divided = [row for copy in copies for row in copy.content(port)]
        failure = f"copies divided by {chosen} give another output"
        same_rows(failure, divided, trial.whole.content(port))


def descent(trial: Trial) -> None:
    """A column that repeats one of the input has values of it, and of its row."""
    case = trial.case
    for number, announced in enumerate(trial.whole.operator.schemas_out):
        for name in announced.names:
            sources = case.operator.lineage(name, case.inputs)
            come_from(name, trial.whole.rows(number), sources, as_put_in(case, trial.rows))


def reading(trial: Trial) -> None:
    """Columns that it does not read may be dropped before it; the columns that later operators read stay the same."""
    announced = trial.whole.operator.schemas_out
    drawn = [trial.data.draw(st.frozensets(st.sampled_from(out.names))) for out in announced]
    if (other := without_unread(trial, drawn)) is None:
        return
    for port, names in enumerate(drawn):
        failure = f"without the columns that it does not read, other {sorted(names)}"
        same_rows(failure, other.content(port, names), trial.whole.content(port, names))


def sorting(trial: Trial) -> None:
    """An operator that keeps order puts sorted streams out sorted."""
    if not trial.case.operator.keeps_order(trial.case.inputs):
        return
    driver = trial.run(draw_script(trial.case, trial.data, ordered=True))
    for port, announced in enumerate(driver.operator.schemas_out):
        times = [time for page in driver.pages(port) for time in page.times.tolist()]
        must(times == sorted(times), f"sorted streams leave unsorted by {announced.progressing!r}: {times}")


LAWS: list[Law] = [
    oracle,
    order,
    cuts,
    grammar,
    schema,
    purge,
    end,
    snapshot,
    keeping,
    untouched,
    empty,
    fresh,
    division,
    descent,
    reading,
    sorting,
]


def check(case: Case, *laws: Law, examples: int = 20) -> None:
    """Try ``laws`` on ``case`` with ``examples`` random streams; Hypothesis shrinks a counterexample.

    Several laws look at the same streams, and at one run over each: all of them cost little more than three.
    Raises ``AssertionError`` or ``ContractError`` if one does not hold, with a note which.
    """

    @settings(max_examples=examples, deadline=None, report_multiple_bugs=False)
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        trial = Trial(case, data)
        for law in laws:
            try:
                law(trial)
            except Exception as error:
                error.add_note(f"broken by {case.id!r}: the law {law.__name__!r}. {law.__doc__}")
                raise

    holds()


def contract_suite(
    cases: Sequence[Case], examples: int = 20, *, together: bool = False
) -> Callable[..., None]:
    """Return a pytest test of every law for every case; give it to a name that starts with ``test_``.

    A law that a case is exempt from is skipped with the reason.  ``together``: one test for each case, in which all
    laws look at the same runs, in less than half the time.
    Raises ``UsageError`` for exemptions from laws that do not exist or without a sentence why, for two cases of
    one ``id``, and if there is no case.
    """
    import pytest

    _check_cases(cases)
    tried = [("laws", LAWS)] if together else [(law.__name__, [law]) for law in LAWS]

    @pytest.mark.parametrize("laws", [laws for _, laws in tried], ids=[name for name, _ in tried])
    @pytest.mark.parametrize("case", cases, ids=str)
    def test_law(case: Case, laws: list[Law]) -> None:
        applied = [law for law in laws if law.__name__ not in case.exempt]
        if not applied:
            pytest.skip(case.exempt[laws[0].__name__])
        check(case, *applied, examples=examples)

    test: Callable[..., None] = test_law
    return test


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
                msg += did_you_mean(name, names)
                raise UsageError(msg)
            if len(reason) <= _REASON:
                msg = f"case {case.id!r}: say in a sentence why it is exempt from {name!r}; got {reason!r}"
                raise UsageError(msg)


def _shares(message: Message, names: list[str]) -> list[Message]:
    """Return the input of each copy: of a page the tuples of its keys, of punctuation all."""
    if not isinstance(message, Page):
        return [message] * _COPIES
    owner = np.arange(len(message)) % _COPIES
    if names:
        from oop_engine.spark.plan.key_groups import key_groups

        owner = key_groups([message.column(name) for name in names], _COPIES)
    return [message.filter(owner == copy) for copy in range(_COPIES)]
