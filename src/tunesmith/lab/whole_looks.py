"""A look at a timed launch whose outputs can only be judged all together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tunesmith.errors import BadInput
from tunesmith.lab.memory import as_array
from tunesmith.lab.references import References, Referred
from tunesmith.lab.values import Array, Arrays, CaseRules, ExpectedValues, wrong_values
from tunesmith.problem.cases import Case
from tunesmith.problem.freedom import judged_whole, key_arrays, views_of
from tunesmith.problem.plan import Plan
from tunesmith.problem.problem import Problem

RULES = CaseRules(compares_errors=False)


@dataclass(frozen=True)
class WholeLook:
    _problem: Problem
    _references: References
    _case: Case
    _plan: Plan

    def wrong(self, outputs: Arrays, original: Arrays) -> str | None:
        """Why what a launch left is, given what the original leaves from the same inputs: where the two
        differ both may be right, and only the reference can tell. A case that is too large for it is held to
        the original, as in checks, also where that may fail."""
        accuracy, whole = self._problem.accuracy, judged_whole(self._plan)
        keys = self._keys(self._ask()) if key_arrays(self._plan) else {}
        given = {name: array for name, array in original.items() if name in whole}
        trusted = accuracy.reference is None or not accuracy.baseline_may_fail
        reason = self._by_original(outputs, given, keys) if trusted else None
        if accuracy.reference is None or (trusted and reason is None):
            return reason
        if not self._ask().answer.arrays:
            return reason if trusted else self._by_original(outputs, given, keys)
        reason, contested = self._by_reference(outputs, given, keys)
        if reason and self._references.contest(self._case, contested):
            reason, _ = self._by_reference(outputs, given, keys)
        return reason

    def _by_original(self, outputs: Arrays, given: Arrays, keys: dict[str, Array]) -> str | None:
        views = views_of(self._plan, given, keys)
        arrays = {name: view.array for name, view in views.items()}
        like = ExpectedValues(original=arrays, inputs=keys, given=dict(given))
        return wrong_values(self._plan, outputs, like, RULES, self._asked)[0]

    def _by_reference(
        self, outputs: Arrays, given: Arrays, keys: dict[str, Array]
    ) -> tuple[str | None, tuple[int, ...]]:
        """Where it answers for some rows, the others are held to the original."""
        referred, names = self._ask(), judged_whole(self._plan)
        pairs = zip(referred.answer.arrays, referred.blobs, strict=False)
        arrays = {
            spec.name: np.frombuffer(blob, dtype=spec.dtype).reshape(spec.shape)
            for spec, blob in pairs
            if spec.name in names
        }
        views = views_of(self._plan, arrays, keys, referred.rows)
        rest = views_of(self._plan, given, keys) if referred.rows is not None else {}
        expected = ExpectedValues(
            arrays={name: view.array for name, view in views.items()},
            rows=referred.rows,
            sampled=referred.sampled,
            original={name: view.array for name, view in rest.items()},
            inputs=keys,
            referred=arrays,
        )
        return wrong_values(self._plan, outputs, expected, RULES, self._asked)

    def _ask(self) -> Referred:
        return self._references.ask(self._case, self._plan, digests=False, keys=True)

    def _keys(self, referred: Referred) -> dict[str, Array]:
        pairs = zip(key_arrays(self._plan), referred.keys, strict=True)
        return {name: as_array(self._plan.buffer(name), memory) for name, memory in pairs}

    def _asked(self, output: str, got: Arrays, wanted: Arrays) -> str | None:
        try:
            return self._references.compare(self._case, self._plan, output, got, wanted)
        except BadInput as error:
            return f"{output} cannot be compared: {error}"
