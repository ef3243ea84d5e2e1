"""CsvFormat: how a CSV file is written, for traces, live sources and folders alike."""

from __future__ import annotations

import codecs
import re
import zoneinfo
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NoReturn

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import UsageError

__all__ = ["CsvFormat", "high_texts"]

_OPTION = re.compile(r",(?=[a-z]+=)")
_WORDS = {"tab": "\t", "\\t": "\t", "space": " ", "none": ""}
_THOUSANDS = ".,' _\u00a0\u202f"
_DIRECTIVES = "dmYHMSfzIpb"


@dataclass(frozen=True)
class CsvFormat:
    r"""How a CSV file is written.  Options that are left out are sniffed from a file, or are as in RFC 4180.

    ``delimiter``: one ASCII character between cells; None: ``,``, ``;``, tab or ``|``, as the header suggests.
    ``quote``: around cells that have a delimiter or a line break; a quote within is two of them; "": there are none.
    ``decimal``: "." or ","; None: "," where a file with another delimiter has such numbers.  ``thousands``: between
    groups of three digits; sniffed where a number has both signs (``1.234,5``).  ``encoding``: a codec of Python; None:
    UTF-8, or as the byte order mark has it.  ``dates``: one form of dates or several, with directives of ``strptime``,
    such as ``"%d.%m.%Y %H:%M:%S"``; ISO 8601 is always read.  ``zone``: the time zone of times that have none; a local
    time that its clocks skip or show twice is refused.  ``nulls``: words that are null in every column where they stand
    without quotes.  ``comment``: the first character of lines that are skipped; blank lines always are.
    ``header=False``: the first line is a row; columns are named by ``names``, or by the schema, in its order.

    Raises ``UsageError`` for a value that cannot be.

    >>> CsvFormat.of("delimiter=;,decimal=,,dates=%d.%m.%Y")
    CsvFormat(delimiter=';', decimal=',', dates='%d.%m.%Y')
    """

    delimiter: str | None = None
    quote: str = '"'
    decimal: str | None = None
    thousands: str = ""
    encoding: str | None = None
    dates: str | Sequence[str] = ()
    zone: str = ""
    nulls: Sequence[str] = ()
    comment: str = ""
    header: bool | None = None
    names: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("delimiter", "quote", "comment"):
            given = getattr(self, name)
            if given and (len(given) != 1 or not given.isascii() or given in "\r\n\0"):
                _refuse(name, "one ASCII character, and no line break", given)
        if self.delimiter == "" or (self.delimiter and self.delimiter in (self.quote, self.comment)):
            _refuse("delimiter", "a character that is neither quote nor comment", self.delimiter)
        if self.decimal not in (None, ".", ","):
            _refuse("decimal", "'.' or ','", self.decimal)
        if self.thousands and (len(self.thousands) != 1 or self.thousands not in _THOUSANDS):
            _refuse("thousands", f"one of {' '.join(map(repr, _THOUSANDS))}", self.thousands)
        if self.thousands == "." and self.decimal is None:
            object.__setattr__(self, "decimal", ",")
        if self.thousands and self.thousands == (self.decimal or "."):
            _refuse("thousands", f"another sign than decimal ({self.decimal or '.'!r})", self.thousands)
        if self.encoding is not None:
            _check_encoding(self.encoding)
        if self.zone and self.zone not in zoneinfo.available_timezones() | {"UTC"}:
            _refuse("zone", "a time zone such as 'Europe/Berlin'", self.zone)
        for form in self.date_forms:
            _check_date(form)
        if isinstance(self.nulls, str) or isinstance(self.names, str):
            _refuse("nulls and names", "lists of texts", self.nulls or self.names)
        if self.names and self.header is not False:
            _refuse("names", "given with header=False", self.names)

    def __repr__(self) -> str:
        given = ((f.name, getattr(self, f.name)) for f in fields(self))
        default = {f.name: f.default for f in fields(self)}
        return f"CsvFormat({', '.join(f'{k}={v!r}' for k, v in given if v != default[k])})"

    @property
    def date_forms(self) -> tuple[str, ...]:
        """The forms of dates."""
        return (self.dates,) if isinstance(self.dates, str) else tuple(self.dates)

    @classmethod
    def of(cls, text: str) -> CsvFormat:
        """Return the format that a command line describes: ``name=value``, with commas in between.

        Several ``dates``, ``nulls`` and ``names`` have ``|`` in between; a delimiter may be ``tab`` or ``\\t``.
        """
        options: dict[str, Any] = {}
        known = [f.name for f in fields(cls)]
        for option in _OPTION.split(text) if text else []:
            name, equals, value = option.partition("=")
            if not equals or name not in known:
                msg = f"csv: must be NAME=VALUE, with NAME one of {', '.join(known)}; got {option!r}"
                msg += did_you_mean(name, known)
                raise UsageError(msg)
            if name in ("dates", "nulls", "names"):
                options[name] = value if name == "dates" and "|" not in value else tuple(value.split("|"))
            elif name == "header":
                if value not in ("yes", "no"):
                    _refuse("header", "yes or no", value)
                options[name] = value == "yes"
            else:
                options[name] = _WORDS.get(value, value)
        return cls(**options)


def high_texts(encoding: str) -> str | None:
    """Return the characters of the bytes 128 to 255 in an encoding; "": it is UTF-8, None: they are not one each."""
    name = codecs.lookup(encoding).name
    if name in ("utf-8", "utf-8-sig"):
        return ""
    whole = bytes(range(256)).decode(name, "replace")
    one_by_one = "".join(bytes([each]).decode(name, "replace") for each in range(256))
    known = name == "ascii" or whole.count("\ufffd") < 64
    is_ascii = whole[:128] == bytes(range(128)).decode()
    return whole[128:] if known and is_ascii and len(whole) == 256 and whole == one_by_one else None


def _refuse(name: str, must_be: str, got: object) -> NoReturn:
    msg = f"CsvFormat: {name} must be {must_be}; got {got!r}"
    raise UsageError(msg)


def _check_encoding(encoding: str) -> None:
    try:
        known = codecs.lookup(encoding)
    except LookupError:
        known = None
    if known is None or not getattr(known, "_is_text_encoding", True):
        _refuse("encoding", "a codec of Python such as 'utf-8', 'utf-16', 'latin-1', 'cp1252'", encoding)


def _check_date(form: str) -> None:
    directives = re.findall("%(.)", form)
    if "y" in directives:
        msg = f"CsvFormat: dates must have years of four digits (%Y); got {form!r}: a year of two digits has no century"
        raise UsageError(msg)
    known = all(each in _DIRECTIVES for each in directives) and len(set(directives)) == len(directives)
    if not (known and "d" in directives and "Y" in directives and ("m" in directives) != ("b" in directives)):
        must = f"made of each of {' '.join('%' + each for each in _DIRECTIVES)} at most once, with day, month and year"
        _refuse("dates", must, form)
    if ("I" in directives) != ("p" in directives) or ("I" in directives and "H" in directives):
        _refuse("dates", "of 24 hours (%H), or of 12 with %I and %p", form)
