"""Object files (ELF, 64 bits, little-endian): which symbols they need."""

from __future__ import annotations

import numpy as np

from oop_engine.system.ready.cache_file import UnknownError

__all__ = ["undefined"]


def undefined(code: bytes) -> list[str]:
    """Return the symbols that an object file (ELF, 64 bits, little-endian) takes from elsewhere.

    Raises if it is another kind of file, or refers to kernels that are still to be linked.
    """
    if code[:6] != b"\x7fELF\x02\x01":
        raise UnknownError
    header = np.frombuffer(code, "<u8", 1, 40)[0]
    size, number = np.frombuffer(code, "<u2", 2, 58)
    section = np.dtype("<u4,<u4,<u8,<u8,<u8,<u8,<u4,<u4,<u8,<u8")
    if size != section.itemsize:
        raise UnknownError
    sections = np.frombuffer(code, section, int(number), int(header))
    missing: list[str] = []
    for each in sections[sections["f1"] == 2]:  # tables of symbols
        symbols = np.frombuffer(code, "<u4,u1,u1,<u2,<u8,<u8", int(each["f5"]) // 24, int(each["f4"]))
        names = int(sections[int(each["f6"])]["f4"])
        for symbol in symbols:
            begin = names + int(symbol["f0"])
            name = code[begin : code.index(b"\0", begin)].decode()
            if name.startswith(".numba.unresolved"):
                raise UnknownError
            if name and not symbol["f3"]:
                missing.append(name)
    return missing
