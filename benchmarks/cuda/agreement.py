"""Whether the cpu device and a GPU agree: the same kernel on the same inputs on both, output by output.

    python -m benchmarks.cuda.agreement --out DIR [--zoo FOLDER] [--seconds S] [--within S] [--jobs N] [NAME…]

The originals of examples/cuda, examples/hip and a folder of problems, at the cases on which the cpu device
checks them (edges of the contract, all distributions, NaN and infinities), from seed 1. Integers are compared
bit for bit; other outputs by the oracle's rule, once with the cpu device as the original and the GPU as the
candidate and once the other way round. Each problem has a process and a deadline of its own.
DIR/agreement.json has the figures, DIR/agreement.md the table. `--backend cpu` tries the script where no GPU
is: the device against itself.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cuda import apart
from benchmarks.cuda.markdown import source, table
from tunesmith.backends.messages import Draw
from tunesmith.base.errors import BadInput
from tunesmith.lab import measure
from tunesmith.lab.build import BuiltCode
from tunesmith.lab.judge.cases import HostOracle, output_arrays
from tunesmith.lab.memory import Verdict
from tunesmith.lab.references import References
from tunesmith.lab.runner import CaseRun, Runner
from tunesmith.lab.values import ExpectedValues
from tunesmith.plugins.cpu_device import stand_in
from tunesmith.problem.cases import Case, full_cases
from tunesmith.problem.compare import Views, views_of
from tunesmith.problem.device import Device
from tunesmith.problem.plan import Plan
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import original_variant
from tunesmith.session import place
from tunesmith.session.problems import load_problem

SEED = 1
INTEGERS = "iub"
MODULE = "benchmarks.cuda.agreement"
FAULTS = 3  # told of one problem


class RememberingRunner(Runner):
    """Keeps its last run: what the oracle has seen of the original is what is compared."""

    last: CaseRun | Verdict | None = None

    def run(
        self, code: BuiltCode, plan: Plan, draw: Draw, deadline: float, shields: bool = False
    ) -> CaseRun | Verdict:
        self.last = super().run(code, plan, draw, deadline, shields)
        return self.last

    def forget(self) -> None:
        self.last = None


@dataclass(frozen=True)
class Side:
    """One of the two devices, with what runs and judges there."""

    name: str
    device: Device
    compiler: str
    original: measure.Original
    runner: RememberingRunner
    oracle: HostOracle

    def run(self, case: Case) -> tuple[Plan, CaseRun, ExpectedValues] | Verdict:
        """Once; a Verdict where the kernel fails there by itself."""
        self.runner.forget()
        expected, run = self.oracle.expectation(case), self.runner.last
        if isinstance(expected, Verdict):
            return expected
        assert isinstance(run, CaseRun), "each case is established once"
        return self.original.plan(case)[1], run, expected.values


@dataclass
class Tally:
    """What was seen of one problem."""

    cases: int = 0
    odd: int = 0  # of them: of special numbers
    skipped: int = 0  # of them: the kernel fails by itself on one of the two
    integers: int = 0
    integers_alike: int = 0
    floats: int = 0
    floats_alike: int = 0
    apart: int = 0  # cases beyond the rule, in one direction or the other
    faults: tuple[str, ...] = ()

    def fault(self, words: str) -> None:
        self.faults += (words,)


def side(
    name: str, problem: Problem, device: Device, spec: str, compiler: str, scratch: Path, until: ExitStack
) -> Side:
    builders = place.make_builders(place.WorkerSite(spec, scratch), device, 1, compiler)
    plans = measure.LaunchPlans(problem, device)
    own = measure.Original(problem, builders, plans)
    spawn = place.WorkerSite(spec, scratch).spawn
    references = References(problem, [spawn("reference")])
    runner = RememberingRunner(spawn("device"), device)
    for closes in (builders, references, runner):
        until.callback(closes.close)
    oracle = HostOracle(problem, device, references, runner, own.plan, runner)
    return Side(name, device, compiler, own, runner, oracle)


def sides(problem: Problem, backend: str, scratch: Path, until: ExitStack) -> tuple[Side, Side]:
    """The cpu device with the limits of the other, and the other."""
    here = place.find_local_devices(place.WorkerSite(stand_in.CPU, scratch))
    if backend == stand_in.CPU:
        gpu, compiler = stand_in.choose_device(problem.kernel.language, here, None), ""
    else:
        gpu = place.choose_device(place.find_local_devices(place.WorkerSite(backend, scratch)), None)
        if gpu.absent:
            raise BadInput(f"there is no device of {backend} here", hint="see: tunesmith doctor")
        compiler = place.choose_compiler(
            problem, None, gpu, place.WorkerSite(backend, scratch), lambda _words: None
        )
    host = gpu if gpu.untimed else stand_in.device_like(gpu, here)
    if host is None:
        raise BadInput(f"the cpu device cannot stand in for {gpu.name}: {here.trouble}")
    taken = compiler.partition(" ")[0]
    return (
        side("cpu", problem, host, stand_in.CPU, "", scratch, until),
        side("GPU", problem, gpu, backend, taken, scratch, until),
    )


def compare(case: Case, host: Side, gpu: Side, tally: Tally) -> None:
    tally.cases += 1
    tally.odd += case.is_odd
    runs = []
    for one in (host, gpu):
        found = one.run(case)
        if isinstance(found, Verdict):
            tally.skipped += 1
            if not case.is_odd:
                tally.fault(f"{one.name} {case.where}: {found.status}: {found.detail}")
            return
        runs.append(found)
    (host_plan, host_run, values), (gpu_plan, gpu_run, _) = runs
    outputs = [output_arrays(plan, run) for plan, run, _ in runs]
    count_alike([views_of(host_plan, each, values.inputs) for each in outputs], tally, case)
    verdicts = {
        "the GPU by the cpu": host.oracle.judge(case, gpu_plan, gpu_run),
        "the cpu by the GPU": gpu.oracle.judge(case, host_plan, host_run),
    }
    wrong = [f"{who}: {verdict.detail}" for who, verdict in verdicts.items() if not verdict.ok]
    tally.apart += bool(wrong)
    for words in wrong:
        tally.fault(words)


def count_alike(views: Sequence[Views], tally: Tally, case: Case) -> None:
    """By views: where the order of an output is open, in one order. NaN is like NaN, whatever its bits."""
    first, second = views
    for name, view in first.items():
        ours, theirs = view.array, second[name].array
        if ours.dtype.kind in INTEGERS:
            alike = int(np.count_nonzero(ours == theirs))
            tally.integers += ours.size
            tally.integers_alike += alike
            if alike != ours.size:
                tally.fault(f"{name} {case.where}: {ours.size - alike} of {ours.size} integers differ")
        else:
            tally.floats += ours.size
            tally.floats_alike += int(np.count_nonzero(same_bits(ours, theirs)))


def same_bits(ours: NDArray[Any], theirs: NDArray[Any]) -> NDArray[np.bool_]:
    kind = np.dtype(f"u{ours.dtype.itemsize}")
    bits = [np.ascontiguousarray(each).view(kind) for each in (ours, theirs)]
    nan = [np.isnan(each.astype(np.float64)) for each in (ours, theirs)]
    found: NDArray[np.bool_] = (bits[0] == bits[1]) | (nan[0] & nan[1])
    return found


def look(folder: Path, backend: str) -> apart.Row:
    """One problem, in this process."""
    problem = load_problem(folder)[0]
    tally = Tally()
    with place.temporary_scratch() as scratch, ExitStack() as until:
        host, gpu = sides(problem, backend, scratch, until)
        cases = list(dict.fromkeys(full_cases(problem, original_variant(problem), host.device, SEED)))
        for number, case in enumerate(cases):
            for ahead in cases[number : number + 3]:
                for one in (host, gpu):
                    prepare(one, ahead)
            try:
                compare(case, host, gpu, tally)
            except BadInput as error:  # it cannot be launched there, on one of the two
                tally.fault(f"{case.where}: {error.message}")
        named = {"cpu": host.device.name, "gpu": gpu.device.name, "compiler": gpu.compiler}
    return {**named, **vars(replace_faults(tally))}


def prepare(one: Side, case: Case) -> None:
    try:
        one.oracle.prepare(case)
    except BadInput:
        return  # said in its turn


def replace_faults(tally: Tally) -> Tally:
    more = len(tally.faults) - FAULTS
    kept = tally.faults[:FAULTS] + ((f"and {more} more",) if more > 0 else ())
    return replace(tally, faults=kept)


def verdict(row: apart.Row) -> str:
    """In a word or two: what is no agreement is never called one."""
    if "fault" in row:
        return "not compared"
    if row["integers"] != row["integers_alike"] or row["apart"]:
        return "**differ**"
    if row["faults"]:
        return "in part"
    return "agree" if row["cases"] > row["skipped"] else "not compared"


def alike(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}" if whole else ""


def cells(row: apart.Row) -> list[str]:
    if "fault" in row:
        return [row["name"], verdict(row), "", "", "", row["fault"]]
    cases = f"{row['cases'] - row['skipped']}" + (f" ({row['skipped']} not)" if row["skipped"] else "")
    return [
        row["name"],
        verdict(row),
        cases,
        alike(row["integers_alike"], row["integers"]),
        alike(row["floats_alike"], row["floats"]),
        "; ".join(row["faults"]),
    ]


def page(told: dict[str, Any]) -> str:
    rows: list[apart.Row] = told["problems"]
    counts = Counter(verdict(row).strip("*") for row in rows)
    devices = sorted({(row["cpu"], row["gpu"]) for row in rows if "cpu" in row})
    head = [
        "problem",
        "verdict",
        "cases",
        "integers bit for bit",
        "other elements with the same bits",
        "notes",
    ]
    agreed = [row["cases"] - row["skipped"] for row in rows if verdict(row) == "agree"]
    others = [cells(row) for row in rows if verdict(row) != "agree"]
    lines = [
        "# The cpu device and a GPU compared",
        "",
        *source(told),
        *(f"- {cpu} and {gpu}" for cpu, gpu in devices),
        f"- {', '.join(f'{count} {word}' for word, count in sorted(counts.items()))}",
        "",
        "The oracle judged inputs, guard zones and outputs in both directions, integers bit for bit.",
        "",
        f"Agree: {len(agreed)} problems, {sum(agreed)} cases.",
        "",
        *(table(head, others, left=6) if others else []),
    ]
    return "\n".join(lines)


def show(row: apart.Row) -> None:
    print(" | ".join(cell for cell in cells(row) if cell), flush=True)


def main() -> int:
    options = argparse.ArgumentParser(description="Compare the cpu device with a GPU.")
    options.add_argument("names", nargs="*", metavar="NAME", help="such as hip/softmax; without, all")
    options.add_argument("--out", type=Path, help="folder for table and figures")
    options.add_argument("--zoo", type=Path, help="a folder of further problems, such as tests/fixtures/zoo")
    options.add_argument("--backend", default="cuda", help="of the GPU; cpu: the cpu device against itself")
    options.add_argument("--seconds", type=float, default=60.0, help="for one problem")
    options.add_argument("--within", type=float, default=540.0, help="seconds for all of them")
    options.add_argument("--jobs", type=int, default=1, help="problems at a time")
    options.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.one is not None:
        apart.tell_of(lambda: look(arguments.one, arguments.backend))
        return 0
    if arguments.out is None:
        options.error("--out is needed")
    found = {apart.shown(folder): folder.resolve() for folder in apart.problems(arguments.zoo)}
    if unknown := set(arguments.names) - set(found):
        options.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(found)}")

    commands = {
        name: apart.own_command(MODULE, found[name], "--backend", arguments.backend)
        for name in arguments.names or found
    }
    limits = {"seconds": arguments.seconds, "within": arguments.within, "jobs": arguments.jobs}
    rows = apart.rows(commands, **limits, show=show)
    apart.publish(arguments.out, "agreement", {"problems": rows}, page)
    return 0 if all(verdict(row) == "agree" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
