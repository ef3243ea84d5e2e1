"""Alive: a connection that may be silent for long, and whose other end may go without closing it."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Any

__all__ = ["keep_alive"]

_IDLE_S, _BETWEEN_S, _TRIES = 30, 10, 3


def keep_alive(connection: Any) -> None:
    """Turn TCP keep-alive on: a connection whose other end does not answer breaks within a minute.

    As a machine that is switched off ends no connection, its reader would wait for ever.
    """
    with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as same:
        same.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):  # else by the times of the system
            same.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _IDLE_S)
            same.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _BETWEEN_S)
            same.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _TRIES)
