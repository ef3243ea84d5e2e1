"""A process that reads mutants: ``python -m tests.fuzz.reading FOLDER SEED COUNT``.

Libraries in C++ could end it, or take all memory or time; so it has limits, and the mutant in hand is in FOLDER.
"""

from __future__ import annotations

import faulthandler
import json
import random
import resource
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from oop_engine import open_trace
from oop_engine.connectors.formats import MESSAGE_FORMATS
from oop_engine.connectors.formats.payloads import PAYLOADS, payloads_of
from oop_engine.core.errors import EngineError
from oop_engine.core.page import Page
from oop_engine.traces.format_registry import FORMATS
from oop_engine.traces.profiling import profile
from tests.fuzz.mutants import SCHEMA, good, mutant

SECONDS, MEMORY = 20, 2 << 30


def outcome(path: Path, *, schema: bool) -> str:
    """Read a trace and use what it holds; return what became of it."""
    try:
        trace = open_trace(path, SCHEMA) if schema else open_trace(path, time="ts", unit="s")
        found = profile(trace, trace.schema, by=("link",) if "link" in trace.schema.names else ())
        found.to_dict()
        for message in trace:
            if isinstance(message, Page):
                repr(message.batch.column(0)[:3])
                [repr(column[:3]) for column in message.batch.columns]
        str(trace.refused)
    except EngineError as error:
        said = str(error)
        assert "\n" not in said.replace(path.name, ""), said
        assert len(said) < 2000, said
        return "one line"
    assert found.tuples >= 0
    return "diverted" if trace.refused else "read"


def message_outcome(format: str, data: bytes) -> str:
    """Read a message and use what it holds; return what became of it."""
    told: list[str] = []
    made = MESSAGE_FORMATS[format](SCHEMA, "source 'in'", lambda reason, record, rows: told.append(reason))
    for message in made.messages([data]):
        repr([repr(column) for column in message.batch.columns] if isinstance(message, Page) else message)
    assert all(len(reason) < 2000 and "\n" not in reason for reason in told), told
    return "diverted" if told else "read"


def main(folder: Path, seed: int, count: int) -> None:
    """Read ``count`` mutants of each format of files, and of messages."""
    faulthandler.enable()
    whole = good(folder)
    took, outcomes = 0.0, Counter[str]()
    resource.setrlimit(resource.RLIMIT_AS, (_size() + MEMORY, resource.RLIM_INFINITY))
    for format, bytes_of in whole.items():
        rng = random.Random(f"{seed} {format}")
        for number in range(count):
            path = folder / f"mutant.{format}"
            path.write_bytes(mutant(bytes_of, format, rng))
            began = time.process_time()
            limited(SECONDS)
            outcomes[f"{format}: {outcome(path, schema=number % 2 == 0)}"] += 1
            limited(0)
            took = max(took, time.process_time() - began)
    for format in PAYLOADS:
        rng = random.Random(f"{seed} messages of {format}")
        page = next(iter(open_trace(folder / f"good.{next(iter(FORMATS))}", SCHEMA).pages()))
        payload = payloads_of(page, format)[0]
        for _ in range(count):
            (folder / f"mutant.{format}").write_bytes(changed := mutant(payload, format, rng))
            limited(SECONDS)
            outcomes[f"messages of {format}: {message_outcome(format, changed)}"] += 1
            limited(0)
    print(json.dumps({"slowest": took, "outcomes": outcomes}))


def limited(seconds: float) -> None:
    """Let this process end when it has taken so many seconds of CPU, on a machine that is busy too; 0: never."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def _size() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
