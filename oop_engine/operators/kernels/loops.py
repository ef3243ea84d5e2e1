"""The loops that combine states: one file, however long, for a loop is kept on disk with what it calls.

This is the one place that combines states of partial aggregates.  A column of states is a tuple of arrays.  What Numba
keeps of a loop has the monoid in it, and is thrown away only when the file of the loop changes (touch it when a
method of ``kernels/monoids.py`` does): for monoids of other files ``loops_of`` compiles loops anew.

Common arguments: ``monoid``; ``state``, ``out``, ... columns of states; ``given`` columns (tuples,) of what ``lift``
takes; ``valid`` bool (tuples,): false where a value is null, or (0,) if none is; ``starts`` int64.  A loop returns
where the first state is that does not fit (``wraps``), or -1; what it has written until then is of no use.
"""

# Layout       A column of states is a tuple of arrays, one for each number of a state: an int64 count, a float64 sum.
#              Item i of all arrays is the state in row i; a state in hand is a tuple of numbers, never an array.
#              ``_at`` reads a state, ``_put`` writes one; ``_cell`` and ``_fill`` do where a tuple is added to it.
# Invariant    States in arrays are whole: one that does not fit is found before it is read, and the caller raises.
#              Loops over groups side by side (``fold_rows``, ``totals``) have no branch on a state: each group takes
#              the same steps, so LLVM turns them into vector instructions.
# Not obvious  Which of the methods of a monoid are its own is asked while a loop is compiled (``of.wraps is
#              Monoid.wraps``), so a monoid that cannot wrap pays nothing for those that can.
#              Whether a state wrapped is summed up as a sign bit, and looked for only if one is set: the loop that
#              finds the row runs once, before an error.
#              Arrays are read through intrinsics: a tuple of arrays of different types has no index that is a variable.

from __future__ import annotations

import operator
from functools import cache
from typing import Any

import numpy as np

from oop_engine.operators.kernels import in_python
from oop_engine.operators.kernels.monoids import STEP_A, STEP_B, STEP_TO, Carried, Loops, Monoid, above, below
from oop_engine.operators.kernels.panes import row_of
from oop_engine.operators.kernels.sliding import ALONE
from oop_engine.system.kernel import Intrinsic, before_numba, njit, numba, unless_in_python
from oop_engine.system.knobs import kernel_knob

__all__ = ["loops_of", "slide"]

# Slots at a time: their totals stay in the cache.
_BLOCK = kernel_knob(__name__, "_BLOCK", 1 << 13)


_both, _more, _wraps, _less = in_python.both, in_python.more, in_python.wraps, in_python.less


@cache
def _jit(function):
    """Return a function that loops call, and nothing else."""
    return numba().njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


# Order of tuples of numbers, the last one first.  A number is below NaN and above it: NaN is chosen where all are NaN.


def _below(a, b):
    last = len(a) - 1

    def by_last(a, b):
        return (a[last] < b[last]) | ((b[last] != b[last]) & (a[last] == a[last]))

    def several(a, b):
        same = (a[last] == b[last]) | ((a[last] != a[last]) & (b[last] != b[last]))
        return decides(a, b) | (same & below(a[:last], b[:last]))

    decides = _jit(by_last)
    return several if last else by_last


def _above(a, b):
    last = len(a) - 1

    def by_last(a, b):
        return (a[last] > b[last]) | ((b[last] != b[last]) & (a[last] == a[last]))

    def several(a, b):
        same = (a[last] == b[last]) | ((a[last] != a[last]) & (b[last] != b[last]))
        return decides(a, b) | (same & above(a[:last], b[:last]))

    decides = _jit(by_last)
    return several if last else by_last


# Which methods a monoid has decides which code is compiled: these branches are taken by the compiler, not by a loop.


def _of_both(monoid, a, b):
    """Return whether the state of both does not fit (negative: so it is), and that state."""
    kind = monoid.instance_class
    better, combine, wraps = _jit(kind.better), _jit(kind.combine), _jit(kind.wraps)

    def check(monoid, a, b):
        both = combine(monoid, a, b)
        return wraps(monoid, b, both), both

    if kind.combine is Monoid.combine:
        return lambda monoid, a, b: (0, _chosen(better(monoid, a, b), a, b))
    return (lambda monoid, a, b: (0, combine(monoid, a, b))) if kind.wraps is Monoid.wraps else check


