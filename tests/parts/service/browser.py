"""A headless Chromium, by its pipe: a page is opened, asked, clicked and photographed; that needs no package."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

__all__ = ["CHROMIUM", "Browser", "browser"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--no-proxy-server", "--remote-debugging-pipe",
]  # fmt: skip


class Browser:
    """One page of a browser that has been started."""

    def __init__(self, reader: asyncio.StreamReader, write_to: int) -> None:
        self._reader, self._write_to = reader, write_to
        self._numbers = itertools.count(1)
        self._session: str | None = None
        self.errors: list[str] = []

    async def begin(self) -> None:
        """Open an empty page."""
        target = (await self.ask("Target.createTarget", url="about:blank"))["targetId"]
        self._session = (await self.ask("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            await self.ask(f"{domain}.enable")

    async def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the protocol of the developer tools; return its result."""
        number = next(self._numbers)
        command: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            command["sessionId"] = self._session
        os.write(self._write_to, json.dumps(command).encode() + b"\0")
        while True:
            found = json.loads((await self._reader.readuntil(b"\0"))[:-1])
            if found.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.errors.append(json.dumps(found["params"]))
            if found.get("id") == number:
                assert "error" not in found, found
                return dict(found["result"])

    async def look(self, width: int, height: int, *, dark: bool = False) -> None:
        """Give the window a size, and colors."""
        await self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        colors = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.ask("Emulation.setEmulatedMedia", features=[colors])

    async def open(self, address: str) -> None:
        """Go to an address."""
        await self.ask("Page.navigate", url=address)

    async def js(self, expression: str) -> Any:
        """Return the value of an expression, which may be a promise."""
        found = await self.ask(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def until(self, condition: str) -> Any:
        """Wait until an expression is true, looked at with each frame; return its value."""
        look = f"let found = false; try {{ found = ({condition}); }} catch {{}} "
        look += "found ? done(found) : setTimeout(look, 20);"
        return await self.js(f"new Promise(done => {{ const look = () => {{ {look} }}; look(); }})")

    async def picture(self, path: Path) -> None:
        """Write the page as it is shown."""
        found = await self.ask("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(found["data"]))


@asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Browser]:
    """Start a browser that keeps its files in ``folder``; it ends with the block."""
    assert CHROMIUM is not None
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()

    def as_three_and_four() -> None:
        here, there = os.dup(in_read), os.dup(out_write)
        os.dup2(here, 3)
        os.dup2(there, 4)

    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        CHROMIUM, *_FLAGS, f"--user-data-dir={folder}", "about:blank",
        stdin=quiet, stdout=quiet, stderr=quiet, close_fds=False, preexec_fn=as_three_and_four,
    )  # fmt: skip
    os.close(in_read)
    os.close(out_write)
    reader = asyncio.StreamReader(limit=1 << 26)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(out_read, "rb")
    )
    try:
        found = Browser(reader, in_write)
        await found.begin()
        yield found
    finally:
        process.kill()
        await process.wait()
        transport.close()
        os.close(in_write)
