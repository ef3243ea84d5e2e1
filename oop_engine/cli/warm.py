"""``oop-engine warm``: compile kernels beforehand, once on a machine."""

from __future__ import annotations

from dataclasses import asdict

import click

from oop_engine.cli.options import json_option
from oop_engine.cli.output import only_json, print_json

__all__ = ["warm"]


@click.command()
@click.option(
    "--spark",
    is_flag=True,
    help="Also archive the classes of Spark: with Java 17 a session starts in half the time.",
)
@json_option
def warm(spark: bool, as_json: bool) -> None:
    """Compile the kernels that most graphs use, and keep them for all later runs.

    It takes a minute or two, and nothing the second time.  They are kept beside the installed package, or in the
    cache folder of the user where that cannot be written; NUMBA_CACHE_DIR names another place.  Give it to
    an image or a machine that is installed ahead.

    \b
    Compile now, so that no first run is slow:
      oop-engine warm

    \b
    The same, and sessions of Spark start in half the time; another minute, and 170 MB:
      oop-engine warm --spark
    """
    from oop_engine.lab import warm_kernels as kernels
    from oop_engine.lab.warm_spark import spark_java, warm_spark

    compiled, archive = [], None
    with only_json(as_json):
        if spark:
            spark_java()  # without it no minute is spent on kernels
        for warmed in kernels.warm_all():
            compiled.append(warmed)
            if not as_json:
                click.echo(f"{warmed.what}: {warmed.kernels} kernels, {warmed.wall_s:.1f} s")
        folder = kernels.cache_folder()
        if not as_json:
            click.echo(f"all kernels are in {folder}")
        if spark:
            archive = str(warm_spark())
    if as_json:
        print_json({"folder": folder, "compiled": [asdict(warmed) for warmed in compiled], "spark": archive})
    elif archive is not None:
        click.echo(f"the classes of Spark are in {archive}")
