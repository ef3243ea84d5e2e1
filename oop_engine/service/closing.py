"""Closing: the end of all sources and sinks of a service, whatever one of them raises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

__all__ = ["close_all"]


class _Part(Protocol):
    async def close(self) -> None: ...


async def close_all(parts: Mapping[str, _Part], failed: BaseException | None) -> None:
    """Close all sources and sinks, which are there by their names in messages.

    The first error is raised, unless the service has ``failed`` before: then each is a note of that.
    """
    errors = [error for name, part in parts.items() if (error := await _closed(name, part)) is not None]
    first = failed or (errors.pop(0) if errors else None)
    if first is None:
        return
    for error in errors:
        first.add_note(f"{'; '.join(error.__notes__)}: {type(error).__name__}: {error}")
    if failed is None:
        raise first


async def _closed(name: str, part: _Part) -> Exception | None:
    """Close one of them; return the error of that."""
    try:
        await part.close()
    except Exception as error:
        error.add_note(f"{name}: raised by close")
        return error
    return None
