"""Reasons: why a server cannot be talked to, in the words of one line with the way out."""

from __future__ import annotations

import socket
import ssl

from oop_engine.system.addresses import Address

__all__ = ["refused_by_http", "why_not"]

_PASSING = (404, 408, 409, 423, 425, 429)
"""Codes of HTTP below 500 that may be others after a while: a roll-out, a limit of requests."""


def why_not(error: BaseException, address: Address, kind: str, place: str = "") -> str:
    """Return why no server of some ``kind`` answers, and the way out; ``place``: by default the address.

    >>> why_not(socket.gaierror(-2, "Name or service not known"), Address("ws://nowhere/"), "WebSocket")
    'ws://nowhere/: the host is not known (Name or service not known): check its name'
    """
    place = place or str(address)
    words = address.clean(_first(error))
    chain = list(_chain(error))
    if any(isinstance(each, socket.gaierror) for each in chain) or "Name or service" in words:
        return f"{place}: the host is not known ({words}): check its name"
    if any(isinstance(each, ssl.SSLCertVerificationError) for each in chain):
        return f"{place}: its certificate is not trusted ({words}): check the host, or give the CA in options"
    if any(isinstance(each, ssl.SSLError) for each in chain) or "SSL" in words:
        return f"{place}: TLS fails ({words}): is it a server without TLS? check the scheme and the port"
    if any(isinstance(each, TimeoutError) for each in chain):
        return f"{place}: no {kind} answers (it is silent): give the address of one that runs"
    return f"{place}: no {kind} answers ({words}): give the address of one that runs"


def refused_by_http(status: int | None) -> bool:
    """Return whether a code of HTTP means that a server will not have this request, however often it comes.

    >>> refused_by_http(403), refused_by_http(429), refused_by_http(503)
    (True, False, False)
    """
    return status is not None and 400 <= status < 500 and status not in _PASSING


def _chain(error: BaseException | None) -> list[BaseException]:
    errors = list[BaseException]()
    while error is not None and error not in errors:
        errors.append(error)
        error = error.__cause__ or error.__context__
    return errors


def _first(error: BaseException) -> object:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
