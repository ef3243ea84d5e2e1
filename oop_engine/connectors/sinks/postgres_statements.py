"""Statements on a table of Postgres, and on the one beside it in which rows of an epoch wait."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from oop_engine.connectors.library import library

__all__ = ["CHANGE", "DELETION", "EPOCH", "EPOCHS", "ORDER", "RUN", "TableStatements", "staged_name"]

ORDER, EPOCH, RUN, CHANGE = "oop_order", "oop_epoch", "oop_run", "oop_change"
EPOCHS = "oop_epochs"
_LONGEST = 63
"""Bytes of a name; the server cuts longer ones."""
_OF_EPOCH = "from {staged} where oop_run = %s and oop_epoch = %s"
DELETION = f"delete {_OF_EPOCH}"
_INSERTION = "insert into {table} ({columns}) select "
_UPSERT = "order by {key}, oop_order desc on conflict ({key}) do {replace}"
_NET = (
    f"select {{columns}}, max(oop_order) as oop_order {_OF_EPOCH} group by {{columns}} having sum(oop_change)"
)
_TAKING_BACK = f"delete from {{table}} as kept using ({_NET} < 0) as gone where {{same}}"
_SOME = "and oop_order between %s and %s"


def staged_name(table: str) -> str:
    """Return the name of the table beside ``table``, which no other one has.

    >>> staged_name("per_minute"), staged_name("east.per_minute")
    ('oop_staged_per_minute', 'oop_staged_east.per_minute')
    >>> len(staged_name("a" * 61)), staged_name("a" * 61 + "1") == staged_name("a" * 61 + "2")
    (63, False)
    """
    whole = f"oop_staged_{table}".encode()
    if len(whole) <= _LONGEST:
        return whole.decode()
    sign = f"_{sha256(table.encode()).hexdigest()[:12]}"
    return whole[: _LONGEST - len(sign)].decode(errors="ignore") + sign


class TableStatements:
    """Statements on ``table``, of which rows have ``names``; ``key``, ``net``: see ``PostgresTable``."""

    def __init__(self, table: str, key: Sequence[str], names: Sequence[str], *, net: bool) -> None:
        self._sql = library("psycopg.sql", "postgres", "PostgresTable")
        self._table, self._key, self._names, self._net = table, key, names, net
        self.staged = staged_name(table)

    @property
    def moving(self) -> list[str]:
        """How the rows of an epoch get into the table, one statement after the other; of a run and an epoch."""
        if not self._key:
            return [f"{_INSERTION} {{columns}} {_OF_EPOCH} order by oop_order"]
        rows = f"from ({_NET} > 0) as net" if self._net else _OF_EPOCH
        insertion = f"{_INSERTION} distinct on ({{key}}) {{columns}} {rows} {_UPSERT}"
        return [_TAKING_BACK, insertion] if self._net else [insertion]

    @property
    def trying(self) -> str:
        """How some rows of an epoch get into the table; of a run, an epoch, and two numbers of rows."""
        added = "and oop_change > 0 " if self._net else ""
        if not self._key:
            return f"{_INSERTION} {{columns}} {_OF_EPOCH} {_SOME} order by oop_order"
        return f"{_INSERTION} distinct on ({{key}}) {{columns}} {_OF_EPOCH} {added}{_SOME} {_UPSERT}"

    @property
    def staging(self) -> Any:
        """How rows get into the table beside it."""
        names = [*self._names, *([CHANGE] if self._net else []), RUN, EPOCH, ORDER]
        return self.composed("copy {staged} ({names}) from stdin", names=self.listed(names))

    def composed(self, text: str, *, with_values: bool = False, **more: Any) -> Any:
        """Return a statement; ``with_values``: psycopg looks for placeholders in it, also in names."""
        name = self._doubled if with_values else self._sql.Identifier
        others = [each for each in self._names if each not in self._key]
        sets = self._joined(", ", [("{0} = excluded.{0}", others)], name)
        same = [("kept.{0} = gone.{0}", self._key), ("kept.{0} is not distinct from gone.{0}", others)]
        names = {
            "table": name(*self._table.split(".")),
            "staged": name(self.staged),
            "epochs": name(EPOCHS),
            "columns": self.listed(self._names, name),
            "key": self.listed(self._key, name),
            "replace": self._sql.SQL("update set {}").format(sets) if others else self._sql.SQL("nothing"),
            "same": self._joined(" and ", same, name),
        }
        return self._sql.SQL(text).format(**{**names, **more})

    def listed(self, names: Sequence[str], name: Any = None) -> Any:
        """Return names, with commas between them."""
        return self._sql.SQL(", ").join(map(name or self._sql.Identifier, names))

    def name(self, table: str) -> Any:
        """Return a name of a table, or of a column, that a statement without values has."""
        return self._sql.Identifier(*table.split("."))

    def column(self, name: str) -> Any:
        """Return the name of a column for a statement without values."""
        return self._sql.Identifier(name)

    def type(self, text: str) -> Any:
        """Return a type as the server writes it."""
        return self._sql.SQL(text.replace("{", "{{").replace("}", "}}")).format()

    def _doubled(self, *parts: str) -> Any:
        return self._sql.Identifier(*(part.replace("%", "%%") for part in parts))

    def _joined(self, between: str, terms: Sequence[tuple[str, Sequence[str]]], name: Any) -> Any:
        made = [self._sql.SQL(term).format(name(each)) for term, names in terms for each in names]
        return self._sql.SQL(between).join(made)
