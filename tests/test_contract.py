"""The laws that every operator keeps, tried on every operator that there is."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import operators
import tests.cases
from oop_engine import Message, Operator, Page
from oop_engine.contract import EdgeContract
from oop_engine.runners.spark.key_groups import key_groups
from oop_engine.testing import Driver, multiset
from tests.cases import Case
from tests.streams import Script, as_messages, row_lists, rows_of, scripts


def all_cases() -> list[Case]:
    modules = [
        importlib.import_module(m.name) for m in pkgutil.iter_modules(tests.cases.__path__, "tests.cases.")
    ]
    return [case for module in modules for case in module.CASES]


def all_operators() -> list[type[Operator]]:
    found: dict[str, type[Operator]] = {}
    for module in pkgutil.walk_packages(operators.__path__, "operators."):
        for _, cls in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if (
                issubclass(cls, Operator)
                and cls.__module__.startswith("operators.")
                and not cls.__name__.startswith("_")
            ):
                found[cls.__name__] = cls
    return sorted(found.values(), key=lambda cls: cls.__name__)


CASES = all_cases()
EXAMPLES = max(settings().max_examples // 3, 1)  # of each law for each case: there are hundreds of pairs


@pytest.mark.parametrize("cls", all_operators(), ids=lambda cls: cls.__name__)
def test_every_operator_has_a_case(cls: type[Operator]) -> None:
    assert any(type(case.operator) is cls for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_operator_describes_itself(case: Case) -> None:
    assert case.operator.describe().startswith(type(case.operator).__name__)


def test_exemptions_are_of_laws_that_exist_and_have_reasons() -> None:
    for case in CASES:
        assert set(case.exempt) <= {law.__name__ for law in LAWS}, case.id
        assert all(len(reason) > 20 for reason in case.exempt.values()), case.id


def run(case: Case, script: Script, **cut: int) -> Driver:
    return Driver(case.operator, *case.inputs).run(as_messages(script, case.inputs, **cut))


def draw_script(case: Case, data: st.DataObject, rows: list[list[dict[str, Any]]] | None = None) -> Script:
    rows = rows or [data.draw(row_lists(schema, case.domains)) for schema in case.inputs]
    grouped = not case.operator.needs_order
    return data.draw(scripts(case.inputs, rows, ordered=case.operator.needs_order, grouped=grouped))


def oracle(case: Case, data: st.DataObject) -> None:
    """The output is what the definition says, wherever pages are cut and promises come."""
    script = draw_script(case, data)
    expected = multiset(case.oracle(rows_of(script, len(case.inputs))))
    assert multiset(run(case, script).rows()) == expected


def order(case: Case, data: st.DataObject) -> None:
    """Order within the promises does not matter."""
    script = draw_script(case, data)
    other = draw_script(case, data, rows_of(script, len(case.inputs)))
    assert multiset(run(case, script).rows()) == multiset(run(case, other).rows())


def cuts(case: Case, data: st.DataObject) -> None:
    """Where pages are cut does not matter."""
    script = draw_script(case, data)
    for port in range(len(case.operator.outputs)):
        whole, single = run(case, script), run(case, script, page_rows=1)
        assert multiset(whole.rows(port)) == multiset(single.rows(port))


def grammar(case: Case, data: st.DataObject) -> None:
    """No output contradicts an earlier promise, and promises never shrink."""
    driver = run(case, draw_script(case, data))
    for port, messages in enumerate(driver.out):
        contract = EdgeContract(f"{case.id}.{case.operator.outputs[port]}")
        for message in messages:
            contract.check(message)


def schema(case: Case, data: st.DataObject) -> None:
    """Every page has the schema that was announced."""
    driver = run(case, draw_script(case, data))
    for port, announced in enumerate(driver.operator.schemas_out):
        assert all(page.schema == announced for page in driver.pages(port))


def purge(case: Case, data: st.DataObject) -> None:
    """A promise never makes an operator keep more."""
    driver = Driver(case.operator, *case.inputs)
    for port, message in as_messages(draw_script(case, data), case.inputs):
        before = driver.operator.state()
        driver.feed(port, message)
        if not isinstance(message, Page):
            after = driver.operator.state()
            assert after.tuples <= before.tuples
            assert after.partials <= before.partials


def end(case: Case, data: st.DataObject) -> None:
    """The end closes everything."""
    state = run(case, draw_script(case, data)).operator.state()
    assert (state.tuples, state.partials) == (0, 0)


def snapshot(case: Case, data: st.DataObject) -> None:
    """To leave midway and come back elsewhere changes nothing, to the last message, but the room that is left."""
    messages = as_messages(draw_script(case, data), case.inputs)
    stayed = Driver(case.operator, *case.inputs)
    moved = Driver(case.operator, *case.inputs)
    for port, message in messages:
        stayed.feed(port, message)
        moved.feed(port, message)
        moved.move()
        assert moved.operator.state().in_use == stayed.operator.state().in_use
    assert moved.run([]).out == stayed.run([]).out


def untouched(case: Case, data: st.DataObject) -> None:
    """Input arrays are left as they were."""
    messages = as_messages(draw_script(case, data), case.inputs)
    before = [_bytes(message) for _, message in messages]
    Driver(case.operator, *case.inputs).run(messages)
    assert [_bytes(message) for _, message in messages] == before


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
    assert multiset(padded.rows()) == multiset(plain.rows())


def fresh(case: Case, data: st.DataObject) -> None:
    """A description survives pickling, and running it leaves no trace in it."""
    script = draw_script(case, data)
    copy: Operator = pickle.loads(pickle.dumps(case.operator))
    again = Driver(copy, *case.inputs).run(as_messages(script, case.inputs))
    assert run(case, script).out == again.out == run(case, script).out


def division(case: Case, data: st.DataObject) -> None:
    """Copies that share the tuples out by partition keys give together what one operator gives."""
    keys = case.operator.partition_keys(case.inputs)
    if keys == []:
        return  # one operator has to see everything
    script = draw_script(case, data)
    chosen = [data.draw(st.sampled_from(keys))] if keys else None
    copies = [Driver(case.operator, *case.inputs) for _ in range(3)]
    for port, message in as_messages(script, case.inputs):
        parts = [message] * 3
        if isinstance(message, Page):
            columns = [message.column(key[port]) for key in chosen or ()]
            owner = key_groups(columns, 3) if columns else np.arange(len(message)) % 3
            parts = [message.filter(owner == copy) for copy in range(3)]
        for copy, part in zip(copies, parts, strict=True):
            copy.feed(port, part)
    for copy in copies:
        copy.run([])
    whole = run(case, script)
    for port in range(len(case.operator.outputs)):
        divided = [row for copy in copies for row in copy.rows(port)]
        assert multiset(divided) == multiset(whole.rows(port))


def descent(case: Case, data: st.DataObject) -> None:
    """A column that repeats one of the input has values of it, and of its row."""
    script = draw_script(case, data)
    messages = as_messages(script, case.inputs)
    given = [
        [row for to, m in messages if to == port and isinstance(m, Page) for row in m.to_pylist()]
        for port in range(len(case.inputs))
    ]
    driver = run(case, script)
    for number, schema in enumerate(driver.operator.schemas_out):
        for name in schema.names:
            sources = case.operator.lineage(name, case.inputs)
            known = [str(r[c]) for rows, c in zip(given, sources, strict=True) if c for r in rows]
            assert not known or all(str(row[name]) in known for row in driver.rows(number))


LAWS = [
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
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_law(case: Case, law: Any) -> None:
    if law.__name__ in case.exempt:
        pytest.skip(case.exempt[law.__name__])

    @settings(max_examples=EXAMPLES)
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        law(case, data)

    holds()


def _bytes(message: Message) -> bytes:
    if not isinstance(message, Page):
        return repr(message).encode()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, message.batch.schema) as writer:
        writer.write_batch(message.batch)
    return bytes(sink.getvalue())
