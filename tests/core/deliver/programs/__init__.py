"""Kernels, drivers that only write down what they are asked, and programs that call what was exported."""

from __future__ import annotations

from pathlib import Path


def read_program(name: str) -> str:
    return (Path(__file__).parent / name).read_text("utf-8")
