"""Traces: files of tuples in arrival order, a generator of disordered ones, and a measure of disorder."""

from oop_engine.traces.disorder import Disorder, Link
from oop_engine.traces.format_registry import FORMATS, TraceFormat, format_of, register_format
from oop_engine.traces.profile import Profile, profile
from oop_engine.traces.trace import Trace, open_trace
from oop_engine.traces.trace_writing import write_trace

__all__ = [
    "FORMATS",
    "Disorder",
    "Link",
    "Profile",
    "Trace",
    "TraceFormat",
    "format_of",
    "open_trace",
    "profile",
    "register_format",
    "write_trace",
]
