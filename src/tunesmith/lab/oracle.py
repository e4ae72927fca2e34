"""The oracle: what each case should give, and whether what came back is right. Lives outside every worker."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.core.checks.cases import COMPARABLE_ITEMS, Case
from tunesmith.core.checks.compare import ErrorStats, error_stats, judge, judge_against_original
from tunesmith.core.checks.draws import logical
from tunesmith.core.digest import digest_of
from tunesmith.core.dtypes import element_type
from tunesmith.core.errors import BadInput
from tunesmith.core.messages import Draw, Expected, Failed, Ran, Refer
from tunesmith.core.outcome import Status
from tunesmith.core.plan import BufferPlan, Plan
from tunesmith.core.problem import Problem
from tunesmith.lab import guards
from tunesmith.lab.process import WorkerDied, WorkerProcess, WorkerTimedOut
from tunesmith.lab.python_code import fault

REFERENCE_SECONDS = 120.0
SAMPLED_ABOVE = 1 << 22  # elements; larger cases of row-independent operators are checked on sampled rows
SAMPLED_ROWS = 48
KEPT_BYTES = 1 << 29
USER_CODE_HINT = "mend the function named in problem.toml"

Array = NDArray[Any]


@dataclass(frozen=True)
class Verdict:
    status: Status
    detail: str = ""

    @property
    def ok(self) -> bool:
        return self.status is Status.OK


RIGHT = Verdict(Status.OK)


@dataclass(frozen=True)
class Run:
    """What a worker reported of one case: digests, and the bytes of the outputs after the first run."""

    report: Ran
    outputs: tuple[bytes, ...]


@dataclass(frozen=True)
class Expectation:
    inputs: dict[str, str]  # digests of the memory that must not change
    gaps: dict[str, str]  # the same for what lies between the elements of in-place arrays
    arrays: dict[str, Array]  # the reference, in float64 or exact integers; empty with no reference
    rows: NDArray[np.intp] | None  # the sampled ones; None: all
    sampled: frozenset[str]  # arrays the rows apply to
    original: dict[str, Array]  # what the original gave; kept where others are compared with it
    errors: dict[str, ErrorStats]  # the original's own error
    seconds: float  # what one run of the original took

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (*self.arrays.values(), *self.original.values()))


def draw_of(problem: Problem, case: Case) -> Draw:
    return Draw(case.distribution, case.seed, problem.inputs)


class Oracle:
    """The two callables plan and run the original on a case, so that its own error can be measured."""

    def __init__(
        self,
        problem: Problem,
        alignment: int,
        worker: WorkerProcess,
        plan_original: Callable[[Case], Plan],
        run_original: Callable[[Case, Plan], Run | Verdict],
    ) -> None:
        self._problem = problem
        self._alignment = alignment
        self._worker = worker
        self._plan_original = plan_original
        self._run_original = run_original
        self._known: OrderedDict[Case, Expectation | Verdict] = OrderedDict()

    @property
    def has_reference(self) -> bool:
        return self._problem.accuracy.reference is not None

    def expectation(self, case: Case) -> Expectation | Verdict:
        """What the case should give; a Verdict when the original itself fails on it."""
        if case not in self._known:
            established = self._establish(case)
            if isinstance(established, Verdict) and established.status is not Status.WRONG:
                return established  # a crash or a hang may have been another kernel's doing: ask again
            self._known[case] = established
            kept = [e.nbytes for e in self._known.values() if isinstance(e, Expectation)]
            while sum(kept) > KEPT_BYTES and len(self._known) > 1:
                self._known.popitem(last=False)
                kept = [e.nbytes for e in self._known.values() if isinstance(e, Expectation)]
        self._known.move_to_end(case)
        return self._known[case]

    def judge(self, case: Case, plan: Plan, run: Run) -> Verdict:
        expected = self.expectation(case)
        if isinstance(expected, Verdict):
            return expected
        where = "at " + ", ".join(f"{n}={v}" for n, v in case.sizes) + f" ({case.distribution})"
        verdict = self._integrity(plan, run, expected)
        if not verdict.ok:
            return Verdict(verdict.status, f"{where}: {verdict.detail}")
        for buffer, data in zip(plan.compared(), run.outputs, strict=True):
            comparable = case.compares_errors and buffer.count >= COMPARABLE_ITEMS
            reason = self._compare(buffer, as_array(buffer, data), expected, comparable)
            if reason:
                return Verdict(Status.WRONG, f"{where}: {reason}")
        return RIGHT

    def _establish(self, case: Case) -> Expectation | Verdict:
        plan = self._plan_original(case)
        rows = self._rows(plan, case.seed)
        sampled = frozenset(self._row_arrays()) if rows is not None else frozenset()
        # Before the original runs, so that nothing the user's own functions do is blamed on it.
        arrays, inputs, gaps = self._refer(case, plan, rows, sampled)
        run = self._run_original(case, plan)
        if isinstance(run, Verdict):
            return run
        self._refuse_varying(plan, run, inputs)
        outputs = {b.name: as_array(b, d) for b, d in zip(plan.compared(), run.outputs, strict=True)}
        bare = Expectation(inputs, gaps, {}, rows, sampled, {}, {}, run.report.seconds)
        verdict = self._integrity(plan, run, bare)
        if not verdict.ok:
            return verdict
        errors: dict[str, ErrorStats] = {}
        for buffer in plan.compared():
            if buffer.name not in arrays:
                continue
            got = self._sampled(buffer, outputs[buffer.name], bare)
            reason = judge(buffer, got, arrays[buffer.name], None)
            if reason and not self._problem.accuracy.baseline_may_fail:
                return Verdict(Status.WRONG, reason)
            errors[buffer.name] = error_stats(got, arrays[buffer.name])
        keep = outputs if rows is not None or not arrays else {}
        return Expectation(inputs, gaps, arrays, rows, sampled, keep, errors, run.report.seconds)

    def _refuse_varying(self, plan: Plan, run: Run, inputs: dict[str, str]) -> None:
        """Linked inputs must be alike in both processes, or the reference says nothing about the kernel."""
        made_by = self._problem.inputs
        given = {r.name: r.payload_digest for r in run.report.buffers}
        for buffer in plan.buffers:
            if made_by and buffer.role == "input" and given.get(buffer.name) != inputs[buffer.name]:
                words = f"gives {buffer.name} other values when it is called again"
                raise BadInput(str(fault(made_by, words)), hint="draw every random number from rng")

    def _integrity(self, plan: Plan, run: Run, expected: Expectation) -> Verdict:
        """Everything but the values: guards, inputs, elements never written, two runs alike."""
        reports = {r.name: r for r in run.report.buffers}
        outputs = dict(zip((b.name for b in plan.compared()), run.outputs, strict=True))
        for number, buffer in enumerate(plan.buffers):
            report = reports.get(buffer.name)
            if report is None:
                return Verdict(Status.CRASHED, f"the worker said nothing about {buffer.name}")
            layout = guards.guarded(buffer.nbytes, max(buffer.align, self._alignment))
            if report.guard_digest != digest_of(*guards.zones(layout, number)):
                damage = report.damage or "the guard zone changed"
                return Verdict(Status.WRONG, f"it writes outside {buffer.name}: {damage}")
        for buffer in plan.buffers:
            report = reports[buffer.name]
            if buffer.role == "input" and report.second_digest != expected.inputs.get(buffer.name):
                return Verdict(Status.WRONG, f"it changes the input {buffer.name}")
        for buffer in plan.compared():
            data = outputs[buffer.name]
            if len(data) != buffer.nbytes or reports[buffer.name].payload_digest != digest_of(data):
                return Verdict(Status.CRASHED, f"the worker garbled {buffer.name}")
            if gaps_damaged(buffer, data, expected.gaps.get(buffer.name)):
                return Verdict(Status.WRONG, f"it writes between the rows of {buffer.name}")
            if reports[buffer.name].second_digest == reports[buffer.name].payload_digest:
                continue
            # A byte may equal its poison by chance: where runs may differ, its value is judged and no more.
            by_chance = buffer.itemsize == 1 and not self._problem.accuracy.deterministic
            unwritten = 0 if by_chance else count_poisoned(buffer, data)
            if unwritten:
                return Verdict(
                    Status.WRONG, f"{unwritten} of {buffer.count} elements of {buffer.name} are never written"
                )
            if self._problem.accuracy.deterministic:
                return Verdict(Status.UNSTABLE, f"two runs on the same inputs give different {buffer.name}")
        return RIGHT

    def _compare(self, buffer: BufferPlan, got: Array, expected: Expectation, comparable: bool) -> str | None:
        if buffer.name in expected.arrays:
            reason = judge(
                buffer,
                self._sampled(buffer, got, expected),
                expected.arrays[buffer.name],
                expected.errors.get(buffer.name) if comparable else None,
            )
            if reason:
                return reason
        if buffer.name in expected.original:
            return judge_against_original(buffer, got, expected.original[buffer.name])
        return None

    def _sampled(self, buffer: BufferPlan, array: Array, expected: Expectation) -> Array:
        return (
            array[expected.rows] if buffer.name in expected.sampled and expected.rows is not None else array
        )

    def _row_arrays(self) -> list[str]:
        size = self._problem.accuracy.independent
        return [a.name for a in self._problem.arguments if a.is_array and a.shape and a.shape[0].text == size]

    def _rows(self, plan: Plan, seed: int) -> NDArray[np.intp] | None:
        accuracy = self._problem.accuracy
        size = accuracy.independent
        if size is None or not self.has_reference or max(b.count for b in plan.buffers) <= SAMPLED_ABOVE:
            return None
        if accuracy.baseline_may_fail:
            return None  # the other rows would be compared with an original that nobody vouches for
        total = dict(plan.sizes)[size]
        if total <= SAMPLED_ROWS:
            return None
        inner = np.random.default_rng(seed).choice(total, SAMPLED_ROWS, replace=False)
        return np.unique(np.concatenate([[0, total - 1], inner])).astype(np.intp)

    def _refer(
        self, case: Case, plan: Plan, rows: NDArray[np.intp] | None, sampled: frozenset[str]
    ) -> tuple[dict[str, Array], dict[str, str], dict[str, str]]:
        accuracy = self._problem.accuracy
        request = Refer(
            accuracy.reference,
            plan,
            draw_of(self._problem, case),
            tuple(rows.tolist()) if rows is not None else (),
            accuracy.independent,
            tuple(sorted(sampled)),
        )
        functions = [f.path for f in (accuracy.reference, self._problem.inputs) if f is not None]
        path = " or ".join(dict.fromkeys(functions)) or "drawing the inputs"
        try:
            reply, blobs = self._worker.request(request, deadline=REFERENCE_SECONDS)
        except WorkerTimedOut as error:
            raise BadInput(
                f"{path} took more than {REFERENCE_SECONDS:.0f} s on {dict(case.sizes)}"
            ) from error
        except WorkerDied as error:
            raise BadInput(f"{path} ended its process on {dict(case.sizes)}: {error}") from error
        if isinstance(reply, Failed):
            raise BadInput(reply.message, hint=USER_CODE_HINT)
        assert isinstance(reply, Expected)
        arrays = {
            spec.name: np.frombuffer(blob, dtype=spec.dtype).reshape(spec.shape)
            for spec, blob in zip(reply.arrays, blobs, strict=True)
        }
        return arrays, dict(reply.input_digests), dict(reply.gap_digests)


def as_array(buffer: BufferPlan, data: bytes) -> Array:
    return logical(np.frombuffer(data, dtype=element_type(buffer.type).numpy), buffer)


def count_poisoned(buffer: BufferPlan, data: bytes) -> int:
    """Elements that still hold exactly what an output is poisoned with before the first run."""
    if buffer.role != "output" or buffer.init is not None:
        return 0
    word = np.dtype(f"u{buffer.itemsize}")
    cycle = np.frombuffer(guards.fill(guards.PATTERN, 8), dtype=word)
    view = logical(np.frombuffer(data, dtype=word), buffer)
    return int(np.count_nonzero(view == np.resize(cycle, buffer.shape)))


def gaps_damaged(buffer: BufferPlan, data: bytes, before: str | None) -> bool:
    """Whether the memory between strided elements changed; an output's was poisoned."""
    if buffer.extent == buffer.count:
        return False
    poisoned = guards.fill(guards.PATTERN, len(data))
    return guards.gaps_digest(buffer, data) != (before or guards.gaps_digest(buffer, poisoned))
