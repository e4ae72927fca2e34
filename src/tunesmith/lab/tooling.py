"""What models may ask of the lab: builds, times, profiles and what a reference says, in words.

The same workers, deadlines and checks as for candidates; nothing is timed or profiled that the smoke check
has not found right. Nothing of it is kept as a measurement. Builds and references need no device.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tunesmith.backends.machine_code import ReadInstructions, ReadListing
from tunesmith.errors import BadInput
from tunesmith.lab.builders import Builders, BuiltCode
from tunesmith.lab.case_judge import CaseJudge
from tunesmith.lab.measuring import LaunchPlans, Original, Ready, TrialTimer, original_deadline
from tunesmith.lab.memory import Verdict
from tunesmith.lab.oracles import output_arrays
from tunesmith.lab.profiling import Onlooker, ProfileSubject, clusters_held
from tunesmith.lab.references import References, draw_inputs, draw_of
from tunesmith.lab.runner import Runner
from tunesmith.lab.sanitizing import Sanitizing
from tunesmith.problem.cases import Case, ExtraCase, misfit
from tunesmith.problem.device import Device
from tunesmith.problem.draws import logical
from tunesmith.problem.plan import CannotRun, Geometry, Plan, show_sizes
from tunesmith.problem.problem import Problem, Workload
from tunesmith.problem.template import Variant, original
from tunesmith.profiles.facts import Diagnosis, Instructions, Mix, launch_facts
from tunesmith.run.outcome import Result
from tunesmith.run.tools import ToolFound, ToolTask
from tunesmith.text import counted, seed_of

SHOWN = 8  # values of an array, from its beginning and from its end
MOST_ELEMENTS = 1 << 16  # of the largest array of which values are shown
MOST_LISTING = 160  # lines of machine code
FINDINGS = 4  # of a diagnosis
NO_REFERENCE = "There is no reference: what is right is what the original gives."
NOT_HERE = (
    "What that is cannot be had here, because the device is absent: `compile` can, `time` waits for it."
)
CHOOSE = "; choose other values, or another workload"


@dataclass
class HostBench:
    """What needs no device. `_original` plans the original's launches, by its limits."""

    _problem: Problem
    _device: Device
    _builders: Builders
    _plans: LaunchPlans
    _original: Original
    _references: References
    _seed: int
    _instructions: ReadInstructions | None
    _listing: ReadListing | None

    def use(self, task: ToolTask) -> ToolFound:
        try:
            return self._answers[task.tool](task)
        except BadInput as error:  # the user's own functions, or an original that cannot run there
            return ToolFound(f"This was not done: {error}")

    @property
    def _answers(self) -> dict[str, Callable[[ToolTask], ToolFound]]:
        return {"compile": self._compile, "reference": self._reference}

    def close(self) -> None:
        self._builders.close()
        self._references.close()

    # -- builds -------------------------------------------------------------------------------------

    def _compile(self, task: ToolTask) -> ToolFound:
        workload, variant = self._variant(task)
        code = self._builders.start(variant).result()
        if isinstance(code, Verdict):
            return ToolFound(_not_built(code))
        plan = self._plans.plan(variant, workload.as_dict(), code)
        if isinstance(plan, CannotRun):
            return ToolFound(f"It builds, and cannot run at {workload.name}: {plan.reason}{CHOOSE}")
        lines = [f"It builds{_at(task)}. At {workload.name}:"]
        for launch, clusters in zip(plan.launches, self._clusters(code, plan), strict=True):
            lines.append(self._launch_line(code, plan, launch, clusters))
            lines += self._mix_lines(code, launch.entry)
        if task.listing is not None:
            lines += self._listing_lines(variant, task.listing)
        return ToolFound("\n".join(lines))

    def _clusters(self, _code: BuiltCode, plan: Plan) -> tuple[int | None, ...]:
        return (None,) * len(plan.launches)  # which the driver alone knows

    def _launch_line(self, code: BuiltCode, plan: Plan, launch: Geometry, clusters: int | None) -> str:
        own = code.resources.of(launch.entry)
        local = sum(item.nbytes for item in plan.locals if item.name in launch.args)
        facts = launch_facts(launch, self._device.limits, own, local, clusters=clusters)
        known = {
            "registers": own.registers,
            "bytes spilled": own.spills,
            "bytes of shared memory": None if own.shared is None else own.shared + launch.shared + local,
            "bytes private": own.private,
            "blocks on a multiprocessor": facts.blocks_per_sm,
            "% occupancy": facts.occupancy,
        }
        told = [f"{value} {what}" for what, value in known.items() if value is not None]
        told += [f"limited by {', '.join(facts.limited_by)}"] if facts.limited_by else []
        told += [facts.cluster_words] if facts.cluster else []
        words = ", ".join(told) or "the compiler does not say what it uses"
        shape = f"{math.prod(launch.grid)} blocks of {math.prod(launch.block)}"
        return f"- {launch.entry}: {shape}; {words}"

    def _mix_lines(self, code: BuiltCode, entry: str) -> list[str]:
        if self._instructions is None:
            return []
        found, _ = self._instructions(code.binary, entry)
        return [f"  machine code: {_mix_words(found)}"] if found is not None else []

    def _listing_lines(self, variant: Variant, lines: tuple[int, int]) -> list[str]:
        """Built once more, with the numbers of its lines."""
        if self._listing is None:
            return ["There is no listing: the machine code of this backend is not read."]
        code = self._builders.start(replace(variant, flags=(*variant.flags, *self._listing.flags))).result()
        if isinstance(code, Verdict):
            return [f"There is no listing: {code.first_line}"]
        found: list[str] = []
        for entry in variant.entries:
            own, why_not = self._listing.read(code.binary, entry, lines)
            found += [f"There is no listing of {entry}: {why_not}"] if why_not else own
        left = len(found) - MOST_LISTING
        cut = (
            [f"({counted(left, 'more line')} left out: ask for fewer lines of the file)"] if left > 0 else []
        )
        return [f"Machine code of lines {lines[0]} to {lines[1]}:", *found[:MOST_LISTING], *cut]

    # -- references ---------------------------------------------------------------------------------

    def _reference(self, task: ToolTask) -> ToolFound:
        """Some values of inputs and of what is expected; at small sizes, which the contract allows."""
        problem = self._problem
        given = dict(task.sizes) or problem.workloads[0].as_dict()
        sizes = tuple((name, given[name]) for name in problem.size_names if name in given)
        sizes = sizes if len(sizes) == len(given) else tuple(given.items())
        if (fault := misfit(problem, ExtraCase(sizes, task.values, "a model asks"))) is not None:
            return ToolFound(
                f"This is no case of the problem: {fault}. Give `sizes` that the contract allows."
            )
        case = Case(sizes, task.values, seed_of(self._seed, "shown", *map(str, sizes)), "smoke")
        code, plan = self._original.plan(case)
        largest = max(b.count for b in plan.buffers)
        if largest > MOST_ELEMENTS:
            return ToolFound(f"An array has {largest} elements: choose sizes with {MOST_ELEMENTS} at most.")
        lines = [f"At {show_sizes(dict(sizes))}, values {task.values}:"]
        if problem.inputs is None:  # a function of the user's runs in a worker alone
            memory = draw_inputs(plan, draw_of(problem, case))
            lines += [
                _values_line(b.name, logical(memory[b.name], b)) for b in plan.buffers if b.name in memory
            ]
        if problem.accuracy.reference is None:
            return self._by_original(case, code, plan, lines)
        referred = self._references.ask(case, plan, digests=False)
        for spec, blob in zip(referred.answer.arrays, referred.blobs, strict=True):
            array = np.frombuffer(blob, dtype=spec.dtype).reshape(spec.shape)
            lines.append(_values_line(f"{spec.name}, by the reference", array))
        return ToolFound("\n".join(lines))

    def _by_original(self, case: Case, code: BuiltCode, plan: Plan, lines: list[str]) -> ToolFound:
        """Where nothing else says what is right."""
        return ToolFound("\n".join([*lines, NO_REFERENCE, NOT_HERE]))

    # -- small parts --------------------------------------------------------------------------------

    def _variant(self, task: ToolTask) -> tuple[Workload, Variant]:
        workload = self._problem.workload(task.workload)
        sizes = workload.as_dict()
        if task.template is None or task.config is None:
            return workload, original(self._problem, sizes)
        return workload, task.template.render(self._problem, task.config, sizes)


