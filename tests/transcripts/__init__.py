"""Semantics as data: what comes in, what is promised, and what must have come out by then.

A file is a list of ``[[transcript]]`` in TOML::

    name     what is to be learned from it
    columns  source -> columns and types; the first one makes progress, its unit is "s"
    edge     source -> what stands at its edge; default Punctuate(Upstream())
    graph    lines ``name = Operator(...) <- inputs``; the last one leads to the sink ``out``
    sinks    more sinks, name -> stream
    twin     why there is no in-order twin
    order    why the order of arrival matters
    script   lines:  ``source  ts=3 k=a``          a tuple (``null`` is null)
                     ``source  below 10``          no later tuple has a smaller time
                     ``source  k=a below 10``      the same of one group
                     ``source  watermark 10``, ``source  k=a watermark 10``    the same, softly
                     ``source  ends``, ``source  k=a ends``
                     ``source  adds ten=Tumbling(10) at 30``, ``source  drops ten at 50``
                     ``clock 40``                  the arrival clock shows 40
                     ``> window_end=10 n=2``       this has come out by now (``top=5:2,7:1``: values, their counts)
                     ``late> ts=3``                on another sink
                     ``end``                       all sources end

Of results only the columns that the script names are compared.  What nobody says has come
out must not have come out.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from oop_engine import FOREVER, Change, GroupWise, Linear, Operator, Punctuation, Schema, Watermark
from oop_engine.core.graphs.graph import Graph, Stream

__all__ = ["Clock", "Expected", "Row", "Step", "Transcript", "transcripts"]

Row = dict[str, Any]
Expected = dict[str, Counter[tuple[Any, ...]]]
"""Of each sink: the rows, as a multiset of the values of the columns that are compared."""

_MODULES = (
    "aggregates", "joining.bands", "edge.prune_punctuation", "distinct", "expire", "levels.low_level_aggregate", "meld",
    "policies.late", "multi_way_join", "oa_join", "policies.policies", "policies.by_quantile", "policies.timer",
    "project", "edge.punctuate", "filter", "triggers", "values.flush", "window_aggregate", "windows",
)  # fmt: skip
_VOCABULARY: dict[str, Any] = {}
for _module in _MODULES:
    _found = import_module(f"oop_engine.operators.{_module}")
    _VOCABULARY |= {_name: getattr(_found, _name) for _name in dir(_found)}

_VOCABULARY["field"] = pc.field

_TYPES = {"int": pa.int64(), "float": pa.float64(), "text": pa.string()}
_READ = {"int": int, "float": float, "text": str}


@dataclass(frozen=True)
class Clock:
    now: int


@dataclass
class Step:
    """Tuples that come between two promises, then a promise, then all that is out by then."""

    rows: list[tuple[str, Row]] = field(default_factory=list)
    then: tuple[str, Punctuation | Change] | Clock | None = None  # None: everything ends
    out: Expected = field(default_factory=dict)


@dataclass(frozen=True)
class Transcript:
    name: str
    graph: Graph
    steps: list[Step]
    compared: dict[str, list[str]]
    twin: str | None
    order: str | None

    @property
    def expected(self) -> Expected:
        return self.steps[-1].out

    def schema(self, source: str) -> Schema:
        schema = self.graph.nodes[source].schema
        assert schema is not None
        return schema

    def values(self, rows: list[tuple[str, Row]]) -> Expected:
        """Return results, (sink, row), as they are compared."""
        found: Expected = {}
        for sink, row in rows:
            of_row = tuple(_comparable(row[name]) for name in self.compared.get(sink, []))
            found.setdefault(sink, Counter())[of_row] += 1
        return found


def transcripts(file: str) -> list[Transcript]:
    path = Path(__file__).parent / file
    return [_transcript(**entry) for entry in tomllib.loads(path.read_text())["transcript"]]


def _transcript(
    name: str, columns: dict[str, dict[str, str]], graph: str, script: str,
    edge: dict[str, str] | None = None, sinks: dict[str, str] | None = None,
    twin: str | None = None, order: str | None = None,
) -> Transcript:  # fmt: skip
    built = Graph(re.sub(r"\W+", "-", name))
    for source, kinds in columns.items():
        built.source(source, Schema({n: _TYPES[kind] for n, kind in kinds.items()}, next(iter(kinds)), "s"))
        built.add(f"{source}-edge", _operator((edge or {}).get(source, "Punctuate(Upstream())")), source)
    last = ""
    for line in graph.strip().splitlines():
        last, operator, inputs = re.fullmatch(r"(\w+) = (.*?) <- (.*)", line.strip()).groups()  # type: ignore[union-attr]
        streams = [re.sub(rf"^({'|'.join(columns)})\b", r"\1-edge", stream) for stream in inputs.split()]
        built.add(last, _operator(operator), *streams)
    built.sink("out", last)
    for sink, stream in (sinks or {}).items():
        built.sink(sink, re.sub(rf"^({'|'.join(columns)})\b", r"\1-edge", stream))
    steps, compared = _Reader(built).read(script)
    return Transcript(name, built, steps, compared, twin, order)


def _operator(text: str) -> Operator:
    words = _VOCABULARY | {"__builtins__": {"__import__": __import__}}  # Arrow imports to read a number
    built: Operator = eval(text, words)  # a transcript is a part of the tests
    return built


class _Reader:
    """Reads a script for a graph."""

    def __init__(self, graph: Graph) -> None:
        plan = graph.plan()
        self.schemas = {node.name: plan.schema(Stream(node.name, "out")) for node in plan.of_kind("source")}
        self.schemas |= {f"{node.name}>": plan.schema(node.inputs[0]) for node in plan.of_kind("sink")}
        self.schemas[">"] = self.schemas["out>"]
        self.compared: dict[str, list[str]] = {}
        self.version = 0

    def read(self, script: str) -> tuple[list[Step], dict[str, list[str]]]:
        steps = [Step()]
        closed = False
        out: Expected = {}
        for line in filter(None, (line.partition("#")[0].strip() for line in script.splitlines())):
            who, *what = line.split()
            if who.endswith(">"):
                self._expect(who, what, out)
                continue
            if closed:
                steps[-1].out = {sink: Counter(rows) for sink, rows in out.items()}
                steps.append(Step())
            closed = self._happen(who, what, steps[-1])
        assert closed, "a script ends with 'end'"
        assert steps[-1].then is None
        steps[-1].out = out
        return steps, self.compared

    def _expect(self, who: str, what: list[str], out: Expected) -> None:
        row = self._row(who, what)
        sink = who.rstrip(">") or "out"
        assert self.compared.setdefault(sink, list(row)) == list(row), f"other columns than before: {what}"
        out.setdefault(sink, Counter())[tuple(row.values())] += 1

    def _happen(self, who: str, what: list[str], step: Step) -> bool:
        """Add to a step; return whether it is complete now."""
        if who == "end":
            return True
        if who == "clock":
            step.then = Clock(int(what[0]))
        elif what[0] in ("adds", "drops"):
            step.then = who, self._change(*what)
        elif what[-1] == "ends":
            step.then = who, self._promise(who, what[:-1], FOREVER)
        elif "watermark" in what:
            bound = self._promise(who, what[:-2], int(what[-1]))
            assert isinstance(bound, Linear | GroupWise)
            step.then = who, Watermark(bound)
        elif "below" in what:
            step.then = who, self._promise(who, what[:-2], int(what[-1]))
        else:
            step.rows.append((who, self._row(who, what)))
        return step.then is not None

    def _change(self, kind: str, what: str, _: str, at: str) -> Change:
        self.version += 1
        name, _, windows = what.partition("=")
        if kind == "drops":
            return Change(self.version, int(at), drop=(name,))
        return Change(self.version, int(at), add={name: eval(windows, dict(_VOCABULARY))})

    def _promise(self, source: str, group: list[str], below: int) -> Punctuation:
        if not group:
            return Linear(below)
        row = self._row(source, group)
        schema = self.schemas[source]
        columns = [pa.array([value], schema.type_of(name)) for name, value in row.items()]
        return GroupWise.of(dict(zip(row, columns, strict=True)), [below])

    def _row(self, who: str, what: list[str]) -> Row:
        schema = self.schemas[who]
        names = {str(kind): name for name, kind in _TYPES.items()}
        found = {}
        for name, text in (word.split("=") for word in what):
            kind = schema.type_of(name)
            read = _counted if pa.types.is_list(kind) else _collected if pa.types.is_struct(kind) else None
            read = read or _READ[names[str(kind)]]
            found[name] = None if text == "null" else read(text)
        return found


def _collected(text: str) -> tuple[tuple[str, ...], int]:
    """Return collected texts, and how many there are beyond: ``b,a+1``."""
    values, _, beyond = text.partition("+")
    return tuple(values.split(",")), int(beyond or 0)


def _counted(text: str) -> tuple[tuple[int, int], ...]:
    """Return values with their counts: ``5:2,7:1``."""
    pairs = (pair.split(":") for pair in text.split(","))
    return tuple((int(value), int(count)) for value, count in pairs)


def _comparable(value: Any) -> Any:
    if isinstance(value, dict):  # of collected values
        return tuple(value["values"]), value["beyond"]
    return tuple(tuple(one.values()) for one in value) if isinstance(value, list) else value
