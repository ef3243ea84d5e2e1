"""Kinds: the types a column may have here, and which types can become which.

Types of one family hold the same kind of value, so a value may change its type within the family.  Nothing leaves its
family: a number has no unit of time, a local time no zone, and 5 is not ``True``.  Text is read as any type that has a
text form.
"""

from __future__ import annotations

import re

import pyarrow as pa

__all__ = [
    "VIEWS",
    "converts",
    "is_list",
    "is_number",
    "is_text",
    "misread",
    "plain_type",
    "reads_nested_texts",
    "reads_texts",
    "value_type",
    "way_out",
    "zone_hint",
]

VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
"""Views of texts, as Polars has them, and the types with which Arrow computes."""
_NARROW = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16())
_FAMILIES = {
    "number": (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
    "boolean": (pa.types.is_boolean,),
    "text": (
        pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
        pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary,
    ),
    "day": (pa.types.is_date,),
    "time of day": (pa.types.is_time,),
    "length of time": (pa.types.is_duration,),
}  # fmt: skip


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that a column of ``kind`` gets here.

    Arrow computes with this type everywhere: text for views of text, values for runs of them, and decimals of at least
    128 bits.  Dictionaries get an index of at least 32 bits, for pages with other values are put together.

    >>> plain_type(pa.string_view()), plain_type(pa.decimal32(5, 2))
    (DataType(string), Decimal128Type(decimal128(5, 2)))
    >>> plain_type(pa.list_(pa.dictionary(pa.int8(), pa.string())))
    ListType(list<item: dictionary<values=string, indices=int32, ordered=0>>)
    """
    types = pa.types
    if types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if types.is_dictionary(kind):
        index = pa.int32() if kind.index_type in _NARROW else kind.index_type
        return pa.dictionary(index, plain_type(kind.value_type), kind.ordered)
    if types.is_struct(kind):
        return pa.struct([_plain_field(field) for field in kind])
    if types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), _plain_field(kind.item_field), kind.keys_sorted)
    if types.is_fixed_size_list(kind):
        return pa.list_(_plain_field(kind.value_field), kind.list_size)
    if types.is_large_list(kind) or types.is_large_list_view(kind):
        return pa.large_list(_plain_field(kind.value_field))
    if types.is_list(kind) or types.is_list_view(kind):
        return pa.list_(_plain_field(kind.value_field))
    if types.is_decimal(kind) and kind.bit_width < 128:
        return pa.decimal128(kind.precision, kind.scale)
    return VIEWS.get(kind, kind)


def converts(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether there are values of type ``given`` that ``wanted`` has too; each decides for itself then.

    >>> converts(pa.float64(), pa.int8()), converts(pa.timestamp("ns"), pa.int64())
    (True, False)
    """
    given, wanted = value_type(given), value_type(wanted)
    if given == wanted or pa.types.is_null(given):
        return True
    if pa.types.is_nested(given) or pa.types.is_nested(wanted):
        return _nested_converts(given, wanted)
    family, wanted_family = _family(given), _family(wanted)
    if family == "text":
        return reads_texts(wanted)
    return family == wanted_family or {family, wanted_family} == {
        "day",
        "local time",
    }  # a day is its midnight


def reads_texts(kind: pa.DataType) -> bool:
    """Return whether there are texts that can be read as values of ``kind``."""
    types, kind = pa.types, value_type(kind)
    tests = types.is_nested, types.is_duration, types.is_interval, types.is_null
    return not any(test(kind) for test in tests) and not isinstance(kind, pa.BaseExtensionType)


def reads_nested_texts(kind: pa.DataType) -> bool:
    """Tell the same of ``kind``, or, where that is nested, of all types in it.

    >>> reads_nested_texts(pa.list_(pa.struct({"at": pa.date32()}))), reads_nested_texts(pa.list_(pa.duration("s")))
    (True, False)
    """
    if not pa.types.is_nested(kind):
        return reads_texts(kind)
    return all(reads_nested_texts(kind.field(at).type) for at in range(kind.num_fields))


def is_text(kind: pa.DataType) -> bool:
    """Return whether values are texts, or bytes, which are read as texts."""
    return _family(kind) == "text"


def is_number(kind: pa.DataType) -> bool:
    """Return whether values are numbers: integers, floats, decimals."""
    return _family(value_type(kind)) == "number"


def value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values, however they are encoded."""
    encoded = pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind)
    return value_type(kind.value_type) if encoded else kind


def way_out(given: pa.DataType, wanted: pa.DataType) -> str:
    """Return the way out where values of type ``given`` do not become ``wanted``: the call that converts them.

    >>> way_out(pa.timestamp("ns"), pa.int64())
    "declare it as timestamp[ns], or convert it: column.cast(pa.timestamp('s')).cast(pa.int64())"
    """
    given, wanted = value_type(given), value_type(wanted)
    call = _call(given, wanted)
    declared = f"declare it as {given}"
    if is_text(given):
        declared = "mend it, or declare the column as string"
    return f"{declared}, or convert it: {call}" if call else declared


def _call(given: pa.DataType, wanted: pa.DataType) -> str:
    """Return a call that makes a value of another one; '' if there is none to recommend."""
    family, wanted_family, types = _family(given), _family(wanted), pa.types
    match family, wanted_family:
        case (("instant" | "local time"), "number"):
            return "column.cast(pa.timestamp('s')).cast(pa.int64())"
        case "number", "instant":
            return f"column.cast(pa.timestamp('s', {wanted.tz!r})), with the unit that the numbers are in"
        case "number", ("local time" | "length of time"):
            name = "timestamp" if wanted_family == "local time" else "duration"
            return f"column.cast(pa.{name}('s')), with the unit that the numbers are in"
        case "length of time", "number":
            return "column.cast(pa.duration('s')).cast(pa.int64())"
        case "local time", "instant":
            return f"pc.assume_timezone(column, {wanted.tz!r})"
        case "day", "instant":
            return f"pc.assume_timezone(column.cast(pa.timestamp({wanted.unit!r})), {wanted.tz!r})"
        case "instant", ("local time" | "day"):
            return "pc.local_timestamp(column)"
        case "local time", "day":
            return "pc.floor_temporal(column, unit='day')"
        case "boolean", "number":
            return f"column.cast(pa.{_name(wanted)}())"
        case "number", "boolean":
            return "pc.not_equal(column, 0)"
        case (("number" | "boolean"), "text"):
            return "column.cast(pa.string())"
        case "number", "number" if types.is_decimal(wanted) and not types.is_integer(given):
            return f"pc.round(column, {wanted.scale})"
        case "number", "number" if types.is_integer(wanted) and not types.is_integer(given):
            return "pc.round(column)"
        case (("instant" | "local time" | "time of day" | "length of time"), same) if same == family:
            return _cutting(wanted)
        case "month_day_nano_interval", "length of time":
            span = "timedelta(each.days, microseconds=each.nanoseconds // 1000)"
            return f"pa.array([each and {span} for each in column.to_pylist()], pa.duration('us')), if months are 0"
        case "month_day_nano_interval", "text":
            return "pa.array([each and str(each) for each in column.to_pylist()], pa.string())"
    return ""


def _cutting(wanted: pa.DataType) -> str:
    name = str(wanted).split("[")[0]
    zone = f", {wanted.tz!r}" if pa.types.is_timestamp(wanted) and wanted.tz else ""
    return f"column.cast(pa.{name}({wanted.unit!r}{zone}), safe=False)"


def _name(kind: pa.DataType) -> str:
    return {"double": "float64", "float": "float32", "halffloat": "float16"}.get(
        str(kind), str(kind).split("(")[0]
    )


def _family(kind: pa.DataType) -> str:
    """Return the property that two types must share to have values in common."""
    if pa.types.is_timestamp(kind):  # a time without a zone is no instant, so it equals none
        return "instant" if kind.tz else "local time"
    return next(
        (name for name, members in _FAMILIES.items() if any(is_one(kind) for is_one in members)), str(kind)
    )


def _nested_converts(given: pa.DataType, wanted: pa.DataType) -> bool:
    types = pa.types
    if types.is_map(given) and types.is_map(wanted):
        return converts(given.key_type, wanted.key_type) and converts(given.item_type, wanted.item_type)
    if types.is_struct(given) and types.is_struct(wanted):
        names = [[field.name for field in kind] for kind in (given, wanted)]
        return names[0] == names[1] and all(
            converts(field.type, wanted_field.type) for field, wanted_field in zip(given, wanted, strict=True)
        )
    return is_list(given) and is_list(wanted) and converts(given.value_type, wanted.value_type)


def is_list(kind: pa.DataType) -> bool:
    """Return whether values are lists, of any kind."""
    types = pa.types
    tests = (
        types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view, types.is_large_list_view
    )  # fmt: skip
    return any(test(kind) for test in tests)


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(plain_type(field.type))


_WITH_OFFSET = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.]*([Zz]|[+-]\d\d:?\d\d)")


def misread(name: str, value: object, kind: pa.DataType) -> str:
    """Return the reason to refuse a value of a column, with the way out if one is known.

    >>> misread("at", "2026-03-01T12:00:00Z", pa.timestamp("s"))[:70]
    "at: cannot read '2026-03-01T12:00:00Z' as timestamp[s]: it has an offs"
    """
    return f"{name}: cannot read {value!r:.80} as {kind}{zone_hint(value, kind)}"


def zone_hint(value: object, kind: pa.DataType) -> str:
    """Return the way out, behind a colon, for the text of a moment with an offset where a column has no zone; or "".

    >>> zone_hint("2026-03-01T12:00:00Z", pa.timestamp("us"))
    ': it has an offset, and the column no zone: declare timestamp[us, tz=UTC], in SQL TIMESTAMPTZ'
    >>> zone_hint("noon", pa.timestamp("us")), zone_hint("2026-03-01T12:00:00Z", pa.int64())
    ('', '')
    """
    is_plain = pa.types.is_timestamp(kind) and kind.tz is None
    if not (is_plain and isinstance(value, str) and _WITH_OFFSET.fullmatch(value)):
        return ""
    return f": it has an offset, and the column no zone: declare timestamp[{kind.unit}, tz=UTC], in SQL TIMESTAMPTZ"
