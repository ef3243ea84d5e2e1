"""The command line, ``oop-engine``: a file a command; what is heavy is imported when it runs."""

from oop_engine.cli.app import main

__all__ = ["main"]
