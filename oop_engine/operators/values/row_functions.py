"""Row functions: functions of texts that Arrow has not, in Python, under names that an Arrow expression calls.

They are registered with Arrow when this module is imported, which each process that evaluates expressions does; so an
expression that names one can be pickled.  A call takes .3 to 1 us a row, where Arrow's own take .01.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["called"]

_TEXT, _TRUTH = pa.string(), pa.bool_()
_BEFORE = "oop_engine_"


def called(name: str, *parts: Any) -> Any:
    """Return the expression that calls a row function: ``md5``, ``sha256``, ``like``, ``ilike``, and others below.

    Null where a part is null.

    >>> called("md5", pc.field("name"))
    <pyarrow.compute.Expression oop_engine_md5(name)>
    """
    return pc.Expression._call(_BEFORE + name, list(parts))


@lru_cache(1024)
def _pattern(like: str) -> re.Pattern[str]:
    """Return a pattern of LIKE, which has no escape, as a regular expression."""
    signs = {"%": ".*", "_": "."}
    return re.compile("".join(signs.get(sign) or re.escape(sign) for sign in like), re.DOTALL)


def _is_like(text: str, pattern: str) -> bool:
    return _pattern(pattern).fullmatch(text) is not None


_FUNCTIONS: dict[str, tuple[Callable[..., Any], int, pa.DataType]] = {
    "ascii": (lambda text: ord(text[0]) if text else 0, 1, pa.int32()),
    "md5": (lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(), 1, _TEXT),
    "sha256": (lambda text: hashlib.sha256(text.encode()).hexdigest(), 1, _TEXT),
    "like": (_is_like, 2, _TRUTH),
    "ilike": (lambda text, pattern: _is_like(text.lower(), pattern.lower()), 2, _TRUTH),
    "contains": (lambda text, part: part in text, 2, _TRUTH),
    "starts_with": (str.startswith, 2, _TRUTH),
    "ends_with": (str.endswith, 2, _TRUTH),
    "replace": (lambda text, old, new: text.replace(old, new) if old else text, 3, _TEXT),
}


def _by_row(function: Callable[..., Any], kind: pa.DataType) -> Callable[..., pa.Array]:
    """Return a function of arrays: a part that is a constant comes as a scalar."""

    def over(context: Any, *parts: pa.Array | pa.Scalar) -> pa.Array:
        columns = [
            part.to_pylist() if isinstance(part, pa.Array) else [part.as_py()] * context.batch_length
            for part in parts
        ]
        rows = zip(*columns, strict=True)
        return pa.array([None if None in row else function(*row) for row in rows], kind)

    return over


for _name, (_function, _many, _kind) in _FUNCTIONS.items():
    pc.register_scalar_function(
        _by_row(_function, _kind), _BEFORE + _name, {"summary": _name, "description": f"{_name}, row by row in Python"},
        {f"part{number}": _TEXT for number in range(_many)}, _kind,
    )  # fmt: skip
