"""oclgrind, an interpreter of OpenCL kernels: how it is called, and its words read."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tunesmith.backends.port import SanitizerKind, system_package
from tunesmith.backends.tool_process import answer_of
from tunesmith.run.sanitized import SanitizerFinding, distinct, kind_of
from tunesmith.text import cut, plain

PROGRAM = TOOL = "oclgrind"
OPTIMISED = "oclgrind with optimised code"
MOST_PRINTED = 200  # findings
CASE_BYTES = 24 << 10  # it interprets: a million elements would take minutes
WORDS = 300
_AT_LINE = re.compile(r"^At line (\d+)")
_KERNEL = re.compile(r"^Kernel:\s*(\S+)")
_WIDE = re.compile(r"\b(?:(?:float|u?int)16|(?:double|u?long)(?:8|16))\b")
_UNABLE = re.compile(r"^(?:Unsupported|Unimplemented|Unhandled|Undefined external)\b", re.IGNORECASE)
_ENTITY = re.compile(r"^(?:(?:First|Second) entity|Entity|Work-group):\s*(.*)$")


def version(program: str) -> str:
    found = re.search(r"Oclgrind (\S+)", answer_of(program, "--version"))
    return plain(found[1]) if found else ""


def command_line(program: str, tool: str, log: Path) -> list[str]:
    """With room for whatever fits a CPU's device. Not optimised: of what a compiler makes of a source this
    interpreter does not know all. Writes of one value by all are no race in what comes of them; those of
    different ones are reported."""
    return [
        program,
        *("--max-wgsize", "65536"),
        *("--local-mem-size", str(16 << 20)),
        *("--constant-mem-size", str(16 << 20)),
        *(() if tool == OPTIMISED else ("--build-options", "-cl-opt-disable")),
        "--data-races",
        "--uninitialized",
        *("--max-errors", str(MOST_PRINTED)),
        *("--log", str(log)),
    ]


def read(tool: str, text: str) -> tuple[SanitizerFinding, ...]:
    """A finding begins at the margin; all that belongs to it is indented."""
    findings: list[SanitizerFinding] = []
    head, body = "", list[str]()
    for line in (*plain(text).splitlines(), "end"):
        if line.startswith(("\t", " ")) or not line.strip():
            body.append(line.strip())
            continue
        if any(_KERNEL.match(one) for one in body) and not _UNABLE.match(head):
            findings.append(_finding(tool, head, body))
        head, body = line.strip(), []
    return distinct(findings)


def unable(text: str) -> str:
    """What it met that it cannot interpret; empty where there is nothing."""
    found = next((line for line in plain(text).splitlines() if _UNABLE.match(line)), "")
    return cut(found.strip(), WORDS)


def confirm(finding: SanitizerFinding) -> str:
    """It loses track of what was written where a value is handed to a function in memory; an optimiser leaves
    few such calls."""
    return OPTIMISED if "uninitialized" in finding.kind else ""


def imagines(finding: SanitizerFinding, source: str) -> bool:
    """Vectors of 64 bytes are handed over so, and to the library's functions in optimised code too."""
    return "uninitialized" in finding.kind and _WIDE.search(source) is not None


def _finding(tool: str, head: str, body: list[str]) -> SanitizerFinding:
    kernel = next((found[1] for one in body if (found := _KERNEL.match(one))), "")
    places = [(number, found[1]) for number, one in enumerate(body) if (found := _AT_LINE.match(one))]
    at = [f"line {line}" for _, line in places]
    code = [body[number + 1] for number, _ in places if number + 1 < len(body)]
    who = [found[1] for one in body if (found := _ENTITY.match(one))]
    words = "; ".join(dict.fromkeys((head, *who[:2], *code)))
    where = " and ".join(dict.fromkeys(at))
    return SanitizerFinding(tool, kind_of(head), kernel, where, cut(words, WORDS))


SANITIZER = SanitizerKind(
    program=PROGRAM,
    tools=(TOOL,),
    at_gate=(TOOL,),
    find=lambda: shutil.which(PROGRAM),
    missing=f"{PROGRAM} is not on the PATH",
    fix=system_package(PROGRAM),
    version=version,
    command=command_line,
    read=read,
    unable=unable,
    confirm=confirm,
    imagines=imagines,
    nbytes=CASE_BYTES,
    own_device=True,
)
