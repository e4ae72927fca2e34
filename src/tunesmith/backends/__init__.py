"""Backends, one a file, all behind `core.ports.Backend`."""