def _of_more(monoid, current, given):
    """Return whether ``current`` changes by a tuple (negative: it does not fit), and to which state."""
    kind = monoid.instance_class
    lift, add, combine = _jit(kind.lift), _jit(kind.add), _jit(kind.combine)
    better, wraps = _jit(kind.better), _jit(kind.wraps)

    def choose(monoid, current, given):
        lifted = lift(monoid, given)
        return int(better(monoid, current, lifted)), lifted

    def check(monoid, current, given):
        lifted = lift(monoid, given)
        both = combine(monoid, current, lifted)
        return wraps(monoid, lifted, both) | 1, both

    # In this order: one of the two; may wrap; adds a tuple by itself; lifts it and combines.
    if kind.combine is Monoid.combine:
        return choose
    if kind.wraps is not Monoid.wraps:
        return check
    if kind.add is not Monoid.add:
        return lambda monoid, current, given: (1, add(monoid, current, given))
    return lambda monoid, current, given: (1, combine(monoid, current, lift(monoid, given)))


def _of_less(monoid, a, b):
    without = _jit(monoid.instance_class.without)
    return lambda monoid, a, b: without(monoid, a, b)


def _of_wraps(monoid, b, both):
    wraps = _jit(monoid.instance_class.wraps)
    return lambda monoid, b, both: wraps(monoid, b, both)


@before_numba
def _declare():
    """Register the code that these functions have in loops with Numba."""
    from numba.extending import overload

    for function, code in (
        (below, _below),
        (above, _above),
        (_both, _of_both),
        (_more, _of_more),
        (_less, _of_less),
        (_wraps, _of_wraps),
    ):
        overload(function)(code)


@unless_in_python(in_python.at)
@Intrinsic
def _at(typing, columns, row):
    """Return the state in a row: a tuple of what each array of the tuple ``columns`` has there."""
    from numba import types

    kinds = [column.dtype for column in columns]

    def code(context, builder, signature, values):
        items = []
        for i, column in enumerate(columns):
            get = context.get_function(operator.getitem, column.dtype(column, row))
            items.append(get(builder, (builder.extract_value(values[0], i), values[1])))
        return context.make_tuple(builder, signature.return_type, items)

    return types.Tuple(kinds)(columns, row), code


@unless_in_python(in_python.put)
@Intrinsic
def _put(typing, columns, row, state):
    """Write a state into a row of ``columns``."""
    from numba import types

    def code(context, builder, signature, values):
        for i, (column, kind) in enumerate(zip(columns, state, strict=True)):
            put = context.get_function(operator.setitem, types.void(column, row, column.dtype))
            value = context.cast(builder, builder.extract_value(values[2], i), kind, column.dtype)
            put(builder, (builder.extract_value(values[0], i), values[1], value))
        return context.get_dummy_value()

    return types.void(columns, row, state), code


@unless_in_python(in_python.cell)
@Intrinsic
def _cell(typing, monoid, columns, row):
    """Return the state in a row that a tuple is to be added to; how often a ``Carried`` wrapped is not read, but 0."""
    from numba import types

    # How often a Carried wrapped is needed by nobody who adds a tuple: a load less for each.
    kinds = [column.dtype for column in columns]
    read = 1 if monoid.instance_class is Carried else len(kinds)

    def code(context, builder, signature, values):
        items = [context.get_constant(kind, 0) for kind in kinds]
        for i, column in enumerate(list(columns)[:read]):
            get = context.get_function(operator.getitem, column.dtype(column, row))
            items[i] = get(builder, (builder.extract_value(values[1], i), values[2]))
        return context.make_tuple(builder, signature.return_type, items)

    return types.Tuple(kinds)(monoid, columns, row), code


@unless_in_python(in_python.fill)
@Intrinsic
def _fill(typing, monoid, columns, row, state):
    """Write such a state back with a tuple added; the second column of ``Carried`` gets a carry, if any, added."""
    from numba import types

    carried = monoid.instance_class is Carried

    def put(context, builder, i, column, kind, values):
        array = builder.extract_value(values[1], i)
        value = context.cast(builder, builder.extract_value(values[3], i), kind, column.dtype)
        if carried and i:
            get = context.get_function(operator.getitem, column.dtype(column, row))
            value = builder.add(value, get(builder, (array, values[2])))
        write = context.get_function(operator.setitem, types.void(column, row, column.dtype))
        write(builder, (array, values[2], value))

    def code(context, builder, signature, values):
        for i, (column, kind) in enumerate(zip(columns, state, strict=True)):
            if carried and i:
                # A sum wraps next to never: the branch is foreseen, and the second column is not touched.
                wrapped = builder.extract_value(values[3], i)
                with builder.if_then(builder.icmp_signed("!=", wrapped, wrapped.type(0)), likely=False):
                    put(context, builder, i, column, kind, values)
            else:
                put(context, builder, i, column, kind, values)
        return context.get_dummy_value()

    return types.void(monoid, columns, row, state), code


