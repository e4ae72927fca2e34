"""How often an honest kernel is accused: random configurations of right templates, through all that accepts.

    python -m benchmarks.honest PROBLEM... [--evaluations 200] [--seconds 600] [--backend opencl] [--seed 1]

PROBLEM is the folder of a problem. Its template is the one beside it; where there is none, the expert's draft
with every move that applies. Each configuration is checked and timed as in a search; every fourth as a
finalist too, and every twelfth is verified as a winner. An evaluation is one of these; an alarm is one that
ends `wrong`, `unstable` or `suspect` at a workload. One that crashed or timed out has failed: an overloaded
machine does that too. After 48 evaluations of a problem a new lab draws other inputs. Prints a table and what
every alarm and failure said; exit 1 where there is an alarm.
"""

from __future__ import annotations

import argparse
import datetime
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tunesmith.expert.author import ExpertAuthor
from tunesmith.expert.moves import PARAMETERS
from tunesmith.lab.lab import LabSettings, LocalLab
from tunesmith.problem.device import Device
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, configs_of
from tunesmith.problem.template_file import parse_template
from tunesmith.run.outcome import Effort, Result, Trial
from tunesmith.run.ports import Declined, Refactoring
from tunesmith.session import place
from tunesmith.session.problems import load_problem, load_template
from tunesmith.space.configset import Config

ALARMS = (Status.WRONG, Status.UNSTABLE, Status.SUSPECT)
FAILURES = (Status.CRASHED, Status.TIMED_OUT)
ROUND = 48  # evaluations of a lab
LONG, VERIFY = 4, 12  # every so many-th configuration
STAGES = ("short", "long", "verify")


@dataclass
class Tally:
    """What came of one problem."""

    name: str
    evaluations: Counter[str] = field(default_factory=Counter)  # by stage
    results: Counter[Status] = field(default_factory=Counter)  # one for each workload
    alarms: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    accused: int = 0  # evaluations with an alarm
    failed: int = 0  # and those with a failure
    configs: set[Config] = field(default_factory=set)
    seconds: float = 0.0

    def add(self, stage: str, config: Config, results: Sequence[Result]) -> None:
        self.evaluations[stage] += 1
        self.configs.add(config)
        self.results.update(r.status for r in results)
        where = f"{self.name} {config.label} {stage}"
        alarms = [r for r in results if r.status in ALARMS]
        failures = [r for r in results if r.status in FAILURES]
        self.alarms += [f"{where} {r.workload}: {r.status}: {r.detail}" for r in alarms]
        self.failures += [f"{where} {r.workload}: {r.status}: {r.detail}" for r in failures]
        self.accused += bool(alarms)
        self.failed += bool(failures)

    @property
    def total(self) -> int:
        return sum(self.evaluations.values())


def template_of(folder: Path, device: Device) -> tuple[Problem, Template]:
    problem, files = load_problem(folder)
    own = sorted(folder.glob("template.*"))
    if own:
        return problem, load_template(own[0], problem, files)
    written = ExpertAuthor().write(Refactoring(tuple(PARAMETERS)), problem, device)
    if isinstance(written, Declined):
        raise SystemExit(f"{folder}: the expert has no template: {written.reason}")
    return problem, parse_template(written.text, path="template", problem=problem)


def stages_of(number: int) -> Iterator[str]:
    yield "short"
    if number % LONG == 0:
        yield "long"
    if number % VERIFY == 0:
        yield "verify"


def evaluate(lab: LocalLab, trial: Trial, stage: str) -> tuple[Result, ...]:
    if stage == "verify":
        return lab.verify(trial).outcome.results
    lab.submit(trial)
    return lab.collect().results


