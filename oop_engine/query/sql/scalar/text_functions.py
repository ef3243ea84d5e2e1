"""Functions of texts in SQL, by their names."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.operators.values.row_functions import called
from oop_engine.query.sql.scalar.types import Typed, cast, literal

__all__ = ["TEXT_FUNCTIONS", "known", "quoted", "rows_as_texts", "text_of"]

Function = Callable[..., Any]
_PARTS = re.compile(r"\\.|\[:\^?\w+:\]|\[\^?\]?|.", re.DOTALL)
"""Parts of a pattern: an escape, a class of POSIX, the beginning of a class with its first bracket, a sign."""


def known(value: Typed, part: str) -> Any:
    """Return the value of a constant; raises ``ValueError`` for a column."""
    if not value.is_literal:
        msg = f"{part} must be a constant"
        raise ValueError(msg)
    return value.value


def text_of(value: Typed) -> Any:
    """Return a value as a text."""
    return cast(value, pa.string()).expression


def _length(of: Typed) -> Any:
    """Return how many characters a text has, or how many values a list."""
    if pa.types.is_list(of.kind) or pa.types.is_large_list(of.kind) or pa.types.is_fixed_size_list(of.kind):
        return pc.list_value_length(of.expression).cast(pa.int64())
    return pc.utf8_length(text_of(of)).cast(pa.int64())


def _substring(text: Typed, start: Typed, length: Typed | None = None) -> Any:
    first = int(known(start, "the start of substring"))
    many = None if length is None else int(known(length, "the length of substring"))
    if many is not None and many < 0:
        msg = "the length of substring is not negative"
        raise ValueError(msg)
    if first < 0:
        stop = None if many is None or first + many >= 0 else first + many
        return pc.utf8_slice_codeunits(text_of(text), first, stop)
    stop = None if many is None else max(first - 1 + many, 0)
    return pc.utf8_slice_codeunits(text_of(text), max(first - 1, 0), stop)


def _left(text: Typed, many: Typed) -> Any:
    return pc.utf8_slice_codeunits(text_of(text), 0, int(known(many, "the length of left")))


def _right(text: Typed, many: Typed) -> Any:
    length = int(known(many, "the length of right"))
    return pc.utf8_slice_codeunits(text_of(text), -length, None if length else 0)


def _concat(*values: Typed) -> Any:
    empty = pc.scalar(pa.scalar("", pa.string()))
    return pc.binary_join_element_wise(*(pc.coalesce(text_of(value), empty) for value in values), empty)


def _split_part(text: Typed, sign: Typed, at: Typed) -> Any:
    """Return the part at a place, from 1 on, or from the end, -1; the empty text where there is none."""
    place, by = int(known(at, "the place")), str(known(sign, "the sign"))
    if not by:
        msg = "the sign between the parts is not empty: substring(x, n, 1) has one sign"
        raise ValueError(msg)
    if place < 0 and any(by[:many] == by[-many:] for many in range(1, len(by))):
        msg = f"from the end parts are found between signs that do not overlap; {by!r} ends as it begins"
        raise ValueError(msg)
    if place < 0:
        return pc.utf8_reverse(_part(pc.utf8_reverse(text_of(text)), text, by[::-1], -place))
    return _part(text_of(text), text, by, place)


def _part(whole: Any, text: Typed, by: str, place: int) -> Any:
    if place == 0:
        return _or_empty(literal(None, pa.string()).expression, text)
    inner = quoted(by)
    pattern = f"(?s)^(?:.*?{inner}){{{place - 1}}}(?P<part>.*?)(?:{inner}.*)?$"
    return _or_empty(pc.struct_field(pc.extract_regex(whole, pattern), ["part"]), text)


def quoted(text: str) -> str:
    r"""Return a pattern of a text as it is.

    >>> print(quoted("a.b|\\"))
    a\.b\|\\
    """
    return "".join(f"\\{letter}" if letter in string.punctuation else letter for letter in text)


def _or_empty(texts: Any, text: Typed) -> Any:
    """Return the part that was found in a text: without one the empty text, of a null text null."""
    nothing = pc.if_else(pc.is_null(text_of(text)), literal(None, pa.string()).expression, pc.scalar(""))
    return pc.coalesce(texts, nothing)


def _matches(text: Typed, pattern: Typed) -> Any:
    return pc.match_substring_regex(text_of(text), str(known(pattern, "a pattern")))


def _replaced(text: Typed, pattern: Typed, by: Typed, options: Typed | None = None) -> Any:
    many = None if options is not None and "g" in str(known(options, "the options")) else 1
    regex = str(known(pattern, "a pattern"))
    return pc.replace_substring_regex(
        text_of(text), regex, str(known(by, "a replacement")), max_replacements=many
    )


def _extracted(text: Typed, pattern: Typed, group: Typed | None = None) -> Any:
    number = 0 if group is None else int(known(group, "the group of regexp_extract"))
    inner = str(known(pattern, "a pattern"))
    named = _with_named_group(inner, number)
    whole = f"(?P<g0>{named})" if number == 0 else named
    found = pc.struct_field(pc.extract_regex(text_of(text), whole), [f"g{number}"])
    return _or_empty(found, text)


def _with_named_group(pattern: str, number: int) -> str:
    """Return a pattern whose ``number``-th group has a name, and no other group; 0: none has one."""
    seen, out, of_class = 0, "", False
    for piece in _PARTS.finditer(pattern):
        part = piece.group()
        if part == "(" and not of_class and pattern[piece.end() : piece.end() + 1] != "?":
            seen += 1
            part = f"(?P<g{number}>" if seen == number else "(?:"
        elif not of_class and part.startswith("["):
            of_class = True
        elif part == "]":
            of_class = False
        out += part
    if seen < number:
        msg = f"the pattern has {seen} groups, not {number}"
        raise ValueError(msg)
    return out


def _contains(text: Typed, part: Typed) -> Any:
    if not part.is_literal:
        return called("contains", text_of(text), text_of(part))
    return pc.match_substring(text_of(text), str(known(part, "the text that is looked for")))


def _found(text: Typed, part: Typed) -> Any:
    """Return where a text begins in another, in signs from 1; 0: it is not there."""
    pattern = f"(?s)^(?P<before>.*?){quoted(str(known(part, 'the text that is looked for')))}"
    before = pc.struct_field(pc.extract_regex(text_of(text), pattern), ["before"])
    place = pc.add(pc.utf8_length(before).cast(pa.int64()), pc.scalar(1))
    nothing = pc.if_else(pc.is_null(text_of(text)), pc.scalar(pa.scalar(None, pa.int64())), pc.scalar(0))
    return pc.coalesce(place, nothing)


def _starts(text: Typed, part: Typed) -> Any:
    if not part.is_literal:
        return called("starts_with", text_of(text), text_of(part))
    return pc.starts_with(text_of(text), str(known(part, "the beginning")))


def _ends(text: Typed, part: Typed) -> Any:
    if not part.is_literal:
        return called("ends_with", text_of(text), text_of(part))
    return pc.ends_with(text_of(text), str(known(part, "the end")))


def rows_as_texts(values: Sequence[Typed], *, with_nulls: bool) -> Any:
    """Return a text for each row of some columns, another for another row; null beside a null, or ``with_nulls``."""
    parts = []
    for one in values:
        value = (
            Typed(pc.add(one.expression, pc.scalar(0.0)), one.kind) if pa.types.is_floating(one.kind) else one
        )
        text = text_of(value)  # -0.0 is 0.0
        size = pc.utf8_length(text).cast(pa.string())
        whole = pc.binary_join_element_wise(size, text, pc.scalar(":"))
        parts.append(pc.coalesce(whole, pc.scalar("-")) if with_nulls else whole)
    return pc.binary_join_element_wise(*parts, pc.scalar(""))


def _joined(listed: Typed, sign: Typed) -> Any:
    """Return the texts of a list in one; one with more than it holds ends the query."""
    by = known(sign, "the sign between texts")
    if by is None:
        return literal(None, pa.string()).expression
    values = pc.struct_field(listed.expression, ["values"])
    each = listed.kind.field("values").type.value_type
    if not (pa.types.is_string(each) or pa.types.is_integer(each)):
        msg = f"it joins texts and integers, and this is {each}: string_agg(CAST(x AS VARCHAR), ',')"
        raise ValueError(msg)
    more = pc.greater(pc.struct_field(listed.expression, ["beyond"]), pc.scalar(0))
    words = pc.if_else(more, pc.scalar("string_agg: a group has more than 32,767 texts"), pc.scalar("0"))
    is_whole = pc.equal(words.cast(pa.int64()), pc.scalar(0))  # raises with the words
    texts = pc.binary_join(values.cast(pa.list_(pa.string())), str(by))
    return pc.if_else(is_whole, texts, literal(None, pa.string()).expression)


def _with_sign(sign: Typed, *parts: Typed) -> Any:
    """Return texts joined by a sign, without nulls; Arrow leaves rows out of whose texts all are null."""
    first, *others = map(text_of, parts)
    all_null = pc.is_null(first)
    for other in others:
        all_null = pc.and_kleene(all_null, pc.is_null(other))
    first = pc.if_else(all_null, pc.scalar(""), first)
    return pc.binary_join_element_wise(first, *others, text_of(sign), null_handling="skip")


def _strip(name: str) -> Function:
    def stripped(text: Typed, signs: Typed | None = None) -> Any:
        given = " " if signs is None else str(known(signs, "the signs of trim"))
        return getattr(pc, name)(text_of(text), characters=given)

    return stripped


def _replace(text: Typed, old: Typed, new: Typed) -> Any:
    if not (old.is_literal and new.is_literal):
        return called("replace", *map(text_of, (text, old, new)))
    given, other = str(known(old, "the old text")), str(known(new, "the new text"))
    # Arrow replaces an empty text without an end
    return pc.replace_substring(text_of(text), given, other) if given else text_of(text)


def _pad(name: str) -> Function:
    def padded(text: Typed, width: Typed, sign: Typed | None = None) -> Any:
        many = int(known(width, "the width"))
        given = " " if sign is None else str(known(sign, "the sign"))
        if len(given) != 1:
            msg = f"one sign fills a text up; got {given!r}"
            raise ValueError(msg)
        whole = getattr(pc, name)(text_of(text), many, given)
        return pc.utf8_slice_codeunits(whole, 0, many)

    return padded


TEXT_FUNCTIONS: dict[str, Function] = {
    "UPPER": lambda t: pc.utf8_upper(text_of(t)),
    "LOWER": lambda t: pc.utf8_lower(text_of(t)),
    "LENGTH": _length,
    "ARRAY_SIZE": _length,
    "INSTR": _found,
    "STR_POSITION": _found,
    "STRLEN": lambda t: pc.binary_length(text_of(t)).cast(pa.int64()),
    "REPEAT": lambda t, n: pc.binary_repeat(text_of(t), int(known(n, "the number of repeat"))),
    "CONCAT_WS": _with_sign,
    "REVERSE": lambda t: pc.utf8_reverse(text_of(t)),
    "TRIM": _strip("utf8_trim"),
    "LTRIM": _strip("utf8_ltrim"),
    "RTRIM": _strip("utf8_rtrim"),
    "LPAD": _pad("utf8_lpad"),
    "RPAD": _pad("utf8_rpad"),
    "SUBSTRING": _substring,
    "LEFT": _left,
    "RIGHT": _right,
    "REPLACE": _replace,
    "CONCAT": _concat,
    "STARTS_WITH": _starts,
    "ENDS_WITH": _ends,
    "CONTAINS": _contains,
    "SPLIT_PART": _split_part,
    "REGEXP_MATCHES": _matches,
    "REGEXP_FULL_MATCH": lambda t, p: pc.match_substring_regex(
        text_of(t), rf"\A(?:{known(p, 'a pattern')})\z"
    ),
    "REGEXP_REPLACE": _replaced,
    "REGEXP_EXTRACT": _extracted,
    "_JOINED": _joined,
    "ASCII": lambda t: called("ascii", text_of(t)),
    "MD5": lambda t: called("md5", text_of(t)),
    "SHA256": lambda t, bits: called("sha256", text_of(t)),
}
"""Functions of typed values; a ``ValueError`` has the words of a mistake."""
