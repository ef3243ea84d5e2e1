"""Tail: the lines of a log across its rotation, one step at a time; it neither waits nor sleeps.

The files that are followed are in a list, from the oldest to the one at the path.  Another file at the path is a
rotation: those between the last one of the list and it are looked up in the folder, and appended with it.  A file that
was cut is looked up by its content among the rotated ones (copytruncate), and takes its place in the list.  Two files
before the newest stay in it, and are read on: a writer may open the new file late.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from oop_engine.connectors.source import BEGIN_AGAIN
from oop_engine.connectors.tailing.bytes_at import BytesAt, begins_with, codec_of, open_bytes
from oop_engine.connectors.tailing.followed import CutError, Followed, is_copy, knows, short_from
from oop_engine.connectors.tailing.generations import Generation, generations, start_of, with_inode
from oop_engine.core.errors import TraceError

__all__ = ["LogTail"]

_BEFORE = 2
"""Rotated files that are read on."""
_PATIENCE = 50
"""Steps without news after which the last line of a rotated file is whole, and a warning names a path that is gone."""

_TICK_NS = 1_000_000_000
"""Nanoseconds in which two changes of a folder may have one time."""


class LogTail:
    """Lines of the log at ``path`` behind ``position``; ``follow``: there may be more later.

    ``inode``, ``header``: those of the file whose lines came last (of a copy, of the first one), its first line.
    ``warn`` is called with a line that names lost data, ``refuse`` with a reason and the first bytes of a
    line that is too long.  ``skip_lost``: go on with such a line where the file of ``position`` is gone.
    """

    def __init__(
        self,
        path: Path,
        position: Any,
        *,
        follow: bool,
        skip_lost: bool,
        warn: Callable[[str], None],
        refuse: Callable[[str, str], None],
    ) -> None:
        self._path, self._follow, self._skip_lost = path, follow, skip_lost
        self._warn, self._refuse, self.inode, self.header = warn, refuse, 0, b""
        self._taken: Followed | None = None  # of which the last lines were
        self._files: list[Followed] = []
        self._restored = position
        self._known: dict[int, tuple[int, int]] | None = None
        self._copies: set[int] = set()
        self._listed: int | None = None
        self._missing, self._warned = 0, ""
        self._since_ns, self._anew = 0, False
        self._begin(position)

    @property
    def position(self) -> list[Any]:
        """Where the next step goes on: the position of the newest file, and of those before it that are read on."""
        if self._restored is not None:
            return list(self._restored)
        if not self._files:
            return [0, 0, 0, 0, self._since_ns]
        *earlier, newest = (file.position for file in self._files)
        return [*newest, earlier] if earlier else newest

    def step(self) -> tuple[bytes, list[Any]] | None:
        """Return some lines and the position behind them; None: there is nothing now."""
        try:
            if self._restored is not None:
                self._restore(self._restored)
            self._look()
            for file in self._files:
                file.note_start()
        except FileNotFoundError:  # renamed meanwhile
            pass
        except OSError as error:
            self._wait_for(error)
        else:
            self._warned = ""
        for file in [*self._files]:
            if (lines := self._lines(file)) is not None:
                return lines, self.position
        while len(self._files) > _BEFORE + 1:
            if (lines := self._lines(self._files[0], last=True)) is not None:
                return lines, self.position
            self._files.pop(0).content.close()
        return None

    def last(self) -> tuple[bytes, list[Any]] | None:
        """Return the rest where the log ends now: last lines without a line break, too."""
        for file in [*self._files]:
            if (lines := self._lines(file, last=True)) is not None:
                return lines, self.position
        return None

    def close(self) -> None:
        """Close all files."""
        for file in self._files:
            file.content.close()
        self._files = []

    def _begin(self, position: Any) -> None:
        if position is not None:
            if not position[0]:
                self._restored, self._since_ns = None, position[4]
            return
        if self._path.is_dir() or not (self._path.exists() or self._follow):
            problem = "is a folder" if self._path.is_dir() else "does not exist"
            msg = f"{self._path}: {problem}: give the path of a file"
            raise TraceError(msg)
        if not self._path.exists():
            self._warn(f"{self._path}: does not exist yet: waiting for it")
        family = generations(self._path)  # not read: the first file is the one at the path
        self._know(family)
        self._since_ns = max((each.written_ns for each in family), default=0)

    def _wait_for(self, error: OSError) -> None:
        name = error.filename or self._path
        msg = f"{name}: cannot be read ({error.strerror or error}): "
        if not self._follow:
            msg += "give its rights to this process"
            raise TraceError(msg) from error
        if self._warned != (line := f"{msg}waiting until it can"):
            self._warned = line
            self._warn(line)

    def _know(self, family: list[Generation]) -> None:
        """Note the rotated files that need no look any more, by inode and first bytes: an inode is given again."""
        newest = self._files[-1].content if self._files else None
        self._copies = {each.inode for each in family if newest is not None and self._is_prefix(each, newest)}
        self._known = {
            each.inode: start
            for each in family
            if each.inode not in self._copies and (start := start_of(each)) is not None
        }

    @staticmethod
    def _is_prefix(generation: Generation, newest: BytesAt) -> bool:
        """Return whether a file is a copy of the newest one, which may be cut next."""
        try:
            with closing(open_bytes(generation.path)) as content:
                return content.inode != newest.inode and begins_with(newest, content)
        except OSError:
            return False

    def _lines(self, file: Followed, *, last: bool = False) -> bytes | None:
        rotated = file is not self._files[-1] and (file.idle >= _PATIENCE or not self._follow)
        try:
            lines = file.take(last=last or rotated)
            if lines and file is not self._taken:
                self._taken, self.inode, self.header = file, file.first_inode, file.first_line()
            if lines and file.unended and file is not self._files[-1]:
                self._warn(
                    f"{self._path}: a rotated file (inode {file.inode}) ends at byte {file.at:,} without a line break: "
                    "its last line may be a part of one, the rest of which is lost"
                )
            return lines
        except CutError:
            try:
                return self._cut(file)
            except FileNotFoundError:  # renamed meanwhile: the next step tries again
                return None
        except OSError as error:
            self._warn(
                f"{self._path}: a file of it cannot be read behind byte {file.at:,} ({error}): passed over"
            )
            self._files.remove(file)
            file.content.close()
            return b""

    # The files of the log.

    def _look(self) -> None:
        """Bring the list up to date.  Raises ``OSError`` if a file cannot be opened: the list is as it was then."""
        try:
            inode = self._path.stat().st_ino
        except FileNotFoundError:
            self._missing += 1
            self._keep_time()
            if self._missing == _PATIENCE and self._files:
                self._warn(f"{self._path}: does not exist any more: waiting for it")
            return
        self._missing = 0
        for file in self._files:
            file.at_path = True
        if not self._files:
            self._discover(None)
        elif inode != self._files[-1].inode:
            self._discover(self._files[-1])
        else:
            self._look_for_copy(self._files[-1])
            if self._known is None and self._files[-1].inode == inode:
                family, _ = self._stable()
                if self._files[-1].same():
                    self._know(family)

    def _keep_time(self) -> None:
        """Keep the time of the newest file while the path has none: it has been rotated, and others, maybe."""
        for file in self._files:
            file.at_path = False

    def _stable(self) -> tuple[list[Generation], int]:
        """Return the rotated files, and the inode at the path, of one moment."""
        for _ in range(9):
            family, inode = generations(self._path), self._path.stat().st_ino
            if [each.inode for each in family] == [each.inode for each in generations(self._path)]:
                return family, inode
        raise FileNotFoundError

    def _discover(self, newest: Followed | None) -> None:
        """Append the files that came after the newest one of the list, up to the one at the path."""
        family, inode = self._stable()
        for file in self._files:  # it has its name again
            if file.inode == inode:
                self._files.remove(file)
                self._files.append(file)
                return
        between = (
            self._unknown(self._since_ns, family)
            if newest is None or self._anew
            else self._newer(newest, family)
        )
        self._append(between, inode)
        self._anew = False
        self._know(family)

    def _append(self, between: list[Generation], inode: int) -> None:
        """Append rotated files, and that at the path, all or none.  Raises ``OSError`` if one cannot be opened."""
        wanted = {each.inode: each.path for each in between if each.inode != inode} | {inode: self._path}
        with closing(open_bytes(self._path)) as newest:
            for each in between:  # it is being copied, and will be cut after that
                if each.inode != inode and self._is_prefix(each, newest):
                    del wanted[each.inode]
        opened: list[BytesAt] = []
        try:
            for expected, path in wanted.items():
                opened.append(open_bytes(path))
                if opened[-1].inode != expected:
                    raise FileNotFoundError(path)
        except OSError:
            for content in opened:
                content.close()
            raise
        self._files += [Followed(content, 0, self._refuse) for content in opened]

    def _newer(self, newest: Followed, family: list[Generation]) -> list[Generation]:
        """Return the files that came after one."""
        if newest.content.stat().st_nlink == 0 and not any(map(self._is_form, family)):
            self._warn(
                f"{self._path}: the file that was read to byte {newest.at:,} (inode {newest.inode}) was removed; files "
                "that came and went between it and the next one are lost, if there were any"
            )
        newer = self._unknown(newest.newer_ns, family)
        were_empty = [  # not copies of the file that was the newest then, but files to which a late writer wrote
            each
            for each in family
            if each.inode in self._copies
            and each.inode not in {*self._inodes(), *(other.inode for other in newer)}
            and not self._is_prefix(each, newest.content)
            and not self._is_form(each)
        ]
        return were_empty + newer

    def _inodes(self) -> set[int]:
        return {file.inode for file in self._files}

    def _unknown(self, since_ns: int, family: list[Generation]) -> list[Generation]:
        """Return the files that were written after a moment and are new."""
        followed, known = self._inodes(), self._known
        newer = [each for each in family if each.inode not in followed and each.written_ns >= since_ns]
        if known is None:
            newer = [each for each in newer if each.written_ns > since_ns]
        else:
            newer = [
                each
                for each in newer
                if each.inode not in known or start_of(each, known[each.inode][0]) != known[each.inode]
            ]
        return [each for each in newer if not self._is_form(each)]

    def _is_form(self, generation: Generation) -> bool:
        """Return whether a file is the compressed form of one that is followed."""
        if not codec_of(generation.path.name):
            return False
        try:
            with closing(open_bytes(generation.path)) as content:
                return content.holds(1) and any(begins_with(file.content, content) for file in self._files)
        except OSError:  # damaged, or gone
            return False

    def _with_content(self, place: list[Any], family: list[Generation]) -> int | None:
        """Return the number of the oldest other file that has the bytes of a position and is no older than they."""
        followed = self._inodes()
        for number, each in enumerate(family):
            if each.inode in followed or not is_copy(each, place) or self._is_form(each):
                continue
            try:
                content = open_bytes(each.path)
            except FileNotFoundError:
                continue
            try:
                if knows(content, *place[1:4]):
                    return number
            except OSError:  # damaged
                continue
            finally:
                content.close()
        return None

    # A file that was cut.

    def _cut(self, file: Followed) -> bytes:
        """Put the copy of a file that was cut in its place, or the same file from its beginning, with a line."""
        family, _ = self._stable()
        at, place = file.at, file.position
        number = self._with_content(place, family)
        if number is not None:
            self._take_copy(file, family[number])
            return b""
        size = file.content.stat().st_size
        self._warn(
            f"{self._path}: was read to byte {at:,}, and was cut then (it has {size:,} now): lines that were written "
            "to it in between are lost, if there were any; reading continues from its beginning"
        )
        if file is not self._files[-1]:
            self._files.remove(file)
            file.content.close()
            return b""
        between = self._unknown(file.newer_ns, family)
        self._files.remove(file)
        file.content.close()
        self._append(between, file.inode)
        self._know(family)
        return b""

    def _take_copy(self, file: Followed, copy: Generation) -> None:
        content = open_bytes(copy.path)
        place = self._files.index(file)
        self._files[place] = Followed(content, file.at, self._refuse)
        if file.at:  # else no names were read, and both may be written to from now on
            self._files[place].first_inode = file.first_inode
        file.content.close()

    def _look_for_copy(self, file: Followed) -> None:
        """Look for a copy of a file that was cut, and has grown so that its first bytes do not show it."""
        if not file.weak:
            return
        listed = os.stat(os.path.dirname(os.path.realpath(self._path))).st_mtime_ns
        if listed == self._listed and not self._copies and time.time_ns() - listed > _TICK_NS:
            return
        written_ns = file.content.stat().st_mtime_ns  # first: a cut that shows here has left its copy by then
        family, _ = self._stable()
        if (
            not file.same()
        ):  # it was cut after its copy was made: `take` finds that, and looks for all that is new
            return
        fresh = [each for each in family if self._known is None or each.inode not in self._known]
        place = file.position
        copies = 0
        while (copy_at := self._with_content(place, fresh)) is not None:
            copies += 1
            with closing(open_bytes(fresh[copy_at].path)) as copy:
                cut = not begins_with(file.content, copy)
            if cut:
                if file.at == 0 and self._known is None:
                    self._warn(
                        f"{self._path}: nothing was read of it yet, and it was cut: its oldest copy is read; "
                        "copies that were removed are lost, if there were any"
                    )
                if self._known is None:
                    self._add_between(file, family[: family.index(fresh[copy_at])])
                self._take_copy(file, fresh[copy_at])
                return
            del fresh[: copy_at + 1]
        if not copies:
            self._note_empty(file, written_ns)
        if self._known is None:
            self._add_between(file, family)
        self._know(family)
        self._listed = listed

    def _note_empty(self, file: Followed, written_ns: int) -> None:
        """Warn that an empty file has another time and no copy: it may have had lines and was cut."""
        if file.emptied(written_ns):
            self._warn(
                f"{self._path}: was empty and has been cut again, and there is no copy: lines that were written to it "
                "in between are lost, if there were any"
            )

    def _add_between(self, file: Followed, family: list[Generation]) -> None:
        """Read the rotated files that are newer than a position behind a first line, before the file at the path.

        After a cut that no reader saw the file may begin with the same names.  Its copy, which has them too, is gone.
        """
        if len(file.first_line()) < file.at:
            return
        between = [
            each
            for each in self._unknown(file.newer_ns, family)
            if each.path.stat().st_size and not self._is_prefix(each, file.content)
        ]
        if not between:
            return
        names = ", ".join(each.path.name for each in between)
        self._warn(
            f"{self._path}: nothing but its first line was read, and {names} was written after that: read now; files "
            "that came and went in between are lost, if there were any"
        )
        self._files[-1:-1] = [Followed(open_bytes(each.path), 0, self._refuse) for each in between]

    # A position.

    def _restore(self, position: Any) -> None:
        *newest, earlier = position if isinstance(position[-1], list) else [*position, []]
        places = [*earlier, newest]
        files = [self._with_inode(place) for place in places]
        self._files = [file for file in files if file is not None]  # none of them is a copy of another one
        try:
            missing = []
            for number, place in enumerate(places):
                if files[number] is None and (place is newest or any(place[1:3])):
                    files[number] = self._copy_of(place)
                if files[number] is None:
                    missing.append(place)
                    files[number] = self._short_form_of(place)
                self._files = [file for file in files if file is not None]
            for place in missing:
                if place is not newest:
                    self._warn(
                        f"{self._path}: a rotated file that was read to byte {place[1]:,} (inode {place[0]}) is gone: "
                        "lines that were written to it after that are lost, if there were any"
                    )
            if newest in missing:
                self._gone(newest)
            elif newest[1] and self._files[-1].inode != newest[0]:  # a later file may have these bytes, too
                written_ns = self._files[-1].content.stat().st_mtime_ns
                family = generations(self._path)
                self._add_between(self._files[-1], [each for each in family if each.written_ns <= written_ns])
        except OSError:
            self.close()
            raise
        self._restored = None
        if newest in missing:  # the next look finds those that came after it
            self._since_ns = (newest[5:6] or newest[4:5] or [0])[0]
            self._anew = True

    def _with_inode(self, place: list[Any]) -> Followed | None:
        """Return the file of a position by its inode, whatever its name is now."""
        inode, at, seen, head = [*place, None, None][:4]
        paths = [each.path for each in generations(self._path) if each.inode == inode]
        if not paths and self._path.is_file() and self._path.stat().st_ino == inode:
            paths = [self._path]
        if not paths and (other := with_inode(self._path, inode)) is not None:
            paths = [other]
        for path in paths:
            content = open_bytes(path)
            if content.inode == inode and knows(content, at, seen, head):
                file = Followed(content, at, self._refuse, seen or 0)  # its copy has no more, maybe
                return file if len(place) < 5 else file.goes_on(place)
            content.close()
        return None

    def _copy_of(self, place: list[Any]) -> Followed | None:
        """Return a copy of the file of a position, by its content."""
        if len(place) < 5:  # earlier versions wrote no sums
            return None
        family = generations(self._path)
        number = self._with_content(place, family)
        if number is None:
            return None
        return Followed(open_bytes(family[number].path), place[1], self._refuse).goes_on(place)

    def _short_form_of(self, place: list[Any]) -> Followed | None:
        """Return the newest compressed form of a part of the file of a position, from its offset on, or at its end."""
        if len(place) < 5 or not any(place[1:3]):
            return None
        followed = self._inodes()
        for each in reversed(generations(self._path)):
            if each.inode in followed or not codec_of(each.path.name):
                continue
            content = open_bytes(each.path)
            try:
                if (at := short_from(each, content, place)) is not None:
                    return Followed(content, at, self._refuse).goes_on(place)
            except OSError:  # damaged
                pass
            content.close()
        return None

    def _gone(self, place: list[int]) -> None:
        """Log that the file of a position is missing.  Raises ``TraceError`` if the source needs it."""
        inode, at = place[:2]
        here = self._path.stat() if self._path.is_file() else None
        if here is not None and here.st_ino == inode:
            problem = f"was read to byte {at:,} and has {here.st_size:,}: it was cut"
            if here.st_size >= at:
                problem = f"was read to byte {at:,} and the bytes before are others now: it was truncated or rewritten"
        else:
            problem = f"the file that was read to byte {at:,} is gone (inode {inode})"
        if not self._skip_lost:
            msg = (
                f"{self._path}: {problem}; restore it, continue without the lost lines (skip_lost=True, "
                f"?skip_lost=yes); {BEGIN_AGAIN}"
            )
            raise TraceError(msg)
        self._warn(
            f"{self._path}: {problem}: lines that were written to it after that are lost; reading continues after it"
        )
