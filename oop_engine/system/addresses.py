"""Addresses of servers, as people may read them: without names, passwords, tokens and keys.

All that a service writes (lines of the log, errors, its page, its checkpoints) goes through here.  Host, port and path
are enough to find a server; a name and a password before ``@``, and all values behind ``?``, may be secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote, unquote_plus

__all__ = ["Address", "printable", "typed_secrets"]

_BEFORE = re.compile(r"(?:[A-Za-z][\w+.-]*:)?(?:[A-Za-z][\w+.-]*://|//)?")
_ANOTHER = re.compile(r",(?=[A-Za-z][\w+.-]*://)")
_SECRET = re.compile(
    r"pass|secret|token|key|auth|cred|cookie|cert|sign|user|jwt|seed|header|subprotocol", re.IGNORECASE
)
_LEAST = 4
"""Characters of the shortest secret that is looked for in the words of a library: shorter ones are in many words."""
_HIDDEN = "***"


def printable(address: object) -> str:
    """Return an address without names, passwords and the values behind ``?``; other texts stay as they are.

    >>> printable("wss://me:secret@host:443/feed?token=secret")
    'wss://host:443/feed'
    >>> printable("redis:me:secret@127.0.0.1:6379/orders?db=1"), printable("nats://token@a:4222,nats://b:4222")
    ('redis:127.0.0.1:6379/orders', 'nats://a:4222,nats://b:4222')
    >>> printable("tail:/var/log/a@b.log"), printable("s3://bucket/folder")
    ('tail:/var/log/a@b.log', 's3://bucket/folder')
    """
    return ",".join(_printable(part) for part in _ANOTHER.split(str(address)))


def _printable(address: str) -> str:
    before, rest, _ = _parts(address)
    user, path = _user(before, rest)
    return before + (path if user else rest)


def _parts(address: str) -> tuple[str, str, str]:
    """Return the scheme, all up to the query, and the query; a ``?`` of a password does not begin one."""
    before = _BEFORE.match(address)
    assert before is not None
    rest = address[before.end() :]
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    in_password = "@" not in host and ":" in host and not host.rpartition(":")[2].isdigit() and "@" in rest
    at = rest.find("@") if in_password else 0
    cut = min((place for sign in "?#" if (place := rest.find(sign, at)) >= 0), default=len(rest))
    return before[0], rest[:cut], rest[cut + 1 :]


def _user(before: str, rest: str) -> tuple[str, str]:
    """Return a name and password, and host and path."""
    user, at, path = rest.rpartition("@")
    is_path = rest.startswith("/") or ("//" not in before and "/" in user)
    return ("", rest) if is_path or not at else (user, path)


class Address:
    """An address and the options of its client; ``str()`` of it is printable.

    >>> found = Address("redis://:open-sesame@host:6379/0")
    >>> str(found), found.clean("no such key: open-sesame\\n at redis://:open-sesame@host:6379/0")
    ('redis://host:6379/0', 'no such key: *** at redis://host:6379/0')
    """

    def __init__(self, address: object, options: Mapping[str, Any] | None = None) -> None:
        self._address, self._shown = str(address), printable(address)
        secrets = {*_secrets_of(self._address), *_secrets_in(options or {})}
        forms = {
            form for each in secrets for form in (each, quote(each, safe=""), quote(each), unquote(each))
        }
        self._secrets = sorted((each for each in forms if len(each) >= _LEAST), key=len, reverse=True)

    def __str__(self) -> str:
        return self._shown

    @property
    def host(self) -> str:
        """The address without its scheme."""
        return self._shown.partition("://")[2] or self._shown

    def clean(self, words: object) -> str:
        """Return the words of a library in one line, without secrets of this address."""
        text = " ".join(str(words).split()) or type(words).__name__
        for whole in (self._address, self._address.partition("?")[0]):
            text = text.replace(whole, self._shown)
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return text

    def cause(self, error: BaseException) -> ConnectionError:
        """Return an error to raise from, in place of one of a library, whose words may have secrets."""
        return ConnectionError(self.clean(error))


def typed_secrets(arguments: Iterable[str]) -> list[str]:
    """Return the names, passwords and tokens of addresses among the arguments of a program, the longest first.

    >>> typed_secrets(["run", "in=wss://me:open-sesame@host/x?token=abracadabra", "log.csv?format=jsonl"])
    ['abracadabra', 'open-sesame']
    >>> typed_secrets(["kafka:h:1/t?registry=http://user:open-sesame@host", "from 'redis:user:pass@h/s'"])
    ['open-sesame', 'pass', 'user']
    """
    words = (word for argument in arguments for word in re.split(r"[\s'\"]+", argument))
    secrets = {secret for word in words for secret in _typed(re.sub(r"^[\w.-]+=", "", word))}
    return sorted((each for each in secrets if len(each) >= _LEAST), key=lambda each: (-len(each), each))


def _typed(word: str) -> Iterator[str]:
    before, rest, query = _parts(word)
    user, _ = _user(before, rest)
    name, _, password = user.partition(":")
    for pair in re.split(r"[&;#]", query):
        value = unquote_plus(pair.partition("=")[2])
        yield from _typed(value) if "://" in value else ()
        if "://" in word.partition("?")[0]:
            yield value
    yield from (name, password) if before else ()


def _secrets_of(address: str) -> Iterator[str]:
    for part in _ANOTHER.split(address):
        before, rest, query = _parts(part)
        user, _ = _user(before, rest)
        name, colon, password = user.partition(":")
        yield from (password, user) if colon else (name,)
        for pair in re.split(r"[&;#]", query):
            yield from {pair.partition("=")[2], unquote_plus(pair.partition("=")[2])}


def _secrets_in(options: Any, *, within: bool = False) -> Iterator[str]:
    """Yield the texts of options whose names tell of a secret; of headers, also as a list of pairs, all values."""
    for name, value in options.items() if isinstance(options, Mapping) else ():
        secret = within or _SECRET.search(str(name)) is not None
        if isinstance(value, Mapping):
            yield from _secrets_in(value, within=secret)
        elif secret:
            yield from _texts_of(value)


def _texts_of(value: Any) -> Iterator[str]:
    """Yield the texts that a value has, and those in a text: ``Bearer TOKEN``, ``session=TOKEN; other=TOKEN``."""
    if isinstance(value, str | bytes):
        text = value.decode(errors="replace") if isinstance(value, bytes) else value
        yield from (text, text.rpartition(" ")[2])
        yield from (pair.partition("=")[2] for pair in re.split(r";\s*", text))
    elif isinstance(value, Iterable):
        for each in value:
            is_pair = isinstance(each, tuple) and len(each) == 2
            yield from _texts_of(each[1] if is_pair else each)
    else:
        yield str(value)
