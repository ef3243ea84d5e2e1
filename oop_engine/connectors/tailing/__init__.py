"""Reading a log that grows and is rotated: the files of the log, their bytes, their lines, and the tail over all."""