@dataclass
class ToolBench(HostBench):
    """All of it, where the device is."""

    _cases: CaseJudge
    _sanitizing: Sanitizing
    _timer: TrialTimer
    _runner: Runner
    _onlooker: Onlooker | None
    _no_profiles: str

    @property
    def _answers(self) -> dict[str, Callable[[ToolTask], ToolFound]]:
        return {**super()._answers, "time": self._time, "profile": self._profile}

    # -- times --------------------------------------------------------------------------------------

    def _clusters(self, code: BuiltCode, plan: Plan) -> tuple[int | None, ...]:
        return clusters_held(self._runner, code, plan)

    def _time(self, task: ToolTask) -> ToolFound:
        return self._timed(task)[0]

    def _timed(self, task: ToolTask) -> tuple[ToolFound, float | None]:
        """Smoke check, sanitizers where a stranger wrote it, then the time; None: there is none."""
        workload, variant = self._variant(task)
        code = self._builders.start(variant).result()
        if isinstance(code, Verdict):
            return ToolFound(_not_built(code)), None
        plan = self._plans.plan(variant, workload.as_dict(), code)
        if isinstance(plan, CannotRun):
            return ToolFound(f"It cannot run at {workload.name}: {plan.reason}{CHOOSE}"), None
        started = time.perf_counter()
        found = self._checked(task, workload, variant, code, plan)
        seconds = time.perf_counter() - started
        if found.timing is None:
            words = f"It was not timed: {found.status} (workload {workload.name}): {found.detail}"
            return ToolFound(words, seconds, 1), None
        own, beside = found.timing.seconds, self._timer.original_seconds(workload.name)
        ratio = f", {beside / own:.2f}× as fast as the original ({_us(beside)})" if beside else ""
        spread = (min(found.timing.samples), max(found.timing.samples))
        words = (
            f"{_us(own)} at {workload.name}{_at(task)}{ratio}; samples from {_us(spread[0])} to "
            f"{_us(spread[1])}. The smoke check finds it right; a template is checked further at the gate."
        )
        return ToolFound(words, seconds, 1), own

    def _checked(
        self, task: ToolTask, workload: Workload, variant: Variant, code: BuiltCode, plan: Plan
    ) -> Result:
        if task.template is not None:
            verdict = self._cases.level(code, variant, "smoke")
            if verdict.ok and task.template.is_foreign:
                verdict = self._sanitizing.at_gate(code, variant, self._seed)
            if not verdict.ok:
                return Result(workload.name, verdict.status, detail=verdict.detail)
        # As no candidate of the run: nobody finds it again as a time that was taken.
        return self._timer.alone([Ready(workload, code, plan)], is_candidate=False)[0]

    def _profile(self, task: ToolTask) -> ToolFound:
        if self._onlooker is None:
            return ToolFound(f"Nothing can be profiled: {self._no_profiles}. Ask for `time` or `compile`.")
        found, seconds = self._timed(task)
        if seconds is None:
            return found
        started = time.perf_counter()
        subject = ProfileSubject(task.template, task.config)
        looked = self._onlooker.look(self._builders, self._runner, subject, task.workload, seconds)
        used = found.seconds + time.perf_counter() - started
        said = _diagnosis_lines(looked.diagnosis) if looked.diagnosis is not None else []
        return ToolFound("\n".join([found.text, *said, *looked.notes]), used, 1)

    def _by_original(self, case: Case, code: BuiltCode, plan: Plan, lines: list[str]) -> ToolFound:
        started = time.perf_counter()
        run = self._runner.run(code, plan, draw_of(self._problem, case), original_deadline(plan))
        seconds = time.perf_counter() - started
        if isinstance(run, Verdict):
            return ToolFound(f"This was not done: the original is {run.status} there: {run.detail}", seconds)
        given = output_arrays(plan, run)
        shown = [_values_line(f"{name}, by the original", array) for name, array in given.items()]
        return ToolFound("\n".join([*lines, NO_REFERENCE, *shown]), seconds)


