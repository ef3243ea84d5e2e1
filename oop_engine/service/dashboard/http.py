"""HTTP: as much of it as a page on loopback needs, read from a stream; a request that is not of here is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass

__all__ = ["Refused", "Request", "answer", "read_request"]

_MOST_BYTES = 1 << 14
_ANSWER_S = 10.0
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_WORDS = {
    200: "OK", 202: "Accepted", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 421: "Misdirected Request", 503: "Service Unavailable",
}  # fmt: skip


class Refused(Exception):  # noqa: N818
    """A request that gets an answer of one line: its status, and that line."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class Request:
    """The first line and the headers of a request; names of headers are in small letters."""

    method: str
    path: str
    headers: dict[str, str]

    def check(self, port: int, hosts: Collection[str]) -> None:
        """Raise ``Refused`` unless it was sent to one of ``hosts``, by no page of another place.

        A name of a stranger may lead to this machine (DNS rebinding): his page would be of one origin with ours.
        """
        allowed = {f"{host}:{port}" for host in hosts}
        if self.headers.get("host", "").lower() not in allowed:
            raise Refused(421, f"this page is at http://{min(allowed)}")
        origin = self.headers.get("origin")
        if origin is not None and origin.removeprefix("http://").lower() not in allowed:
            raise Refused(403, "not from a page of another place")


async def read_request(reader: asyncio.StreamReader) -> Request:
    """Return the request at the head of a connection; raises ``Refused`` if it is none."""
    try:
        async with asyncio.timeout(_ANSWER_S):
            head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError) as error:
        raise Refused(400, "no request of HTTP") from error
    first, *lines = head[:-4].decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(head) > _MOST_BYTES or len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise Refused(400, "no request of HTTP/1.1")
    headers = dict[str, str]()
    for line in lines:
        name, _, value = line.partition(":")
        if name.lower() in headers and name.lower() in ("host", "origin", "authorization"):
            raise Refused(400, f"two headers {name}")
        headers[name.lower()] = value.strip()
    return Request(words[0], words[1].partition("?")[0], headers)


def answer(status: int, body: bytes | None, kind: str = "text/plain; charset=utf-8") -> bytes:
    """Return an answer as bytes, after which the connection is closed; without a ``body`` it goes on."""
    length = {} if body is None else {"Content-Length": str(len(body))}
    headers = {"Content-Type": kind, "Connection": "close", **length, **_HEADERS}
    lines = [f"HTTP/1.1 {status} {_WORDS[status]}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")
