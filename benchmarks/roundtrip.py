"""From a running program to its slow kernels and back: capture, rank, extract, tune, swap, apply, test, time.

    python -m benchmarks.roundtrip --out FOLDER [--work FOLDER] [--budget 30] [--seconds 470]

The program is `benchmarks/program`, copied to a folder of its own. Needs an NVIDIA GPU, nvcc, PyTorch and
Triton. Every step has a deadline; what it prints is kept. FOLDER gets `roundtrip.md`, `roundtrip.json` and
`roundtrip.tar.gz` with all logs, problem files, patches and reports. A step that fails is in the page, and
what needs it is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parent.parent
PROGRAM = Path(__file__).parent / "program"
KERNELS = ("fused_add_rms_norm_kernel", "silu_and_mul_kernel", "quant_per_token_kernel")
METRIC = r"step: ([\d.]+) ms"
SCRIPT = "../../benchmarks/roundtrip.py"  # from the page
PYTHON = shlex.quote(sys.executable)
TEST = f"{PYTHON} -m pytest -q -x -p no:cacheprovider test_program.py"
BENCH = f"{PYTHON} bench.py"
SHOWN_SHARE = 0.02  # of the device's time: kernels with less are not in the page
LEAST = 20.0  # seconds that a step is still begun with
KEPT = (".log", ".toml", ".patch", ".json", ".md", ".cu", ".cuh")
MAX_KEPT = 2 << 20  # bytes of a file that is kept


@dataclass(frozen=True)
class Step:
    name: str
    command: str
    code: int | None  # None: it ran past its deadline, or was not begun
    seconds: float
    out: str = field(repr=False, default="")

    @property
    def ok(self) -> bool:
        return self.code == 0

    @property
    def found(self) -> Any:
        """What it printed as JSON; None where it did not."""
        try:
            return json.loads(self.out)
        except ValueError:
            return None


class Steps:
    """Commands one after the other, within the time there is."""

    def __init__(self, work: Path, seconds: float) -> None:
        self.work = work
        self.logs = work / "logs"
        self.logs.mkdir(parents=True)
        self.end = time.monotonic() + seconds
        self.done: list[Step] = []
        own = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH", "")])])
        self.environment = {**os.environ, "PYTHONPATH": own, "PYTHONUNBUFFERED": "1"}

    def left(self) -> float:
        return self.end - time.monotonic()

    def run(
        self, name: str, command: Sequence[str] | str, deadline: float, folder: Path | None = None
    ) -> Step:
        words = command if isinstance(command, str) else shlex.join(command)
        limit = min(deadline, self.left())
        if limit < LEAST:
            return self._ended(Step(name, words, None, 0.0), "not begun: the time is over")
        print(f"[{self.left():.0f} s left] {name}: {words}", flush=True)
        begun = time.monotonic()
        with open(self.logs / f"{name}.out.log", "wb") as out, open(self.logs / f"{name}.log", "wb") as err:
            process = subprocess.Popen(
                ["/bin/sh", "-c", words],
                cwd=folder or self.work,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            try:
                code: int | None = process.wait(limit)
            except subprocess.TimeoutExpired:
                code = None
            if code is None:
                os.killpg(process.pid, 15)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, 9)
                    process.wait()
        text = (self.logs / f"{name}.out.log").read_text("utf-8", "replace")
        said = (self.logs / f"{name}.log").read_text("utf-8", "replace")
        return self._ended(Step(name, words, code, time.monotonic() - begun, text), said + text)

    def _ended(self, step: Step, said: str) -> Step:
        self.done.append(step)
        ending = "past its deadline" if step.code is None else f"exit code {step.code}"
        print(f"    {ending}, {step.seconds:.1f} s", flush=True)
        if not step.ok:
            print("    " + "\n    ".join(said.strip().splitlines()[-25:]), flush=True)
        return step

    def tunesmith(self, name: str, *words: object, deadline: float) -> Step:
        return self.run(name, [sys.executable, "-m", "tunesmith", *map(str, words)], deadline)


@dataclass
class Kernel:
    name: str
    share: float | None = None
    extracted: str = ""
    fills: int | None = None
    proof: str = ""
    verified: float | None = None
    tuned: str = ""
    swapped: str = ""
    applied: str = ""
    gain: float | None = None
    spread: tuple[float, float] | None = None
    foretold: float | None = None  # over the time from its first kernel to its last
    busy: float | None = None  # over the device's own time


@dataclass
class Roundtrip:
    device: str = ""
    date: str = ""
    ranking: list[dict[str, Any]] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    before: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)
    span: float = 0.0
    busy: float = 0.0  # seconds that the device worked
    savings: float = 0.0
    tests: str = ""

    @property
    def gain(self) -> float | None:
        return median(self.before) / median(self.after) if self.before and self.after else None

    @property
    def foretold(self) -> tuple[float, float] | None:
        """Over the time from the first kernel to the last, and over the device's own."""
        if not 0 < self.savings < self.busy <= self.span:
            return None
        return self.span / (self.span - self.savings), self.busy / (self.busy - self.savings)


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.roundtrip", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, help="a new folder; by default a temporary one")
    parser.add_argument("--budget", type=float, default=30.0, help="seconds of search for each kernel")
    parser.add_argument("--seconds", type=float, default=470.0, help="of everything together")
    given = parser.parse_args()
    work = given.work or Path(tempfile.mkdtemp(prefix="roundtrip-"))
    work.mkdir(parents=True, exist_ok=True)
    steps = Steps(work.resolve(), given.seconds)
    found = Roundtrip(date=datetime.now(UTC).date().isoformat())
    found.kernels = [Kernel(name) for name in KERNELS]
    try:
        everything(steps, found, given.budget)
    finally:
        given.out.mkdir(parents=True, exist_ok=True)
        written(given.out, steps, found)
    print((given.out / "roundtrip.md").read_text(), flush=True)
    return 0 if found.gain is not None and all(kernel.gain for kernel in found.kernels) else 1


