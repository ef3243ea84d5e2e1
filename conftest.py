"""Python blocks in the documentation are tests: those of one page run in one namespace, in order."""

from __future__ import annotations

import os

os.environ.setdefault("MPLBACKEND", "Agg")

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "docs/*.md", "docs/**/*.md", "operators/README.md"],
).pytest()
