"""Texts: SQL is read by sqlglot, in the dialect of DuckDB.

Forms that it does not read are rewritten as tokens before: those of Flink (``TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts),
...))``, ``WATERMARK FOR``, ``SESSION(s PARTITION BY k, ...)``), ``EMIT`` behind a query, and those of the thesis and of
CQL (``thesis``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from oop_engine.core.errors import SetupError, UsageError
from oop_engine.query.sql.reading.mistakes import mistake_at
from oop_engine.query.sql.reading.thesis import rewrite_thesis
from oop_engine.query.sql.reading.tokens import Tokens

__all__ = ["Statement", "WatermarkClause", "require_sqlglot", "statements_in"]

_NAMED = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"), "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"), "SESSION": ("DATA", "TIMECOL", "GAP"),
}  # fmt: skip
_WINDOWS = set(_NAMED)
_DEEPEST = 200


@dataclass
class WatermarkClause:
    """``WATERMARK FOR column [PER key, ...] AS expression``; ``text`` is the expression."""

    column: str
    per: tuple[str, ...]
    text: str


@dataclass
class Statement:
    """A parsed statement, and parts taken aside: ``EMIT``, watermarks, keys of sessions by the place of the call."""

    tree: Any
    emit: list[str] = field(default_factory=list)
    watermarks: list[WatermarkClause] = field(default_factory=list)
    idle: str | None = None
    upstream: bool = False
    sessions: dict[int, list[str]] = field(default_factory=dict)


def require_sqlglot() -> None:
    """Raise ``SetupError`` without sqlglot."""
    try:
        import sqlglot  # noqa: F401
    except ImportError as error:
        msg = "SQL needs sqlglot: pip install 'oop-engine[sql]'"
        raise SetupError(msg) from error


def statements_in(text: str) -> list[Statement]:
    """Return the statements of a text.

    Raises ``UsageError`` with line, column and a caret where it cannot be read, ``SetupError`` without sqlglot.
    """
    given: object = text
    if not isinstance(given, str):
        msg = f"sql: a text is wanted; got {text!r:.80}"
        raise UsageError(msg)
    require_sqlglot()
    import sqlglot
    from sqlglot.errors import ParseError, TokenError

    from oop_engine.query.sql.reading.hints import expected, open_quote, unexpected

    dialect = sqlglot.Dialect.get_or_raise("duckdb")
    try:
        tokens = dialect.tokenize(text)
        statements = [_Rewriting(text, part) for part in _parts(tokens)]
        for statement in statements:
            [statement.made.tree] = dialect.parser().parse(statement.tokens, text)
            if statement.made.tree is None:
                raise statement.mistake(0, "no statement begins so: write SELECT ... FROM ...")
    except ParseError as error:
        found = error.errors[0] if error.errors else {}
        words = str(found.get("description") or error).split(" missing for <class")[0].rstrip(".")
        if words.endswith("Unexpected token"):
            words = unexpected(text, str(found.get("highlight") or ""), str(found.get("start_context") or ""))
        elif words.startswith("Expecting"):
            words = expected(text, words)
        raise mistake_at(text, found.get("line") or 1, _column(text, found), words) from error
    except TokenError as error:
        if (found := open_quote(text)) is not None:
            before = text[: found[0]]
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
            raise mistake_at(text, line, column, found[1]) from error
        raise mistake_at(text, 1, 1, f"cannot be read: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise mistake_at(
            text, 1, 1, "is nested too deeply to be read: write it in several WITH parts"
        ) from error
    if not statements:
        msg = "sql: an empty text: write SELECT ... FROM ..."
        raise UsageError(msg)
    return [statement.made for statement in statements]


def _column(text: str, error: Any) -> int:
    """Return the column of a mistake's first letter; the parser has that of the last."""
    return int(error.get("col") or 1) - max(len(error.get("highlight") or "") - 1, 0)


def _parts(tokens: list[Any]) -> list[list[Any]]:
    """Return the tokens of each statement."""
    parts: list[list[Any]] = [[]]
    for token in tokens:
        if token.token_type.name == "SEMICOLON":
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


