"""The command line, ``oop-engine``: a file for each command; heavy imports are made when it runs."""

from __future__ import annotations

import os
import signal
from typing import Any, NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run the program with the arguments of the process."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _too_early)
    from oop_engine.cli.running.fewer_collections import collect_less

    collect_less()
    # NumPy's linear algebra, which the engine does not call, starts threads: 0.15 to 0.25 s of CPU a process.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from oop_engine.cli.app import main as run
    from oop_engine.cli.running.late_pandas import import_pandas_late

    import_pandas_late()
    if signal.getsignal(signal.SIGINT) is _too_early:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _too_early(*_: Any) -> NoReturn:
    """End at Ctrl-C while the program is loaded: nothing is there yet that could be cleared away."""
    os.write(2, b"error: interrupted\n")
    os._exit(130)