@unless_in_python(in_python.chosen)
@Intrinsic
def _chosen(typing, other, a, b):
    """Return the state ``b`` if ``other``, else ``a``, without a branch."""
    from numba import types

    def code(context, builder, signature, values):
        return builder.select(values[0], values[2], values[1])

    return a(types.boolean, a, b) if a == b else None, code


@unless_in_python(in_python.rows)
@Intrinsic
def _rows(typing, ring, begin, cells, at):
    """Return what ``_row`` has for each column: a tuple of arrays (groups,)."""
    from numba import types

    kinds = [types.Array(column.dtype, 1, "C") for column in cells]

    def code(context, builder, signature, values):
        rows = []
        for i, (column, scratch, kind) in enumerate(zip(ring, cells, kinds, strict=True)):
            arguments = (
                builder.extract_value(values[0], i),
                values[1],
                builder.extract_value(values[2], i),
                values[3],
            )
            rows.append(
                context.compile_internal(builder, _row.py_func, kind(column, begin, scratch, at), arguments)
            )
        return context.make_tuple(builder, signature.return_type, rows)

    return types.Tuple(kinds)(ring, begin, cells, at), code


@unless_in_python(in_python.cut)
@Intrinsic
def _cut(typing, columns, row, begin, end):
    """Return of each column, C-contiguous and of two axes, a stretch of a row: a tuple of arrays."""
    from numba import types

    kinds = [types.Array(column.dtype, 1, "C") for column in columns]

    def code(context, builder, signature, values):
        cuts = []
        for i, (column, kind) in enumerate(zip(columns, kinds, strict=True)):
            arguments = builder.extract_value(values[0], i), *values[1:]
            cuts.append(
                context.compile_internal(builder, _stretch.py_func, kind(column, row, begin, end), arguments)
            )
        return context.make_tuple(builder, signature.return_type, cuts)

    return types.Tuple(kinds)(columns, row, begin, end), code


@njit()
def _stretch(column, row, begin, end):
    return column[row, begin:end]


@njit()
def _row(ring, begin, cells, at):
    return cells[at] if at >= 0 else ring[~at, begin : begin + cells.shape[1]]


@unless_in_python(in_python.sliced)
@Intrinsic
def _slice(typing, columns, begin, end):
    """Return rows ``begin`` to ``end`` (exclusive) of ``columns``: a loop over them is turned into vectors."""
    from numba import types

    def code(context, builder, signature, values):
        rows = []
        for i, column in enumerate(columns):
            arguments = builder.extract_value(values[0], i), values[1], values[2]
            rows.append(
                context.compile_internal(builder, _between.py_func, column(column, begin, end), arguments)
            )
        return context.make_tuple(builder, signature.return_type, rows)

    return types.Tuple(list(columns))(columns, begin, end), code


@njit()
def _between(column, begin, end):
    return column[begin:end]


@njit(cache=True, nogil=True)
def add_rows(monoid, state, rows, given, valid):
    """Add each tuple to the row ``rows[i]``, int64 (tuples,); return the first tuple that does not fit, or -1."""
    known = len(valid) == 0
    # One tuple a turn, at random rows: memory decides, so the state is read once and written only if it changed.
    for i in range(len(rows)):
        if known or valid[i]:
            changed, row_state = _more(monoid, _cell(monoid, state, rows[i]), _at(given, i))
            # It does not fit.
            if changed < 0:
                return i
            if changed:
                _fill(monoid, state, rows[i], row_state)
    return -1


@njit(cache=True, nogil=True)
def update(monoid, state, rows, starts, lo, hi, given, valid):
    """Add tuples ``lo`` to ``hi``, each to ``rows[starts[i]:starts[i + 1]]``."""
    # A tuple is read once for all its windows.
    known = len(valid) == 0
    for i in range(lo, hi):
        if known or valid[i]:
            value = _at(given, i)
            for k in range(starts[i], starts[i + 1]):
                changed, row_state = _more(monoid, _cell(monoid, state, rows[k]), value)
                if changed < 0:
                    return rows[k]
                if changed:
                    _fill(monoid, state, rows[k], row_state)
    return -1


