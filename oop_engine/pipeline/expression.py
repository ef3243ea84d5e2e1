"""Expressions: the part of Spark SQL that a declaration may use; all else is refused by name, before Spark starts.

A declaration is data, and Spark SQL can do more than compute: call Java, read files, reveal settings and secrets.
So no text of the user's reaches Spark.  An expression is cut into tokens, each must be on the list, and the text for
Spark is built anew from them:

    columns     those that stand above, in backticks
    functions   those of ``FUNCTIONS``: deterministic, functions of their arguments alone
    words       AND, CASE, IS NULL, CAST(... AS a type), units of time
    the rest    numbers, texts in quotes, operators

There is no word with which a query begins, none that names a table, no variable, no comment.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, NoReturn

from oop_engine.core.close_names import closest_or_all, did_you_mean
from oop_engine.core.errors import UsageError

__all__ = ["FUNCTIONS", "checked"]

LONGEST = 10_000
_SHOWN = 200
_WIDEST = 1000

_FUNCTIONS = """
abs acos asin atan atan2 bround cbrt ceil ceiling cos cosh degrees e exp expm1 factorial floor greatest hypot least ln
log log10 log1p log2 mod negative pi pmod positive pow power radians rint round sign signum sin sinh sqrt tan tanh
try_add try_divide try_mod try_multiply try_subtract width_bucket bit_count bit_get shiftleft shiftright
shiftrightunsigned

coalesce if ifnull isnan isnotnull isnull nanvl nullif nullifzero nvl nvl2 zeroifnull

ascii base64 bin bit_length btrim char char_length character_length chr concat concat_ws contains conv decode elt encode
endswith find_in_set hex initcap instr is_valid_utf8 lcase left len length levenshtein locate lower lpad ltrim
make_valid_utf8 octet_length position regexp_count regexp_extract regexp_instr regexp_like regexp_replace regexp_substr
replace reverse right rpad rtrim soundex split split_part startswith substr substring substring_index to_char to_number
translate trim try_to_number ucase unbase64 unhex upper
get_json_object json_array_length parse_url try_parse_url try_url_decode url_decode url_encode
crc32 hash md5 sha sha1 sha2 xxhash64 array_contains element_at size try_element_at

bigint boolean cast date double float int smallint string timestamp tinyint try_cast

add_months date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart
day dayname dayofmonth dayofweek dayofyear extract from_unixtime from_utc_timestamp hour last_day make_date
make_dt_interval make_timestamp make_ym_interval minute month monthname months_between next_day quarter second
timestamp_micros timestamp_millis timestamp_seconds timestampadd timestampdiff to_date to_timestamp to_unix_timestamp
to_utc_timestamp trunc try_make_timestamp try_to_date try_to_timestamp unix_date unix_micros unix_millis unix_seconds
weekday weekofyear year
"""
FUNCTIONS = frozenset(_FUNCTIONS.split())
"""The functions that an expression may call; none that runs Java, reads files, knows the time, or guesses."""

_KEYWORDS = (
    "and between case div else end escape false ilike in interval is like not null or rlike then true when"
)
_WORDS = frozenset(_KEYWORDS.split())
_CASTS = """
bigint binary boolean byte date dec decimal double float int integer long numeric real short smallint string timestamp
timestamp_ltz timestamp_ntz tinyint
"""
_TYPES = frozenset(_CASTS.split())
_ONE = ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
_UNITS = frozenset((*_ONE, *(f"{unit}s" for unit in _ONE)))
_WITH_UNIT = ("date_diff", "dateadd", "date_add", "datediff", "extract", "timestampadd", "timestampdiff")
_DATED = ("date", "timestamp")

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<text>[rR](?:'[^']*'|"[^"]*") | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*")
  | (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:BD|bd|[LSYFDlsyfd])?(?!\w))
  | `(?P<quoted>[^`]*)`
  | (?P<word>[^\W\d]\w*)
  | (?P<unknown>--|/\*)
  | (?P<sign><=>|>>>|<<|>>|<=|>=|<>|!=|==|\|\||::|[-+*/%=<>!~&|^(),\[\]])
  | (?P<rest>.)
    """,
    re.VERBOSE | re.DOTALL,
)


class _Token(NamedTuple):
    kind: str
    text: str

    @property
    def folded(self) -> str:
        return self.text.lower()


_NONE = _Token("end", "")


