"""The tiny problem of the simulated device, built in Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.end_to_end import tiny
from tunesmith import Problem

FACTOR = 2.0


def twice(x):  # type: ignore[no-untyped-def]
    return np.multiply(x, FACTOR)


def built(reference: Callable[..., object] | None = twice, **changed: object) -> Problem:
    """What `tiny.fake` writes, with these of its parts changed."""
    parts: dict[str, object] = {
        "source": tiny.FAKE_KERNEL,
        "entry": "scale",
        "kernel": {"language": "fake"},
        "arguments": [
            {"name": "out", "type": "float32*", "role": "output", "shape": ["n"]},
            {"name": "x", "type": "float32*", "role": "input", "shape": ["n"]},
            {"name": "n", "type": "int32", "value": "n"},
        ],
        "launch": {"grid": ["ceildiv(n, 64)"], "block": [64]},
        "contract": {"n": {"one_of": [8, 64]}},
        "workloads": {"only": {"n": 64, "cache": "warm"}},
        "reference": reference,
    }
    return Problem.build("tiny", **{**parts, **changed})  # type: ignore[arg-type]


def template(folder: Path) -> Path:
    path = folder / "template.fake"
    path.write_text(tiny.FAKE_TEMPLATE)
    return path