@njit(cache=True, nogil=True)
def add_runs(monoid, state, starts, ends, given, valid):
    """Add tuples ``starts[i]`` to ``ends[i]`` (exclusive) to row ``i``."""
    for i in range(len(starts)):
        run_state, run = _at(state, i), _slice(given, starts[i], ends[i])
        if len(valid) == 0:
            # The state stays in registers over the run.
            # No null: a loop over a stretch of its own, which LLVM turns into vectors.  Unsigned: no index is below 0.
            for k in range(np.uintp(ends[i] - starts[i])):
                changed, more = _more(monoid, run_state, _at(run, k))
                if changed < 0:
                    return i
                run_state = more if changed else run_state
        else:
            for k in range(starts[i], ends[i]):
                if valid[k]:
                    changed, more = _more(monoid, run_state, _at(given, k))
                    if changed < 0:
                        return i
                    run_state = more if changed else run_state
        _put(state, i, run_state)
    return -1


@njit(cache=True, nogil=True)
def slide(monoid, panes, at, length, back_column, stack, out):
    """Write the combined state of the last ``length`` of ``panes``, in order, at the end of each into ``out``.

    Two stacks, in one column: below ``at`` are panes since the last turn, all of them together are the *back*; from
    ``at`` on is the front: what each pane of the round before has together with all later ones of that round.  A
    window is one cell of the front and the back.  A new pane takes the place of the front's cell that no window
    needs any more; when the round is over the column is made the front, from its end on.

    ``back_column`` (1,): the back, updated; the last cell of ``stack``, which has room for ``length`` more only once
    so many came, is the state of no values.  Returns ``at`` after them.
    Source: Theodorakis et al., Hammer Slide, ADMS 2018, 3.2 and figure 5 (it calls front what comes in).
    """
    nothing, back = _at(stack, len(stack[0]) - 1), _at(back_column, 0)
    begin, stop, one = np.uintp(0), np.uintp(len(out[0])), np.uintp(1)  # unsigned: no index is below 0
    here, length = np.uintp(at), np.uintp(length)
    while begin < stop:
        count = min(length - here, stop - begin)
        for k in range(count):
            new = _at(panes, begin + k)
            _put(stack, here + k, new)
            _, back = _both(monoid, back, new)
            _, both = _both(monoid, _at(stack, here + one + k), back)
            _put(out, begin + k, both)
        begin, here = begin + count, here + count
        if here == length:
            # The turn: from its end on each pane gets all later ones of its round added.
            here, back = np.uintp(0), nothing
            for k in range(length):
                _, back = _both(monoid, _at(stack, length - one - k), back)
                _put(stack, length - one - k, back)
            back = nothing
    _put(back_column, 0, back)
    return here


@njit(cache=True, nogil=True)
def merge(monoid, a, b, out):
    """Write the combined state of ``a[i]`` and ``b[i]`` into ``out[i]``."""
    # Combined without a branch; only where some state wrapped is the first such row looked for.
    wrapped = 0
    for i in range(len(out[0])):
        wide, both = _both(monoid, _at(a, i), _at(b, i))
        wrapped |= wide
        _put(out, i, both)
    if wrapped < 0:
        for i in range(len(out[0])):
            if _wraps(monoid, _at(b, i), _at(out, i)) < 0:
                return i
    return -1


@njit(cache=True, nogil=True)
def reduce(monoid, state, starts, out):
    """Write the combined state of the rows from ``starts[i]`` (ascending) to the next into ``out[i]``."""
    for i in range(len(starts)):
        # From the first row of a run on: no state of no values is needed, which some monoids do not have.
        combined = _at(state, starts[i])
        for k in range(starts[i] + 1, starts[i + 1] if i + 1 < len(starts) else len(state[0])):
            wrapped, combined = _both(monoid, combined, _at(state, k))
            if wrapped < 0:
                return i
        _put(out, i, combined)
    return -1


@njit(cache=True, nogil=True)
def fold_steps(monoid, state, new, to, a, b):
    """Execute steps of ``panes.plan`` or ``sliding.over_ranges``: rows ``a`` and ``b`` combined go to row ``to``.

    to, a, b int64 (steps,); ``b`` -1: row ``a`` alone; ``to`` negative: to row ``~to`` of ``new``.
    """
    for i in range(len(to)):
        # Steps depend on those before them, so they are taken one by one, whatever the group.
        combined = _at(state, a[i])
        if b[i] >= 0:
            wrapped, combined = _both(monoid, combined, _at(state, b[i]))
            if wrapped < 0:
                return i
        if to[i] >= 0:
            _put(state, to[i], combined)
        else:
            _put(new, ~to[i], combined)
    return -1


