"""Measures what watching costs a run, on the simulated device, where kernels take no time and all else shows.

    python -m benchmarks.watch_cost [--pairs N] [--evals N] [--json FILE]

The same run is made alone and watched in turns, beginning with either: watched by `tunesmith watch` and one
page that follows it and loads the report again whenever it is told to, as the page's script does. Three
figures: the processor's time that the server took over the run's time, which is the most that it can have
cost on a machine that has nothing to spare; the run's own processor time, watched over alone; and its
seconds, watched over alone, which say little where others use the machine. Needs the extra `watch`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.request import urlopen

PAIRS, EVALS = 5, 600
PROBLEM = """\
name = "scale"
[kernel]
source = "kernel.fake"
entry = "scale"
[[argument]]
name = "out"
type = "float32*"
shape = ["n"]
role = "output"
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
grid = ["ceildiv(n, 64)"]
block = ["64"]
[contract]
n = { one_of = [8, 64, 4096] }
[workloads]
small = { n = 64, cache = "warm" }
large = { n = 4096, cache = "warm" }
[accuracy]
reference = "reference.py:scale"
"""
FAKE = '// /// fake\n// args = ["out", "x", "n"]\n// op = "scale"\n// time = "{time}"\n// ///\n'
NAMES = ("BLOCK", "VEC", "UNROLL", "STAGES")
VALUES = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class TimedRun:
    seconds: float  # by its own journal
    processor: float  # seconds that it and its workers took
    server: float = 0.0  # seconds that the server took meanwhile


@dataclass(frozen=True)
class WatchCost:
    """Pair by pair."""

    alone: tuple[TimedRun, ...]
    watched: tuple[TimedRun, ...]

    @property
    def shares(self) -> list[float]:
        return [run.server / run.seconds for run in self.watched]

    def lines(self) -> list[str]:
        pairs = list(zip(self.alone, self.watched, strict=True))
        seconds = statistics.median(run.seconds for run in self.alone)
        return [
            f"runs                      {seconds:.1f} s alone, {len(pairs)} pairs",
            f"server, of a processor    {_spread(self.shares, '.2%')}",
            f"own processor time        {_spread([w.processor / a.processor for a, w in pairs], '.3f')}",
            f"seconds                   {_spread([w.seconds / a.seconds for a, w in pairs], '.3f')}",
        ]


def _spread(values: Sequence[float], form: str) -> str:
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def write_problem(folder: Path) -> None:
    folder.mkdir()
    (folder / "problem.toml").write_text(PROBLEM)
    (folder / "kernel.fake").write_text(FAKE.format(time="900000"))
    (folder / "reference.py").write_text("def scale(x):\n    return 2.0 * x\n")
    listed = "".join(f"// {name} = {list(VALUES)}\n" for name in NAMES)
    default = "".join(f"// {name} = 1\n" for name in NAMES)
    defines = "".join(f"#ifndef {name}\n#define {name} 1\n#endif\n" for name in NAMES)
    head = f"// /// tunesmith\n// [params]\n{listed}// [default]\n{default}// [launch]\n"
    head += '// grid = ["ceildiv(n, 64)"]\n// block = ["64"]\n// ///\n'
    body = FAKE.format(time="1000000 // (BLOCK + 3 * VEC) + 900 * UNROLL + n * STAGES")
    (folder / "template.fake").write_text(f"{head}{defines}int used[] = {{{', '.join(NAMES)}}};\n{body}")


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "tunesmith", *map(str, words)]


def follow(address: str, pages: list[int]) -> None:
    """As the page does: events, and the page itself whenever the report has changed."""
    path, _, query = address.partition("?")
    with urlopen(f"{path}/events?{query}", timeout=600) as stream:
        for line in stream:
            if line.strip() in (b"event: report", b"event: ended"):
                with urlopen(address, timeout=600) as page:
                    pages.append(len(page.read()))


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def one_run(place: Path, evals: int, watch: bool) -> TimedRun:
    run = place / "tunesmith-runs" / f"{'watched' if watch else 'alone'}-{time.monotonic_ns()}"
    own = (
        "tune",
        "problem",
        "--template",
        "problem/template.fake",
        "--no-cache",
        "--no-library",
        "--no-prior",
    )
    words = command(*own, "--search", "random", "--evals", evals, "--out", run)
    run.parent.mkdir(exist_ok=True)
    if not watch:
        return _timed(place, run, words)
    nothing = subprocess.DEVNULL
    with subprocess.Popen(command("watch"), cwd=place, stdout=-1, stderr=nothing, text=True) as server:
        assert server.stdout is not None
        index = server.stdout.readline().strip()
        urlopen(index, timeout=60).close()
        before, pages = processor_seconds(server.pid), list[int]()
        follower = threading.Thread(target=_follow_when_begun, args=(run, index, pages))
        follower.start()
        found = _timed(place, run, words)
        used = processor_seconds(server.pid) - before
        follower.join()
        server.terminate()
    print(f"  {len(pages)} pages of {max(pages, default=0) >> 10} KiB", file=sys.stderr)
    return replace(found, server=used)


def _timed(place: Path, run: Path, words: Sequence[str]) -> TimedRun:
    process = subprocess.Popen(words, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the run ended with exit code {process.returncode}")
    last = (run / "journal.jsonl").read_bytes().splitlines()[-1]
    return TimedRun(float(json.loads(last)["at"]), used.ru_utime + used.ru_stime)


def _follow_when_begun(run: Path, index: str, pages: list[int]) -> None:
    while not (run / "journal.jsonl").exists() or not (run / "journal.jsonl").stat().st_size:
        time.sleep(0.05)
    place, _, query = index.partition("/?")
    follow(f"{place}/runs/{run.name}?{query}", pages)


def measure(pairs: int, evals: int) -> WatchCost:
    found: dict[bool, list[TimedRun]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_problem(place / "problem")
        one_run(place, 8, False)  # what is slow only the first time
        for pair in range(pairs):
            for watch in (pair % 2 == 0, pair % 2 == 1):
                found[watch].append(one_run(place, evals, watch))
    return WatchCost(tuple(found[False]), tuple(found[True]))


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="What watching costs a run.")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--evals", type=int, default=EVALS)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(words)
    found = measure(given.pairs, given.evals)
    for line in found.lines():
        print(line)
    if given.json is not None:
        given.json.write_text(json.dumps(asdict(found), indent=1) + "\n")


if __name__ == "__main__":
    main()
