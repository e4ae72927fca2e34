"""A small repository of ours with tests and a benchmark that need no device, and a run of its kernel."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.plugins.exports.cuda_users import USERS, cuda_result
from tests.samples import DEVICE, a_problem
from tunesmith.deliver.artefact import DeviceResult
from tunesmith.plugins.repo.apply.apply import Applied, apply_result
from tunesmith.plugins.repo.extract.draft import text_digest
from tunesmith.problem.problem import Origin
from tunesmith.run.candidates import Templates
from tunesmith.run.figures import Figure
from tunesmith.session.progress import listener_of
from tunesmith.session.result import Run

# It fails on what `WRONG` in the environment of nobody but a test names.
TESTS = """\
import pathlib, sys
tuned = "scale_tuned::launch(" in pathlib.Path("csrc/scale.cu").read_text()
assert tuned == pathlib.Path("csrc/scale_tuned.cuh").exists()
sys.exit("the results differ" if tuned and pathlib.Path("wrong").exists() else 0)
"""
BENCH = """\
import pathlib
tuned = "scale_tuned::launch(" in pathlib.Path("csrc/scale.cu").read_text()
with open("ran", "a") as file:
    file.write("after " if tuned else "before ")
if not (tuned and pathlib.Path("silent").exists()):
    print(f"step: {8.0 if tuned else 10.0} ms")
"""


def repository(folder: Path, text: str = USERS, committed: bool = True) -> Path:
    (folder / "csrc").mkdir(parents=True)
    (folder / "csrc" / "scale.cu").write_bytes(text.encode())
    (folder / "tests.py").write_text(TESTS)
    (folder / "bench.py").write_text(BENCH)
    if committed:
        git(folder, "init", "-q")
        git(folder, "add", ".")
        git(folder, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "-m", "first")
    return folder


def git(folder: Path, *words: str) -> str:
    ended = subprocess.run(
        ["git", *words], cwd=folder, capture_output=True, text=True, check=True, timeout=30
    )
    return ended.stdout


def origin(folder: Path, **more: str) -> Origin:
    path = "csrc/scale.cu"
    text = (folder / path).read_bytes().decode()
    more = {"repository": str(folder), **more}
    return Origin(path, (4, 8), (f"{path}:13", f"{path}:15"), ((path, text_digest(text)),), **more)


def delivered(where: Origin | None, **changes: Any) -> DeviceResult:
    problem = replace(a_problem(), origin=where)
    texts: Any = None
    return replace(cuda_result(**changes), templates=Templates(problem, DEVICE, None, texts))


def a_run(folder: Path, speedup: float = 2.0) -> Run:
    folder.mkdir(parents=True, exist_ok=True)
    workloads = (SimpleNamespace(weight=1.0, figure=Figure(speedup, speedup, speedup)),)
    report: Any = SimpleNamespace(finished=True, workloads=workloads, problem="scale", language="cuda")
    return Run(report, folder, "tunesmith resume x")


def applied(run: Run, repo: Path, **wish: Any) -> Applied:
    where = origin(repo) if "where" not in wish else wish.pop("where")
    return apply_result(run, delivered(where), listener_of(None), **wish)


def python(script: str) -> str:
    return f"{sys.executable} {script}"
