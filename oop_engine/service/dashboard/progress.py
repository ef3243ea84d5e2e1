"""Progress: lines of the log about a service: how it starts, and how far it is every so often."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.service.why import standing

if TYPE_CHECKING:
    from oop_engine.service.service import Service

__all__ = ["PROGRESS", "progress", "report", "start_line"]

PROGRESS = logging.getLogger("oop_engine.progress")
"""The logger of these lines: a terminal may show the last of them alone."""


def start_line(service: Service, page: str | None, *, signals: bool) -> str:
    """Return the sources and sinks of a service, the place of its checkpoints, and the way to stop it."""
    sources = ", ".join(f"{name} ({type(inlet.source).__name__})" for name, inlet in service.inlets.items())
    sinks = ", ".join(f"{name} ({kind})" for name, kind in service.outlets.kinds.items())
    place = (
        "no checkpoint"
        if service.place is None
        else f"a checkpoint every {service.every_s:g} s in {service.place}"
    )
    parts = [f"graph {service.plan.name!r}: reads {sources}", f"writes {sinks}", place]
    parts += [] if page is None else [f"page at {page}"]
    return "; ".join([*parts, *(["Ctrl-C stops"] if signals else [])])


def progress(service: Service, before: int, passed_s: float) -> str:
    """Return rows, rows a second since there were ``before``, the least bound, late rows, and the last checkpoint.

    O(edges), and O(groups) where groups have bounds of their own.
    """
    rows, state = service.rows, standing(service.local)
    bounds = [
        (below, edge)
        for inputs in state.inputs.values()
        for edge, _ in inputs
        if (below := state.bounds.get(edge, NEVER)) not in (NEVER, FOREVER)
    ]
    operators = service.local.operators.values()
    late = sum(operator.counts().get("late", 0) for operator in operators)
    refused = sum(sum(counts.values()) for counts in service.dead.counts.values())
    parts = [f"{rows:,} rows, {(rows - before) / max(passed_s, 1e-3):,.0f} rows/s"]
    lowest, edge = min(bounds, default=(NEVER, ""))
    parts += [f"bound {state.moment(edge, lowest)}" if edge else "no bound yet"]
    parts += [f"{late:,} late", *([f"{refused:,} not readable"] if refused else [])]
    parts += [f"{service.epochs:,} checkpoint{'' if service.epochs == 1 else 's'}"] * (
        service.place is not None
    )
    return ", ".join(parts)


async def report(service: Service, every_s: float) -> None:
    """Log the progress for ever, when rows have come since the last line."""
    loop = asyncio.get_running_loop()
    before, at = 0, loop.time()
    while True:
        await asyncio.sleep(every_s)
        if service.rows != before:
            PROGRESS.info("%s", progress(service, before, loop.time() - at))
        before, at = service.rows, loop.time()
