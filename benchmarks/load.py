"""What is claimed on a busy device: runs beside a neighbour that computes on and off, and several at once.

    python -m benchmarks.load PROBLEM... --out DIR [--runs 20] [--time 12] [--at-once 6] [--device ID]
        [--together 1] [--neighbour cuda|processors] [--on 1.0] [--off 1.5] [--limit 560] [--quiet 4]
        [--option=--no-prior]

PROBLEM is the folder of a problem, with a template.cu or template.cl in it or none. `--runs` runs of each go
beside the neighbour, `--together` at a time, then `--at-once` of them at once with no other neighbour; 0
leaves them out. When all is quiet `tunesmith verify --rerun` measures what they claim, `--quiet` times for
each configuration, each time in new processes; the geometric mean is the quiet ratio. DIR/runs.jsonl has a
line for each workload: what is there is not done again, so a command that `--limit` seconds have cut short
goes on where it was. Prints a table; exit 1 where a bar is missed: 19 of 20 certified intervals contain the
quiet ratio, no certified figure is off by more than 10 %, at most 1 of 20 gains of 1.5× or more is not
certified.

The neighbour computes in processes of its own: on processors as many as there are, adding; with `cuda` a
kernel that fills the GPU, by CuPy. They end with the run, and by themselves.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

OFF_BY, GAIN, COVERED, LOST = 1.10, 1.5, 0.95, 0.05
WIDE = 1.5  # from this ratio of its ends on an interval stands for its lower end
RUN_SECONDS = 300.0  # that one run may take beyond its search


@dataclass(frozen=True)
class Row:
    """One workload of one run."""

    problem: str
    setting: str  # neighbour | at once
    run: int
    workload: str
    status: str
    claimed: float
    low: float
    high: float
    quiet: float | None  # of the same kernel, measured alone; None: the original stays
    seconds: float  # of the run
    doubt: str = ""
    config: str = ""

    @property
    def is_certified(self) -> bool:
        return self.status == "faster"

    @property
    def is_covered(self) -> bool:
        return self.quiet is not None and self.low <= self.quiet <= self.high

    @property
    def is_off(self) -> bool:
        """Where the interval is wide, what is claimed is its lower end at least."""
        if self.quiet is None:
            return False
        if self.high > WIDE * self.low:
            return self.low > OFF_BY * self.quiet
        return not 1 / OFF_BY <= self.claimed / self.quiet <= OFF_BY


def compute_on_processor(on: float, off: float, end: float) -> None:
    while time.monotonic() < end:
        until = time.monotonic() + on
        while time.monotonic() < until:
            sum(range(10_000))
        time.sleep(off)


FMA = r"""
extern "C" __global__ void busy(float *x, int n) {
    float a = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int i = 0; i < n; i++) a = a * 0.999f + 1.0f;
    x[blockIdx.x * blockDim.x + threadIdx.x] = a;
}"""


def compute_on_gpu(on: float, off: float, end: float) -> None:
    import cupy

    kernel, data = cupy.RawKernel(FMA, "busy"), cupy.zeros(1 << 20, dtype=cupy.float32)
    while time.monotonic() < end:
        until = time.monotonic() + on
        while time.monotonic() < until:
            kernel((4096,), (256,), (data, 20_000))
            cupy.cuda.Stream.null.synchronize()
        time.sleep(off)


@contextmanager
def neighbour(kind: str, on: float, off: float, seconds: float) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    work, count = (compute_on_gpu, 1) if kind == "cuda" else (compute_on_processor, os.cpu_count() or 1)
    end = time.monotonic() + seconds
    processes = [context.Process(target=work, args=(on, off, end), daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
            process.join()


def start_run(problem: Path, folder: Path, options: argparse.Namespace, seed: int) -> subprocess.Popen[bytes]:
    templates = [path for name in ("template.cu", "template.cl") if (path := problem / name).exists()]
    words = [sys.executable, "-m", "tunesmith", "tune", str(problem), "--time", str(options.time)]
    words += ["--seed", str(seed), "--out", str(folder), *options.option]
    words += ["--template", str(templates[0])] if templates else []
    words += ["--device", options.device] if options.device else []
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.log", "wb") as log:
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)


def rows_of(
    problem: Path,
    folder: Path,
    setting: str,
    number: int,
    seconds: float,
    known: Sequence[Row],
    repeats: int,
) -> list[Row]:
    """What the run claims, and what that is alone."""
    if not (folder / "certificate.json").exists():
        return []
    claims = json.loads((folder / "certificate.json").read_text())["claims"]
    quiet = {(row.workload, row.config): row.quiet for row in known if row.problem == problem.name}
    if all((claim["workload"], json.dumps(claim["config"])) in quiet for claim in claims):
        known_ratios = {c["workload"]: quiet[c["workload"], json.dumps(c["config"])] for c in claims}
        return rows_from(problem, claims, known_ratios, setting, number, seconds)
    try:
        again = [measure_again(folder) for _ in range(repeats)]
    except (ValueError, KeyError, subprocess.TimeoutExpired) as error:
        print(f"{folder} was not judged again: {error!r}")
        return []
    measured: dict[str, float | None] = {}
    for workload in again[0]:
        values = [value for each in again if (value := each[workload]) is not None]
        measured[workload] = geometric_mean(values) if values else None
    return rows_from(problem, claims, measured, setting, number, seconds)


def measure_again(folder: Path) -> dict[str, float | None]:
    """By workload; None where the original stays. A claim of a wrong kernel is a ValueError."""
    words = [sys.executable, "-m", "tunesmith", "verify", str(folder), "--rerun", "--json"]
    found = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=RUN_SECONDS)
    answer = json.loads(found.stdout)
    if answer["faults"]:
        raise ValueError("; ".join(answer["faults"]))
    return {w["workload"]: w["measured"] for w in answer["workloads"]}


def rows_from(
    problem: Path,
    claims: Sequence[dict[str, Any]],
    quiet: Mapping[str, float | None],
    setting: str,
    number: int,
    seconds: float,
) -> list[Row]:
    return [
        Row(
            problem=problem.name,
            setting=setting,
            run=number,
            workload=claim["workload"],
            status=claim["status"],
            claimed=claim["speedup"],
            low=claim["interval"][0],
            high=claim["interval"][1],
            quiet=quiet.get(claim["workload"]),
            seconds=seconds,
            doubt=claim.get("doubt", ""),
            config=json.dumps(claim["config"]),
        )
        for claim in claims
    ]


def finish(run: subprocess.Popen[bytes]) -> None:
    try:
        with suppress(subprocess.TimeoutExpired):
            run.wait(RUN_SECONDS)
    finally:
        run.kill()
        run.wait()


def measure(
    problem: Path, setting: str, numbers: Sequence[int], options: argparse.Namespace, known: list[Row]
) -> Iterator[Row]:
    """Runs of these numbers at the same time."""
    folders = {
        number: options.out / problem.name / setting.replace(" ", "-") / str(number) for number in numbers
    }
    for folder in folders.values():
        shutil.rmtree(folder, ignore_errors=True)  # of a command that was cut short
    started = time.monotonic()
    limit = RUN_SECONDS + options.time
    busy = neighbour(options.neighbour, options.on, options.off, limit)
    with busy if setting == "neighbour" else nullcontext():
        for run in [start_run(problem, folder, options, n) for n, folder in folders.items()]:
            finish(run)
    seconds = time.monotonic() - started
    for number, folder in folders.items():
        yield from rows_of(problem, folder, setting, number, seconds, known, options.quiet)


def table(rows: Sequence[Row]) -> tuple[str, bool]:
    """One line for each problem and setting, and whether all bars are met."""
    lines = ["problem              setting    runs claims certified inside  off>10%  worst  lost gains"]
    certified = [row for row in rows if row.is_certified]
    for problem, setting in dict.fromkeys((row.problem, row.setting) for row in rows):
        own = [row for row in rows if (row.problem, row.setting) == (problem, setting)]
        sure = [row for row in own if row.is_certified]
        worst = max((max(r.claimed / r.quiet, r.quiet / r.claimed) for r in sure if r.quiet), default=1.0)
        lines.append(
            f"{problem:<20} {setting:<10} {len({row.run for row in own}):>4} "
            f"{sum(row.status != 'the original stays' for row in own):>6} {len(sure):>9} "
            f"{sum(row.is_covered for row in sure):>6} {sum(row.is_off for row in sure):>8} "
            f"{worst:>5.2f}× {len(lost(own)):>5} of {len(gains(own))}"
        )
    lines += [
        f"  not certified: {row.problem} {row.workload}, run {row.run}: {row.doubt}"
        for row in rows
        if row.doubt
    ]
    covered = sum(row.is_covered for row in certified)
    is_met = (
        bool(certified)
        and covered >= COVERED * len(certified)
        and not any(row.is_off for row in certified)
        and len(lost(rows)) <= LOST * len(gains(rows))
    )
    lines.append(
        f"{covered} of {len(certified)} certified intervals contain the quiet ratio, "
        f"{sum(row.is_off for row in certified)} are off by more than 10 %, "
        f"{len(lost(rows))} of {len(gains(rows))} gains of {GAIN}× or more are lost: "
        f"{'met' if is_met else 'MISSED'}"
    )
    return "\n".join(lines), is_met


def gains(rows: Sequence[Row]) -> list[Row]:
    """Where the problem has a gain, by what any run's kernel gave alone."""
    best: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        best.setdefault((row.problem, row.workload), []).append(row.quiet or 1.0)
    return [row for row in rows if sorted(found := best[row.problem, row.workload])[len(found) // 2] >= GAIN]


def lost(rows: Sequence[Row]) -> list[Row]:
    return [row for row in gains(rows) if not row.is_certified]


def main() -> int:
    words = argparse.ArgumentParser(description="What is claimed on a busy device.")
    words.add_argument("problem", nargs="+", type=Path)
    words.add_argument("--out", type=Path, required=True)
    words.add_argument("--runs", type=int, default=20)
    words.add_argument("--time", type=float, default=12.0, help="seconds of search")
    words.add_argument("--together", type=int, default=1)
    words.add_argument("--at-once", type=int, default=6)
    words.add_argument("--device", default="")
    words.add_argument("--neighbour", choices=("cuda", "processors"), default="processors")
    words.add_argument("--on", type=float, default=1.0)
    words.add_argument("--off", type=float, default=1.5)
    words.add_argument("--limit", type=float, default=560.0, help="seconds after which no run is begun")
    words.add_argument("--quiet", type=int, default=4, help="quiet measurements of each configuration")
    words.add_argument("--option", action="append", default=[], help="more words for `tunesmith tune`")
    options = words.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    kept, end = options.out / "runs.jsonl", time.monotonic() + options.limit
    lines = kept.read_text().splitlines() if kept.exists() else []
    rows = [Row(**json.loads(line)) for line in lines]
    done = {(row.problem, row.setting, row.run) for row in rows}
    steps = [
        (problem, "neighbour", list(range(first, min(first + options.together, options.runs))))
        for first in range(0, options.runs, options.together)
        for problem in options.problem
    ]
    steps += [(problem, "at once", list(range(options.at_once))) for problem in options.problem]
    longest = 0.0
    for problem, setting, numbers in steps:
        left = [n for n in numbers if (problem.name, setting, n) not in done]
        if not left or time.monotonic() + longest > end:
            continue
        began = time.monotonic()
        for row in measure(problem, setting, left, options, rows):
            rows.append(row)
            with kept.open("a") as file:
                file.write(json.dumps(asdict(row)) + "\n")
        longest = max(longest, time.monotonic() - began)
    text, is_met = table(rows)
    print(text)
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
