"""Asking for what cannot be: the tiny problems run, and what a refusal looks like."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from typer.testing import CliRunner

from tests.running import Ended, tunesmith
from tunesmith.cli.app import app


def refused(ended: Ended, code: int, *said: str) -> None:
    """The error is on stderr, with a hint; on stdout there is nothing."""
    assert ended.code == code, ended.err
    assert ended.out == ""
    for text in said:
        assert text in ended.err
    assert "\nhint: " in ended.err


def tune(folder: Path, *arguments: object, run: Callable[..., Ended] = tunesmith) -> Ended:
    suffix = "cl" if (folder / "problem" / "kernel.cl").exists() else "fake"
    template = ("--template", f"problem/template.{suffix}")
    return run(folder, "tune", "problem", *template, *arguments)


def quickly(folder: Path, *arguments: object) -> Ended:
    """In this process, for what ends before any other one is started. The library is the folder's own."""
    own = {"TUNESMITH_LIBRARY_DIR": str(folder / "user-library")}
    with contextlib.chdir(folder):
        ended = CliRunner().invoke(app, list(map(str, arguments)), env=own)
    assert isinstance(ended.exception, SystemExit | None), ended.exception
    return Ended(ended.exit_code, ended.stdout, ended.stderr)
