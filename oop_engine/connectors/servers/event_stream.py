"""Event stream: the events in the bytes of an answer of ``text/event-stream``, as WHATWG HTML (9.2.6) parses them.

Lines end with LF, CR LF or CR alone; a byte order mark at the beginning is left out.  Data stay bytes: text that is no
UTF-8 is refused by the format of the source, never changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

__all__ = ["EventStream"]

_END = re.compile(rb"\r\n|\r|\n")
_MARK = b"\xef\xbb\xbf"
_NO_HEADER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""Characters that no header can have, so no server can be asked to go on behind such an id."""
_SHOWN = 1000


class EventStream:
    """Parses one answer; an event of more than ``most`` bytes is left out, and ``refuse`` called with its first ones.

    ``last``: the id to go on from, None if there was none; ``pause_s``: how long to wait before the next request, where
    the server has set it.

    >>> stream = EventStream(100, print)
    >>> [*stream.feed(b"id: 7\\r\\ndata: a\\rdata: b\\r\\n\\r\\ndata: c")], [*stream.feed(b"\\n\\n")], stream.last
    ([('message', b'a\\nb')], [('message', b'c')], '7')
    """

    def __init__(self, most: int, refuse: Callable[[str, bytes], None], last: str | None = None) -> None:
        self._most, self._refuse = most, refuse
        self.last, self._id = last, last
        self.pause_s: float | None = None
        self._parts = list[bytes]()  # of the line that has not ended
        self._data, self._name = list[bytes](), b""
        self._size, self._line_size = 0, 0
        self._first, self._after_cr, self._too_long = True, False, False

    def feed(self, chunk: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield the name and the data of each event that ends in some bytes.  O(bytes)."""
        if self._after_cr and chunk.startswith(b"\n"):
            chunk, self._after_cr = chunk[1:], False
        if not chunk:
            return
        self._after_cr = chunk.endswith(b"\r")
        *ended, rest = _END.split(chunk)
        for piece in ended:
            self._add(piece)
            line, empty = b"".join(self._parts), not self._line_size
            self._parts, self._line_size = [], 0
            if self._first:
                line = line.removeprefix(_MARK)
                empty, self._first = not line, False
            if empty:
                yield from self._dispatched()
            elif not self._too_long:
                self._field(line)
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        self._line_size += len(piece)
        self._size += len(piece)
        if self._size > self._most and not self._too_long:
            self._too_long = True
            shown = b"\n".join([*self._data, b"".join(self._parts) + piece[:_SHOWN]])[:_SHOWN]
            self._data, self._parts = [], []
            reason = f"an event must have at most {self._most:,} bytes"
            self._refuse(reason, shown)
        if piece and not self._too_long:
            self._parts.append(piece)

    def _dispatched(self) -> Iterator[tuple[str, bytes]]:
        data, name, too_long = self._data, self._name, self._too_long
        self._data, self._name, self._size, self._too_long = [], b"", 0, False
        self.last = self._id
        if data and not too_long:
            yield name.decode(errors="replace") or "message", b"\n".join(data)

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._name = value
        elif name == b"id" and not _NO_HEADER.search(text := value.decode(errors="replace")):
            self._id = text or None
        elif name == b"retry" and value.isdigit():
            self.pause_s = int(value) / 1000
        if name != b"data":
            self._size -= len(line)  # comments keep a connection alive, and have no end
