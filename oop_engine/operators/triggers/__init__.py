"""Triggers: when a window aggregate emits a version of a result before it is final.

A trigger is a value and can be used for many windows.  It is asked once a page about the windows that the page touched,
all at once, and *fires* for some of them.  Conditions are of the time since the window fired last, whether its result
had changed and left or not, so a trigger fires again and again, unless ``Once`` or ``OrFinally`` ends it.  A version on
time is a firing, too, but of no trigger: ``Once``, ``AfterEach`` and ``OrFinally`` go on from where they were.

    AfterCount(n)            n tuples came                                   Beam: afterCount
    AfterFraction(share)     the watermark passed a share of the window      Onyx: percentile watermark
    AfterChange(name, by)    a result differs by more than ``by``            (a threshold)
    AfterMatch(predicate)    a tuple came for which it is true                Onyx: punctuation, segment
    AfterDelay(length)       so long on the arrival clock since a tuple      Beam: afterProcessingTime
    OnRequest()              a page on the input ``ask`` names the group     (an event from outside)
    AfterAny, AfterAll       one, all of them                                Beam: afterFirst, afterAll
    AfterEach(a, b, ...)     a, then b, ..., the last one again and again    Beam: afterEach
    Once(a), OrFinally(a, b) a once; a until b has fired                     Beam: orFinally
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from oop_engine.operators.triggers.asking import (
        AfterDelay as AfterDelay,
        AfterMatch as AfterMatch,
        OnRequest as OnRequest,
    )
    from oop_engine.operators.triggers.basic import (
        AfterChange as AfterChange,
        AfterCount as AfterCount,
        AfterFraction as AfterFraction,
        Trigger as Trigger,
        WindowView as WindowView,
    )
    from oop_engine.operators.triggers.composed import (
        AfterAll as AfterAll,
        AfterAny as AfterAny,
        AfterEach as AfterEach,
        Once as Once,
        OrFinally as OrFinally,
    )
    from oop_engine.operators.triggers.emit import Emit as Emit
else:
    __getattr__, __dir__ = lazy_names(__name__)
