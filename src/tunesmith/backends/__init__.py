"""Backends, one a file, all behind `core.backend.Backend`."""
