"""What workers behind a command cost, beside local ones: requests, and whole runs in alternation.

    python -m benchmarks.transport [PROBLEM [--template FILE]] [--backend fake] [--runs 3] [--evals 40]
                                   [--command "ssh HOST tunesmith worker"] [--arms remote two]

By default the command starts a host on this machine, with its own folders: what is measured is the transport
alone, without a network. Of a problem, `tune` runs both ways in turn, with the same seed; nothing is cached.
The arm `two` has two workers on that one device, which take turns. What there is no time left for
(`--seconds`) is not begun.

How long a run takes depends on how many winners it verifies. Like is compared with like by what its journal
says: the seconds of the search for each evaluation, and those of the verification for each winner. Two ways
have the same winner where the 95 % intervals of their speed-ups overlap at every workload; where there are
several runs, an interval reaches from the lowest end to the highest.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import tunesmith
from tunesmith.backends import messages as m
from tunesmith.lab.process import WorkerProcess
from tunesmith.plugins.hosts.transport import RemoteWorkers, StartWorker
from tunesmith.run.outcome import Interval, median_interval
from tunesmith.session import place

SECONDS = 60.0
REQUESTS = 300


def own_host(folder: Path) -> list[str]:
    """A host here that shares no folder with us."""
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    sources = str(Path(tunesmith.__file__).parents[1])
    given = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    paths = os.pathsep.join([sources, *map(os.path.abspath, given)])  # the host works in another folder
    own = {"PATH": os.environ.get("PATH", os.defpath), "TMPDIR": str(folder / "tmp"), "PYTHONPATH": paths}
    for name in ("LD_LIBRARY_PATH", "OCL_ICD_VENDORS", "LIBRARY_PATH", "CUDA_HOME"):
        own |= {name: os.environ[name]} if name in os.environ else {}
    pairs = [f"{name}={value}" for name, value in own.items()]
    return ["env", "-i", "-C", str(folder), *pairs, sys.executable, "-m", "tunesmith", "worker"]


def seconds_of(step: Callable[[], object]) -> float:
    begun = time.perf_counter()
    step()
    return time.perf_counter() - begun


def requests(backend: str, command: Sequence[str], scratch: Path) -> dict[str, list[float]]:
    """Microseconds of a small request and milliseconds of a start, local and remote, in alternation."""
    remote = RemoteWorkers("there", command, lambda _text: None)
    made: list[WorkerProcess] = []
    try:
        connect = seconds_of(remote.connect)
        local = place.WorkerSite(backend, scratch).spawn("device")
        far = remote.worker(StartWorker(backend, "device", "auto"))
        made = [local, far]
        found: dict[str, list[float]] = {"connect ms": [connect * 1e3]}
        for name, worker in (("local", local), ("remote", far)):
            found[f"first {name} ms"] = [seconds_of(lambda w=worker: ask(w)) * 1e3]  # type: ignore[misc]
        for _ in range(REQUESTS):
            for name, worker in (("local", local), ("remote", far)):
                found.setdefault(f"request {name} us", []).append(seconds_of(lambda w=worker: ask(w)) * 1e6)  # type: ignore[misc]
        for _ in range(10):
            for name, worker in (("local", local), ("remote", far)):
                worker.kill()
                found.setdefault(f"start {name} ms", []).append(seconds_of(lambda w=worker: ask(w)) * 1e3)  # type: ignore[misc]
        return found
    finally:
        for worker in made:
            worker.close()
        remote.close()


def ask(worker: WorkerProcess) -> None:
    worker.request(m.TellProtection(), deadline=SECONDS)


def whole_run(
    problem: Path, template: Path | None, backend: str, evals: int, out: Path, hosts: Path | None
) -> float:
    command = [sys.executable, "-m", "tunesmith", "tune", str(problem), "--no-cache", "--no-library"]
    command += ["--no-prior", "--evals", str(evals), "--backend", backend, "--out", str(out)]
    command += ["--template", str(template)] if template else []
    command += ["--workers", str(hosts)] if hosts else []
    begun = time.perf_counter()
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise SystemExit(f"{shlex.join(command)}\n{ended.stderr}")
    return time.perf_counter() - begun


@dataclass
class RunFacts:
    """What the journal of a run says."""

    evaluation: float  # seconds of the search for each
    verification: float  # seconds for each winner
    winners: list[str]
    spans: dict[str, Interval]  # of the delivered speed-up, by workload
    by: Counter[str]  # how many evaluations, by whom

    @property
    def sentence(self) -> str:
        spans = ", ".join(f"{name} {own.low:.2f} to {own.high:.2f}" for name, own in self.spans.items())
        seconds = f"{self.evaluation * 1e3:.0f} ms an evaluation, {self.verification:.2f} s a verified winner"
        return f"{seconds}; winners {'; '.join(self.winners)}: {spans}; measured {dict(self.by)}"


def read(run: Path) -> RunFacts:
    lines = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    at = {line["type"]: line["at"] for line in reversed(lines)}  # the first of each
    ended = next(line["at"] for line in lines if line["type"] == "Searched")
    measured = [line for line in lines if line["type"] == "Measured"]
    searched = [line for line in measured if at["Admitted"] <= line["at"] <= ended]
    took, names, spans = [], list[str](), dict[str, Interval]()
    for before, line in itertools.pairwise(lines):
        if line["type"] != "Verified":
            continue
        took.append(line["at"] - before["at"])
        outcome = line["event"]["outcome"]
        items = dict(outcome["trial"]["config"]["items"])
        names.append(" ".join(f"{name}={value}" for name, value in items.items()))
        for result in (r for r in outcome["results"] if r["timing"]):
            timing = result["timing"]
            ratios = [p / s for p, s in zip(timing["paired"], timing["samples"], strict=True)]
            own = median_interval(tuple(ratios), seed=0)
            known = spans.get(result["workload"], own)
            spans[result["workload"]] = max(own, known, key=lambda one: one.low)  # the better serves
    by = Counter(line["event"]["outcome"]["device"] for line in measured)
    evaluation = (ended - at["Admitted"]) / max(1, len(searched))
    return RunFacts(evaluation, statistics.mean(took) if took else 0.0, names, spans, by)


def hull(runs: Sequence[RunFacts], workload: str) -> Interval:
    spans = [run.spans.get(workload, Interval(1.0, 1.0, 1.0)) for run in runs]
    return Interval(
        statistics.mean(own.value for own in spans),
        min(own.low for own in spans),
        max(own.high for own in spans),
    )


def same_winner(ours: Sequence[RunFacts], theirs: Sequence[RunFacts]) -> str:
    """Whether they deliver the same, by the intervals of what they deliver."""
    found, apart = [], []
    for name in dict.fromkeys(name for run in (*ours, *theirs) for name in run.spans):
        one, other = hull(ours, name), hull(theirs, name)
        found.append(f"{name} {one.low:.2f} to {one.high:.2f} against {other.low:.2f} to {other.high:.2f}")
        apart += [name] if one.low > other.high or other.low > one.high else []
    verdict = f"not the same at {', '.join(apart)}" if apart else "the same winner"
    return f"{verdict}, by intervals: {'; '.join(found)}"


def compare(kind: str, took: dict[str, list[float]], known: dict[str, list[RunFacts]]) -> None:
    pairs = list(zip(known[kind], known["local"], strict=False))  # of rounds that have both
    figures = {
        "run": [one / own for one, own in zip(took[kind], took["local"], strict=False)],
        "an evaluation": [one.evaluation / own.evaluation for one, own in pairs],
        "a verified winner": [a.verification / b.verification for a, b in pairs if b.verification],
    }
    for what, ratios in figures.items():
        if ratios:
            own = [round(ratio, 3) for ratio in ratios]
            print(f"{kind} / local, {what}: median {statistics.median(ratios):.3f} of {own}")
    if pairs:
        print(f"{kind}: {same_winner(known[kind], known['local'])}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("problem", type=Path, nargs="?")
    parser.add_argument("--template", type=Path)
    parser.add_argument("--backend", default="fake")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--evals", type=int, default=40)
    parser.add_argument("--command", type=shlex.split)
    parser.add_argument("--arms", nargs="+", choices=("remote", "two"), default=["remote"])
    parser.add_argument(
        "--seconds", type=float, default=270.0, help="of all of it, as far as can be foretold"
    )
    given = parser.parse_args(arguments)
    until = time.monotonic() + given.seconds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = given.command or own_host(folder / "there")
        for what, values in requests(given.backend, command, folder).items():
            print(f"{what:20} median {statistics.median(values):9.1f}  of {len(values)}")
        if given.problem is None:
            return
        hosts = folder / "hosts.toml"
        entry = '[[worker]]\nname = "{}"\ncommand = {}\n'
        hosts.write_text(entry.format("there", json.dumps(command)))
        two = folder / "two.toml"
        both = zip(("there", "also"), (command, given.command or own_host(folder / "also")), strict=True)
        two.write_text("".join(entry.format(name, json.dumps(one)) for name, one in both))
        files = {"remote": hosts, "two": two}
        arms: dict[str, Path | None] = {"local": None, **{name: files[name] for name in given.arms}}
        took: dict[str, list[float]] = {kind: [] for kind in arms}
        known: dict[str, list[RunFacts]] = {kind: [] for kind in arms}
        for number, (kind, file) in itertools.product(range(given.runs), arms.items()):
            longest = max((seconds for own in took.values() for seconds in own), default=0.0)
            if time.monotonic() + 1.1 * longest > until:
                print(f"no time is left for {kind} {number}")
                break
            out = folder / f"{kind}{number}"
            own = (given.problem, given.template, given.backend, given.evals, out, file)
            took[kind].append(whole_run(*own))
            known[kind].append(read(out))
            print(f"{kind} {number}: {took[kind][-1]:.2f} s, {known[kind][-1].sentence}", flush=True)
        for kind in list(arms)[1:]:
            compare(kind, took, known)


if __name__ == "__main__":
    main()
