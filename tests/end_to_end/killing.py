"""Runs that are killed again and again, at moments drawn over their whole life, and then resumed to the end.

python -m tests.end_to_end.killing [--simulated 180] [--opencl 20] [--seed 1]

Each must end as a run that nobody killed: on the simulated device with the same events and the same delivered
bytes; on OpenCL, where times differ, with the same verdicts, nothing measured twice, and every decision the
one that an unbroken run makes on these measurements.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from tests.end_to_end.replaying import events_of, replayed
from tests.running import (
    FIXTURES,
    Begun,
    expect_success,
    facts,
    journal,
    tunesmith,
    wait_for_events,
    wait_until_alone,
)

AT_ONCE = 5  # kills of one run, one after the other
SIMULATED = """\
// /// tunesmith
// [params]
// BLOCK = [32, 64]
// VEC = [1, 2, 4, 8]
// FAULT = [0, 1, 2]
// [default]
// BLOCK = 64
// VEC = 1
// FAULT = 0
// [require]
// few_faults = "FAULT == 0 or VEC == 1"
// [launch]
// grid = ["rows"]
// block = ["BLOCK"]
// ///
#ifndef BLOCK
#define BLOCK 64
#endif
#ifndef VEC
#define VEC 1
#endif
#ifndef FAULT
#define FAULT 0
#endif
int choices[] = {BLOCK, VEC, FAULT};
// /// fake
// args = ["out", "x", "rows", "d"]
// op = "scale"
// time = "100 * (9000 + rows * d // VEC + 50 * (BLOCK - 64))"
// fault = "FAULT"
// ///
"""

Command = tuple[object, ...]


def tune(problem: Path, template: Path, *more: object) -> Command:
    return ("tune", problem, "--template", template, "--no-cache", "--seed", 3, "--out", "run", *more)


def simulated(place: Path) -> Command:
    """A short run on the simulated device: good configurations, wrong ones and crashes."""
    template = place / "template.fake"
    template.write_text(SIMULATED)
    problem = shutil.copytree(FIXTURES / "scale", place / "problem")
    text = (problem / "problem.toml").read_text()
    for larger, smaller in (("max = 64 }", "max = 16 }"), ("max = 2048,", "max = 256,")):
        assert larger in text
        text = text.replace(larger, smaller)
    one_workload = [line for line in text.splitlines() if not line.startswith("wide")]
    (problem / "problem.toml").write_text("\n".join(one_workload) + "\n")
    return tune(problem, template, "--search", "random")


def on_opencl(place: Path) -> Command:
    """The same by a real compiler and processor; endless loops are another test's subject."""
    problem = shutil.copytree(FIXTURES / "hostile_opencl", place / "problem")
    smaller = (problem / "problem.toml").read_text().replace("1000000", "20000").replace("262144", "16384")
    (problem / "problem.toml").write_text(smaller)
    template = place / "template.cl"
    text = (problem / "template.cl").read_text()
    template.write_text(text.replace("[0, 1, 2, 3, 4, 5, 6, 7, 8]", "[0, 1, 4]").replace("few_hangs", "few")
                        .replace('"KIND != 2 or COPY <= 4"', '"KIND == 0 or COPY == 1"'))  # fmt: skip
    return tune(problem, template, "--search", "exhaustive")  # which ends when all have been tried


def resume(folder: Path) -> None:
    ended = expect_success(folder, "resume", "run", "--json")
    assert ended.json["unproven"] == "", "its journal is one chain, whenever it was killed"
    assert (folder / "run" / "certificate.json").exists()


def kill(folder: Path, command: tuple[object, ...], events: int, pause: float) -> int:
    """How many events the journal had when the process was killed."""
    process = Begun(folder, *command)
    wait_for_events(folder / "run", events, process)
    time.sleep(pause)
    process.kill()
    assert wait_until_alone(folder) == []
    return len(journal(folder / "run"))


def kill_and_resume(folder: Path, command: tuple[object, ...], events: int, pause: float) -> int:
    written = kill(folder, command, events, pause)
    if written:  # killed before it began: nothing to lose, nothing to resume
        resume(folder)
    return written


def delivered(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in (folder / "run" / "tuned").iterdir()}


def leftovers(folder: Path) -> list[str]:
    return [p.name for p in (folder / "run").iterdir() if p.name == "scratch" or ".new" in p.name]


