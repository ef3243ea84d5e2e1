"""Saved: parts of a snapshot, validated by type, shape and range.

The bytes of a snapshot may come from anywhere, and a kernel that is given row 10**9 reads there.  So an operator
asks for each part by its kind: an integer of a range, so many integers below a number, a record batch of
these types.  Anything else is a ``SnapshotError`` that names the part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Self

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from oop_engine.core.errors import SnapshotError

__all__ = ["Saved"]

_LEAST, _MOST = -(2**63), 2**63 - 1
Shape = Sequence[int | None]


class Saved(dict[Any, Any]):
    """The named values that ``save`` returned, or the values of a list by their numbers.

    Getters raise ``SnapshotError`` if there is no such value, or it is of another kind; arrays are the
    caller's own, but for those of ``narrow`` and ``narrow_numbers``, which read the snapshot.

    >>> saved = Saved({"slots": np.array([0, 2, 1], np.int8), "size": 3})
    >>> saved.integers("slots", (3,), least=0, below=3)
    array([0, 2, 1])
    >>> saved.integer("size", least=4)
    Traceback (most recent call last):
    oop_engine.core.errors.SnapshotError: 'size' must be an integer from 4 to 9223372036854775807; got 3
    """

    @classmethod
    def of(cls, value: Any) -> Self:
        """Return a part that is a dictionary, or a list."""
        if isinstance(value, list | tuple):
            return cls(enumerate(value))
        return cls(value)

    def part(self, name: str | int) -> Self:
        """Return a dictionary or a list below this one."""
        value = self._get(name)
        if not isinstance(value, dict | list):
            self._fail(name, "a part with parts of its own", value)
        return type(self).of(value)

    def parts(self, name: str | int, count: int | None = None) -> list[Self]:
        """Return a list of parts, ``count`` of them (None: any)."""
        listed = self.part(name)
        return listed.parts_of(len(listed) if count is None else count)

    def parts_of(self, count: int) -> list[Self]:
        """Return the parts of a list of ``count``, which this one has to be."""
        if list(self) != list(range(count)):
            msg = f"there must be a list of {count} parts; got {', '.join(map(repr, self)) or 'nothing'}"
            raise SnapshotError(msg)
        return [self.part(number) for number in range(count)]

    def integer(self, name: str | int, *, least: int = _LEAST, most: int = _MOST) -> int:
        """Return an integer from ``least`` to ``most``."""
        value = self._get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self._fail(name, f"an integer from {least} to {most}", value)
        return int(value)

    def floating(self, name: str | int) -> float:
        """Return a float."""
        value = self._get(name)
        if not isinstance(value, float):
            self._fail(name, "a float", value)
        return float(value)

    def flag(self, name: str | int) -> bool:
        """Return true or false."""
        value = self._get(name)
        if not isinstance(value, bool):
            self._fail(name, "true or false", value)
        return bool(value)

    def integers(
        self, name: str | int, shape: Shape, *, least: int = _LEAST, below: int | None = None
    ) -> NDArray[np.int64]:
        """Return integers of any width as int64 ``shape`` (None: of any length), from ``least``, ``below`` a bound."""
        return self.narrow(name, shape, least=least, below=below).astype(np.int64)

    def narrow(
        self, name: str | int, shape: Shape, *, least: int = _LEAST, below: int | None = None
    ) -> NDArray[Any]:
        """Return the same as wide as it was saved, to be read only: many numbers of few values take little memory."""
        array = self._array(name, "iu", shape)
        least_found, most_found = (int(array.min()), int(array.max())) if array.size else (_MOST, _LEAST)
        most = _MOST if below is None else below - 1
        if array.size and not (least <= least_found and most_found <= most):
            self._fail(name, f"integers from {least} to {most}", f"{least_found} to {most_found}")
        return array

    def numbers(self, name: str | int, shape: Shape, dtype: DTypeLike) -> NDArray[Any]:
        """Return numbers or booleans of ``shape`` (None: of any length) as ``dtype``, which has to have them all."""
        return self.narrow_numbers(name, shape, dtype).astype(dtype)

    def narrow_numbers(self, name: str | int, shape: Shape, dtype: DTypeLike) -> NDArray[Any]:
        """Return the same as they were saved, to be read only."""
        wanted = np.dtype(dtype)
        array = self._array(name, "biuf", shape)
        if array.dtype.kind == "f" and wanted.kind != "f":
            self._fail(name, f"of {wanted}", array.dtype)
        exact = np.can_cast(array.dtype, wanted) or wanted.kind not in "iub"
        if not exact and not (array.astype(wanted) == array).all():
            self._fail(name, f"of {wanted}", array)
        return array

    def bits(self, name: str | int, count: int) -> NDArray[np.bool_]:
        """Return ``count`` booleans that ``np.packbits`` has packed."""
        array = self._array(name, "u", (-(-count // 8),))
        return np.unpackbits(array.astype(np.uint8, copy=False), count=count).view(np.bool_)

    def batch(
        self, name: str | int, fields: pa.Schema | None = None, rows: int | None = None
    ) -> pa.RecordBatch:
        """Return a record batch of these columns, with so many rows (None: any)."""
        value = self._get(name)
        if not isinstance(value, pa.RecordBatch):
            self._fail(name, "a record batch", value)
        if fields is not None and not value.schema.equals(fields):
            self._fail(name, f"a record batch of {fields.to_string()!r}", value.schema.to_string())
        if rows is not None and value.num_rows != rows:
            self._fail(name, f"{rows} rows", value.num_rows)
        return value

    def _get(self, name: str | int) -> Any:
        if name not in self:
            msg = f"there must be {name!r}; got {', '.join(map(repr, self)) or 'nothing'}"
            raise SnapshotError(msg)
        return self[name]

    def _array(self, name: str | int, kinds: str, shape: Shape) -> NDArray[Any]:
        value: Any = self._get(name)
        if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
            self._fail(name, "an array of numbers", getattr(value, "dtype", value))
        if value.ndim != len(shape) or any(
            n not in (None, m) for n, m in zip(shape, value.shape, strict=True)
        ):
            wanted = " x ".join("any" if n is None else str(n) for n in shape)
            self._fail(name, f"an array of {wanted or 'one number'}", value.shape)
        return value

    def _fail(self, name: str | int, wanted: str, got: Any) -> NoReturn:
        msg = f"{name!r} must be {wanted}; got {str(got)[:200]}"
        raise SnapshotError(msg)
