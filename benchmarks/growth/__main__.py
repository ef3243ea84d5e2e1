"""Growth: ``python -m benchmarks.growth [KEYS...]``, costs while so many groups are asleep.

``python -m benchmarks.growth parameters [NAMES...]``: the other parameters, or some.
"""

from __future__ import annotations

import sys

from benchmarks.growth import asleep, parameters

_PARAMETERS = "parameters"


def main(arguments: list[str]) -> None:
    """Print the tables that are asked for; both if none is."""
    if arguments[:1] != [_PARAMETERS]:
        asleep.table([int(keys) for keys in arguments] or [1000, 10_000, 100_000, 1_000_000])
    if arguments[:1] in ([], [_PARAMETERS]):
        parameters.table(arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
