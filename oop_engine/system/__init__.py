"""What touches the machine: files, memory, clocks."""
