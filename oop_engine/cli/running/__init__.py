"""Parts of ``oop-engine run``."""
