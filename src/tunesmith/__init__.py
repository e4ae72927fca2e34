"""Tunesmith: a kernel that works in, a faster kernel that is still right out, with the evidence.

The names below are the whole Python interface; docs/python.md shows it. They are loaded when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tunesmith.api import (
        Budget,
        apply,
        bench,
        capture,
        capture_program,
        check,
        compare,
        devices,
        diff,
        explain,
        explain_file,
        export,
        extract,
        load_capture,
        load_run,
        profile,
        resume,
        resume_comparison,
        retune,
        tune,
        verify,
        write_template,
    )
    from tunesmith.errors import (
        BadInput,
        DeviceMissing,
        Interrupted,
        KernelWrong,
        TunesmithError,
        WaitingForModel,
    )
    from tunesmith.run.report import Report
    from tunesmith.session.listening import ProgressUpdate
    from tunesmith.session.problems import LoadedProblem as Problem
    from tunesmith.session.run_result import Run

__version__ = "0.1.0"
__all__ = [
    "BadInput",
    "Budget",
    "DeviceMissing",
    "Interrupted",
    "KernelWrong",
    "Problem",
    "ProgressUpdate",
    "Report",
    "Run",
    "TunesmithError",
    "WaitingForModel",
    "__version__",
    "apply",
    "bench",
    "capture",
    "capture_program",
    "check",
    "compare",
    "devices",
    "diff",
    "explain",
    "explain_file",
    "export",
    "extract",
    "load_capture",
    "load_run",
    "profile",
    "resume",
    "resume_comparison",
    "retune",
    "tune",
    "verify",
    "write_template",
]
_ERRORS = ("BadInput", "DeviceMissing", "Interrupted", "KernelWrong", "TunesmithError", "WaitingForModel")


if not TYPE_CHECKING:  # a type checker knows every name, and says so where one is not there

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'tunesmith' has no attribute {name!r}")
        value = getattr(import_module("tunesmith.errors" if name in _ERRORS else "tunesmith.api"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