def everything(steps: Steps, found: Roundtrip, budget: float) -> None:
    work = steps.work
    program, before = work / "program", work / "before"
    for folder in (program, before):
        shutil.copytree(PROGRAM, folder, ignore=shutil.ignore_patterns("build", "__pycache__"))
    (program / ".gitignore").write_text("build/\n__pycache__/\n")
    if shutil.which("git"):
        own = "git -c user.name=roundtrip -c user.email=roundtrip@localhost"
        steps.run("git", f"git init -q && git add . && {own} commit -q -m program", 30, program)
    steps.run("program-test", TEST, 120, program)
    if not steps.run("program-bench", BENCH, 90, program).ok:
        return
    shutil.copytree(program / "build", before / "build", dirs_exist_ok=True)
    if not captured(steps, found, program):
        return
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda kernel: extracted(steps, kernel), found.kernels))
    for number, kernel in enumerate(found.kernels):
        if kernel.fills == 0:
            rest = len(found.kernels) - number
            tuned(steps, kernel, min(budget, max(5.0, steps.left() / rest / 3)))
    ready = [kernel for kernel in found.kernels if kernel.verified is not None]
    for kernel in ready[:1]:  # as the program is, before any file of it changes
        swapped(steps, kernel)
    for kernel in ready:
        applied(steps, kernel)
    together(steps, found, program, before)


def captured(steps: Steps, found: Roundtrip, program: Path) -> bool:
    """Once as it runs, for shares and times; once with memory kept around launches, for the proof."""
    capture, kept = steps.work / "capture", steps.work / "kept"
    bench = [sys.executable, str(program / "bench.py")]
    first = steps.tunesmith("capture", "capture", "--out", capture, "--", *bench, deadline=90)
    keep = [word for name in KERNELS for word in ("--keep", name)]
    words = ("capture", *keep, "--exact", "--keep-mib", 4096, "--out", kept, "--", *bench, "--steps", 1)
    steps.tunesmith("capture-kept", *words, deadline=120)
    if not (capture / "capture.json").is_file():
        return False
    shown = steps.tunesmith("ranking", "capture", "--show", "--json", capture, deadline=30).found
    if not first.ok or not isinstance(shown, dict):
        return False
    found.device = ", ".join(device["name"] for device in shown["devices"])
    found.ranking, found.span, found.busy = shown["kernels"], shown["span"], shown["seconds"]
    for kernel in found.kernels:
        kernel.share = sum(one["share"] for one in shown["kernels"] if kernel.name in one["name"])
    return True


