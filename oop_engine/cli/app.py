"""The program: its commands, its exit codes, and errors in one line."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper
from typing import Any, NoReturn

import click

from oop_engine.core.close_names import closest_or_all
from oop_engine.core.errors import EngineError, OperatorError
from oop_engine.system.addresses import typed_secrets
from oop_engine.system.python_file import forget
from oop_engine.system.shown import shown

__all__ = ["app", "main"]

BAD_INPUT, A_BUG, INTERRUPTED, TERMINATED = 2, 70, 130, 143
COMMANDS = {
    "checkpoints": "List the checkpoints of a service: their age, their bytes, and the bounds of its edges.",
    "compare": "Run a scenario, or a graph of yours over traces, in order and out of order, and check both.",
    "dead-letters": "List the dead letters in DIR, show them, or feed them again.",
    "explain": "Show each plan of a scenario: its graph, when it emits, its state, and which tuples are late.",
    "generate": "Write a disordered trace, in the format of the suffix of OUT.",
    "new": "Write a file to begin with: a part of your own, and its test.",
    "pipeline": "Make raw events ready to run, on Spark, and run a graph on them.",
    "profile": "Measure the disorder of a trace, and print the cost of each policy of punctuation.",
    "replay": "Run one plan of a scenario and show its results, and the work and state of each operator.",
    "run": "Run a graph of yours: over traces to their end, or live, until Ctrl-C or SIGTERM.",
    "scenarios": "List the scenarios by source: their questions, their parameters with defaults, and their sweeps.",
    "sources": "List sources, sinks, formats, and the windows and aggregates of SQL, by name, with who brings each.",
    "sql": "Answer a query in SQL over files; without QUERY, a prompt.",
    "why": "Print which input held back the results of a service, at its last checkpoint in DIR.",
    "warm": "Compile the kernels that most graphs use, and keep them for all later runs.",
}
"""The first sentence of each command, so that help need not load them."""

_HOMES = {
    "why": "checkpoints",
    "dead-letters": "checkpoints",
    "new": "templates.new",
    "sources": "running.sources",
}
"""The file of a command, where it has not its name."""

_EXIT_CODES = (
    "Exit codes: 0 done, and all claims hold; 1 a claim fails; 2 bad input, in one line on stderr; 70 a bug; "
    "130 Ctrl-C; 143 SIGTERM."
)

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


class App(click.Group):
    """A group of commands that never shows a traceback for an error that a user can mend."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run a command and leave with its exit code."""
        extra["standalone_mode"] = False
        run = super().main
        given = extra.get("args", args[0] if args else None)
        with _signals():
            code = _exit_code(
                lambda: run(*args, **extra), typed_secrets(sys.argv[1:] if given is None else given)
            )
        sys.exit(code)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command; None: there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        home = _HOMES.get(cmd_name, cmd_name)
        command: click.Command = getattr(import_module(f"oop_engine.cli.{home}"), cmd_name.replace("-", "_"))
        command.epilog = _EXIT_CODES
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the arguments; a name that is close is in the error."""
        name = args[0] if args else ""
        if name not in COMMANDS and not name.startswith("-"):
            ctx.fail(f"No such command {name!r}{closest_or_all(name, COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the arguments, which may print help."""
        with _pipe():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; click's own way with Ctrl-C is not ours, and it takes an end of file for one."""
        try:
            with _pipe(), _compiling():
                result = super().invoke(ctx)
                sys.stdout.flush()
        except KeyboardInterrupt:
            raise click.Abort from None
        except EOFError as error:
            msg = "an unexpected end of file"
            raise RuntimeError(msg) from error
        finally:
            forget()
        return result


@click.group(
    "oop-engine",
    cls=App,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="oop-engine", prog_name="oop-engine")