def drive(
    tally: Tally,
    problem: Problem,
    template: Template,
    device: Device,
    spec: str,
    scratch: Path,
    chance: random.Random,
    most: int,
    until: float,
) -> None:
    """At most `most` evaluations on one lab, until this time."""
    configs = configs_of(problem, template, device)
    names = tuple(w.name for w in problem.workloads)
    settings = LabSettings(chance.getrandbits(32), 2, salt=chance.getrandbits(53))
    lab = place.make_lab(problem, device, place.WorkerSite(spec, scratch), settings=settings)
    started, done, number = time.monotonic(), 0, 0
    try:
        lab.admit(template)
        lab.baseline()
        for index in chance.sample(range(len(configs)), min(len(configs), most)):
            config = configs[index]
            for stage in stages_of(number):
                if done >= most or time.monotonic() > until:
                    return
                done += 1
                effort: Effort = "short" if stage == "short" else "long"
                trial = Trial(done, config, names, effort, "search", template.digest)
                tally.add(stage, config, evaluate(lab, trial, stage))
            number += 1
    finally:
        lab.close()
        tally.seconds += time.monotonic() - started


def run(
    folders: Sequence[Path], spec: str, wanted: str | None, evaluations: int, seconds: float, seed: int
) -> tuple[Device, list[Tally]]:
    """A lab of each problem in turn, until there are enough evaluations of all together."""
    chance = random.Random(seed)
    until = time.monotonic() + seconds
    with place.temporary_scratch() as scratch:
        device = place.pick_device(place.list_devices(place.WorkerSite(spec, scratch)), wanted)
        read = [(Tally(folder.name), *template_of(folder, device)) for folder in folders]
        tallies = [tally for tally, _, _ in read]
        while (left := evaluations - sum(t.total for t in tallies)) > 0 and time.monotonic() < until:
            before = evaluations - left
            for tally, problem, template in read:
                left = evaluations - sum(t.total for t in tallies)
                if left > 0 and time.monotonic() < until:
                    share = min(ROUND, max(1, -(-evaluations // len(read))), left)
                    drive(tally, problem, template, device, spec, scratch, chance, share, until)
            if sum(t.total for t in tallies) == before:
                break  # not even a baseline in the time that is left
        return device, tallies


def table(tallies: Sequence[Tally]) -> Iterator[str]:
    columns = (
        "evaluations",
        "configurations",
        *STAGES,
        "at workloads",
        "ok",
        "cannot run",
        "failed",
        "alarms",
        "s",
    )
    yield f"| problem | {' | '.join(columns)} |"
    yield "|---|" + "---:|" * len(columns)
    rows: list[tuple[str, list[float]]] = []
    for t in tallies:
        results, ok = sum(t.results.values()), t.results[Status.OK]
        bad = sum(t.results[status] for status in (*ALARMS, *FAILURES))
        counts = [t.total, len(t.configs), *(t.evaluations[stage] for stage in STAGES)]
        rows.append(
            (t.name, [*counts, results, ok, results - ok - bad, t.failed, t.accused, round(t.seconds)])
        )
    rows.append(("**all**", [sum(each) for each in zip(*(numbers for _, numbers in rows), strict=True)]))
    for name, numbers in rows:
        yield f"| {name} | {' | '.join(f'{number:,}' for number in numbers)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description="Count alarms on honest kernels.")
    options.add_argument("problems", nargs="+", type=Path, metavar="PROBLEM")
    options.add_argument("--evaluations", type=int, default=200, help="of all problems together")
    options.add_argument("--seconds", type=float, default=600.0, help="no evaluation begins after these")
    options.add_argument("--backend", default="opencl")
    options.add_argument("--device", default=None)
    options.add_argument("--seed", type=int, default=1, help="of the configurations and inputs")
    chosen = options.parse_args(arguments)
    wanted = (chosen.backend, chosen.device, chosen.evaluations, chosen.seconds, chosen.seed)
    device, tallies = run(chosen.problems, *wanted)
    print(f"device   {device.name}, driver {device.driver}")
    print(f"date     {datetime.datetime.now().astimezone().isoformat(timespec='minutes')}")
    command = arguments if arguments is not None else sys.argv[1:]
    print(f"command  {' '.join(['python -m benchmarks.honest', *command])}\n")
    print("\n".join(table(tallies)))
    alarms = [alarm for tally in tallies for alarm in tally.alarms]
    failures = [failure for tally in tallies for failure in tally.failures]
    print("\n" + "\n".join([*(alarms or ["no alarm"]), *failures]))
    if not sum(tally.total for tally in tallies):
        print("nothing was evaluated: give it more seconds")
        return 1
    return int(bool(alarms))


if __name__ == "__main__":
    sys.exit(main())
