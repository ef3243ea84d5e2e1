"""The program: its commands, its exit codes, and errors in one line."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

import click

from oop_engine.cli.compare import compare
from oop_engine.cli.explain import explain
from oop_engine.cli.generate import generate
from oop_engine.cli.pipeline import pipeline
from oop_engine.cli.profile import profile
from oop_engine.cli.replay import replay
from oop_engine.cli.scenarios import scenarios
from oop_engine.errors import EngineError, OperatorError
from oop_engine.stopwatch import COMPILED

__all__ = ["app", "main"]

BAD_INPUT, A_BUG, INTERRUPTED, PIPE_CLOSED = 2, 70, 130, 141


class App(click.Group):
    """A group of commands that never shows a traceback for what a user can mend."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run a command and leave with its exit code."""
        extra["standalone_mode"] = False
        run = super().main
        COMPILED.on_first = _compiling
        before = replace(COMPILED)
        code = _exit_code(lambda: run(*args, **extra))
        _compiled(COMPILED.kernels - before.kernels, COMPILED.wall_s - before.wall_s)
        sys.exit(code)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; click's own way with Ctrl-C and closed pipes is not ours."""
        try:
            found = super().invoke(ctx)
            sys.stdout.flush()
        except KeyboardInterrupt:
            raise click.Abort from None
        except BrokenPipeError:
            _forget_stdout()
            return PIPE_CLOSED
        return found


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
    What there is to ask:
      oop-engine scenarios
    Run a question in both orders, check the claims, write a report:
      oop-engine compare nyc_flights --report flights.html
    One plan, its results, and what each operator kept:
      oop-engine replay nyc_flights --order out
    What a plan does, in words or as a picture:
      oop-engine explain nyc_flights --svg plans.svg
    How disordered a trace of your own is, and what to do about it:
      oop-engine profile trace.parquet --time ts --by link

    A scenario is named, or is the path of a .py file of yours with SCENARIO = Scenario(...).

    \b
    Exit codes:
      0   done, and all claims hold
      1   a claim fails
      2   bad input; one line on stderr says what and where
      70  a bug; please report the traceback
      130 interrupted by Ctrl-C
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for _command in (scenarios, replay, compare, explain, profile, generate, pipeline):
    app.add_command(_command)


def main() -> NoReturn:
    """Run the program with the arguments of the process."""
    app.main(prog_name="oop-engine")


def _exit_code(run: Callable[[], Any]) -> int:
    try:
        found = run()
    except click.Abort:
        return _fail("interrupted", INTERRUPTED)
    except click.UsageError as error:
        return _fail(f"{error.format_message()}{_way_out(error)}", BAD_INPUT)
    except click.ClickException as error:
        return _fail(error.format_message(), BAD_INPUT)
    except OperatorError:
        return _bug()
    except EngineError as error:
        return _fail(str(error), BAD_INPUT)
    except OSError as error:
        if error.filename is None:
            return _bug()
        return _fail(f"{error.filename}: {error.strerror}", BAD_INPUT)
    except Exception:
        return _bug()
    return found if isinstance(found, int) else 0


def _compiling() -> None:
    print("compiling kernels, once on this machine ...", file=sys.stderr, flush=True)


def _compiled(kernels: int, wall_s: float) -> None:
    if kernels:
        what = f"{kernels} kernel{'s' if kernels > 1 else ''} in {wall_s:.1f} s"
        print(f"compiled {what}, which no figure contains; from now on they are loaded", file=sys.stderr)


def _fail(message: str, code: int) -> int:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return code


def _way_out(error: click.UsageError) -> str:
    return f" See {error.ctx.command_path} --help" if error.ctx is not None else ""


def _bug() -> int:
    traceback.print_exc()
    return A_BUG


def _forget_stdout() -> None:
    """Whoever read our output has gone: let nothing complain about it on the way out."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