@click.pass_context
def app(ctx: click.Context) -> None:
    """Window queries over disordered streams, in order and out of order, side by side.

    \b
    List the scenarios:
      oop-engine scenarios
    Run a question in both orders, check the claims, write a report:
      oop-engine compare nyc_flights --report flights.html
    One plan, its results, and the state of each operator:
      oop-engine replay nyc_flights --order out
    A plan, in words or as a picture:
      oop-engine explain nyc_flights --svg plans.svg
    A graph of your own, over a file or live:
      oop-engine run graph.py --source requests=tail:access.jsonl --sink counts=parquet:out --checkpoint state
    The disorder of a trace of your own, and policies for it:
      oop-engine profile trace.parquet --time ts --by link

    A scenario is named, or is the path of a .py file of yours with SCENARIO = Scenario(...).

    \b
    Exit codes:
      0   done, and all claims hold
      1   a claim fails
      2   bad input; one line on stderr names it and its place
      70  a bug; please report the traceback
      130 interrupted by Ctrl-C
      143 terminated by SIGTERM

    Names complete in bash: eval "$(_OOP_ENGINE_COMPLETE=bash_source oop-engine)"; in zsh and fish the same with
    zsh_source and fish_source.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main() -> NoReturn:
    """Run the program with the arguments of the process."""
    app.main(prog_name="oop-engine")


class _ReaderGone(Exception):  # noqa: N818  (it is no error)
    """The reader of our output has closed it."""


@contextmanager
def _pipe() -> Iterator[None]:
    """Take a closed pipe before click does: other programs end with 0 then."""
    try:
        yield
    except BrokenPipeError as error:
        raise _ReaderGone from error


@contextmanager
def _signals() -> Iterator[None]:
    """Remove unfinished files at Ctrl-C and SIGTERM; a handler that was set before stays."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    if before is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminated(*_: Any) -> NoReturn:
    os.write(2, b"error: terminated\n")
    raise SystemExit(TERMINATED)


def _exit_code(run: Callable[[], Any], secrets: Sequence[str]) -> int:
    """Run a command and return its exit code; ``secrets``: texts that no error may have."""

    def fail(message: str, code: int) -> int:
        return _fail(_without(secrets, message), code)

    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (for as long as the process lives)
    if sys.stdout is None:
        return fail("standard output is closed: send it to a file, or to /dev/null", BAD_INPUT)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a locale need not have all characters
    try:
        status = run()
    except (click.Abort, KeyboardInterrupt):
        return fail("interrupted", INTERRUPTED)
    except click.UsageError as error:
        return fail(f"{error.format_message()}{_way_out(error)}", BAD_INPUT)
    except click.ClickException as error:
        return fail(error.format_message(), BAD_INPUT)
    except OperatorError:
        return _bug(secrets)
    except EngineError as error:
        return fail(str(error), BAD_INPUT)
    except _ReaderGone:
        return _forget_stdout()
    except OSError as error:
        if error.filename is None and error.errno not in _NO_ROOM:
            return _bug(secrets)
        if error.filename is None:
            _forget_stdout()
        place = "standard output cannot be written" if error.filename is None else error.filename
        return fail(f"{place}: {error.strerror}", BAD_INPUT)
    except Exception:
        return _bug(secrets)
    return status if isinstance(status, int) else 0


@contextmanager
def _compiling() -> Iterator[None]:
    """Report kernels that are compiled meanwhile."""
    from oop_engine.system.stopwatch import COMPILED

    COMPILED.on_first = lambda: print(
        "compiling kernels, once on this machine ...", file=sys.stderr, flush=True
    )
    kernels, wall_s = COMPILED.kernels, COMPILED.wall_s
    try:
        yield
    finally:
        if more := COMPILED.kernels - kernels:
            compiled = f"{more} kernel{'s' if more > 1 else ''} in {COMPILED.wall_s - wall_s:.1f} s"
            print(f"compiled {compiled} (once per machine; not included in the timings)", file=sys.stderr)


def _fail(message: str, code: int) -> int:
    lines = message.splitlines() if message.startswith("sql: line") else [" ".join(message.split())]
    print("\n".join(map(shown, ["error: " + lines[0], *lines[1:]])), file=sys.stderr)
    return code


def _without(secrets: Sequence[str], text: str) -> str:
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def _way_out(error: click.UsageError) -> str:
    return f" See {error.ctx.command_path} --help" if error.ctx is not None else ""


def _bug(secrets: Sequence[str]) -> int:
    print(shown(_without(secrets, traceback.format_exc())), end="", file=sys.stderr)
    return A_BUG


def _forget_stdout() -> int:
    """Silence errors of output on exit: the reader of our output has closed it, or the disk is full."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0
