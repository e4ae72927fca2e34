"""What workers behind a command cost, beside local ones: requests, and whole runs in alternation.

    python -m benchmarks.transport [PROBLEM [--template FILE]] [--backend fake] [--runs 3] [--evals 40]
                                   [--command "ssh HOST tunesmith worker"] [--two]

By default the command starts a host on this machine, with its own folders: what is measured is the transport
alone, without a network. Of a problem, `tune` runs both ways in turn, with the same seed; nothing is cached.
With `--two` also with two workers on that one device, which take turns.
"""

from __future__ import annotations

import argparse
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
from pathlib import Path

import tunesmith
from tunesmith.backends import messages as m
from tunesmith.lab.process import WorkerProcess
from tunesmith.lab.remote import RemoteWorkers
from tunesmith.lab.wire import OpenWorker
from tunesmith.session import machine

SECONDS = 60.0
REQUESTS = 300


def own_host(folder: Path) -> list[str]:
    """A host here that shares no folder with us."""
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    sources = str(Path(tunesmith.__file__).parents[1])
    paths = os.pathsep.join([sources, *filter(None, [os.environ.get("PYTHONPATH")])])
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
        local = machine.Workplace(backend, scratch).spawn("device")
        far = remote.worker(OpenWorker(backend, "device", "auto"))
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


def winners(run: Path) -> str:
    """What was verified, its speed-up at each workload, and what was measured by whom."""
    lines = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    told = []
    for outcome in (line["event"]["outcome"] for line in lines if line["type"] == "Verified"):
        timed = [r["timing"] for r in outcome["results"] if r["timing"]]
        pairs = [[p / s for p, s in zip(t["paired"], t["samples"], strict=True)] for t in timed]
        gains = ", ".join(f"{statistics.median(ratios):.3f}" for ratios in pairs)
        config = " ".join(f"{name}={value}" for name, value in outcome["trial"]["config"]["items"])
        told.append(f"{config} ({gains})")
    by = Counter(line["event"]["outcome"]["device"] for line in lines if line["type"] == "Measured")
    return f"{'; '.join(told)}; measured {dict(by)}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("problem", type=Path, nargs="?")
    parser.add_argument("--template", type=Path)
    parser.add_argument("--backend", default="fake")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--evals", type=int, default=40)
    parser.add_argument("--command", type=shlex.split)
    parser.add_argument("--two", action="store_true")
    given = parser.parse_args(arguments)
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
        arms: dict[str, Path | None] = {"local": None, "remote": hosts}
        if given.two:
            arms["two"] = two = folder / "two.toml"
            other = given.command or own_host(folder / "also")
            both = zip(("there", "also"), (command, other), strict=True)
            two.write_text("".join(entry.format(name, json.dumps(one)) for name, one in both))
        took: dict[str, list[float]] = {kind: [] for kind in arms}
        for number in range(given.runs):
            for kind, file in arms.items():
                out = folder / f"{kind}{number}"
                own = (given.problem, given.template, given.backend, given.evals, out, file)
                took[kind].append(whole_run(*own))
                print(f"{kind} {number}: {took[kind][-1]:.2f} s, winners {winners(out)}", flush=True)
        for kind in list(arms)[1:]:
            ratios = [one / local for one, local in zip(took[kind], took["local"], strict=True)]
            print(
                f"{kind} / local: median {statistics.median(ratios):.3f} of {[round(r, 3) for r in ratios]}"
            )


if __name__ == "__main__":
    main()
