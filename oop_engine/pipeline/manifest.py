"""The manifest: an account of input and output, row by row, and the choices on the way.

For each source, and for all together: rows in = used + late + quarantined.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from oop_engine.core.errors import TraceError
from oop_engine.core.units import dated
from oop_engine.pipeline.declaration import Declaration, unreadable
from oop_engine.pipeline.inputs import ARROW_TYPES, Input
from oop_engine.pipeline.segmenting import source_names
from oop_engine.pipeline.steps import Steps
from oop_engine.traces.formats.csv_sniffed import as_data, csv_options

__all__ = ["hints_of", "manifest", "write_manifest"]

_PACKAGES = ("oop-engine", "pyspark", "pyarrow", "numpy")
_NOBODY = "unknown"


def manifest(
    declaration: Declaration, inputs: Sequence[Input], steps: Steps, start_s: float
) -> dict[str, Any]:
    """Return the manifest of the steps that are done.  Raises ``TraceError`` if rows are not accounted for."""
    done = steps.done
    parsed = steps.result("parse")
    files = [
        {"path": str(file.path), "bytes": file.nbytes, "rows": rows}
        for file, rows in zip(inputs, parsed["files"], strict=True)
    ]
    late = steps.result("run")["late"] if "run" in done else {}
    sources = _sources(parsed, late)
    rows = {figure: sum(source[figure] for source in sources.values()) for figure in ("rows", "used", "late")}
    rows["quarantined"] = sum(sum(source["quarantined"].values()) for source in sources.values())
    if not parsed["rows"] == rows["rows"] == rows["used"] + rows["late"] + rows["quarantined"]:
        msg = f"manifest: {parsed['rows']} rows went in, and the counts of what became of them do not add up: {rows}"
        raise TraceError(msg)
    return {
        "name": declaration.name,
        "declaration": str(declaration.path),
        "in": {"files": files, "bytes": sum(file.nbytes for file in inputs), "rows": parsed["rows"]},
        "rows": rows,
        "quarantined": _by_reason(parsed["quarantined"]),
        "hints": parsed.get("hints", {}),
        "sources": sources,
        "slices": steps.result("order")["slices"] if "order" in done else None,
        "profile": {name: _dated(source["profile"]) for name, source in _result(steps, "profile").items()},
        "policy": _result(steps, "policy"),
        "run": {key: value for key, value in _result(steps, "run").items() if key != "late"},
        "seconds": {"start": round(start_s, 3)} | {name: mark["seconds"] for name, mark in done.items()},
        "done_before": [name for name, mark in done.items() if mark["again"]],
        "versions": {"python": platform.python_version()} | {name: _version(name) for name in _PACKAGES},
    }


def hints_of(declaration: Declaration, examples: Mapping[str, str | None]) -> dict[str, str]:
    """Return options that read the cells of reasons, where there are any; ``examples``: a raw row by reason."""
    hints = {}
    for name, column in declaration.columns.items() if declaration.format == "csv" else ():
        text = _cell(examples.get(unreadable(name, column)), name)
        if text is None or column.format or column.type == "string":
            continue
        options = [
            " and ".join(f"{option} = {as_data(value)}" for option, value in each.items())
            for each in csv_options(text, ARROW_TYPES[column.type], declaration.csv)
        ]
        if options:
            hints[unreadable(name, column)] = f"[csv] {' or '.join(options)} reads {text!r}"
    return hints


def _cell(raw: str | None, name: str) -> str | None:
    try:
        row = json.loads(raw or "")
    except ValueError:
        return None
    text = row.get(name) if isinstance(row, dict) else None
    return text if isinstance(text, str) else None


def _sources(parsed: Mapping[str, Any], late: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    """Return the counts of rows of each source; rows whose source is unknown come last."""
    values = {q["source"] for q in parsed["quarantined"] if q["source"] is not None} | {*parsed["used"]}
    names: dict[str | None, str] = {value: _name(value, parsed["used"]) for value in sorted(values)}
    sources: dict[str, dict[str, Any]] = {}
    for value, name in (names | {None: _NOBODY}).items():
        refused = [q for q in parsed["quarantined"] if q["source"] == value]
        if value is None and not refused:
            continue
        used, by_reason = parsed["used"].get(value, 0), _by_reason(refused)
        late_rows = late.get(name, 0)
        rows = used + sum(by_reason.values())
        name = name if name not in sources else f"{name} (2)"
        sources[name] = {"rows": rows, "used": used - late_rows, "late": late_rows, "quarantined": by_reason}
    return sources


def _name(value: str, used: Mapping[str, int]) -> str:
    return source_names(list(used)).get(value, value)


def _by_reason(refused: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in refused:
        counts[row["reason"]] = counts.get(row["reason"], 0) + row["rows"]
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def _result(steps: Steps, name: str) -> dict[str, Any]:
    return steps.result(name) if name in steps.done else {}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def write_manifest(path: Path, values: Mapping[str, Any]) -> None:
    """Write a manifest, whole or not at all."""
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(values, indent=1, default=str), encoding="utf-8")
    unfinished.replace(path)


def _dated(profile: dict[str, Any]) -> dict[str, Any]:
    """Return a profile with its moments as RFC 3339 has them."""
    return {
        **profile, **{name: dated(profile[name], profile["unit"]) or profile[name] for name in ("first", "last")}
    }  # fmt: skip
