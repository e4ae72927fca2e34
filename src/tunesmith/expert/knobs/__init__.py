"""The kernel's own knobs: numbers of its text and its launch that somebody chose, made parameters."""
