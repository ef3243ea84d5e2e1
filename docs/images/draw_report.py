"""Draw ``nyc_flights.png``: the report of the flights of 40 days, its headline and the play-by-play.

    python docs/images/draw_report.py

Takes a minute, and needs Chromium (Debian's package ``chromium``).
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from oop_engine.lab.comparison import compare
from oop_engine.lab.report.page import page
from oop_engine.lab.scenario import load
from tests.parts.service.browser import browser

PICTURE = Path(__file__).parent / "nyc_flights.png"
WIDTH, HEIGHT = 1180, 1120
DRAWN_S = 3.0


async def drawn(folder: Path) -> None:
    """Open the report, and take the picture of its beginning."""
    report = folder / "report.html"
    report.write_text(page(compare(load("nyc_flights"), {"days": "40"})), "utf-8")
    async with browser(folder / "browser") as seen:
        await seen.look(WIDTH, HEIGHT)
        await seen.open(report.as_uri())
        await seen.until("document.querySelector('canvas') !== null")
        await asyncio.sleep(DRAWN_S)
        await seen.picture(PICTURE)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(drawn(Path(folder)))
