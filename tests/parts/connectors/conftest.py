"""What tests of connectors share: a server of a busy machine may take its time, and is not away for that."""

from __future__ import annotations

import pytest

from oop_engine.connectors import link
from tests.children import MOST_S
from tests.parts.connectors.postgres_server import dsn as dsn


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let servers answer late; a test of one that does not answer at all has a limit of its own."""
    monkeypatch.setattr(link, "ANSWER_S", float(MOST_S))
