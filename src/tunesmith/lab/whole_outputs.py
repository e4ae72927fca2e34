"""Outputs of a case on a device that judges for itself, where no part of them can be judged alone: brought to
the host of the same worker, and judged there as the host judges. Kernels cannot reach its memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from tunesmith.backends.messages import ExpectedArray, StoreCase
from tunesmith.backends.port import Pointer
from tunesmith.lab import user_compare
from tunesmith.lab.case_memory import CaseMemory
from tunesmith.lab.memory import as_array
from tunesmith.lab.references import UserCodeFailed
from tunesmith.lab.values import (
    Array,
    Arrays,
    CaseRules,
    ExpectedValues,
    errors_of,
    establish,
    wrong_values,
)
from tunesmith.problem.freedom import key_arrays
from tunesmith.problem.plan import OutputErrors, Plan

Stored = Mapping[str, tuple[ExpectedArray, Pointer]]


@dataclass(frozen=True)
class WholeOutputs:
    """What the outputs of a stored case are held to."""

    request: StoreCase
    expected: ExpectedValues
    fault: str | None = None  # why the original itself is wrong

    @classmethod
    def of_original(
        cls, request: StoreCase, memory: CaseMemory, expected: Stored, pristine: Mapping[str, Pointer]
    ) -> WholeOutputs:
        plan = request.plan
        referred = {
            name: np.frombuffer(memory.read(place), dtype=spec.dtype).reshape(spec.shape)
            for name, (spec, place) in expected.items()
        }
        keys = {n: as_array(plan.buffer(n), memory.read(pristine[n])) for n in key_arrays(plan)}
        rows = np.asarray(request.rows, dtype=np.intp) if request.rows else None
        bare = ExpectedValues(rows=rows, sampled=frozenset(request.sampled), inputs=keys)
        rules = CaseRules(request.odd, request.may_fail)
        ask = partial(_asked, request, plan)
        return cls(request, *establish(plan, _outputs(plan, memory), referred, bare, rules, ask))

    def wrong(
        self, plan: Plan, memory: CaseMemory, compares_errors: bool
    ) -> tuple[str | None, tuple[int, ...]]:
        """Why what a kernel's first run gave is, and the rows to ask the reference for."""
        name = self.request.draw.distribution
        rules = CaseRules(self.request.odd, self.request.may_fail, compares_errors, distribution=name)
        ask = partial(self._ask_of_other, plan)
        return wrong_values(plan, _outputs(plan, memory), self.expected, rules, ask)

    def errors(self, plan: Plan, memory: CaseMemory) -> tuple[OutputErrors, ...]:
        return errors_of(plan, _outputs(plan, memory), self.expected)

    def _ask_of_other(self, plan: Plan, output: str, got: Arrays, wanted: Arrays) -> str | None:
        try:
            return _asked(self.request, plan, output, got, wanted)
        except UserCodeFailed as error:
            return f"{output} cannot be compared: {error}"


def _outputs(plan: Plan, memory: CaseMemory) -> dict[str, Array]:
    return {b.name: as_array(b, memory.read(memory.first(b))) for b in plan.compared()}


def _asked(request: StoreCase, plan: Plan, output: str, got: Arrays, wanted: Arrays) -> str | None:
    function = dict(request.functions)[output]
    reason = user_compare.ask(function, plan, request.draw, output, got, wanted)
    return f"{output}: {reason}" if reason else None
