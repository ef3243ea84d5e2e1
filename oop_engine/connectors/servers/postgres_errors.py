"""Errors of Postgres: those that pass, and those that do not, each in one line with the way out.

A server refuses a statement, or a connection (``postgres_codes``), with a code (SQLSTATE).  Words count where there is
none: those of libpq itself, and of a server if libpq cannot be asked for codes.

Source: the PostgreSQL documentation, appendix "PostgreSQL Error Codes".
"""

from __future__ import annotations

import re
from typing import Any

from oop_engine.connectors.library import library
from oop_engine.connectors.link import NotReadyError, UnreachableError
from oop_engine.connectors.servers.reasons import why_not
from oop_engine.core.errors import SetupError
from oop_engine.system.addresses import Address

__all__ = ["failure_of_postgres", "first_line", "is_of_a_row", "postgres_address", "reason_of_row"]

_NO_ROOM = ("53300", "57P03")
"""No connection left; the server starts up, shuts down or recovers."""
_PASSING = ("08", "40001", "40P01", "55006", "55P03", "57P01", "57P02", "57P05", "25P03")
"""Broken connections, overtaken transactions, objects in use, a server that ends; codes or classes of them."""
_OF_RIGHTS = ("28", "42501")
"""A name, a password or pg_hba.conf; a right that is missing."""
_OF_A_ROW = ("21", "22", "23", "44", "54", "P0")
"""Classes of values that do not fit (data, constraints, conditions of views, limits), and exceptions of triggers."""
_IN_A_ROW = ("exec_stmt_raise", "ExecWithCheckOptions")
"""Functions of the server whose errors have codes of other classes: a trigger raises its own, a policy refuses."""
_WORDS_OF_NO_ROOM = ("too many", "connection slots", "the database system is", "max_wal_senders")
_WORDS_OF_AN_END = ("terminating connection", "due to timeout", "server closed the connection", "SSL SYSCALL")
_WORDS_OF_REFUSALS = (
    "FATAL", "pg_hba.conf", "does not support SSL", "certificate", "invalid response to SSL", "no password supplied",
    "expected authentication request", "authentication method", "channel binding", "invalid connection option",
)  # fmt: skip
_COLUMN = re.compile(r" column ([^:]+)")
_RIGHTS = (
    "password",
    "authentication",
    "pg_hba.conf",
    "not permitted",
    "permission denied",
    "must be superuser",
)


def postgres_address(dsn: str) -> Address:
    """Return the address in a connection string; raise ``SetupError`` if it is none, without its words."""
    psycopg = library("psycopg", "postgres", "Postgres")
    conninfo = library("psycopg.conninfo", "postgres", "Postgres")
    try:
        return Address(dsn, conninfo.conninfo_to_dict(dsn))
    except psycopg.Error:
        msg = "Postgres: the address is no connection string: give one like postgresql://127.0.0.1:5432/shop"
        raise SetupError(msg) from None


def failure_of_postgres(place: str, address: Address, error: Exception, way_out: str) -> SetupError:
    """Return the error to raise for one of psycopg; its class tells whether it passes.

    ``way_out``: of one that does not, unless it is of rights.
    """
    words = address.clean(first_line(error))
    code = getattr(error, "sqlstate", None)
    if code in _NO_ROOM or (code is None and any(sign in words for sign in _WORDS_OF_NO_ROOM)):
        return NotReadyError(f"{place}: {words}")
    if code is None and not _refuses(error, words):
        return UnreachableError(why_not(error, address, "server", place))
    if code is not None and code.startswith(_PASSING):
        return UnreachableError(f"{place}: {words}")
    if code == "25006":
        return SetupError(f"{place}: is a replica ({words}): give the address of the primary")
    if (code or "").startswith(_OF_RIGHTS) or any(sign in words for sign in _RIGHTS):
        return SetupError(f"{place}: {words}: check the name, the password, the rights and pg_hba.conf")
    return SetupError(f"{place}: {words}: {way_out}")


def is_of_a_row(error: Any) -> bool:
    """Return whether an error is of a value that the server does not take, so that other rows may fit."""
    code = getattr(error, "sqlstate", None)
    psycopg = library("psycopg", "postgres", "Postgres")
    if code is None:
        return isinstance(error, psycopg.DataError)
    by = getattr(getattr(error, "diag", None), "source_function", None)
    return code.startswith(_OF_A_ROW) or (by in _IN_A_ROW and not code.startswith(_PASSING))


def first_line(error: Exception) -> str:
    """Return the words of a server, or of psycopg: those of all hosts where several were tried."""
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    text = str(primary or error).strip()
    return text if "attempts failed" in text else text.split("\nLINE ")[0]


def reason_of_row(error: Any) -> str:
    """Return why a row is refused, with the column that the server names."""
    column = _COLUMN.search(getattr(error.diag, "context", None) or "")
    return first_line(error) + (f" (column {column[1]})" if column else "")


def _refuses(error: Any, words: str) -> bool:
    """Return whether an error without a code is an answer that comes again however often it is asked for."""
    if any(sign in words for sign in _WORDS_OF_AN_END):
        return False
    psycopg = library("psycopg", "postgres", "Postgres")
    if isinstance(error, psycopg.Error) and not isinstance(error, psycopg.OperationalError):
        return True  # of psycopg itself: a value, or a statement
    connection = getattr(error, "pgconn", None)
    needs_password = connection is not None and connection.needs_password
    return bool(needs_password) or any(sign in words for sign in _WORDS_OF_REFUSALS)
