"""Scenario: a question, a trace, the plans that answer it, and claims about their figures.

A scenario is one Python file with a value ``SCENARIO``.  Those of the project are in the
package ``scenarios``; a user's own is given by its path.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from oop_engine.core.close_names import closest_or_all
from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.graph import Graph
from oop_engine.lab.run import Run, Values
from oop_engine.operators.rewrites.pruned import pruned
from oop_engine.system.python_file import load_file

__all__ = [
    "COMPLETE_AT",
    "Claim",
    "Parameter",
    "Scenario",
    "Sweep",
    "Timed",
    "Values",
    "Variant",
    "find",
    "load",
    "names",
]

Feeds = Mapping[str, Any]
COMPLETE_AT = "complete_at"
"""Column of a truth table: when the last tuple of the row had arrived (int64)."""


_TRUTH = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass(frozen=True)
class Parameter:
    """A knob: its default (which also gives the type), its meaning, and a smallest value.

    ``enough``: below this value a trace is too short for the claims of the scenario, and they are not checked.
    """

    default: int | float | str | bool
    about: str
    least: float | None = None
    enough: float | None = None

    def parse(self, text: str, name: str) -> int | float | str | bool:
        """Return ``text`` as a value.  Raises ``UsageError`` where it is none."""
        kind = type(self.default)
        try:
            value = _TRUTH[text.lower()] if kind is bool else kind(text)
        except (KeyError, ValueError):
            msg = f"parameter {name!r} must be {kind.__name__}; got {text!r} (default {self.default!r})"
            raise UsageError(msg) from None
        if self.least is not None and not isinstance(value, str) and not value >= self.least:
            msg = f"parameter {name!r} must be at least {self.least:g}; got {text!r}"
            raise UsageError(msg)
        return value


@dataclass(frozen=True)
class Sweep:
    """The parameter that a comparison varies, and the values it takes.  ``unit`` is for plots."""

    parameter: str
    values: tuple[int | float | str, ...]
    unit: str = ""


@dataclass(frozen=True)
class Variant:
    """One plan that answers the question, in order or out of order.

    ``exact``: the plan is to give the true answer, and a comparison fails if it does not; False
    for a plan that drops late tuples.
    """

    name: str
    order: Literal["in", "out"]
    graph: Graph
    exact: bool = True


@dataclass(frozen=True)
class Claim:
    """A statement, whether the runs bear it out (None: it was not checked), and the figures it rests on."""

    claim: str
    holds: bool | None
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> Literal["holds", "fails", "not checked"]:
        """Return ``holds`` in words."""
        return "not checked" if self.holds is None else "holds" if self.holds else "fails"


@dataclass(frozen=True)
class Timed(Claim):
    """A claim that rests on times that were measured: a machine that is busy may upset it."""


def _no_claims(runs: list[Run]) -> list[Claim]:
    return []


@dataclass(frozen=True)
class Scenario:
    """Everything a comparison needs.

    ``feeds(values)``: for each source its rows and messages, in any form that ``replay`` takes, in arrival order;
    called once a run.
    ``variants(values)``: the plans; each has one sink.
    ``truth(values)``: the answer by brute force, from the definition and without the
    engine, with the columns of the sink and ``COMPLETE_AT``, as a table, a frame, a dictionary of columns or a list of
    dictionaries; None: it is computed from the
    graph where that can be (``oop_engine.lab.brute_force``), and else nothing is called true.
    ``keys``: the columns that identify a result.  ``claims(runs)``: statements about the runs, checked.
    ``drops_late``: plans may drop late tuples, and have to be exact only where no tuple is late.
    ``needs``: extra packages, by the name one imports and the name one installs.
    ``source``: the publication whose figures it shows anew; lists are grouped by it.  ``file``: where it was
    loaded from, if that was a file.
    """

    name: str
    title: str
    about: str
    feeds: Callable[[Values], Feeds]
    variants: Callable[[Values], list[Variant]]
    keys: tuple[str, ...]
    truth: Callable[[Values], Any] | None = None
    claims: Callable[[list[Run]], list[Claim]] = _no_claims
    parameters: dict[str, Parameter] = field(default_factory=dict)
    sweep: Sweep | None = None
    needs: dict[str, str] = field(default_factory=dict)
    drops_late: bool = False
    source: str = ""
    file: str = ""

    def values(self, settings: Mapping[str, str] | None = None) -> Values:
        """Return the parameters' values, some of them set by text.

        Raises ``UsageError`` for an unknown name or a value that does not fit.
        """
        values: Values = {name: parameter.default for name, parameter in self.parameters.items()}
        for name, text in (settings or {}).items():
            if name not in self.parameters:
                msg = (
                    f"scenario {self.name!r} has no parameter {name!r}{closest_or_all(name, self.parameters)}"
                )
                raise UsageError(msg)
            values[name] = self.parameters[name].parse(text, name)
        return values

    def plans(self, values: Values) -> list[Variant]:
        """Return the plans as they run: in all of them only the columns that are read travel, by one rule."""
        return [replace(variant, graph=pruned(variant.graph)) for variant in self.variants(values)]

    def checked(self, runs: list[Run]) -> list[Claim]:
        """Return the claims on runs; where a parameter is below ``enough`` they are not checked, but for agreement."""
        claims = self.claims(runs) if runs else []
        few = [
            f"{name} {value} is below {known.enough:g}"
            for name, known in self.parameters.items()
            if known.enough is not None
            and (value := min(run.parameters[name] for run in runs)) < known.enough
        ]
        return (
            [replace(claim, holds=None, figures={"not checked": ", ".join(few)}) for claim in claims]
            if few
            else claims
        )

    def missing(self) -> str:
        """Return which packages are not installed that the scenario needs, and the way out; "" if none."""
        packages = [
            package for module, package in self.needs.items() if importlib.util.find_spec(module) is None
        ]
        if not packages:
            return ""
        return f"it needs {', '.join(packages)}, not installed here: {_install_hint(packages)}"

    def check_needs(self) -> None:
        """Raise ``UsageError`` if a package that the scenario needs is not installed."""
        if missing := self.missing():
            msg = f"scenario {self.name!r}: {missing}"
            raise UsageError(msg)


def _install_hint(packages: list[str]) -> str:
    """Return the command that installs packages: as an extra of this one, if that is installed and has them."""
    try:
        requirements = importlib.metadata.requires("oop-engine") or []
    except importlib.metadata.PackageNotFoundError:
        requirements = []
    extra = all(
        any(a.startswith(package) and "'scenarios'" in a.replace('"', "'") for a in requirements)
        for package in packages
    )
    return "pip install 'oop-engine[scenarios]'" if extra else f"pip install {' '.join(packages)}"


def names() -> list[str]:
    """Return the names of the scenarios that come with the project."""
    return sorted(_modules())


def _modules() -> dict[str, str]:
    """Return the module of each scenario of the project, by its name: the last part of the module's."""
    package = importlib.import_module("oop_engine.scenarios")
    names = [module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    return {
        name.rpartition(".")[2]: name for name in names if hasattr(importlib.import_module(name), "SCENARIO")
    }


def load(name: str) -> Scenario:
    """Return a scenario by its name or by the path of its file, if all is installed that it needs.

    Raises ``UsageError`` if there is none.
    """
    scenario = find(name)
    scenario.check_needs()
    return scenario


def find(name: str) -> Scenario:
    """Return a scenario by its name or by the path of its file, whether it can run here or not.

    Raises ``UsageError`` if there is none.
    """
    if name.endswith(".py") or "/" in name:
        module = load_file(Path(name), "scenario")
    elif name in (known := _modules()):
        module = importlib.import_module(known[name])
    else:
        msg = f"no scenario {name!r}{closest_or_all(name, sorted(known))}, or give the path of a .py file"
        raise UsageError(msg)
    scenario = getattr(module, "SCENARIO", None)
    if not isinstance(scenario, Scenario):
        msg = f"{name}: a scenario file must define SCENARIO = Scenario(...); got {scenario!r}"
        if hasattr(module, "graph"):
            msg += "; it has a graph: `oop-engine run` runs that, and `oop-engine explain` shows it"
        raise UsageError(msg)
    return replace(scenario, file=name) if name.endswith(".py") or "/" in name else scenario
