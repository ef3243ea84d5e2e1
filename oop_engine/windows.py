"""Windows: into which extents of time, ranks or markers a stream is cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.operators.windows import (
        Delimited as Delimited,
    )
    from oop_engine.operators.windows import (
        FixedBand as FixedBand,
    )
    from oop_engine.operators.windows import (
        Frames as Frames,
    )
    from oop_engine.operators.windows import (
        Global as Global,
    )
    from oop_engine.operators.windows import (
        Intervals as Intervals,
    )
    from oop_engine.operators.windows import (
        Landmark as Landmark,
    )
    from oop_engine.operators.windows import (
        LastRows as LastRows,
    )
    from oop_engine.operators.windows import (
        PartitionedTupleBased as PartitionedTupleBased,
    )
    from oop_engine.operators.windows import (
        Session as Session,
    )
    from oop_engine.operators.windows import (
        SlideByTuple as SlideByTuple,
    )
    from oop_engine.operators.windows import (
        Sliding as Sliding,
    )
    from oop_engine.operators.windows import (
        Tumbling as Tumbling,
    )
    from oop_engine.operators.windows import (
        TupleBased as TupleBased,
    )
    from oop_engine.operators.windows import (
        UserWindows as UserWindows,
    )
else:
    __getattr__, __dir__ = shelf(__name__)