def _not_built(code: Verdict) -> str:
    return f"It does not build:\n{code.detail}\nMend this, then ask again or send your answer."


def _at(task: ToolTask) -> str:
    return f", with {task.config}" if task.config is not None and task.config.items else ""


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} µs"


def _mix_words(found: Instructions) -> str:
    def told(mix: Mix) -> str:
        named = {name: getattr(mix, name) for name in mix.__dataclass_fields__ if name != "total"}
        return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in named.items() if count)

    hot = f"{counted(found.loops, 'loop')}, {found.hot.total} hot ({told(found.hot)})"
    return f"{found.all.total} instructions ({told(found.all)}), {hot}"


def _diagnosis_lines(found: Diagnosis) -> list[str]:
    away = f"; {found.distance:.2f} times its floor ({found.ceiling})" if found.distance is not None else ""
    lines = [f"Bound by {found.bound}{away}. {found.summary}"]
    for finding in found.findings[:FINDINGS]:
        stake = f"{finding.gain:.0%} of the time at stake"
        lines.append(f"- {finding.kind} ({stake}): {'; '.join(finding.evidence)}")
    return [*lines, *found.notes]


def _values_line(name: str, array: NDArray[np.generic]) -> str:
    flat = np.asarray(array).reshape(-1)
    shown = [*flat[:SHOWN], *flat[max(SHOWN, flat.size - SHOWN) :]]
    words = [f"{value:.6g}" if np.issubdtype(flat.dtype, np.inexact) else str(value) for value in shown]
    if flat.size > 2 * SHOWN:
        words.insert(SHOWN, "...")
    return f"- {name} {list(array.shape)}: {', '.join(words)}"
