"""Access to the machine: files, memory, clocks."""
