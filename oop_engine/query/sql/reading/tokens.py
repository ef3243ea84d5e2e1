"""Tokens: those of one statement, before the parser reads them."""

from __future__ import annotations

from typing import Any

from oop_engine.core.errors import UsageError
from oop_engine.query.sql.reading.mistakes import mistake_at

__all__ = ["Tokens"]


class Tokens:
    """The tokens of a statement, which rewritings replace; each has its place in ``text``."""

    def __init__(self, text: str, tokens: list[Any]) -> None:
        self.text, self.tokens = text, list(tokens)

    def word(self, at: int) -> str:
        """Return a token's text in capitals; "" where there is none."""
        return self.tokens[at].text.upper() if 0 <= at < len(self.tokens) else ""

    def is_word(self, at: int, *words: str) -> bool:
        """Return whether a token is one of these words, not a text or a quoted name."""
        return self.word(at) in words and 0 <= at < len(self.tokens) and self.is_sign(at)

    def is_sign(self, at: int) -> bool:
        """Return whether a token is no text and no quoted name."""
        return self.tokens[at].token_type.name not in ("STRING", "IDENTIFIER")

    def is_name(self, at: int) -> bool:
        """Return whether a token may name a table or a column."""
        kinds = ("VAR", "IDENTIFIER", "STRING")
        return 0 <= at < len(self.tokens) and self.tokens[at].token_type.name in kinds

    def closing(self, at: int) -> int:
        """Return the place of the bracket that closes the one at ``at``; raises ``UsageError`` without one."""
        depth = 0
        for i in range(at, len(self.tokens)):
            depth += self.is_word(i, "(", "[")
            depth -= self.is_word(i, ")", "]")
            if depth == 0:
                return i
        raise self.mistake(at, "this bracket is not closed")

    def opening(self, at: int) -> int:
        """Return the place of the bracket that the one at ``at`` closes."""
        depth = 0
        for i in range(at, -1, -1):
            depth += self.is_word(i, ")", "]")
            depth -= self.is_word(i, "(", "[")
            if depth == 0:
                return i
        raise self.mistake(at, "this bracket was not opened")

    def next(self, at: int, *words: str) -> int:
        """Return the place of the next of some words outside brackets, or where the query around ``at`` ends."""
        i = at
        while i < len(self.tokens) and not self.is_word(i, ")", "]", *words):
            i = (self.closing(i) if self.is_word(i, "(", "[") else i) + 1
        return i

    def mistake(self, at: int, words: str) -> UsageError:
        """Return the error for the place of a token."""
        token = self.tokens[min(at, len(self.tokens) - 1)]
        return mistake_at(self.text, token.line, token.col - len(token.text) + 1, words)

    def new(self, words: str, at: int) -> list[Any]:
        """Return new tokens, with the place of the one at ``at``."""
        from sqlglot import Dialect

        tokens = list(Dialect.get_or_raise("duckdb").tokenize(words))
        place = self.tokens[min(at, len(self.tokens) - 1)]
        for token in tokens:
            token.line, token.col, token.start, token.end = place.line, place.col, place.start, place.end
        return tokens
