"""Measures what watching costs a run, on the simulated device, where kernels take no time and all else shows.

    python -m benchmarks.watch_cost [--pairs N] [--evals N] [--json FILE]

The same run is made alone and watched in turns, beginning with either: watched by `tunesmith watch` and one
page that is opened when the run begins, follows it and loads the report again whenever it is told to, as the
page's script does. Three figures: the processor's time that the server took over the run's time, which is the
most that it can have cost on a machine that has nothing to spare; the run's own processor time, watched over
alone; and its seconds, watched over alone, which say little where others use the machine. The server's time
is from the run's start until its folder is free again. What it took to start before, and to make the last
page after that, is told beside; a browser's own work is not in it. Needs the extra `watch`.
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
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from urllib.request import urlopen

from tests.end_to_end import tiny

PAIRS, EVALS = 5, 600


@dataclass(frozen=True)
class TimedRun:
    seconds: float  # by its own journal
    processor: float  # seconds that it and its workers took
    server: float = 0.0  # seconds that the server took meanwhile,
    start: float = 0.0  # to start, before,
    last: float = 0.0  # and for the last page, after
    pages: int = 0  # while it ran


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
        beside = (statistics.median(getattr(run, name) for run in self.watched) for name in ("start", "last"))
        return [
            f"runs                      {seconds:.1f} s alone, {len(pairs)} pairs",
            f"server, of a processor    {_spread(self.shares, '.2%')}",
            f"  pages meanwhile         {_spread([run.pages for run in self.watched], 'g')}",
            "  beside: start, last page " + ", ".join(f"{seconds:.2f} s" for seconds in beside),
            f"own processor time        {_spread([w.processor / a.processor for a, w in pairs], '.3f')}",
            f"seconds                   {_spread([w.seconds / a.seconds for a, w in pairs], '.3f')}",
        ]


def _spread(values: Sequence[float], form: str) -> str:
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "tunesmith", *map(str, words)]


@dataclass
class Follower:
    """As the page does: the page, then events, and the page again whenever the report has changed."""

    server: int  # its process
    pages: list[int] = field(default_factory=list)  # their bytes
    at_end: float = 0.0  # seconds that the server had taken when it told of the end

    def follow(self, address: str) -> None:
        path, _, query = address.partition("?")
        self._load(address)
        with urlopen(f"{path}/events?{query}", timeout=600) as stream:
            for line in stream:
                if line.strip() == b"event: ended":
                    self.at_end = processor_seconds(self.server)
                if line.strip() in (b"event: report", b"event: ended"):
                    self._load(address)

    def follow_when_begun(self, run: Path, index: str) -> None:
        while not (run / "journal.jsonl").exists() or not (run / "journal.jsonl").stat().st_size:
            time.sleep(0.05)
        place, _, query = index.partition("/?")
        self.follow(f"{place}/runs/{run.name}?{query}")

    def _load(self, address: str) -> None:
        with urlopen(address, timeout=600) as page:
            self.pages.append(len(page.read()))


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
        before, follower = processor_seconds(server.pid), Follower(server.pid)
        following = threading.Thread(target=follower.follow_when_begun, args=(run, index))
        following.start()
        found = _timed(place, run, words)
        following.join()
        assert follower.at_end >= before, "the server told of no end"
        used, last = follower.at_end - before, processor_seconds(server.pid) - follower.at_end
        server.terminate()
    print(f"  {len(follower.pages)} pages of {max(follower.pages) >> 10} KiB", file=sys.stderr)
    return replace(found, server=used, start=before, last=last, pages=len(follower.pages) - 1)


def _timed(place: Path, run: Path, words: Sequence[str]) -> TimedRun:
    process = subprocess.Popen(words, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the run ended with exit code {process.returncode}")
    last = (run / "journal.jsonl").read_bytes().splitlines()[-1]
    return TimedRun(float(json.loads(last)["at"]), used.ru_utime + used.ru_stime)


def measure(pairs: int, evals: int) -> WatchCost:
    found: dict[bool, list[TimedRun]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        tiny.fake_many(place / "problem")
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