class _Rewriting(Tokens):
    """The tokens of one statement, as the parser reads them, and the parts taken aside."""

    def __init__(self, text: str, tokens: list[Any]) -> None:
        super().__init__(text, tokens)
        self.made = Statement(None)
        if "EMIT" in self._words():
            self._take_emit()
        self._take_watermarks()
        rewrite_thesis(self)
        if not _WINDOWS.isdisjoint(self._words()):
            self._unwrap()

    def _words(self) -> set[str]:
        return {token.text.upper() for token in self.tokens}

    def _take_emit(self) -> None:
        """Take ``EMIT ...`` at the end aside."""
        depth = 0
        for at in range(len(self.tokens)):
            depth += self.is_sign(at) and self.tokens[at].text == "("
            depth -= self.is_sign(at) and self.tokens[at].text == ")"
            behind_select = at > 0 and self.word(at + 1) in ("FINAL", "CHANGES", "EARLY", "WITH", "ON")
            if depth == 0 and behind_select and self.is_word(at, "EMIT"):
                self.made.emit = [token.text for token in self.tokens[at + 1 :]]
                del self.tokens[at:]
                return

    def _take_watermarks(self) -> None:
        """Take ``WATERMARK FOR``, ``PUNCTUATION FROM UPSTREAM`` and ``IDLE`` out of the columns of CREATE TABLE."""
        if not self.is_word(0, "CREATE"):
            return
        at = 0
        while at < len(self.tokens):
            if self.is_word(at, "WATERMARK") and self.is_word(at + 1, "FOR"):
                self.made.watermarks.append(self._watermark(at))
            elif self.is_word(at, "PUNCTUATION") and self.is_word(at + 1, "FROM"):
                self._cut(at, at + 3)
                self.made.upstream = True
            elif self.is_word(at, "IDLE") and at + 1 < len(self.tokens):
                self.made.idle = self.tokens[at + 1].text
                self._cut(at, at + 2)
            else:
                at += 1

    def _watermark(self, at: int) -> WatermarkClause:
        stop = depth = 0
        for stop in range(at, len(self.tokens)):
            depth += self.word(stop) == "("
            depth -= self.word(stop) == ")"
            if depth < 0 or (depth == 0 and self.word(stop) == "," and self._as_before(at, stop)):
                break
        words = self.tokens[at:stop]
        names = [token.text.upper() for token in words]
        if "AS" not in names or len(words) < 5:
            raise self.mistake(at, "a watermark reads WATERMARK FOR ts AS ts - INTERVAL '90' SECOND")
        as_at = names.index("AS")
        text = self.text[words[as_at + 1].start : words[-1].end + 1]
        per = [token.text for token in words[4:as_at] if token.text != ","] if names[3:4] == ["PER"] else []
        self._cut(at, stop)
        return WatermarkClause(words[2].text, tuple(per), text)

    def _as_before(self, start: int, stop: int) -> bool:
        return any(self.is_word(at, "AS") for at in range(start, stop))

    def _cut(self, start: int, stop: int) -> None:
        """Drop tokens, and the comma before them, or behind them where they are the first."""
        if self.word(start - 1) == ",":
            start -= 1
        elif self.word(stop) == ",":
            stop += 1
        del self.tokens[start:stop]

    def _unwrap(self) -> None:
        """Read window functions of Flink as calls: without ``TABLE``, ``DESCRIPTOR``, and keys of sessions aside."""
        from sqlglot import TokenType

        at = 0
        while at < len(self.tokens):
            is_call = self.is_word(at, *_WINDOWS) and self.word(at + 1) == "("
            if self.is_word(at, "TABLE") and self.word(at + 1) == "(" and self.is_word(at + 2, *_WINDOWS):
                del self.tokens[self.closing(at + 1)]
                del self.tokens[at : at + 2]
                continue
            if is_call:
                self.tokens[at].token_type = TokenType.VAR
                self._unwrap_call(at)
            at += 1

    def _unwrap_call(self, at: int) -> None:
        for name in _NAMED[self.word(at)]:  # in the order of the plain arguments
            i = self._named(at, name)
            del self.tokens[i : i + 2 * (i > 0)]
        i = at + 2
        while i < self.closing(at + 1):
            if self.is_word(i, "TABLE"):
                del self.tokens[i]
            elif self.is_word(i, "DESCRIPTOR") and self.word(i + 1) == "(":
                del self.tokens[self.closing(i + 1)]
                del self.tokens[i : i + 2]
            elif self.is_word(i, "PARTITION", "PARTITION BY"):
                stop = i
                names = []
                end = self._end_of_keys(i)
                while stop + 1 < end:
                    stop += 1
                    names.append(self.tokens[stop].text)
                self.made.sessions[self.tokens[at].start] = [
                    name for name in names if name.upper() not in ("BY", ",", "(", ")")
                ]
                del self.tokens[i : stop + 1]
            else:  # a query in brackets has an OVER of its own
                i = (self.closing(i) if self.is_word(i, "(") else i) + 1

    def _end_of_keys(self, at: int) -> int:
        """Return the place behind the keys of ``PARTITION BY a, b`` and ``PARTITION BY (a, b)``."""
        stop = at + 1 + self.is_word(at + 1, "BY")
        if self.word(stop) == "(":
            return self.closing(stop) + 1
        while self.word(stop) not in ("", ")") and not self._ends_keys(stop):
            stop += 1
        return stop

    def _named(self, at: int, name: str) -> int:
        """Return where ``NAME =>`` stands in the call at ``at``, behind no other such name; 0: nowhere."""
        signs = (i for i in range(at + 2, self.closing(at + 1)) if self.word(i) == "=>")
        first = next(signs, 0) - 1
        return first if first > 0 and self.is_word(first, name) else 0

    def _ends_keys(self, at: int) -> bool:
        """Return whether the comma at ``at`` is behind the keys: DESCRIPTOR or the column of time follows."""
        return self.word(at) == "," and (
            self.is_word(at + 1, "DESCRIPTOR") or self.is_word(at + 3, "INTERVAL")
        )
