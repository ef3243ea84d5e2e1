"""Quiet: lines of a library's own log, which has addresses in full, without secrets."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from oop_engine.system.addresses import Address

__all__ = ["quiet_about"]


@contextmanager
def quiet_about(address: Address, *loggers: str) -> Iterator[None]:
    """Leave out the secrets of an address in the lines of some loggers, for as long as the block takes."""

    def clean(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if (cleaned := address.clean(text)) != " ".join(text.split()):
            record.msg, record.args = cleaned, ()
        return True

    for name in loggers:
        logging.getLogger(name).addFilter(clean)
    try:
        yield
    finally:
        for name in loggers:
            logging.getLogger(name).removeFilter(clean)
