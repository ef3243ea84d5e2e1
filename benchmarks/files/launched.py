"""Launched: a command seen from outside, by a process so small that its own memory does not count.

    python -S -E launched.py COMMAND...

Linux gives a process the peak of the one that it was started by.  The last line of stderr is a list in JSON: wall and
CPU seconds, the peak of memory in MiB, and how it ended.
"""

import json
import os
import sys
import time

begin = time.perf_counter()
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, used = os.wait4(pid, 0)
wall = time.perf_counter() - begin
told = [wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, os.waitstatus_to_exitcode(status)]
print("", json.dumps(told), sep="\n", file=sys.stderr)
