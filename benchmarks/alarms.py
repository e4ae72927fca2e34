"""Counts what the cpu device's watch finds in the kernels of a folder, to be sorted into true and false.

    python -m benchmarks.alarms FOLDER [--jobs N] [--within S] [--out FILE] [--whole] [NAME…]

FOLDER holds folders of problems (problem.toml and what it names); with NAME only these. Each is looked at in
a process of its own: built for the host and run under the watch at the small sizes of `check --sanitize`.
With --whole the check of its results comes first, as in that command. Findings go to FILE (default: none).
Kernels in languages that the cpu device does not run are left out of the count.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.alone import run_alone
from tunesmith import backends
from tunesmith.base.errors import TunesmithError
from tunesmith.lab.judge.sanitize import SanitizerTools
from tunesmith.lab.lab import LabSettings
from tunesmith.plugins.cpu_device import stand_in
from tunesmith.session import place as machine
from tunesmith.session.problems import load_problem

ALONE = "--alone"  # by this word a worker knows that it is one
SECONDS = 300.0
OTHER = "another language"


@dataclass(frozen=True)
class WatchCount:
    """What came of one kernel."""

    name: str
    findings: tuple[str, ...] = ()
    unknown: str = ""  # what the cpu device does not know
    failed: str = ""  # not watched to the end, for another reason
    seconds: float = 0.0

    @property
    def outcome(self) -> str:
        if self.failed:
            return "failed"
        return "unknown" if self.unknown else "found" if self.findings else "clean"


# -- in the worker


def watch(place: Path, whole: bool, within: float) -> WatchCount:
    problem = load_problem(place).definition
    language = problem.kernel.language
    if language not in [own.name for own in backends.find_backend_kind(stand_in.CPU).languages]:
        return WatchCount(place.name, unknown=OTHER)
    with machine.temporary_scratch() as scratch:
        here = machine.find_local_devices(machine.WorkerSite(stand_in.CPU, scratch))
        device = stand_in.choose_device(language, here, None)
        lab = machine.make_lab(
            problem, device, machine.WorkerSite(stand_in.CPU, scratch), settings=LabSettings(0, 1)
        )
        tools = lab._sanitizing._tools
        if isinstance(tools, SanitizerTools):  # a count is not to depend on who else is busy
            lab._sanitizing._tools = replace(tools, seconds=within)
        try:
            if whole:
                lab.check()
            found = lab.sanitize()
        except TunesmithError as error:
            words = " ".join(str(error).split())
            unknown = stand_in.unknown_in(str(error))
            return WatchCount(place.name, unknown=unknown, failed="" if unknown else words)
        finally:
            lab.close()
    said = tuple(finding.sentence for finding in found.findings)
    return WatchCount(place.name, said, failed="" if found.tools or said else found.sentence)


# -- in the one that counts


def watched(place: Path, within: float, whole: bool) -> WatchCount:
    """The same in a process of its own; never an exception."""
    words = [ALONE, str(place), "--within", str(within / 2), *(["--whole"] if whole else [])]
    ended = run_alone("benchmarks.alarms", words, within, "watched")
    if ended.figures is None:
        return WatchCount(place.name, failed=ended.failed, seconds=ended.seconds)
    told = ended.figures | {"findings": tuple(ended.figures["findings"]), "seconds": ended.seconds}
    return WatchCount(**told)


def table(found: Sequence[WatchCount]) -> list[str]:
    width = max((len(one.name) for one in found), default=4)
    lines = [f"{'kernel':{width}}  {'':7}  {'s':>5}"]
    for one in found:
        lines.append(f"{one.name:{width}}  {one.outcome:7}  {one.seconds:5.1f}  {one.failed or one.unknown}")
        lines += [f"{'':{width}}  {finding}" for finding in one.findings]
    return [*lines, "", summary(found)]


def summary(found: Sequence[WatchCount]) -> str:
    counts = Counter(one.outcome for one in found)
    watched_to_the_end = counts["clean"] + counts["found"]
    return (
        f"{len(found)} kernels: {watched_to_the_end} watched, {counts['clean']} of them without a finding, "
        f"{counts['found']} with; {counts['unknown']} not known here, {counts['failed']} failed"
    )


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.alarms")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--within", type=float, default=SECONDS)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument(ALONE, action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(words)
    if args.alone:
        try:
            print(json.dumps(asdict(watch(args.folder, args.whole, args.within))))
        except TunesmithError as error:
            sys.exit(" ".join(str(error).split()))
        return 0
    named = args.names or sorted(path.parent.name for path in args.folder.glob("*/problem.toml"))
    with ThreadPoolExecutor(args.jobs) as pool:
        found = []
        for one in pool.map(lambda name: watched(args.folder / name, args.within, args.whole), named):
            print(f"{one.name}: {one.outcome}", file=sys.stderr, flush=True)
            found += [one] if one.unknown != OTHER else []
    print("\n".join(table(found)))
    if args.out is not None:
        figures = {"kernels": [{**asdict(one), "outcome": one.outcome} for one in found]}
        args.out.write_text(json.dumps({"summary": summary(found), **figures}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
