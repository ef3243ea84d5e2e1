"""Forms of the thesis and of CQL, rewritten as tokens that the parser reads.

``s [RANGE 5 MINUTES SLIDE 1 MINUTE]``        a call of a window function
``SELECT k, count(*) [RANGE ...] FROM ...``   the window as the first key of GROUP BY
``FROM a, b [RANGE TUMBLING 1 MINUTE]``       a condition: both records are in one window
``FROM a UNION b``                            a subquery
``ISTREAM(SELECT ...)``, ``SELECT ISTREAM``   a function about the SELECT list
"""

from __future__ import annotations

from oop_engine.query.sql.reading.tokens import Tokens

__all__ = ["OVER", "STREAMS", "TUMBLING", "WINDOW", "rewrite_thesis"]

WINDOW, OVER, TUMBLING = "CQL_WINDOW", "CQL_OVER", "CQL_TUMBLING"
"""Names of calls: of a stream's window, of one over the whole query, of the condition of a tumbling join."""
STREAMS = ("ISTREAM", "DSTREAM", "RSTREAM")
"""CQL's streams of a relation."""
_FIRST = ("RANGE", "ROWS", "NOW", "PARTITION", "PARTITION BY", "WA", "WATTR", "RATTR")
_BEFORE_TABLE = ("FROM", ",", "JOIN")
_BEHIND_GROUP = ("GROUP", "GROUP BY", "HAVING", "QUALIFY", "ORDER", "ORDER BY", "LIMIT", "UNION", "WINDOW")


def rewrite_thesis(tokens: Tokens) -> None:
    """Rewrite the forms of the thesis and of CQL in a statement."""
    words = {token.text.upper() for token in tokens.tokens}
    rewrites = [_union] if "UNION" in words else []
    rewrites += [_stream_around, _stream_of_list] if words.intersection(STREAMS) else []
    rewrites += [_bracket] if "[" in words else []
    for rewrite in rewrites:
        at = 0
        while at < len(tokens.tokens):
            rewrite(tokens, at)
            at += 1


def _union(tokens: Tokens, at: int) -> None:
    """Read ``FROM a UNION b`` as a subquery."""
    if not (tokens.is_word(at - 1, *_BEFORE_TABLE) and tokens.is_name(at)):
        return
    stop = at + 1
    while tokens.is_word(stop, "UNION") and tokens.is_name(stop + 1):
        stop += 2
    if stop == at + 1:
        return
    names = [tokens.text[tokens.tokens[i].start : tokens.tokens[i].end + 1] for i in range(at, stop, 2)]
    whole = " UNION ALL ".join(f"SELECT * FROM {name}" for name in names)
    tokens.tokens[at:stop] = tokens.new(f"({whole})", at)


def _stream_around(tokens: Tokens, at: int) -> None:
    """Read ``ISTREAM(SELECT ...)`` as ``SELECT ISTREAM(...)``."""
    if not (
        tokens.is_word(at, *STREAMS) and tokens.is_word(at + 1, "(") and tokens.is_word(at + 2, "SELECT")
    ):
        return
    kind, stop = tokens.tokens.pop(at), tokens.closing(at)
    if at == 0 or tokens.is_word(at - 1, "("):
        del tokens.tokens[stop], tokens.tokens[at]
        at -= 1
    tokens.tokens.insert(at + 2, kind)


def _stream_of_list(tokens: Tokens, at: int) -> None:
    """Read ``SELECT ISTREAM a, b`` as ``SELECT ISTREAM(a, b)``."""
    if not (tokens.is_word(at - 1, "SELECT") and tokens.is_word(at, *STREAMS)):
        return
    if tokens.is_word(at + 1, ",", "FROM", "AS") or (
        tokens.is_word(at + 1, "(") and tokens.is_word(tokens.closing(at + 1) + 1, "FROM", "[")
    ):
        return
    stop = tokens.next(at + 1, "FROM", "[")
    tokens.tokens.insert(stop, *tokens.new(")", at))
    tokens.tokens.insert(at + 1, *tokens.new("(", at))


def _bracket(tokens: Tokens, at: int) -> None:
    """Read the window in brackets at ``at``."""
    if not (tokens.word(at) == "[" and tokens.is_word(at + 1, *_FIRST)):
        return
    stop = tokens.closing(at)
    inside = [token.text for token in tokens.tokens[at + 1 : stop]]
    words = " ".join(inside).replace("'", "")
    if tokens.is_word(stop + 1, "FROM"):
        _over_query(tokens, at, stop, words)
    elif "TUMBLING" in [word.upper() for word in inside]:
        _tumbling(tokens, at, stop, words)
    else:
        _behind_table(tokens, at, stop, words)


def _over_query(tokens: Tokens, at: int, stop: int, words: str) -> None:
    """Make a window behind the SELECT list the first key of GROUP BY."""
    made = tokens.new(f"{OVER}('{words}')", at)
    del tokens.tokens[at : stop + 1]
    end = tokens.next(at + 1, *_BEHIND_GROUP)
    if tokens.is_word(end, "GROUP", "GROUP BY"):
        end += 1 + tokens.is_word(end + 1, "BY")
        tokens.tokens[end:end] = [*made, *tokens.new(",", at)]
    else:
        tokens.tokens[end:end] = [*tokens.new("GROUP BY", at), *made]


def _tumbling(tokens: Tokens, at: int, stop: int, words: str) -> None:
    """Make the window of a tumbling join a condition of WHERE."""
    condition = tokens.new(f"{TUMBLING}('{words}')", at)
    stop += tokens.is_word(stop + 1, ",")
    del tokens.tokens[at : stop + 1]
    if tokens.is_word(at, "WHERE"):
        tokens.tokens[at + 1 : at + 1] = [*condition, *tokens.new("AND", at)]
    else:
        tokens.tokens[at:at] = [*tokens.new("WHERE", at), *condition]


def _behind_table(tokens: Tokens, at: int, stop: int, words: str) -> None:
    """Make a window behind a table, or behind its alias, the call of a window function."""
    last = at - 1
    if tokens.is_word(last - 1, "AS"):
        last -= 2
    elif tokens.is_word(last - 1, ")") or (
        tokens.is_name(last - 1) and tokens.is_word(last - 2, *_BEFORE_TABLE)
    ):
        last -= 1
    first = tokens.opening(last) if tokens.is_word(last, ")") else last
    table, alias = tokens.tokens[first : last + 1], tokens.tokens[last + 1 : at]
    name, opened, comma, window, closed = tokens.new(f"{WINDOW}(,'{words}')", first)
    tokens.tokens[first : stop + 1] = [name, opened, *table, comma, window, closed, *alias]
