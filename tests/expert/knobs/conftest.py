"""Kernels are emulated in one folder here as well."""

from __future__ import annotations

from tests.expert.writing.conftest import emulated

__all__ = ["emulated"]
