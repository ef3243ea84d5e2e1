"""Punctuation: a message in a stream, a promise about the tuples that are still to come; or, soft, a ``Watermark``.

All bounds are int64, in the unit of the progressing attribute, and exclusive: after ``below=60``
no later tuple has a value smaller than 60 (thesis ch. 4; "low-watermark",
eq. 4.1).  ``NEVER`` excludes nothing, ``FOREVER`` everything: no tuple comes at all.

``arrival`` of a feed's punctuation is the moment when it comes, as pages have it; None: with the tuple before it.
A source that reports each hour does so also while no tuple comes, so its punctuation has a moment of its own.
It is no part of the bound: punctuation with and without is equal, and operators emit it without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from math import gcd
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError
from oop_engine.core.groups.zeros import unsigned_zeros
from oop_engine.core.values.python_values import natural

__all__ = [
    "EVERYTHING",
    "FOREVER",
    "NEVER",
    "GroupWise",
    "Joint",
    "Linear",
    "Punctuation",
    "Wants",
    "Watermark",
    "arriving",
    "passed",
    "shift",
]

NEVER = int(np.iinfo(np.int64).min)
FOREVER = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class Linear:
    """No later tuple of the stream has its progressing attribute smaller than ``below``."""

    below: int
    arrival: int | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, eq=False)
class GroupWise:
    """No later tuple of group ``groups[i]`` has a value smaller than ``below[i]``.

    ``groups``: record batch (n rows, all different) of the attributes that make the group;
    ``below``: int64 (n,).  One message has the bounds of many groups, so that progress of
    100 000 groups is one page of work.  ``below = FOREVER`` ends a group for good.
    Raises ``ContractError`` if the lengths differ, there is no attribute or one twice, or bounds are no int64.
    """

    groups: pa.RecordBatch
    below: NDArray[np.int64]
    arrival: int | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.groups, pa.RecordBatch) or not isinstance(self.below, np.ndarray):
            got = f"{type(self.groups).__name__}, {type(self.below).__name__}"
            way_out = 'GroupWise.of({"k": ["a", "b"]}, [60, 120]) takes lists'
            msg = f"group-wise punctuation: groups must be a record batch, bounds an array; got {got}: {way_out}"
            raise ContractError(msg)
        plain = list(map(unsigned_zeros, self.groups.columns))
        if any(column is not given for column, given in zip(plain, self.groups.columns, strict=True)):
            object.__setattr__(self, "groups", pa.RecordBatch.from_arrays(plain, schema=self.groups.schema))
        names = self.groups.schema.names
        if len(set(names)) != max(len(names), 1):
            msg = f"group-wise punctuation: there must be an attribute, and none twice; got {names}"
            raise ContractError(msg)
        if self.below.dtype != np.int64 or self.below.ndim != 1:
            got = f"{self.below.dtype} {self.below.shape}"
            msg = f"group-wise punctuation: bounds must be int64, one a group; got {got}"
            raise ContractError(msg)
        if self.below.flags.writeable:  # its giver may use it for the next ones
            object.__setattr__(self, "below", self.below.copy())
        if self.groups.num_rows != len(self.below):
            msg = (
                f"group-wise punctuation: one bound a group; got {len(self.below)} for {self.groups.num_rows}"
            )
            raise ContractError(msg)

    @classmethod
    def of(cls, groups: Any, below: Any) -> GroupWise:
        """Make one of lists: ``GroupWise.of({"src": ["a", "b"]}, [60, 120])``.

        ``groups``: a list or array of keys by attribute, a list of dictionaries, or Arrow data or a frame of keys.
        Raises ``ContractError`` if values of one attribute have no type in common, or bounds are no int64.
        """
        try:
            keys = {name: _keys(values) for name, values in _by_attribute(groups).items()}
            return cls(pa.RecordBatch.from_pydict(keys), _bounds(below))
        except (pa.ArrowException, AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            if isinstance(error, ContractError):
                raise
            msg = (
                "group-wise punctuation: keys must be lists of one type and one length, bounds int64; "
                f"got {groups!r:.100}, {below!r:.60}: {error}"
            )
            raise ContractError(msg) from error

    @classmethod
    def unchecked(cls, groups: pa.RecordBatch, below: NDArray[np.int64]) -> GroupWise:
        """Make one of groups and bounds that are known to fit; ``below`` is kept as it is, read-only from now on."""
        made = object.__new__(cls)
        below.flags.writeable = False
        vars(made).update(groups=groups, below=below, arrival=None)
        return made

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of the attributes that make the group."""
        return tuple(self.groups.schema.names)

    def filter(self, mask: NDArray[np.bool_]) -> GroupWise:
        """Return the bounds of some of the groups."""
        if mask.all():
            return self
        if not mask.any():  # a filter of Arrow takes longer than all else that is done with a bound
            return GroupWise.unchecked(self.groups.slice(0, 0), self.below[:0])
        return GroupWise.unchecked(self.groups.filter(pa.array(mask)), self.below[mask])

    def __len__(self) -> int:
        return len(self.below)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, GroupWise)
            and self.groups.equals(other.groups)
            and bool(np.array_equal(self.below, other.below))
        )

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Joint:
    """No later tuple has *all* of the named attributes smaller than their bounds.

    ``bounds``: pairs (attribute, below), sorted by name.  A join makes it of its two
    timestamps (thesis 7.2); with a single attribute it is the individual punctuation of
    the one that is not the stream's progressing attribute.
    """

    bounds: tuple[tuple[str, int], ...]
    arrival: int | None = field(default=None, compare=False, repr=False, kw_only=True)

    @classmethod
    def of(cls, **below: int) -> Joint:
        """Make one from keywords: ``Joint.of(ts=10, ts_right=7)``."""
        return cls(tuple(sorted(below.items())))

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of the attributes, sorted."""
        return tuple(name for name, _ in self.bounds)


@dataclass(frozen=True)
class Watermark:
    """No tuple below the bound ``of`` is expected any more: the soft bound beside the hard one.

    A tuple below it may come, as long as it is not below punctuation: it is allowed, though late.  So results that are
    put out because of a watermark may be corrected; those that punctuation releases are final.  Flink's and Beam's
    watermark minus the allowed lateness is the hard bound.  A watermark never shrinks, and may be dropped, rounded down
    or delayed anywhere.  Punctuation is a watermark of its own bound, so that one is not emitted.
    """

    of: Linear | GroupWise
    arrival: int | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of the attributes that make the group; none, if it is of the whole stream."""
        return self.of.attributes if isinstance(self.of, GroupWise) else ()

    def with_bounds(self, below: int | NDArray[np.int64]) -> Watermark:
        """Return the same about other bounds: one, or one a group."""
        if isinstance(self.of, GroupWise):
            return Watermark(GroupWise(self.of.groups, np.asarray(below)))
        return Watermark(Linear(int(np.asarray(below).item())))


