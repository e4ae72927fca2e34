"""What compute-sanitizer and the cpu device's watch find: planted faults, and kernels that have none.

    python -m benchmarks.cuda.sanitizers --out DIR [--zoo FOLDER] [--seconds S] [--within S] [--jobs N]

The faults and the honest kernels of tests/plugins/cpu_device/test_planted_faults.py, each as a problem of
its own,
and the CUDA and HIP examples, through the code of `check --sanitize`: all tools of compute-sanitizer on the
GPU, and the watch with the GPU's limits. Without a GPU that half is a sentence. Names after the options take
some of them. DIR/sanitizers.json has the findings, DIR/sanitizers.md the table.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.cuda import apart
from benchmarks.cuda.markdown import source, table
from tests.plugins.cpu_device.test_planted_faults import PLANTED
from tests.plugins.cpu_device.watched_kernels import HEAD
from tunesmith.lab.lab import LabSettings
from tunesmith.plugins.cpu_device.stand_in import HostWatch
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.run.events import Sanitized
from tunesmith.run.protection import AUTO
from tunesmith.session import place as machine
from tunesmith.session.problems import load_problem

MODULE = "benchmarks.cuda.sanitizers"
BACKEND = "cuda"
SEED = 1
FAULTS = {name: kernel for name, kernel in PLANTED.items() if kernel.fault}
WORDS = 160
# What none of NVIDIA's tools looks for.
NOT_LOOKED_FOR = {
    "beyond an array of a fixed size": "memcheck knows arrays of the driver's, not those inside a kernel",
    "shared memory that nobody wrote": "initcheck is for global memory",
    "blocks that write one place": "racecheck is for shared memory",
    "an index that overflows": "no tool looks at arithmetic",
}
PROBLEM = """name = "planted"
[kernel]
source = "kernel.cu"
entry = "k"
language = "cuda"
[[argument]]
name = "o"
type = "float32*"
shape = ["n"]
role = "output"
init = 0
[[argument]]
name = "x"
type = "float32*"
shape = ["n"]
role = "input"
[[argument]]
name = "n"
type = "int32"
value = "n"
[launch]
grid = ["2"]
block = ["96"]
[contract]
n = { min = 64, max = 64 }
[workloads]
all = { n = 64 }
"""


def planted() -> dict[str, str]:
    """By name, the whole texts."""
    return {name: f"{HEAD}{kernel.text}}}\n" for name, kernel in PLANTED.items()}


def look(folder: Path) -> apart.Row:
    """One problem under both, in this process."""
    problem = load_problem(folder)[0]
    with machine.temporary_scratch() as scratch:
        gpu = machine.choose_device(machine.find_local_devices(machine.WorkerSite(BACKEND, scratch)), None)
        settings = LabSettings(SEED, 1)
        found: apart.Row = {"gpu": gpu.name}
        if gpu.absent:
            found["theirs"] = {"why_not": f"{gpu.name} is not here"}
        else:
            found["theirs"] = said(watched_there(problem, gpu, settings, scratch))
        with closing(HostWatch(problem, gpu, scratch, AUTO)) as host:
            found["ours"] = said(host.of_original(SEED))
    return found


def watched_there(problem: Problem, gpu: Device, settings: LabSettings, scratch: Path) -> Sanitized:
    compiler = machine.choose_compiler(
        problem, None, gpu, machine.WorkerSite(BACKEND, scratch), lambda _words: None
    )
    own = LabSettings(settings.seed, settings.builders, compiler.partition(" ")[0])
    lab = machine.make_lab(problem, gpu, machine.WorkerSite(BACKEND, scratch), settings=own)
    try:
        return lab.sanitize()
    finally:
        lab.close()


def said(found: Sanitized) -> dict[str, Any]:
    """`why_not` where nothing looked; what did not look to its end is told beside what did."""
    missing = "; ".join(f"{tool}: {why}" if tool else why for tool, why in found.absent)
    if not found.tools and not found.findings:
        return {"why_not": missing or "nothing looked"}
    findings = [
        {"tool": f.tool, "kind": f.kind, "line": line_of(f.place), "doubted": f.doubted}
        for f in found.findings
    ]
    return {"by": found.by, "tools": list(found.tools), "missing": missing, "findings": findings}


def line_of(place: str) -> int | None:
    line = re.search(r":(\d+)$", place)
    return int(line[1]) if line else None


def lines(half: dict[str, Any]) -> set[int]:
    return {f["line"] for f in half.get("findings", ()) if not f["doubted"] and f["line"] is not None}


def is_found(half: dict[str, Any]) -> bool | None:
    """None: nothing looked."""
    return None if "why_not" in half else any(not f["doubted"] for f in half["findings"])


def verdict(row: apart.Row) -> str:
    """What is wrong about the two is in bold; a fault that only the watch looks for is no disagreement."""
    if "fault" in row:
        return "not compared"
    ours, theirs = is_found(row["ours"]), is_found(row["theirs"])
    name = row["name"]
    if name not in FAULTS:
        if ours or theirs:
            return "**accused**"
        if None in (ours, theirs):
            return "not compared" if ours is theirs else "clean, by one alone"
        return "both clean"
    if not ours and not theirs:
        return "**missed**"
    if (ours and FAULTS[name].here not in lines(row["ours"])) or (not ours and not lines(row["theirs"])):
        return "**another line**"
    if None in (ours, theirs):
        return "by one alone"
    if ours and theirs:
        same = lines(row["ours"]) & lines(row["theirs"])
        return "both, same line" if same else "both"
    return "the watch, as it should" if ours and name in NOT_LOOKED_FOR else "**disagree**"


def told_by(half: dict[str, Any]) -> str:
    if "why_not" in half:
        return cut(f"not looked: {half['why_not']}")
    parts = [
        f"{f['tool']}: {f['kind']}"
        + (f", line {f['line']}" if f["line"] is not None else "")
        + (" (doubted)" if f["doubted"] else "")
        for f in half["findings"]
    ]
    if half["missing"]:
        parts.append(f"not through: {half['missing']}")
    return "; ".join(map(cut, parts)) or "nothing"


def cut(words: str) -> str:
    words = " ".join(words.split())
    return words if len(words) <= WORDS else f"{words[: WORDS - 1]}…"


def cells(row: apart.Row) -> list[str]:
    if "fault" in row:
        return [row["name"], "", verdict(row), cut(row["fault"])]
    line = str(FAULTS[row["name"]].here) if row["name"] in FAULTS else ""
    return [row["name"], line, verdict(row), told_by(row["ours"])]


def page(told: dict[str, Any]) -> str:
    rows: list[apart.Row] = told["kernels"]
    halves = [row[half] for row in rows if "fault" not in row for half in ("ours", "theirs")]
    by = sorted({half["by"] for half in halves if half.get("by")})
    counts = Counter(verdict(row).strip("*") for row in rows)
    clean = [row["name"] for row in rows if verdict(row) == "both clean"]
    head = ["kernel", "planted in line", "verdict", "the cpu device's watch"]
    return "\n".join(
        [
            "# Two sanitizers compared",
            "",
            *source(told),
            f"- {'; '.join(by) or 'nothing looked'}",
            f"- {', '.join(f'{count} {word}' for word, count in sorted(counts.items()))}",
            "",
            f"Both clean: {', '.join(clean) or 'none'}.",
            "",
            *table(head, [cells(row) for row in rows if row["name"] not in clean], left=4),
        ]
    )


def show(row: apart.Row) -> None:
    print(" | ".join(cell for cell in cells(row) if cell), flush=True)


def main() -> int:
    options = argparse.ArgumentParser(
        description="Faults under compute-sanitizer and the cpu device's watch."
    )
    options.add_argument("names", nargs="*", metavar="NAME", help="of a fault, or such as hip/softmax")
    options.add_argument("--out", type=Path, help="folder for table and findings")
    options.add_argument("--zoo", type=Path, help="a folder of further problems that have no fault")
    options.add_argument("--seconds", type=float, default=120.0, help="for one kernel")
    options.add_argument("--within", type=float, default=540.0, help="seconds for all of them")
    options.add_argument("--jobs", type=int, default=1, help="kernels at a time")
    options.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.one is not None:
        apart.tell_of(lambda: look(arguments.one))
        return 0
    if arguments.out is None:
        options.error("--out is needed")
    with tempfile.TemporaryDirectory() as scratch:
        found: dict[str, Path] = {}
        for number, (name, text) in enumerate(planted().items()):
            found[name] = Path(scratch, str(number))
            found[name].mkdir()
            (found[name] / "kernel.cu").write_text(text)
            (found[name] / "problem.toml").write_text(PROBLEM)
        found |= {apart.shown(folder): folder.resolve() for folder in apart.problems(arguments.zoo)}
        if unknown := set(arguments.names) - set(found):
            options.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(found)}")
        commands = {name: apart.own_command(MODULE, found[name]) for name in arguments.names or found}
        limits = {"seconds": arguments.seconds, "within": arguments.within, "jobs": arguments.jobs}
        rows = apart.rows(commands, **limits, show=show)
    apart.publish(arguments.out, "sanitizers", {"kernels": rows}, page)
    wrong = [row for row in rows if verdict(row).startswith("**") or "fault" in row]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
