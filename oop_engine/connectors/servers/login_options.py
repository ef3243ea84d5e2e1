"""Login options: name, password and TLS of a server, as the command line has them.

A password is never an argument, which everybody on a machine can read: it is in the environment.
"""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from oop_engine.core.errors import UsageError

__all__ = ["LOGIN", "Login", "login_of"]

LOGIN = ("user", "tls", "ca", "cert", "private_key")
"""Options of all servers with a login."""
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class Login(NamedTuple):
    """Name and password, and files of TLS: the authorities, the certificate of this client, and its key."""

    user: str | None
    password: str | None
    tls: bool
    ca: str | None
    cert: str | None
    private_key: str | None
    mechanism: str

    def for_kafka(self) -> dict[str, Any]:
        """Return the options of librdkafka.

        >>> Login("me", "secret", True, None, None, None, "PLAIN").for_kafka()["security.protocol"]
        'SASL_SSL'
        """
        options: dict[str, Any] = {}
        if self.user is not None:
            options |= {
                "sasl.mechanism": self.mechanism,
                "sasl.username": self.user,
                "sasl.password": self.password,
            }
        if self.user is not None or self.tls:
            sasl = "SASL_" if self.user is not None else ""
            options["security.protocol"] = f"{sasl}{'SSL' if self.tls else 'PLAINTEXT'}"
        files = {"ca": self.ca, "certificate": self.cert, "key": self.private_key}
        return options | {f"ssl.{name}.location": path for name, path in files.items() if path is not None}

    def for_nats(self) -> dict[str, Any]:
        """Return the options of ``nats.connect``."""
        options: dict[str, Any] = {} if self.user is None else {"user": self.user, "password": self.password}
        return options | ({"tls": self._context()} if self.tls else {})

    def for_mqtt(self) -> dict[str, Any]:
        """Return the options of ``Mqtt``."""
        options: dict[str, Any] = (
            {} if self.user is None else {"username": self.user, "password": self.password}
        )
        return options | ({"tls": self._context()} if self.tls else {})

    def redis_url(self, server: str, database: str) -> str:
        """Return the address of a database of Redis."""
        user = (
            "" if self.user is None else f"{quote(self.user, safe='')}:{quote(self.password or '', safe='')}@"
        )
        names = {"ssl_ca_certs": self.ca, "ssl_certfile": self.cert, "ssl_keyfile": self.private_key}
        query = urlencode({name: path for name, path in names.items() if path is not None})
        return f"redis{'s' * self.tls}://{user}{server}/{database}{'?' * bool(query)}{query}"

    def postgres_dsn(self, server: str, database: str) -> str:
        """Return the address of a database of Postgres, whose password libpq finds in ``PGPASSWORD`` or ~/.pgpass."""
        names = {
            "sslmode": "verify-full" if self.tls else None, "sslrootcert": self.ca or ("system" if self.tls else None),
            "sslcert": self.cert, "sslkey": self.private_key,
        }  # fmt: skip
        query = urlencode({name: value for name, value in names.items() if value is not None})
        user = "" if self.user is None else f"{quote(self.user, safe='')}@"
        return f"postgresql://{user}{server}/{database}{'?' * bool(query)}{query}"

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        if self.cert is not None:
            context.load_cert_chain(self.cert, self.private_key)
        return context


def login_of(place: str, options: dict[str, str], variable: str | None) -> Login:
    """Return the login that options name; the password of ``user`` is in ``variable`` of the environment.

    ``variable``: None, if the library of the server finds it.  Raises ``UsageError`` in the name of ``place``.
    """
    user = options.get("user")
    password = os.environ.get(variable) if variable is not None else None
    if user is not None and variable is not None and password is None:
        msg = f"{place}: user {user!r} needs a password: set the environment variable {variable}"
        raise UsageError(msg)
    if (given := options.get("tls", "yes" if "ca" in options or "cert" in options else "no")) not in (
        "yes",
        "no",
    ):
        msg = f"{place}: tls must be yes or no; got {given!r}"
        raise UsageError(msg)
    for name in ("ca", "cert", "private_key"):
        if name in options and not Path(options[name]).is_file():
            msg = f"{place}: {name} must be a file (PEM); there is none at {options[name]}"
            raise UsageError(msg)
        if name in options and given == "no":
            msg = f"{place}: {name} is for TLS: leave out tls=no"
            raise UsageError(msg)
    if (mechanism := options.get("mechanism", _MECHANISMS[0])) not in _MECHANISMS:
        msg = f"{place}: mechanism must be one of {', '.join(_MECHANISMS)}; got {mechanism!r}"
        raise UsageError(msg)
    if "mechanism" in options and user is None:
        msg = f"{place}: mechanism is that of a user: add user=NAME"
        raise UsageError(msg)
    ca, cert, key = (options.get(name) for name in ("ca", "cert", "private_key"))
    return Login(user, password if user is not None else None, given == "yes", ca, cert, key, mechanism)