Punctuation = Linear | GroupWise | Joint | Watermark
One = TypeVar("One", bound=Punctuation)


def arriving(punctuation: One, arrival: int | None) -> One:
    """Return the same punctuation that comes at ``arrival``.

    >>> arriving(Linear(60), 75).arrival
    75
    """
    return punctuation if arrival is None else replace(punctuation, arrival=arrival)


def _by_attribute(groups: Any) -> Mapping[str, Any]:
    """Return the keys of groups by attribute."""
    if isinstance(groups, Mapping):
        return groups
    if isinstance(groups, list | tuple):
        return {name: [group[name] for group in groups] for name in (groups[0] if groups else ())}
    table = pa.table(groups)
    return {name: table.column(name).combine_chunks() for name in table.column_names}


def _keys(values: Any) -> Any:
    """Return the keys of one attribute, in the type that they have."""
    return natural(values) if isinstance(values, list | tuple) else values


def _bounds(below: Any) -> NDArray[np.int64]:
    """Return bounds, int64 (groups,); raises ``TypeError`` for others than integers."""
    bounds = np.asarray(below)
    if bounds.size and (bounds.dtype.kind not in "iu" or int(bounds.max()) >= 2**63):
        msg = (
            f"bounds must be int64, not {bounds.dtype}: schema.instant(value, 'bound') makes one of a moment"
        )
        raise TypeError(msg)
    return bounds.astype(np.int64, copy=False)


def passed(times: NDArray[np.int64], below: int | NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which times the bounds have passed: those below, and all where a bound is ``FOREVER``.

    >>> passed(np.array([3, 60, FOREVER]), 60), passed(np.array([3, FOREVER]), FOREVER)
    (array([ True, False, False]), array([ True,  True]))
    """
    is_passed: NDArray[np.bool_] = times < below
    if isinstance(below, np.ndarray) or below == FOREVER:
        is_passed |= below == FOREVER
    return is_passed


@overload
def shift(bound: int, by: int) -> int: ...
@overload
def shift(bound: NDArray[np.int64], by: int) -> NDArray[np.int64]: ...
def shift(bound: int | NDArray[np.int64], by: int) -> int | NDArray[np.int64]:
    """Return ``bound + by`` where ``NEVER`` and ``FOREVER`` stay, and nothing wraps round.

    >>> shift(60, -5), shift(FOREVER, -5) == FOREVER
    (55, True)
    """
    by = min(max(by, -FOREVER), FOREVER)
    if isinstance(bound, np.ndarray):
        low, high = (NEVER - min(by, 0)), (FOREVER - max(by, 0))
        moved = np.minimum(np.maximum(bound, low), high) + by
        return np.where((bound == NEVER) | (bound == FOREVER), bound, moved)
    if bound in (NEVER, FOREVER):
        return bound
    return min(max(int(bound) + by, NEVER), FOREVER)  # a NumPy integer would wrap round


class Wants(NamedTuple):
    """Which punctuation an operator can use; linear bounds are always among it.

    ``granularity``: bounds may be rounded down to its multiples, in units of the attribute; 0: to anything.
    ``groups``: group-wise punctuation is of use if its attributes are some of these; None: any is.
    """

    granularity: int = 0
    groups: frozenset[str] | None = frozenset()
    joint: bool = False
    watermarks: bool = False

    @classmethod
    def all_of(cls, wanted: Iterable[Wants]) -> Wants:
        """Return the punctuation that one of several operators can use.

        >>> Wants.all_of([Wants(60), Wants(90, frozenset({"k"}))])
        Wants(granularity=30, groups=frozenset({'k'}), joint=False, watermarks=False)
        """
        return reduce(cls._and, wanted, cls())

    def _and(self, other: Wants) -> Wants:
        groups = None if self.groups is None or other.groups is None else self.groups | other.groups
        finest = gcd(self.granularity, other.granularity)
        return Wants(finest, groups, self.joint or other.joint, self.watermarks or other.watermarks)


EVERYTHING = Wants(1, None, joint=True, watermarks=True)
"""All punctuation there is."""
