"""What watches kernels on the cpu device: our own, built into the kernel by the compiler that is here."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from tunesmith.backends import port
from tunesmith.backends.cpu.compilers import INSTALL, compilers
from tunesmith.run.sanitized import SanitizerFinding, distinct, kind_of
from tunesmith.text import cut, plain

PROGRAM, TOOL = "cpu", "watch"
VARIABLE = "TUNESMITH_WATCH"  # the file that findings go into
CASE_BYTES = 1 << 15
WORDS = 300


def find() -> str | None:
    return shutil.which("env") if sys.platform == "linux" and compilers() else None


def command_line(program: str, _tool: str, log: Path) -> list[str]:
    return [program, f"{VARIABLE}={log}"]


def read(tool: str, text: str) -> tuple[SanitizerFinding, ...]:
    """The log has a line for each; one that was cut off in the middle is left out."""
    found: list[SanitizerFinding] = []
    for line in plain(text).splitlines():
        try:
            told = json.loads(line)
            words, kernel, place, other = (str(told[name]) for name in ("words", "kernel", "place", "other"))
        except (ValueError, KeyError, TypeError):
            continue
        kind, _, more = words.partition(": ")
        there = f"; the other is at {other}" if other else ""
        found.append(SanitizerFinding(tool, kind_of(kind), kernel, place, cut(f"{more}{there}", WORDS)))
    return distinct(found)


SANITIZER = port.SanitizerKind(
    program=PROGRAM,
    tools=(TOOL,),
    at_gate=(TOOL,),
    find=find,
    missing="there is no C++ compiler for the cpu device",
    fix=INSTALL,
    version=lambda _program: compilers()[0].title if compilers() else "",
    command=command_line,
    read=read,
    nbytes=CASE_BYTES,
    own_device=True,
)
