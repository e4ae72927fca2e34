"""Tunesmith: a kernel that works in, a faster kernel that is still right out, with the evidence.

The names below are the whole Python interface; docs/python.md shows it. They are loaded when they are used:
`__init__.pyi` tells type checkers what they are.
"""

from __future__ import annotations

from importlib import import_module

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


def __getattr__(name: str) -> object:
    from tunesmith.base import errors
    from tunesmith.base import plugins as found_by_name

    value: object
    if name in __all__ and hasattr(errors, name):
        value = getattr(errors, name)
    elif name in __all__ and name not in found_by_name.TABLE["api"]:
        value = getattr(import_module("tunesmith.api"), name)
    elif found_by_name.is_known("api", name):
        try:
            value = found_by_name.load_plugin("api", name)
        except errors.BadInput as error:  # as for any name that is not there
            raise AttributeError(f"{error}; {error.hint}") from error
    else:
        raise AttributeError(f"module 'tunesmith' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
