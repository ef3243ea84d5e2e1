"""``oop-engine generate``: a disordered trace, made to measure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from oop_engine.cli.options import check_output, json_option
from oop_engine.cli.output import ProgressLine, print_json, watching
from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import UsageError
from oop_engine.system.shown import shown

if TYPE_CHECKING:
    from oop_engine.core.operator import Message
    from oop_engine.traces.disorder import Link

__all__ = ["generate"]

_LENGTHS = ("duration", "band", "block", "late_by", "punctuate")


@click.command()
@click.argument("out", type=click.Path(path_type=Path), metavar="OUT")
@click.option(
    "--links", default="link:1000", show_default=True, metavar="NAME:RATE[:SKEW],...",
    help="Sources, their tuples per second, and how much later all of theirs arrives.",
)  # fmt: skip
@click.option(
    "--lull", "lulls", multiple=True, metavar="NAME:START:STOP", help="A link is silent for this long."
)
@click.option("--duration", default="1 min", show_default=True, help="Length of the trace, in event time.")
@click.option("--unit", default="ms", show_default=True, help="Unit of the times: s, ms, us or ns.")
@click.option("--band", default="0", show_default=True, help="Each tuple is late by 0 to this.")
@click.option("--block", default="0", show_default=True, help="Event time goes out in blocks of this length.")
@click.option("--late", type=float, default=0.0, show_default=True, help="Share of tuples later than that.")
@click.option("--late-by", default="0", show_default=True, help="Those are later by once to twice this.")
@click.option("--keys", type=int, default=1000, show_default=True, help="How many keys there are.")
@click.option("--zipf", type=float, default=1.0, show_default=True, help="Skew of the keys; 0: all alike.")
@click.option("--ipv4", is_flag=True, help="Keys as addresses instead of numbers.")
@click.option(
    "--punctuate",
    default="0",
    show_default=True,
    help="Let the trace carry punctuation at multiples of this.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Same seed, same trace."
)
@json_option
def generate(out: Path, links: str, lulls: tuple[str, ...], as_json: bool, **settings: Any) -> None:
    """Write a disordered trace, in the format of the suffix of OUT.

    The formats are .parquet, .arrow, .csv, .jsonl and .msgpack.  Columns: ts, link, key,
    len and arrival, in the order of arrival.  Lengths read like "90 s" or "15 min".

    \b
    A minute of one link, each tuple up to 2 s late:
      oop-engine generate trace.parquet --band "2 s"
    Two fast links and a slow one that is 5 s behind and silent for a while:
      oop-engine generate links.arrow --links a:5000,b:5000,c:1:5s --lull c:20s:40s
    Flows that go out at the end of each minute, with punctuation in the trace:
      oop-engine generate flows.msgpack --duration "1 h" --block "1 min" --punctuate "1 min"
    """
    from oop_engine.traces.disorder import Disorder
    from oop_engine.traces.format_registry import format_of
    from oop_engine.traces.trace_writing import write_trace

    format_of(out)
    check_output("OUT", out)
    _unit_must_be_of_time(settings["unit"])
    settings |= {name: _in_units(settings[name]) for name in _LENGTHS}
    disorder = Disorder(_links(links, lulls), **settings)
    with watching() as watch:
        watch.on_run(str(out), 0, 1)
        rows = write_trace(out, disorder.schema, _watched(disorder.messages(), watch))
    if as_json:
        print_json(
            {"trace": str(out), "tuples": rows, "bytes": out.stat().st_size, "schema": str(disorder.schema)}
        )
    else:
        click.echo(shown(f"{out}: {rows:,} tuples {disorder.schema}"))
        click.echo(
            shown(f"how disordered it is: oop-engine profile {out} --time ts --arrival arrival --by link")
        )


def _watched(messages: Iterable[Message], watch: ProgressLine) -> Iterator[Message]:
    from oop_engine.core.page import Page

    for message in messages:
        yield message
        if isinstance(message, Page):
            watch.on_tuples(len(message))


def _unit_must_be_of_time(unit: str) -> None:
    from oop_engine.core.units import TIME_UNITS

    if unit not in TIME_UNITS:
        msg = f"--unit must be one of {', '.join(TIME_UNITS)}; got {unit!r}{did_you_mean(unit, TIME_UNITS)}"
        raise UsageError(msg)


def _links(links: str, lulls: tuple[str, ...]) -> tuple[Link, ...]:
    from oop_engine.traces.disorder import Link

    silent: dict[str, list[tuple[int | str, int | str]]] = {}
    for text in lulls:
        name, start, stop = _parts(text, "--lull", "NAME:START:STOP", 3)
        silent.setdefault(name, []).append((_in_units(start), _in_units(stop)))
    parsed = []
    for text in links.split(","):
        name, rate, *skew = _parts(text, "--links", "NAME:RATE[:SKEW]", 2, 3)
        lull = tuple(silent.pop(name, ()))
        parsed.append(Link(name, _rate(rate, text), _in_units(skew[0]) if skew else 0, lull))
    if silent:
        name, names = next(iter(silent)), [link.name for link in parsed]
        msg = f"--lull: there is no link {name!r}; there are {', '.join(names)}{did_you_mean(name, names)}"
        raise UsageError(msg)
    return tuple(parsed)


def _parts(text: str, option: str, form: str, *wanted: int) -> list[str]:
    parts = [part.strip() for part in text.split(":")]
    if len(parts) not in wanted or not all(parts):
        msg = f"{option} must read like {form}; got {text!r}"
        raise UsageError(msg)
    return parts


def _rate(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError:
        msg = f"--links: a rate must be a number of tuples per second; got {text!r} in {whole!r}"
        raise UsageError(msg) from None


def _in_units(text: str) -> int | str:
    """Return a length: a plain number is one in the unit of the trace."""
    return int(text) if text.lstrip("+-").isdigit() else text