def checked(text: str, columns: Sequence[str], what: str) -> str:
    """Return ``text`` as an expression for Spark.

    ``columns``: names that it may use.  Raises ``UsageError`` in the name of ``what`` for a token that is not on the
    list.  The syntax is checked by Spark.  O(length of the text).
    """
    if len(text) > LONGEST:
        msg = f"{what}: has {len(text)} characters, {LONGEST} at most: compute a part of it as a column of its own"
        raise UsageError(msg)
    return f"({' '.join(_Reading(text, columns, what).words())})"  # in front of a name Spark would let AS be left out


class _Reading:
    """One expression, from token to token."""

    def __init__(self, text: str, columns: Sequence[str], what: str) -> None:
        self._text, self._what = text, what
        self._columns = {name.lower(): name for name in columns}
        self._tokens = [*self._cut()]

    def words(self) -> list[str]:
        if not self._tokens:
            self._refuse("is empty: give a value")
        return [self._written(at, token) for at, token in enumerate(self._tokens)]

    def _cut(self) -> Iterator[_Token]:
        for match in _TOKEN.finditer(self._text):
            kind = str(match.lastgroup)
            if kind != "space":
                yield _Token(kind, match[kind])

    def _at(self, at: int) -> _Token:
        return self._tokens[at] if 0 <= at < len(self._tokens) else _NONE

    def _written(self, at: int, token: _Token) -> str:
        match token.kind:
            case "text":
                if "${" in token.text:
                    self._refuse("'${' in a text: Spark would put a setting in its place: leave it out")
                return token.text
            case "quoted":
                return self._column(token)
            case "word":
                return self._word(at, token)
            case "number" | "sign":
                return token.text
            case _:
                self._refuse(f"{token.text!r} is not understood here: leave it out")

    def _word(self, at: int, token: _Token) -> str:
        folded, before, after = token.folded, self._at(at - 1), self._at(at + 1)
        if folded in _WORDS or (folded == "as" and before is not _NONE) or self._is_unit(at):
            return folded.upper()
        if before.folded in ("as", "::") and before.kind != "quoted":
            return self._one_of(token, _TYPES, "type")
        if after.text == "(":
            if folded in ("lpad", "rpad"):
                self._check_width(at + 2)
            return self._one_of(token, FUNCTIONS, "function")
        if folded in _DATED and after.kind == "text":
            return folded.upper()
        if folded == "from" and self._at(at - 3).folded == "extract":
            return "FROM"
        if folded == "to" and self._is_unit(at - 1):  # DAY TO HOUR
            return "TO"
        return self._column(token)

    def _is_unit(self, at: int) -> bool:
        """Return whether a word is a unit: of INTERVAL, or the first argument of a function that takes one."""
        if self._at(at).folded not in _UNITS:
            return False
        before, opened = self._at(at - 1), self._at(at - 2)
        if before.kind in ("number", "text") or before.folded == "to":
            return True
        if before.text == "(" and self._at(at + 1).folded in (",", "from"):
            return opened.folded in _WITH_UNIT
        return False

    def _check_width(self, at: int) -> None:
        """Refuse a width that is no literal, or too large: it costs memory."""
        depth = 0
        while self._at(at) is not _NONE and not (depth == 0 and self._at(at).text == ","):
            depth += {"(": 1, ")": -1}.get(self._at(at).text, 0)
            at += 1
        width = self._at(at + 1).text
        if not (width.isdecimal() and int(width) <= _WIDEST and self._at(at + 2).text in (",", ")")):
            self._refuse(f"the width of lpad and rpad must be a number up to {_WIDEST}: got {width!r}")

    def _column(self, token: _Token) -> str:
        if token.folded not in self._columns:
            hint = closest_or_all(token.text, self._columns.values())
            self._refuse(f"{token.text!r} is no column that stands above{hint}")
        return f"`{self._columns[token.folded]}`"

    def _one_of(self, token: _Token, known: Collection[str], kind: str) -> str:
        if token.folded not in known:
            hint = did_you_mean(token.folded, known) or ": docs/pipeline.md lists those that may"
            self._refuse(f"{kind} {token.text!r} may not be used in a declaration{hint}")
        return token.folded

    def _refuse(self, wrong: str) -> NoReturn:
        shown = self._text if len(self._text) <= _SHOWN else f"{self._text[:_SHOWN]}..."
        msg = f"{self._what}: {shown!r}: {wrong}"
        raise UsageError(msg)