def extracted(steps: Steps, kernel: Kernel) -> None:
    kept = steps.work / "kept"
    capture = kept if (kept / "capture.json").is_file() else steps.work / "capture"
    words = ("extract", steps.work / "program", "--kernel", kernel.name, "--capture", capture, "--json")
    out = steps.work / "problems" / kernel.name
    step = steps.tunesmith(f"extract-{kernel.name}", *words, "--out", out, deadline=100)
    made = step.found
    if not isinstance(made, dict) or "fills" not in made:
        kernel.extracted = "refused"
        return
    kernel.fills = made["fills"] if made["stands_alone"] and not made["faults"] else None
    kernel.extracted = f"{made['lines']} lines, {made['fills']} FILL"
    kernel.proof = "; ".join(made.get("proof", ()))


def tuned(steps: Steps, kernel: Kernel, budget: float) -> None:
    problem, run = steps.work / "problems" / kernel.name, steps.work / "runs" / kernel.name
    words = ("tune", problem, "--out", run, "--time", f"{budget:.0f}", "--no-counters", "--no-library")
    step = steps.tunesmith(f"tune-{kernel.name}", *words, "--json", deadline=budget + 90)
    report = step.found
    if not isinstance(report, dict) or "workloads" not in report:
        kernel.tuned = "failed"
        return
    pairs = [(one["weight"], one["speedup"]) for one in report["workloads"]]
    gains = ", ".join(f"{one['speedup']:.2f}×" for one in report["workloads"])
    kernel.tuned = f"{gains} at its sizes"
    if report["finished"] and report.get("tuned") and pairs:
        kernel.verified = sum(w for w, _ in pairs) / sum(w / s for w, s in pairs)


def swapped(steps: Steps, kernel: Kernel) -> None:
    run, program = steps.work / "runs" / kernel.name, steps.work / "program" / "bench.py"
    words = ("apply", run, "--swap", "--metric", METRIC, "--rounds", 2, "--timeout", 60)
    more = ("--capture", steps.work / "capture", "--json", "--", sys.executable, program)
    made = steps.tunesmith(f"swap-{kernel.name}", *words, *more, deadline=120).found
    if not isinstance(made, dict) or not made.get("counts"):
        kernel.swapped = made.get("error", "failed") if isinstance(made, dict) else "failed"
        return
    counts, bench = made["counts"], made["bench"]
    kernel.swapped = f"{counts['swapped']} of {counts['ours']} launches"
    if bench is None:
        kernel.swapped += f": {made['fault']}"
    else:
        kernel.swapped += f", {times(median(bench['before']) / median(bench['after']))}"


def applied(steps: Steps, kernel: Kernel) -> None:
    run, capture = steps.work / "runs" / kernel.name, steps.work / "capture"
    words = ("apply", run, "--test", TEST, "--bench", BENCH, "--metric", METRIC, "--rounds", 1)
    more = ("--timeout", 90, "--capture", capture, "--json")
    step = steps.tunesmith(f"apply-{kernel.name}", *words, *more, deadline=200)
    made = step.found
    if not isinstance(made, dict) or "ending" not in made:
        kernel.applied = made.get("error", "failed") if isinstance(made, dict) else "failed"
        return
    kernel.applied = made["ending"] + (f": {made['fault']}" if made["fault"] else "")
    if made["bench"] is not None:
        old, new = median(made["bench"]["before"]), median(made["bench"]["after"])
        kernel.gain = old / new
    if made["foretold"] is not None:
        kernel.foretold, kernel.busy = made["foretold"]["gain"], made["foretold"]["busy"]


def together(steps: Steps, found: Roundtrip, program: Path, before: Path) -> None:
    """All patches at once against the program as it was, in alternation; and its own tests."""
    seconds = {one["name"]: one["seconds"] for one in found.ranking}
    for kernel in found.kernels:
        if kernel.applied.startswith("applied") and kernel.verified:
            own = sum(value for name, value in seconds.items() if kernel.name in name)
            found.savings += own * (1 - 1 / kernel.verified)
    ended = steps.run("test-together", TEST, 90, program)
    said = re.search(r"\d+ passed.*", ended.out)
    found.tests = said[0].strip(" =") if ended.ok and said else "failed"
    for number in range(3):
        for folder, values in ((before, found.before), (program, found.after)):
            ended = steps.run(f"bench-{folder.name}-{number}", BENCH, 60, folder)
            value = re.search(METRIC, ended.out)
            if ended.ok and value:
                values.append(float(value[1]))


