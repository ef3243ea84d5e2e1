"""Pane costs: the time of a window's aggregates by panes (Paned-WID), and by windows (WID).

Per window, with T tuples in it and G groups in each pane; a window has P panes, a slide S of
them (1 where the slide divides the range), so T S / P of a window's tuples are new:

    by panes     a T S / P   +  b G S  +  c G (2 S + 1)  +  r G       (eqs. 6.1, 6.2)
    by windows   (s S / P + a') T      +  b' G           +  r G       (eq. 6.3)

in nanoseconds of one core, with the costs below, measured (docs/choosing.md).  Where we differ
from the thesis: it combines all P panes of each window, or adds and subtracts 2 S of them if the
aggregate has an inverse; two stacks do with 2 S + 1 for any aggregate, so 6.1 and 6.2 are one.
It has one term a T / P, which is right where S = 1.  And its eq. 6.3 has no term
for groups, but a partial aggregate in a hash table costs ten times as much as a tuple.

Source: thesis 6.2.3, equations 6.1 to 6.4; two stacks: Tangwongsan, Hirzel, Schneider, DEBS 2017.
"""

from __future__ import annotations

from oop_engine.operators.windows import Extents

__all__ = ["gain"]

PANE_TUPLE = 12.0
"""a: to read a tuple and add it to its pane."""
PANE = 30.0
"""b: to make a group's pane, and to free it."""
STEP = 5.0
"""c: to combine two panes."""
SCAN = 32.0
"""s: to read a tuple, by windows."""
WINDOW_TUPLE = 9.0
"""a': to add a tuple to one window."""
WINDOW = 170.0
"""b': to make a group's partial aggregate in the table, and to take it out."""
RESULT = 60.0
"""r: to put out a group's result."""


def gain(extents: Extents, tuples: float) -> float:
    """Return the time by panes over that by windows, with ``tuples`` of each group in each pane.

    >>> gain(Extents(300, 60, 0), tuples=20) < 0.35
    True
    """
    panes, per_slide = extents.panes
    new = tuples * per_slide
    by_panes = PANE_TUPLE * new + PANE * per_slide + STEP * (2 * per_slide + 1) + RESULT
    by_windows = SCAN * new + WINDOW_TUPLE * tuples * panes + WINDOW + RESULT
    return by_panes / by_windows
