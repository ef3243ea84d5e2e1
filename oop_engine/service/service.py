"""One run of a service: it reads, takes checkpoints, and stops in order.

A checkpoint is taken between two messages: nothing is on its way then, so the states of the operators and the
positions of the sources are all there is.  Results become visible an epoch at a time, after its checkpoint has been
recorded.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, TypeVar

from oop_engine.connectors.link import LeftError
from oop_engine.connectors.parts.calls import called
from oop_engine.connectors.sink import LiveSink
from oop_engine.core.errors import SetupError, UsageError
from oop_engine.core.graphs.fingerprint import described
from oop_engine.core.graphs.graph import Graph
from oop_engine.core.graphs.round_trip import RoundTrip
from oop_engine.runners.faults import first_of
from oop_engine.runners.local import Local
from oop_engine.service.arrival_clock import clock_of
from oop_engine.service.checkpoint_folder import CheckpointFolder
from oop_engine.service.checkpoint_manifest import CheckpointManifest, check_names
from oop_engine.service.dead_letters import DeadLetters
from oop_engine.service.gate import Gate
from oop_engine.service.hints import hints, lost_in_a_crash
from oop_engine.service.inlet import inlets_of, noted, places_of
from oop_engine.service.letters.retries import retries_of
from oop_engine.service.outlets import Outlets
from oop_engine.service.resuming import (
    check_dead_letters,
    check_start,
    check_states,
    log_changes,
    manifest_of,
    move_positions,
    positions_but,
    restore,
)
from oop_engine.service.served import Kept, Served, served_of
from oop_engine.service.stopping import any_of, cancelled, close_all
from oop_engine.service.why import windows_of
from oop_engine.system.on_thread import on_thread
from oop_engine.system.stopwatch import wall

__all__ = ["Service"]

T = TypeVar("T")
States = Mapping[str, Callable[[], bytes]]
_LOG = logging.getLogger("oop_engine")
_KEPT = 20


class Service:
    """One run of ``serve``, with the parts of the world that a simulation replaces.

    ``clock``: seconds since 1970; ``steady``: those that nobody sets (None: ``clock``); ``aside`` works off the loop.
    """

    def __init__(
        self,
        graph: Graph,
        sources: Mapping[str, Any],
        sinks: Mapping[str, Any],
        *,
        folder: CheckpointFolder | None,
        every_s: float = 10.0,
        dead_letters: LiveSink | None = None,
        without_state_of: Collection[str] = (),
        after_drain: bool = False,
        start_from: Mapping[str, Any] | None = None,
        check: bool = False,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] | None = None,
        aside: Callable[[Callable[[], Any]], Awaitable[Any]] = on_thread,
    ) -> None:
        if every_s <= 0:
            msg = f"serve: every_s must be above 0 seconds; got {every_s}"
            raise UsageError(msg)
        self._folder, self.every_s, self._clock, self._aside = folder, every_s, clock, aside
        self._steady, self._without, self._after_drain = steady or clock, without_state_of, after_drain
        plan, self.gate = graph.plan(), Gate()
        self.outlets = Outlets(plan, sinks, dead_letters, self.gate.held, clock)
        self.local = Local(graph, self.outlets.take, check=check)
        self.plan, self._trip = self.local.plan, RoundTrip(self.local.plan)
        self.dead = DeadLetters(clock, kept=dead_letters is not None)
        self.inlets = inlets_of(self.plan, sources, self.dead, self.local, self._took)
        self._start_from = start_from or {}
        check_start(self._start_from, self.inlets)
        self.retries = retries_of(dead_letters, self.inlets, self.outlets, self.gate)
        self._finished, self._wanted = asyncio.Event(), asyncio.Event()
        self.epochs, self._left, self.kept = 0, False, deque[Kept](maxlen=_KEPT)

    async def run(self, stop: asyncio.Event, *, drain: bool = False) -> Served:
        """Run to the end of all sources, or until ``stop`` is set."""
        self.outlets.stop = stop
        sources = {name: inlet.source for name, inlet in self.inlets.items()}
        lost = [] if self._folder is None else lost_in_a_crash(self.plan, sources)
        for line in [*hints(self.plan, self.local.operators), *lost]:
            _LOG.warning("%s", line)
        async with AsyncExitStack() as stack:
            stack.push_async_exit(self._close)
            await self._in_time(self._begin)
            try:
                over = not self._left and await self._work(stop, drain=drain)
            except BaseExceptionGroup as group:
                raise first_of(group) from None
            if over:
                await self._in_time(self._end)
                over = not self._left
            if self._folder is None:
                await self.outlets.forget()
        dead, refused = self.dead.counts, self.outlets.counts
        return served_of(self.epochs, over, self.inlets, dead, refused, self.local.statistics)

    async def _close(self, kind: object, error: BaseException | None, trace: object) -> None:
        await close_all({**places_of(self.inlets), **self.outlets.places}, noted(error, self.inlets))

    async def _in_time(self, work: Callable[[], Awaitable[Any]]) -> None:
        """Await work with the sinks, or leave it to the next service: if stopped while a server of one is away."""
        try:
            await work()
        except LeftError as error:
            reason = " ".join(str(error.__cause__).split())
            if self._folder is None:
                msg = f"{error}: stopped while its server is away, so without a checkpoint results are lost: {reason}"
                raise SetupError(msg) from error
            self._left = True
            words = "%s: stopped while its server is away: its results come with the next service"
            _LOG.warning(words, error)

    async def _begin(self) -> None:
        """Take over the checkpoint, and repeat the commit of its last epoch."""
        if (folder := self._folder) is None:
            await move_positions(self._start_from, self.inlets)
            # by a new name, so that no sink takes its epochs for those of another life
            return await self.outlets.open(os.urandom(6).hex(), {}, 0)
        windows_of(self.local)  # from now on operators know their newest row, and a checkpoint open windows
        newest = await self._aside(folder.newest)
        if newest is None:
            check_names(self._place, list(described(self.plan)), self._without)
        elif not newest.over or self._after_drain:
            self._check(newest)  # before the claim, which stops the process that has the checkpoint now
        manifest = await self._aside(folder.claim)
        prepared = dict[str, Any]()
        if manifest is not None:
            prepared = {n: content for n, content in manifest.prepared.items() if n in self.outlets.names}
            if not manifest.over or self._after_drain:
                self._check(manifest)
                states = {} if manifest.over else await self._aside(lambda: folder.states_of(manifest))
                self._restore(manifest, states)
                log_changes(self._place, manifest, self.plan, self._without)
        windows_of(self.local)  # once more: restored operators do not know it
        await move_positions(self._start_from, self.inlets)
        await self.outlets.open(folder.run, prepared, folder.number + 1)
        if manifest is not None:
            await self._acknowledge(positions_but(self._start_from, manifest.positions))
            self._check(manifest)

    async def _work(self, stop: asyncio.Event, *, drain: bool) -> bool:
        """Read, and take checkpoints; return whether all streams have ended."""
        async with self.local, asyncio.TaskGroup() as tasks:
            if self.retries is not None:
                await self.retries.feed()
            clock = clock_of(self.local, self._clock, self._steady)
            readers = [
                tasks.create_task(inlet.read(self.gate, clock), name=f"source {name}")
                for name, inlet in self.inlets.items()
                if not inlet.ended
            ]
            keeper = tasks.create_task(self._keep_on(), name="checkpoints")
            tickers = [] if clock is None else [clock.tick_on(self.local, self.gate)]
            tickers += [] if self.retries is None else [self.retries.follow()]
            beside = [tasks.create_task(each, name="beside the sources") for each in tickers]
            await any_of(stop, readers)
            self._finished.set()
            await keeper
            async with self.gate.alone():
                self.gate.close()
                await cancelled({*readers, *beside})
                for inlet in self.inlets.values():
                    await inlet.finish(drain=drain and not inlet.ended)
                over = not self._left and (drain or all(inlet.ended for inlet in self.inlets.values()))
                if not over:
                    if not self._left:
                        await self._in_time(self._finish_now)
                    self.local.leave()
        return over

    @property
    def place(self) -> str | None:
        """Where its checkpoints are kept; None: nowhere."""
        return None if self._folder is None else self._folder.place

    @property
    def rows(self) -> int:
        """How many rows have come from all sources, in this process."""
        return sum(inlet.tuples for inlet in self.inlets.values())

    def ask_for_checkpoint(self) -> None:
        """Request the next checkpoint at once, of the task that takes all of them."""
        self._wanted.set()

    async def _keep_on(self) -> None:
        finished, wanted = map(asyncio.create_task, (self._finished.wait(), self._wanted.wait()))
        try:  # not wait_for: until Python 3.12 it can swallow a cancellation
            while not (finished.done() or self._left):
                await asyncio.wait([finished, wanted], timeout=self.every_s, return_when="FIRST_COMPLETED")
                if wanted.done():
                    self._wanted.clear()
                    wanted = asyncio.create_task(self._wanted.wait())
                if not finished.done():
                    await self._in_time(self.checkpoint)
        finally:
            finished.cancel()
            wanted.cancel()

    async def checkpoint(self) -> None:
        """Take a checkpoint now, and let the results of its epoch be seen."""
        began = wall()
        async with self.gate.alone():
            taken = await self._take()
        still_s = wall() - began
        size = await self._finish(*taken)
        self.kept.append(Kept(self.epochs, self._clock(), still_s, wall() - began, size))

    async def _take(self) -> tuple[int, States, CheckpointManifest]:
        """Return the epoch that ends now, the states, and all else that a checkpoint has."""
        states = await self.local.captured(kept=self._folder is not None)
        self._trip.look(self.local.operators if states else {})
        await self.outlets.bury(self.dead.take())
        self.outlets.epoch += 1
        return self.outlets.epoch - 1, states, self._manifest()

    async def _finish_now(self) -> None:
        await self._finish(*await self._take(), last=True)

    async def _end(self) -> None:
        await self._finish(self.outlets.epoch, {}, self._manifest(over=True), last=True)

    async def _finish(
        self, epoch: int, states: States, manifest: CheckpointManifest, *, last: bool = False
    ) -> int:
        """Record, commit, acknowledge, collect: so a crash at any moment does no harm.  Return the states' bytes.

        The ``last`` one is recorded once more, with nothing to commit: then a sink may be left out by the next service.
        """
        prepared = await self.outlets.prepare(epoch)
        packed = await self._aside(lambda: self._trip.packed(states))
        await self._record(replace(manifest, prepared=prepared), packed)
        await self.outlets.commit(prepared)
        await self._acknowledge(manifest.positions)
        self.epochs += 1
        if last and self.outlets.buries:
            return await self._finish(epoch + 1, states, manifest, last=True)
        if last and prepared:
            await self._record(manifest, packed)
        if (folder := self._folder) is not None:
            await self._aside(folder.collect)
        return sum(map(len, packed.values()))

    async def _record(self, manifest: CheckpointManifest, packed: dict[str, bytes]) -> None:
        if (folder := self._folder) is not None:
            operators = self.local.operators
            kinds = {name: (type(op).__name__, op.state_version) for name, op in operators.items()}
            await self._aside(lambda: folder.record(manifest, packed, kinds))

    async def _acknowledge(self, positions: Mapping[str, Any]) -> None:
        for name, inlet in self.inlets.items():
            if positions.get(name) is not None:
                await called(inlet.place, inlet.source, "acknowledge", positions[name])

    def _manifest(self, *, over: bool = False) -> CheckpointManifest:
        manifest = manifest_of(self.local, self.inlets, self.dead, over=over)
        return manifest if self.retries is None else self.retries.noted(manifest)

    def _check(self, manifest: CheckpointManifest) -> None:
        check_states(self._place, manifest, self.local, self._without, after_drain=self._after_drain)
        check_dead_letters(self._place, manifest, self.outlets.names)

    def _restore(self, manifest: CheckpointManifest, states: dict[str, bytes]) -> None:
        restore(manifest, states, self.local, self.inlets, self._without)
        if self.retries is not None:
            self.retries.restore(manifest)

    @property
    def _place(self) -> str:
        return f"checkpoint {self.place}"

    async def _took(self) -> None:
        await self.outlets.bury(self.dead.take())
