"""Drafts a problem file from a kernel source."""