# -- the page ---------------------------------------------------------------------------------------------


def times(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}×"


def foretold(span: float | None, busy: float | None) -> str:
    return f"{times(span)} / {times(busy)}"


def page(steps: Steps, found: Roundtrip) -> str:
    lines = [
        "# From a program to its kernels and back",
        "",
        f"`python -m benchmarks.roundtrip` ([the script]({SCRIPT})) on {found.device or 'no device'}, "
        f"{found.date}: a PyTorch program with kernels in an extension of its own, a Triton kernel and "
        f"vendor kernels is captured; {len(found.kernels)} kernels are extracted, tuned and put back.",
        "",
        "## What it launches",
        "",
        "| kernel | of | launches | share | by floor | end to end at most |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for one in (one for one in found.ranking if one["share"] >= SHOWN_SHARE):
        shown_name = (one["demangled"] or one["name"]).replace("(anonymous namespace)::", "")
        name = shown_name.split("(")[0].removeprefix("void ")[:60]
        figures = (one["count"], f"{100 * one['share']:.1f} %", times(one["distance"]))
        most = foretold(one["end_to_end"], one["on_device"]) if one["tunable"] else "left alone"
        lines.append("| " + " | ".join(map(str, (f"`{name}`", one["kind"], *figures, most))) + " |")
    lines += [
        "",
        "## There and back",
        "",
        "*Expected*: by Amdahl's law, from the kernel's share of the time from the first kernel to the last, "
        "and from its share of the device's busy time.",
        "",
        "| kernel | share | extracted | proof | verified, by weight | swapped | applied | end to end "
        "| expected |",
        "|---|---:|---|---|---:|---|---|---:|---:|",
    ]
    for kernel in found.kernels:
        share = "–" if kernel.share is None else f"{100 * kernel.share:.1f} %"
        shown = (
            f"`{kernel.name}`",
            share,
            kernel.extracted,
            proof_text(kernel.proof),
            times(kernel.verified),
        )
        ends = (kernel.swapped, kernel.applied, times(kernel.gain), foretold(kernel.foretold, kernel.busy))
        lines.append("| " + " | ".join((*shown, *ends)) + " |")
    lines += ["", "## All together", ""]
    if found.before and found.after:
        spans = [f"{median(v):.3f} ms ({min(v):.3f} to {max(v):.3f})" for v in (found.before, found.after)]
        lines += [
            f"A step took {spans[0]} before and {spans[1]} after, {len(found.before)} runs each in turn: "
            f"**{times(found.gain)}** from end to end; "
            f"expected: {foretold(*(found.foretold or (None, None)))}. "
            f"The program's own tests: {found.tests}."
        ]
    else:
        lines.append("It did not come so far.")
    failed = [f"{step.name} ({step.code})" for step in steps.done if step.code != 0]
    ended = f"Failed: {', '.join(failed)}." if failed else "None failed."
    lines += ["", f"{len(steps.done)} steps. {ended}"]
    return "\n".join(lines) + "\n"


def proof_text(proof: str) -> str:
    """In a few words where every launch gave what was captured; else as it was said."""
    said = [part for part in proof.split("; ") if re.match(r"launch \d+: ", part)]
    exact = [part for part in said if ": as captured" in part and "bit for bit" in part]
    return f"{len(exact)} launches, bit for bit" if exact and exact == said else proof


def written(out: Path, steps: Steps, found: Roundtrip) -> None:
    (out / "roundtrip.md").write_text(page(steps, found), "utf-8")
    facts = asdict(found) | {"gain": found.gain, "foretold": found.foretold}
    ended = [{"name": s.name, "command": s.command, "code": s.code, "seconds": s.seconds} for s in steps.done]
    (out / "roundtrip.json").write_text(json.dumps({**facts, "steps": ended}, indent=1), "utf-8")
    with tarfile.open(out / "roundtrip.tar.gz", "w:gz") as archive:
        for path in sorted(steps.work.rglob("*")):
            small = path.is_file() and path.suffix in KEPT and path.stat().st_size <= MAX_KEPT
            if small and not path.is_symlink():
                archive.add(path, path.relative_to(steps.work))


if __name__ == "__main__":
    sys.exit(main())