def statuses(run: Path) -> dict[str, list[str]]:
    found = {}
    for line in journal(run):
        if line["type"] == "Measured" and line["event"]["outcome"]["trial"]["purpose"] == "search":
            outcome = line["event"]["outcome"]
            found[str(outcome["trial"]["config"])] = [r["status"] for r in outcome["results"]]
    return found


def difference(found: list[tuple[str, object]], expected: list[tuple[str, object]]) -> str:
    """The first event that is another one, as both have it; empty where all are the same."""
    pairs = enumerate(zip_longest(found, expected))
    return next((f"event {n} is {a}, expected {b}" for n, (a, b) in pairs if a != b), "")


def same_events(folder: Path, whole: Path) -> str:
    """Empty: as the unbroken run. Of a simulated device everything is the same."""
    if differs := difference(facts(folder / "run"), facts(whole / "run")):
        return f"its events differ: {differs}"
    if delivered(folder) != delivered(whole):
        return "its kernels differ"
    return ", ".join(leftovers(folder))


def same_decisions(folder: Path, whole: Path) -> str:
    run = folder / "run"
    trials = [e["event"]["outcome"]["trial"]["id"] for e in journal(run) if e["type"] == "Measured"]
    if max(Counter(trials).values()) > 1:
        return "something was measured twice"
    if statuses(run) != statuses(whole / "run"):
        return "what came of its trials differs"
    if replayed(run) != events_of(run):
        return "an unbroken run decides otherwise on the same measurements"
    return ", ".join(leftovers(folder))


@dataclass
class Killed:
    kills: int = 0
    halfway: int = 0  # of the kills left a journal that had begun and not ended
    equal: int = 0  # kills of runs that ended as the unbroken one
    runs: int = 0


def kill_at_random(
    place: Path,
    make: Callable[[Path], Command],
    same: Callable[[Path, Path], str],
    kills: int,
    rng: random.Random,
    say: Callable[[str], None],
) -> Killed:
    whole = place / "whole"
    whole.mkdir(parents=True)
    tunesmith(place, "--version")  # loads the program, which others need not do
    command, begun = make(place), time.monotonic()
    expect_success(whole, *command)
    life, total = time.monotonic() - begun, len(journal(whole / "run"))
    say(f"an unbroken run takes {life:.1f} s and writes {total} events")
    found = Killed()
    while found.kills < kills:
        folder = place / str(found.runs)
        folder.mkdir()
        written: list[int] = []
        for _ in range(min(AT_ONCE, kills - found.kills)):
            process = Begun(folder, *(("resume", "run") if written and written[-1] else command))
            # Half of the moments lie anywhere in the time a run takes, half behind any of its events.
            pause = rng.uniform(0, life)
            if rng.random() < 0.5:
                pause, done = rng.uniform(0, 0.1), written[-1] if written else 0
                wait_for_events(folder / "run", rng.randint(min(done + 1, total), total), process)
            end = time.monotonic() + pause
            while time.monotonic() < end and process.poll() is None:
                time.sleep(0.002)
            if process.poll() is not None:  # it was faster than the one that nobody killed
                process.end(timeout=60)
                break
            process.kill()
            assert wait_until_alone(folder) == [], "processes outlive the run"
            written.append(len(journal(folder / "run")))
        if not journal(folder / "run"):
            expect_success(folder, *command)
        resume(folder)
        fault = same(folder, whole)
        found.runs += 1
        found.kills += len(written)
        found.halfway += sum(0 < events < total for events in written)
        found.equal += 0 if fault else len(written)
        say(f"killed after {written} of {total} events: {fault or 'equal'}")
        if not fault:
            shutil.rmtree(folder)
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.end_to_end.killing")
    parser.add_argument("--simulated", type=int, default=180)
    parser.add_argument("--opencl", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    print(f"seed {given.seed}", flush=True)
    unequal = 0
    kinds = (
        ("simulated", simulated, same_events, given.simulated),
        ("opencl", on_opencl, same_decisions, given.opencl),
    )
    for name, make, same, kills in kinds:
        if not kills:
            continue
        place = Path(tempfile.mkdtemp(prefix=f"tunesmith-killed-{name}-"))
        rng = random.Random(f"{name} {given.seed}")
        found = kill_at_random(place, make, same, kills, rng, lambda text: print(text, flush=True))
        counts = f"{found.kills} kills in {found.runs} runs, {found.halfway} of them halfway"
        print(f"{name}: {counts}, {found.equal} equal", flush=True)
        unequal += found.kills - found.equal
        if found.kills == found.equal:
            shutil.rmtree(place)
        else:
            print(f"what is not equal lies in {place}", flush=True)
    return 1 if unequal else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
