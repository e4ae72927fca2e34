"""What cases should give: the user's reference, asked for in its own process, on all rows or a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tunesmith.core.checks.cases import Case
from tunesmith.core.errors import BadInput
from tunesmith.core.messages import Draw, Expected, Failed, Refer
from tunesmith.core.plan import Plan, show_sizes
from tunesmith.core.problem import Problem
from tunesmith.lab.process import WorkerDied, WorkerProcess, WorkerTimedOut

REFERENCE_SECONDS = 120.0
SAMPLED_ABOVE = 1 << 22  # elements; larger cases of row-independent operators are checked on sampled rows
SAMPLED_ROWS = 48
CONTESTED_ROWS = 64  # so many more of a case, where a candidate and the original differ
USER_CODE_HINT = "mend the function named in problem.toml"


@dataclass(frozen=True)
class Referred:
    """The reference's answer as it travels; `rows` are those it was asked for, None: all."""

    answer: Expected
    blobs: tuple[bytes, ...]
    rows: NDArray[np.intp] | None
    sampled: frozenset[str]  # arrays the rows apply to

    @property
    def nbytes(self) -> int:
        return sum(map(len, self.blobs))


def draw_of(problem: Problem, case: Case) -> Draw:
    return Draw(case.distribution, case.seed, problem.inputs)


class References:
    def __init__(self, problem: Problem, worker: WorkerProcess) -> None:
        self._problem = problem
        self._worker = worker
        self._contested: dict[Case, frozenset[int]] = {}

    @property
    def present(self) -> bool:
        return self._problem.accuracy.reference is not None

    def contest(self, case: Case, rows: Sequence[int]) -> bool:
        """From now on the answer for the case has these rows too; False where there are none, or too many."""
        wider = self._contested.get(case, frozenset()) | set(rows)
        if not rows or len(wider) > CONTESTED_ROWS:
            return False
        self._contested[case] = wider
        return True

    def ask(self, case: Case, plan: Plan, digests: bool) -> Referred:
        """With `digests` those of all inputs; where nobody asks, large ones need not be drawn whole.
        Where rows are sampled, the contested ones are among them."""
        accuracy = self._problem.accuracy
        rows = self._rows(plan, case.seed)
        if rows is not None and case in self._contested:
            rows = np.union1d(rows, np.asarray(sorted(self._contested[case]), dtype=np.intp))
        sampled = frozenset(self._row_arrays()) if rows is not None else frozenset()
        request = Refer(
            accuracy.reference,
            plan,
            draw_of(self._problem, case),
            tuple(rows.tolist()) if rows is not None else (),
            accuracy.independent,
            tuple(sorted(sampled)),
            digests,
        )
        functions = [f.path for f in (accuracy.reference, self._problem.inputs) if f is not None]
        path = " or ".join(dict.fromkeys(functions)) or "drawing the inputs"
        try:
            reply, blobs = self._worker.request(request, deadline=REFERENCE_SECONDS)
        except WorkerTimedOut as error:
            raise BadInput(
                f"{path} took more than {REFERENCE_SECONDS:.0f} s at {show_sizes(dict(case.sizes))}"
            ) from error
        except WorkerDied as error:
            raise BadInput(
                f"{path} ended its process at {show_sizes(dict(case.sizes))}: {error}", hint=USER_CODE_HINT
            ) from error
        if isinstance(reply, Failed):
            raise BadInput(reply.message, hint=USER_CODE_HINT)
        assert isinstance(reply, Expected)
        return Referred(reply, blobs, rows, sampled)

    def refuse_varying(self, wanted: Mapping[str, str], given: Mapping[str, str]) -> None:
        """Linked inputs must be alike in both processes, or the reference says nothing about the kernel."""
        made_by = self._problem.inputs
        for name, digest in given.items():
            if made_by is not None and wanted.get(name) != digest:
                from tunesmith.lab.reference import fault

                words = f"gives {name} other values when it is called again"
                raise BadInput(str(fault(made_by, words)), hint="draw every random number from rng")

    def _row_arrays(self) -> list[str]:
        size = self._problem.accuracy.independent
        return [a.name for a in self._problem.arguments if a.is_array and a.shape and a.shape[0].text == size]

    def _rows(self, plan: Plan, seed: int) -> NDArray[np.intp] | None:
        accuracy = self._problem.accuracy
        size = accuracy.independent
        if size is None or not self.present or max(b.count for b in plan.buffers) <= SAMPLED_ABOVE:
            return None
        if accuracy.baseline_may_fail:
            return None  # the other rows would be compared with an original that nobody vouches for
        total = dict(plan.sizes)[size]
        if total <= SAMPLED_ROWS:
            return None
        inner = np.random.default_rng(seed).choice(total, SAMPLED_ROWS, replace=False)
        return np.unique(np.concatenate([[0, total - 1], inner])).astype(np.intp)
