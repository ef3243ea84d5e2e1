"""Schemas: those of a schema registry, by their ids; and schemas that sinks register.

A registry that is away passes; one that refuses does not.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from oop_engine.connectors import link
from oop_engine.connectors.library import library
from oop_engine.connectors.link import ServerLink, UnreachableError
from oop_engine.connectors.registry.wire import head_of
from oop_engine.core.errors import SetupError, UsageError
from oop_engine.system.addresses import Address
from oop_engine.system.on_thread import on_thread
from oop_engine.system.stopwatch import wall

__all__ = ["Given", "Schemas"]

Given = tuple[str, str, dict[str, str]]
"""A schema: its text, its kind, and the texts of those that it refers to, by their names."""
_PASSING = {408, 423, 425, 429}
_NO_SCHEMA = {40400, 40401, 40402, 40403}
_AGAIN_S = 60.0
"""Seconds after which a registry is asked again for a schema that it did not have."""


class Schemas:
    """The schemas of ``registry``: its address, or a client of confluent-kafka; ``extra``: of its package.

    ``options`` are those of ``SchemaRegistryClient``.  ``form``: the form in which the registry gives schemas.
    ``made``: called with each schema on a thread, returns it as it is stored.
    """

    def __init__(
        self, registry: Any, extra: str, place: str, options: dict[str, Any] | None = None,
        form: str | None = None, made: Callable[[Given], Given | str] | None = None,
    ) -> None:  # fmt: skip
        self._registry, self._extra, self._options, self._form = registry, extra, options or {}, form
        self._as_stored = made or (lambda given: given)
        self._address = Address(registry, options) if isinstance(registry, str) else None
        shown = "" if self._address is None else f" at {self._address}"
        self._place = f"{place}: schema registry{shown}"
        self._link = ServerLink(self._place)
        self._known = dict[int, Given | str]()
        self._missing = dict[int, float]()

    def get(self, number: int) -> Given | str | None:
        """Return a schema that was fetched, or the reason why it is none; None: the registry has none of this id."""
        return self._known.get(number)

    async def fetch(self, payloads: list[bytes], *, once: bool = False) -> None:
        """Fetch the schemas of messages that are not known yet; wait for the registry while it is away.

        Raises ``UnreachableError`` if it was never there, or ``once`` is set, ``SetupError`` if it refuses.
        """
        for number in self.unknown(payloads):
            while True:
                try:
                    await self.fetch_one(number)
                    break
                except UnreachableError as error:
                    self._link.gone(error.__cause__ or error)
                    if once or not self._link.away:
                        raise
                await self._link.pause()

    def unknown(self, payloads: list[bytes]) -> set[int]:
        """Return the ids of messages whose schemas have to be asked for."""
        numbers = {number for payload in payloads if isinstance(number := head_of(payload), int)}
        now = wall()
        return {
            number
            for number in numbers - self._known.keys()
            if now - self._missing.get(number, -_AGAIN_S) >= _AGAIN_S
        }

    async def fetch_one(self, number: int) -> None:
        """Fetch a schema once."""
        schema = await on_thread(self._asked, lambda client: self._schema(client, number))
        self._link.here()
        if schema is None:
            self._missing[number] = wall()
        else:
            self._known[number] = schema

    async def register(self, subject: str, text: str, kind: str) -> int:
        """Return the id of a schema, which is registered if it is not there."""
        make = library("confluent_kafka.schema_registry", self._extra, self._place).Schema
        number = await on_thread(
            self._asked, lambda client: client.register_schema(subject, make(text, kind))
        )
        return int(number)

    def _schema(self, client: Any, number: int) -> Any:
        """Return a schema with those that it refers to: name and text of each."""
        schema = client.get_schema(number, fmt=self._form)
        references = self._references(client, schema.references, {})
        return self._as_stored((schema.schema_str, schema.schema_type, references))

    def _references(self, client: Any, references: Any, texts: dict[str, str]) -> dict[str, str]:
        for each in references or ():
            if each.name not in texts:
                there = client.get_version(each.subject, each.version, fmt=self._form).schema
                texts[each.name] = ""
                self._references(client, there.references, texts)
                texts[each.name] = texts.pop(each.name) or there.schema_str  # behind those that it refers to
        return texts

    def _asked(self, ask: Any) -> Any:
        """Return the answer of the registry; None: it has no such schema."""
        errors = library("confluent_kafka.schema_registry.error", self._extra, self._place)
        try:
            with self._client() as client:
                return ask(client)
        except errors.SchemaRegistryError as error:
            status = error.http_status_code
            if status == 404 and error.error_code in _NO_SCHEMA:
                return None
            passes = status in _PASSING or status >= 500
            words = self._clean(error)
            if passes:
                msg = f"{self._place}: fails ({words})"
                raise UnreachableError(msg) from ConnectionError(words)
            msg = f"{self._place}: refuses ({words}): check its address, the name, the password"
            raise SetupError(msg) from None
        except ValueError as error:
            msg = f"{self._place}: no schema registry answers ({self._clean(error)}): check the address"
            raise SetupError(msg) from None
        except Exception as error:  # those of the library for HTTP, of which there are two
            if not type(error).__module__.startswith(("httpx", "requests")) and not isinstance(
                error, OSError
            ):
                raise
            words = self._clean(error) or type(error).__name__
            msg = f"{self._place}: does not answer ({words}): give the address of one that runs"
            raise UnreachableError(msg) from ConnectionError(words)

    def _client(self) -> AbstractContextManager[Any]:
        """Return a client, whose connections are closed behind it: schemas are seldom fetched."""
        if self._address is None:
            return nullcontext(self._registry)
        made = library("confluent_kafka.schema_registry", self._extra, self._place).SchemaRegistryClient
        if not str(self._registry).startswith(("http://", "https://", "mock://")):
            msg = f"{self._place}: must be the address of a registry, as http://127.0.0.1:8081"
            raise UsageError(msg)
        options = {"timeout": link.ANSWER_S / 2, "max.retries": 0, **self._options}
        client: AbstractContextManager[Any] = made.new_client({"url": self._registry, **options})
        return client

    def _clean(self, error: Exception) -> str:
        words = " ".join(str(error).split())[:200]
        return words if self._address is None else self._address.clean(words)
