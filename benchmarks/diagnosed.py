"""Diagnoses the originals of runs again, from their recorded times and machine code that is built anew.

    python -m benchmarks.diagnosed RUN... [--words]

No device is needed: what the original took and its floor are in the journal, what its code consists of is
read from a build. Counters and experiments are not there. Prints, for each workload, the bound and the
findings as they were recorded and as they are now, and how many are unknown.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tunesmith import backends
from tunesmith.backends.port import NoCounting
from tunesmith.lab.profile import Profiler, ProfileSubject
from tunesmith.profiles.diagnose import diagnose_profile
from tunesmith.profiles.facts import Bound, Ceilings, Diagnosis, Point
from tunesmith.run.folder import RunFolder
from tunesmith.session import place
from tunesmith.session.problems import state_and_templates


@dataclass(frozen=True)
class DiagnosedAgain:
    kernel: str
    workload: str
    before: Diagnosis
    now: Diagnosis


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.diagnosed", description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--words", action="store_true", help="with the evidence of each finding")
    given = parser.parse_args(arguments)
    every = [one for run in given.runs for one in diagnosed(run)]
    for one in every:
        print(f"{one.kernel} {one.workload}: {_shown(one.before)} -> {_shown(one.now)}")
        for finding in one.now.findings if given.words else ():
            print(f"    {finding.kind}: {'; '.join(finding.evidence)}")
        if given.words and not one.now.findings:
            print(f"    {'; '.join(one.now.notes)}")
    for what, found in (("recorded", [o.before for o in every]), ("now", [o.now for o in every])):
        unknown = [o.kernel for o, d in zip(every, found, strict=True) if d.bound is Bound.UNKNOWN]
        kernels = f"{len(set(unknown))} of {len({o.kernel for o in every})} kernels"
        print(f"{what}: unknown at {len(unknown)} of {len(every)} workloads, of {kernels}")


def diagnosed(run: Path) -> Iterator[DiagnosedAgain]:
    state, templates = state_and_templates(RunFolder.open(run))
    problem, spec = templates.problem, backends.spec_of(state.device)
    seconds = (
        {r.workload: r.timing.seconds for r in state.baseline.outcome.results if r.timing}
        if state.baseline
        else {}
    )
    before = {p.workload: p.diagnosis for p in state.profiled if p.config is None and p.diagnosis}
    with place.temporary_scratch() as scratch:
        builders = place.make_builders(place.WorkerSite(spec, scratch), state.device, 2, state.compiler)
        try:
            for workload in problem.workloads:
                old = before.get(workload.name)
                if old is None or old.floor is None or workload.name not in seconds:
                    continue
                reader = backends.instructions_reader(spec)
                own = (problem, state.device, builders, None, NoCounting("not recorded"), reader)
                looked = Profiler(*own, ceilings=Ceilings()).known(
                    ProfileSubject(), workload, seconds[workload.name]
                )
                moved = looked.profile.work.bytes if looked.profile.work else 0
                floor = (Point(moved, old.floor),)  # as it was measured then
                again = replace(looked.profile, ceilings=Ceilings(copy=floor, read=floor))
                yield DiagnosedAgain(run.name, workload.name, old, diagnose_profile(again))
        finally:
            builders.close()


def _shown(found: Diagnosis) -> str:
    kinds = ", ".join(f"{f.kind} {f.gain:.0%}" for f in found.findings[:3])
    return f"{found.bound}" + (f" ({kinds})" if kinds else "")


if __name__ == "__main__":
    main()
