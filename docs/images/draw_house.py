"""Draws house.svg: the rooms of the package, floor above floor, and which room imports which.

    python docs/images/draw_house.py

An arrow that follows from two others is left out; the description in the file has all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl

from tests.rooms import Rooms, description, floors, imports, without_shortcuts

__all__ = ["PICTURE", "draw"]

PICTURE = Path(__file__).with_name("house.svg")
WIDTH, HEIGHT, ACROSS, UP = 1.75, 0.5, 1.95, 1.05
MARGIN = 0.15
OPERATORS, OTHERS = "#dcebf7", "#f3eee2"


def draw(rooms: Rooms, picture: Path = PICTURE) -> None:
    """Draw the rooms; the same rooms give the same bytes."""
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "house"
    mpl.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot as plt

    places = _places(rooms)
    across, up = (max(place[i] for place in places.values()) for i in (0, 1))
    figure = plt.figure(figsize=(across + WIDTH + 2 * MARGIN, up + HEIGHT + 2 * MARGIN))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(
        xlim=(-WIDTH / 2 - MARGIN, across + WIDTH / 2 + MARGIN),
        ylim=(-HEIGHT / 2 - MARGIN, up + HEIGHT / 2 + MARGIN),
    )
    axes.axis("off")
    for room, below in without_shortcuts(rooms).items():
        for each in sorted(below):
            _arrow(axes, places[room], places[each])
    for room, (x, y) in places.items():
        corner = x - WIDTH / 2, y - HEIGHT / 2
        colour = OPERATORS if room.startswith("operators") else OTHERS
        axes.add_patch(plt.Rectangle(corner, WIDTH, HEIGHT, facecolor=colour, edgecolor="#444444", zorder=2))
        axes.text(x, y, room.replace("operators/", "…/"), ha="center", va="center", fontsize=11, zorder=3)
    figure.savefig(picture, metadata={"Date": None, "Description": description(rooms)})
    plt.close(figure)


def _places(rooms: Rooms) -> dict[str, tuple[float, float]]:
    """Return the middle of each room: its floor, and in it above the rooms that it imports, as far as there is room."""
    heights, lines = floors(rooms), without_shortcuts(rooms)
    places: dict[str, tuple[float, float]] = {}
    for floor in range(max(heights.values()) + 1):
        here = sorted(room for room, at in heights.items() if at == floor)
        wanted = {room: _mean(places[below][0] for below in lines[room]) for room in here}
        left = min(wanted.values(), default=0.0)
        for room in sorted(here, key=lambda one: (wanted[one], one)):
            left = max(left, wanted[room])
            places[room] = left, floor * UP
            left += ACROSS
        _centre(places, here)
    least = min(x for x, _ in places.values())
    return {room: (x - least, y) for room, (x, y) in places.items()}


def _centre(places: dict[str, tuple[float, float]], here: list[str]) -> None:
    """Move a floor so that its middle is above that of the house."""
    middle = _mean(places[room][0] for room in here)
    for room in here:
        x, y = places[room]
        places[room] = x - middle, y


def _mean(values: Iterable[float]) -> float:
    some = list(values)
    return sum(some) / len(some) if some else 0.0


def _arrow(axes: Any, upper: tuple[float, float], lower: tuple[float, float]) -> None:
    start, end = (upper[0], upper[1] - HEIGHT / 2), (lower[0], lower[1] + HEIGHT / 2)
    look = {"arrowstyle": "-|>", "color": "#888888", "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=end, xytext=start, arrowprops=look, zorder=1)


if __name__ == "__main__":
    draw(imports())
