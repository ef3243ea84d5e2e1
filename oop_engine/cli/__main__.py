"""``python -m oop_engine.cli``: the same as ``oop-engine``."""

from oop_engine.cli import main

main()
