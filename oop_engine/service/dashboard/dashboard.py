"""Dashboard: a page on loopback that shows how a service is doing, and why a window is still open.

It is a server of asyncio, beside the graph in the same event loop.  Who visits gets the last sample of the counters
(``sampler``), as an event of a stream (SSE) each time that there is a new one; a visitor who does not read waits
alone.  Only pausing and asking for a checkpoint change something: these are POST, with a token.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oop_engine.core.errors import SetupError, UsageError
from oop_engine.core.values.rfc3339 import moment_of
from oop_engine.service.dashboard.http import Refused, Request, answer, read_request
from oop_engine.service.dashboard.metrics import prometheus
from oop_engine.system.on_thread import on_thread

if TYPE_CHECKING:
    from oop_engine.service.dashboard.sampler import Sampler
    from oop_engine.service.service import Service

__all__ = ["Dashboard"]

_LOG = logging.getLogger("oop_engine")
_ASSETS = Path(__file__).parent / "assets"
_FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
    "/graph.js": ("graph.js", "text/javascript"),
    "/uplot.css": ("uplot.css", "text/css"),
    "/uplot.js": ("uplot.js", "text/javascript"),
}
_JSON = "application/json"
_MOST_VISITORS = 32
_STALLED_S = 20.0
_ROOM = 1 << 16  # bytes that wait for a visitor


def _contents() -> dict[str, bytes]:
    return {path: (_ASSETS / name).read_bytes() for path, (name, _) in _FILES.items()}


class Dashboard:
    """The page of a service at ``port`` of loopback; 0: any port that is free.  Give it to ``serve(page=...)``.

    ``address``: where it is, once the service runs.  ``token``: who has it can pause, and ask for a checkpoint; the
    page has it from the part behind ``#`` of its address (``link``), which no browser sends.
    """

    def __init__(self, port: int = 0, *, token: str | None = None) -> None:
        if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port < 1 << 16:
            msg = f"page: must be a port, from 0 (any that is free) to 65,535; got {port!r}"
            raise UsageError(msg)
        self._port, self.token = port, token or secrets.token_urlsafe(16)
        self.address = ""
        self._server: asyncio.Server | None = None
        self._visits = set[asyncio.Task[Any]]()
        self._opened = asyncio.Event()
        self._contents = dict[str, bytes]()

    @property
    def link(self) -> str:
        """The address with the token."""
        return f"{self.address}/#{self.token}"

    async def opened(self) -> str:
        """Wait until the page can be visited; return its address."""
        await self._opened.wait()
        return self.address

    async def open(self, service: Service, sampler: Sampler) -> None:
        """Begin to listen.  Raises ``SetupError`` if the port is taken."""
        self._service, self._sampler = service, sampler
        self._contents = await on_thread(_contents)
        try:
            self._server = await asyncio.start_server(self._visit, "127.0.0.1", self._port, limit=1 << 14)
        except OSError as error:
            msg = f"page: port {self._port} cannot be listened at ({error.strerror or error}): give another, or 0"
            raise SetupError(msg) from error
        self._port = self._server.sockets[0].getsockname()[1]
        self.address = f"http://127.0.0.1:{self._port}"
        self._opened.set()
        _LOG.info("page: %s", self.link)

    async def close(self) -> None:
        """Close all connections."""
        if self._server is not None:
            self._server.close()
        for visit in self._visits:
            visit.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._visits.add(task)
        try:
            await self._answer(reader, writer)
        except asyncio.CancelledError:
            if not task.cancelling():  # else close() has asked for it
                raise
        except Exception:
            _LOG.exception("page: a request was not answered; the service continues")
        finally:
            self._visits.discard(task)
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if len(self._visits) > _MOST_VISITORS:
                raise Refused(503, f"{_MOST_VISITORS} visitors are here: close a page")
            request = await read_request(reader)
            request.check(self._port, ("127.0.0.1", "localhost"))
            if (request.method, request.path) == ("GET", "/events"):
                await self._events(writer)
                return
            answered = self._found(request)
        except Refused as refused:
            answered = answer(refused.status, f"{refused}\n".encode())
        except ConnectionError:  # the visitor closed the connection before the request was complete
            return
        await self._send(answered, reader, writer)

    async def _send(self, answer: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send an answer and wait until the visitor closes the connection; a visitor may do so at any moment."""
        with suppress(OSError):  # ENOTCONN and EPIPE of a closed socket, and ``TimeoutError``
            writer.write(answer)
            async with asyncio.timeout(_STALLED_S):
                await writer.drain()
                writer.write_eof()
                await reader.read(1)

    def _found(self, request: Request) -> bytes:
        gets: dict[str, Callable[[], tuple[str, str]]] = {"/state": self._state, "/metrics": self._metrics}
        posts: dict[str, Callable[[], object]] = {
            "/pause": self._service.gate.pause,
            "/resume": lambda: self._service.gate.pause(False),
            "/checkpoint": self._service.ask_for_checkpoint,
        }
        if request.path in posts:
            self._check(request)
            posts[request.path]()
            self._sampler.take()
            return answer(202, b"{}\n", _JSON)
        if request.path not in gets and request.path not in _FILES:
            raise Refused(404, f"there is {', '.join([*_FILES, *gets, '/events', *posts])}")
        if request.method != "GET":
            raise Refused(405, "GET it")
        if request.path in gets:
            text, kind = gets[request.path]()
            return answer(200, text.encode(), kind)
        _, kind = _FILES[request.path]
        return answer(200, self._contents[request.path], kind)

    def _check(self, request: Request) -> None:
        if request.method != "POST":
            raise Refused(405, "POST it")
        given = request.headers.get("authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
            raise Refused(
                401, "give the token of the link that the service has shown: Authorization: Bearer TOKEN"
            )

    def _state(self) -> tuple[str, str]:
        """Return the last sample, and the points of those before."""
        return json.dumps(_outside(self._sampler.fresh(), [*self._sampler.points])), _JSON

    def _metrics(self) -> tuple[str, str]:
        return prometheus(self._sampler.fresh()), "text/plain; version=0.0.4; charset=utf-8"

    async def _events(self, writer: asyncio.StreamWriter) -> None:
        """Send samples as they come; those that come while the visitor does not read are left out."""
        writer.transport.set_write_buffer_limits(high=_ROOM)
        writer.write(answer(200, None, "text/event-stream"))
        self._sampler.look(1)
        following: Callable[[], Awaitable[Any]] = self._sampler.following
        try:
            while not writer.is_closing():
                sample = await following()
                point = self._sampler.points[-1]
                writer.write(f"data: {json.dumps(_outside(sample, [point]))}\n\n".encode())
                async with asyncio.timeout(_STALLED_S):
                    await writer.drain()
        except OSError:  # the visitor closed the connection, or has read nothing for ``_STALLED_S``
            return
        finally:
            self._sampler.look(-1)


def _outside(sample: dict[str, Any], points: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a sample as it is sent: moments as RFC 3339 has them."""
    checkpoints = sample["checkpoints"]
    return {
        **sample,
        "at": moment_of(sample["at"]),
        **{kind: [*map(_bounded, sample[kind])] for kind in ("sources", "edges")},
        "checkpoints": {**checkpoints, "last": [*map(_dated, checkpoints["last"])]},
        "points": [*map(_dated, points)],
    }


def _bounded(edge: dict[str, Any]) -> dict[str, Any]:
    """Return an edge or a source whose bound is a moment, or else a number."""
    rest = {name: value for name, value in edge.items() if name != "moment"}
    return {**rest, "below": edge["moment"] or edge["below"]}


def _dated(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "at": moment_of(entry["at"])}
