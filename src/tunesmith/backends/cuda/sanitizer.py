"""NVIDIA's compute-sanitizer: how it is called, and its words read."""

from __future__ import annotations

import re
from pathlib import Path

from tunesmith.backends.cuda import toolkit
from tunesmith.backends.port import SanitizerKind
from tunesmith.backends.tool_process import answer_of
from tunesmith.run.sanitized import SanitizerFinding, distinct, kind_of
from tunesmith.text import cut, plain

PROGRAM = "compute-sanitizer"
MEMCHECK, RACECHECK, INITCHECK, SYNCCHECK = TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
MOST_PRINTED = 200  # findings
PADDING = 1 << 16  # bytes behind every array that belong to nobody
CASE_BYTES = 1 << 20
WORDS = 300
_MARK = "========="
_LINE = re.compile(rf"^{_MARK}(.*)$")
# What the first line of a finding begins with; the lines of the same finding are indented.
_RACE = re.compile(r"^(?:Error|Warning):\s*(?:Race reported|Potential)\b", re.IGNORECASE)
_HAZARD = re.compile(r"^(?:Error|Warning):\s*\(?Potential (\w+) hazard detected at (__\w+__)", re.IGNORECASE)
_SIDES = re.compile(r"\b(Read|Write|Atomic)\s+access\b", re.IGNORECASE)
_AT = re.compile(r"\bat (?P<where>.+?)(?:\s+\[\d+ hazards?\])?$")
# kernel(arguments)+0x1f0 in file.cu:12, and as older versions say it: 0x1f0 in file.cu:12:kernel(arguments)
_NEW_PLACE = re.compile(
    r"^(?:void )?(?P<kernel>[^\s(+<]+).*?\+(?P<code>0x[0-9a-f]+)(?: in (?P<file>\S+:\d+))?"
)
_OLD_PLACE = re.compile(r"^(?P<code>0x[0-9a-f]+) in (?:(?P<file>\S+?:\d+):)?(?P<kernel>[^\s(]+)")
_SUMMARY = re.compile(r"\b(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards?)\b")
# What they say of themselves, and what follows from a fault that they have reported.
_NO_FINDING = ("COMPUTE-SANITIZER", "Program hit ", "Target application", "Saved host", "ERROR SUMMARY",
               "RACECHECK SUMMARY", "LEAK SUMMARY", "Internal", "Process ")  # fmt: skip
_ADDRESSES = re.compile(r"0x[0-9a-f]+", re.IGNORECASE)


def find() -> str | None:
    """Beside the programs of the toolkit, or in a folder of its own there."""
    inside = (root / "compute-sanitizer" / PROGRAM for root in toolkit.folders())
    return toolkit.find_program(PROGRAM, last=inside)


def version(program: str) -> str:
    found = re.search(r"Version\s+(\S+)", answer_of(program, "--version"))
    return plain(found[1]) if found else ""


def command_line(program: str, tool: str, log: Path) -> list[str]:
    """Errors of calls to the driver are none of a kernel's; what follows a fault would only repeat it."""
    only = {MEMCHECK: ("--report-api-errors", "no", "--padding", str(PADDING))}
    return [
        program,
        *("--tool", tool),
        *("--log-file", str(log)),
        *("--print-limit", str(MOST_PRINTED)),
        *("--show-backtrace", "no"),
        *("--target-processes", "all"),
        *only.get(tool, ()),
    ]


def read(tool: str, text: str) -> tuple[SanitizerFinding, ...]:
    """The faults in what it wrote. Where it counts some and none can be read, that is a finding too."""
    lines = [found[1] for line in plain(text).splitlines() if (found := _LINE.match(line))]
    findings: list[SanitizerFinding] = []
    place = 0
    while place < len(lines):
        head = lines[place].strip()
        end = place + 1
        while end < len(lines) and lines[end].startswith("     "):
            end += 1
        if head and not head.startswith(_NO_FINDING):
            findings += _findings(tool, head, lines[place + 1 : end])
        place = end
    counted = [int(number) for number in _SUMMARY.findall("\n".join(lines))]
    if not findings and any(counted):
        words = cut("; ".join(line.strip() for line in lines if line.strip()), WORDS)
        findings.append(SanitizerFinding(tool, "faults in words that we cannot read", words=words))
    return distinct(findings)


def _findings(tool: str, head: str, body: list[str]) -> list[SanitizerFinding]:
    """One, or none."""
    is_race, is_hazard = _RACE.match(head), _HAZARD.match(head)
    located = [one for one in (head if is_race and not is_hazard else "", *body) if " at " in f" {one}"]
    if not is_race and not located:
        return []  # every fault in a kernel says where it is
    kernel, place = _place(located[0]) if located else ("", "")
    words = "; ".join(line.strip() for line in (head, *body) if line.strip())
    words = cut(_ADDRESSES.sub("…", words), WORDS)
    return [SanitizerFinding(tool, _kind(head, body), kernel, place, words)]


def _kind(head: str, body: list[str]) -> str:
    if hazard := _HAZARD.match(head):
        return f"a {hazard[1].upper()} hazard in {hazard[2]} memory"
    if _RACE.match(head):
        sides = sorted({side.lower() for line in (head, *body) for side in _SIDES.findall(line)})
        return f"a race ({' and '.join(sides) or 'unknown'})"
    return kind_of(head)


def _place(line: str) -> tuple[str, str]:
    """The kernel, and where in it."""
    at = _AT.search(line.strip())
    if at is None:
        return "", ""
    where = at["where"].strip()
    for form in (_OLD_PLACE, _NEW_PLACE):
        if found := form.match(where):
            return found["kernel"], found["file"] or found["code"]
    return "", cut(_ADDRESSES.sub("…", where), 100)


SANITIZER = SanitizerKind(
    program=PROGRAM,
    tools=TOOLS,
    at_gate=(MEMCHECK, RACECHECK),
    find=find,
    missing=f"{PROGRAM} is neither on the PATH nor with a CUDA toolkit",
    fix="NVIDIA's CUDA toolkit, from https://developer.nvidia.com/cuda-downloads",
    version=version,
    command=command_line,
    read=read,
    nbytes=CASE_BYTES,
    sockets=True,
)
