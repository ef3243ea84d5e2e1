"""Contract: the messages that an operator passes on, its state, its punctuation, from the docstring of its module."""

from __future__ import annotations

import inspect
import re
from textwrap import dedent

from oop_engine.core.operator import Operator

__all__ = ["HEADINGS", "contract"]

HEADINGS = ("Pass", "Keep", "Propagate", "Cost", "Source")


def contract(operator: Operator) -> dict[str, str]:
    """Return the contract of an operator: Pass, Keep, Propagate... from the docstring of its module.

    Without these headings, it is the first paragraph of its class.
    """
    text = inspect.getdoc(inspect.getmodule(type(operator))) or ""
    marks = list(re.finditer(rf"^ +({'|'.join(HEADINGS)})\b ?(?= )", text, re.MULTILINE))
    if not marks:
        about = inspect.getdoc(type(operator)) or ""
        return {"About": about.split("\n\n")[0]}
    stops = [mark.start() for mark in marks[1:]] + [len(text)]
    return {
        mark[1]: _paragraph(text[mark.end() : stop], mark) for mark, stop in zip(marks, stops, strict=True)
    }


def _paragraph(text: str, mark: re.Match[str]) -> str:
    """Return the words behind a heading, lines kept, without the indentation they share."""
    block = text.split("\n\n")[0].rstrip()
    return dedent(" " * len(mark[0]) + block)
