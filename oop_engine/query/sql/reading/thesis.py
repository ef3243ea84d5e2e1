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


def rewrite_thesis(of: Tokens) -> None:
    """Rewrite the forms of the thesis and of CQL in a statement."""
    words = {token.text.upper() for token in of.tokens}
    asked = [_union] if "UNION" in words else []
    asked += [_stream_around, _stream_of_list] if words.intersection(STREAMS) else []
    asked += [_bracket] if "[" in words else []
    for rewrite in asked:
        at = 0
        while at < len(of.tokens):
            rewrite(of, at)
            at += 1


def _union(of: Tokens, at: int) -> None:
    """Read ``FROM a UNION b`` as a subquery."""
    if not (of.is_word(at - 1, *_BEFORE_TABLE) and of.is_name(at)):
        return
    stop = at + 1
    while of.is_word(stop, "UNION") and of.is_name(stop + 1):
        stop += 2
    if stop == at + 1:
        return
    names = [of.text[of.tokens[i].start : of.tokens[i].end + 1] for i in range(at, stop, 2)]
    whole = " UNION ALL ".join(f"SELECT * FROM {name}" for name in names)
    of.tokens[at:stop] = of.new(f"({whole})", at)


def _stream_around(of: Tokens, at: int) -> None:
    """Read ``ISTREAM(SELECT ...)`` as ``SELECT ISTREAM(...)``."""
    if not (of.is_word(at, *STREAMS) and of.is_word(at + 1, "(") and of.is_word(at + 2, "SELECT")):
        return
    kind, stop = of.tokens.pop(at), of.closing(at)
    if at == 0 or of.is_word(at - 1, "("):
        del of.tokens[stop], of.tokens[at]
        at -= 1
    of.tokens.insert(at + 2, kind)


def _stream_of_list(of: Tokens, at: int) -> None:
    """Read ``SELECT ISTREAM a, b`` as ``SELECT ISTREAM(a, b)``."""
    if not (of.is_word(at - 1, "SELECT") and of.is_word(at, *STREAMS)):
        return
    if of.is_word(at + 1, ",", "FROM", "AS") or (
        of.is_word(at + 1, "(") and of.is_word(of.closing(at + 1) + 1, "FROM", "[")
    ):
        return
    stop = of.next(at + 1, "FROM", "[")
    of.tokens.insert(stop, *of.new(")", at))
    of.tokens.insert(at + 1, *of.new("(", at))


def _bracket(of: Tokens, at: int) -> None:
    """Read the window in brackets at ``at``."""
    if not (of.word(at) == "[" and of.is_word(at + 1, *_FIRST)):
        return
    stop = of.closing(at)
    inside = [token.text for token in of.tokens[at + 1 : stop]]
    words = " ".join(inside).replace("'", "")
    if of.is_word(stop + 1, "FROM"):
        _over_query(of, at, stop, words)
    elif "TUMBLING" in [word.upper() for word in inside]:
        _tumbling(of, at, stop, words)
    else:
        _behind_table(of, at, stop, words)


def _over_query(of: Tokens, at: int, stop: int, words: str) -> None:
    """Make a window behind the SELECT list the first key of GROUP BY."""
    made = of.new(f"{OVER}('{words}')", at)
    del of.tokens[at : stop + 1]
    end = of.next(at + 1, *_BEHIND_GROUP)
    if of.is_word(end, "GROUP", "GROUP BY"):
        end += 1 + of.is_word(end + 1, "BY")
        of.tokens[end:end] = [*made, *of.new(",", at)]
    else:
        of.tokens[end:end] = [*of.new("GROUP BY", at), *made]


def _tumbling(of: Tokens, at: int, stop: int, words: str) -> None:
    """Make the window of a tumbling join a condition of WHERE."""
    condition = of.new(f"{TUMBLING}('{words}')", at)
    stop += of.is_word(stop + 1, ",")
    del of.tokens[at : stop + 1]
    if of.is_word(at, "WHERE"):
        of.tokens[at + 1 : at + 1] = [*condition, *of.new("AND", at)]
    else:
        of.tokens[at:at] = [*of.new("WHERE", at), *condition]


def _behind_table(of: Tokens, at: int, stop: int, words: str) -> None:
    """Make a window behind a table, or behind its alias, the call of a window function."""
    last = at - 1
    if of.is_word(last - 1, "AS"):
        last -= 2
    elif of.is_word(last - 1, ")") or (of.is_name(last - 1) and of.is_word(last - 2, *_BEFORE_TABLE)):
        last -= 1
    first = of.opening(last) if of.is_word(last, ")") else last
    table, alias = of.tokens[first : last + 1], of.tokens[last + 1 : at]
    name, opened, comma, window, closed = of.new(f"{WINDOW}(,'{words}')", first)
    of.tokens[first : stop + 1] = [name, opened, *table, comma, window, closed, *alias]
