from __future__ import annotations

import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine.core.groups.few_texts import FewTexts
from oop_engine.core.groups.group_index import GroupIndex

TEXTS = st.text("ab\0\1\2\nÄ漢", max_size=4)


@given(st.lists(st.lists(st.none() | TEXTS, max_size=4), max_size=12), TEXTS)
def test_texts_have_the_codes_that_a_dictionary_gives(pages: list[list[str | None]], other: str) -> None:
    index, known = GroupIndex([pa.string()]), dict[str | None, int]()
    for page in pages:
        codes = index.encode([pa.array(page, pa.string())])
        assert codes.tolist() == [known.setdefault(text, len(known)) for text in page]
        assert index.find([pa.array([other, None], pa.string())]).tolist() == [
            known.get(other, -1),
            known.get(None, -1),
        ]
    slots = index.find([pa.array([*known], pa.string())])
    assert [key for column in index.keys(slots) for key in column.to_pylist()] == [*known]


def test_many_texts_go_on_in_a_dictionary() -> None:
    index = GroupIndex([pa.string()])
    names = [f"name {i}" for i in range(300)]
    for i in range(0, 300, 3):
        assert index.encode([pa.array(names[: i + 3])]).tolist() == list(range(i + 3))


@pytest.mark.parametrize("value", [None, 3, "two\nlines", "x" * 600, b"bytes"])
def test_what_does_not_fit_is_told(value: object) -> None:
    texts = FewTexts()
    assert texts.encode(["a", value, "b"], add=True) is None
    assert (list(texts), texts.encode([value], add=False)) == (["a"], [-1])


def test_a_few_names_take_little() -> None:
    index = GroupIndex([pa.string()])
    names = ["9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"]
    index.encode([pa.array(names)])
    assert index.nbytes < 300 < sys.getsizeof(dict.fromkeys(names))
