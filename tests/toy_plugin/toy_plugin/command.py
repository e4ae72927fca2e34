"""A command, and what `doctor` says."""

from __future__ import annotations

from tunesmith.backends.port import DoctorFinding
from tunesmith.cli import console
from tunesmith.cli.console import AsJson


def greet(as_json: AsJson = False) -> None:
    """Greet whoever plays."""
    console.print_result(as_json, {"greeting": "hello"}, ["hello"])


def check() -> DoctorFinding:
    return DoctorFinding("toys", True, "all there")
