"""Sheet: a comparison as CSV, a row for each run, with its parameters, versions and data."""

from __future__ import annotations

import csv
from io import StringIO
from typing import TYPE_CHECKING, Any

from oop_engine.lab.report.words import plain

if TYPE_CHECKING:
    from oop_engine.lab.comparison import Comparison

__all__ = ["sheet"]

_ALIKE = ("scenario", "data", "float_error", "peak_rss_bytes")


def sheet(comparison: Comparison) -> str:
    """Return the figures of ``--json`` as CSV: the parameters and figures of each run, and those of the comparison.

    Columns: the run's as in JSON, and ``parameters.NAME`` for each parameter, then the scenario, the fingerprint of
    the data, the error of floats, the peak RSS and ``versions.NAME`` of Python and of each package.  Unknown is empty.
    """
    whole: dict[str, Any] = plain(comparison.to_dict())
    alike = {name: whole[name] for name in _ALIKE} | _named("versions", whole["versions"])
    rows = [
        {name: value for name, value in run.items() if name != "parameters"}
        | _named("parameters", run["parameters"])
        | alike
        for run in whole["runs"]
    ]
    text = StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _named(group: str, values: dict[str, Any]) -> dict[str, Any]:
    return {f"{group}.{name}": value for name, value in values.items()}
