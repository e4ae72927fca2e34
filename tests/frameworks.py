"""Frameworks that tests of exports need: without one they are skipped, but by `make gpu-test` on a GPU not.

There it is a failure, unless TUNESMITH_GPU_TESTS_WITHOUT names it: nobody shall take for tested on a GPU what
was left out unseen.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

# What brings it, as an extra of ours.
_EXTRAS = {
    "tvm_ffi": "exports", "kernel_tuner.file_utils": "kernel-tuner", "jsonschema": "kernel-tuner",
    "yaml": "dev", "playwright.sync_api": "browser", "axe_playwright_python": "browser",
}  # fmt: skip
_EXTRAS |= dict.fromkeys(("starlette", "starlette.testclient", "uvicorn"), "watch")

# Read once: no test sees a variable of ours.
_WITHOUT = os.environ.get("TUNESMITH_GPU_TESTS_WITHOUT", "")
_insists = False


def insist(markers: str, has_gpu: Callable[[], bool]) -> None:
    """`markers`: what `pytest -m` was given. Only then a driver is asked."""
    global _insists
    _insists = markers.strip() == "gpu" and has_gpu()


def need(name: str) -> Any:
    """The module of this name."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        extra = _EXTRAS.get(name, "frameworks")
        absent(name, f"{error}; pip install -e '.[{extra}]' brings it")


def absent(name: str, why: str) -> NoReturn:
    """It is not here, or cannot be used."""
    named = [each.strip() for each in _WITHOUT.split(",")]
    if _insists and name not in named:
        pytest.fail(f"needs {name}: {why}. To go without: TUNESMITH_GPU_TESTS_WITHOUT={name}", pytrace=False)
    pytest.skip(f"needs {name}: {why}", allow_module_level=True)