@njit(cache=True, nogil=True)
def fold_rows(monoid, ring, begin, cells, results, steps):
    """Execute the steps of ``kernels.sliding`` or ``kernels.tree`` for many groups side by side, most in vectors.

    Columns are ``ring`` (rows, slots), of which the slots from ``begin`` on are read; ``cells`` (rows, groups),
    scratch; ``results`` (windows, groups), written; steps int64 (3, steps).  Returns step and group.
    """
    for i in range(steps.shape[1]):
        to, a, b = steps[STEP_TO, i], steps[STEP_A, i], steps[STEP_B, i]
        # A step for all groups: rows of the ring where a number is negative (~row), else scratch.
        out = _rows(results, 0, cells, to)
        rows_a = _rows(ring, begin, cells, a)
        if b == ALONE:
            for j in range(len(out[0])):
                _put(out, j, _at(rows_a, j))
            continue
        rows_b, wrapped = _rows(ring, begin, cells, b), 0
        for j in range(len(out[0])):
            wide, both = _both(monoid, _at(rows_a, j), _at(rows_b, j))
            wrapped |= wide
            _put(out, j, both)
        if wrapped < 0:
            for j in range(len(out[0])):
                if _wraps(monoid, _at(rows_b, j), _at(out, j)) < 0:
                    return i, j
    return -1, -1


@njit(cache=True, nogil=True)
def totals(monoid, geometry, columns, lowest, ends, slots, total, reach, out):
    """Write the states of windows as ``kernels.pane_rows`` lays them out, by what comes in and what goes out.

    ``total`` columns (1, groups): the states of each group in the panes ``reach[0]`` to ``reach[1]`` (exclusive)
    together, and these; both are kept up to date.  ``out`` columns (results,).
    Returns the window and the slot whose total does not fit, or -1, -1.  O((windows + panes) x groups + results).
    """
    step, length, low, high, _, _, _ = geometry
    groups, begin, end = total[0].shape[1], reach[0], reach[1]
    at = np.zeros(len(ends), np.int64)
    for w in range(1, len(ends)):
        at[w] = ends[w - 1]
    # A block of groups over all windows, then the next block: its totals stay in the cache.
    for block in range(0, groups, _BLOCK):
        block_end = min(block + _BLOCK, groups)
        begin, end = reach[0], reach[1]
        block_totals = _cut(total, 0, block, block_end)
        for w in range(len(ends)):
            wid = lowest + w
            start, till = max((wid + 1) * step - length, low), min((wid + 1) * step, high + 1)
            if start >= till:
                continue
            # Panes that leave the window, those that enter it, and then the results of the groups that have some.
            for pane in range(begin, min(start, end)):
                slot = _drop(monoid, block_totals, _cut(columns, row_of(geometry, pane), block, block_end))
                if slot >= 0:
                    return wid, block + slot
            for pane in range(max(start, end), till):
                slot = _take(monoid, block_totals, _cut(columns, row_of(geometry, pane), block, block_end))
                if slot >= 0:
                    return wid, block + slot
            begin, end = start, till
            k = at[w]
            while k < ends[w] and slots[k] < block_end:
                _put(out, k, _at(block_totals, slots[k] - block))
                k += 1
            at[w] = k
    reach[0], reach[1] = begin, end
    return -1, -1


@njit(cache=True, nogil=True)
def _take(monoid, total, row):
    """Add a row to ``total``; return a slot whose total does not fit, or -1."""
    wrapped = 0
    for i in range(len(total[0])):
        wide, both = _both(monoid, _at(total, i), _at(row, i))
        wrapped |= wide
        _put(total, i, both)
    if wrapped < 0:
        for i in range(len(total[0])):
            if _wraps(monoid, _at(row, i), _at(total, i)) < 0:
                return i
    return -1


@njit(cache=True, nogil=True)
def _drop(monoid, total, row):
    """Take a row away from ``total``; return a slot whose total does not fit, or -1."""
    wrapped = 0
    for i in range(len(total[0])):
        # The total before is of the row and the total after, so it must have fitted: the same check, backwards.
        before = _at(total, i)
        wrapped |= _wraps(monoid, _at(row, i), before)
        _put(total, i, _less(monoid, before, _at(row, i)))
    if wrapped < 0:
        for i in range(len(total[0])):
            both = _both(monoid, _at(total, i), _at(row, i))[1]
            if _wraps(monoid, _at(row, i), both) < 0:
                return i
    return -1


_COMPILED = Loops(add_rows, update, add_runs, slide, merge, reduce, fold_steps, fold_rows, totals)


@cache
def loops_of(monoid: Any) -> Loops:
    """Return the loops for a class of monoids; those for one of another file are compiled in each process."""
    if monoid.__module__ == Monoid.__module__:
        return _COMPILED
    compiled: Any = _COMPILED
    return Loops(*(njit(nogil=True)(loop.py_func) for loop in compiled))
