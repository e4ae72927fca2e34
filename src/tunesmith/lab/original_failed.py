"""What to tell the user whose kernel fails before anything was done to it."""

from __future__ import annotations

from tunesmith.core.checks.cases import Case
from tunesmith.core.errors import BadInput, KernelWrong, TunesmithError
from tunesmith.core.outcome import Status
from tunesmith.core.problem import Problem, Workload
from tunesmith.lab.oracle import Verdict


def original_failed(problem: Problem, verdict: Verdict, where: Case | Workload) -> TunesmithError:
    sizes = ", ".join(f"{n}={v}" for n, v in where.sizes)
    by_value = isinstance(where, Case) and verdict.status in (Status.WRONG, Status.UNSTABLE)
    inputs = f" (inputs: {where.distribution})" if by_value and isinstance(where, Case) else ""
    detail = f"at {sizes}: {verdict.detail}{inputs}"
    if verdict.status in (Status.OVER_LIMITS, Status.INFEASIBLE):
        return BadInput(f"the kernel cannot run here {detail}", hint="choose smaller sizes or another device")
    what = {
        Status.CRASHED: "crashes",
        Status.TIMED_OUT: "does not finish",
        Status.UNSTABLE: "is not deterministic",
    }.get(verdict.status, "is wrong already")
    hint = "mend the kernel, or what problem.toml promises: contract, reference, rtol and atol, values"
    if verdict.status is Status.UNSTABLE:
        hint = "find the race; if run-to-run differences are meant, say deterministic = false in [accuracy]"
    return KernelWrong(f"the kernel {what} {detail}", hint=hint, where=problem.kernel.path)
