"""Tunesmith: a kernel that works in, a faster kernel that is still right out, with the evidence."""

__version__ = "0.1.0"
