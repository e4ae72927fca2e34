"""The original kernel in the lab: built, planned and run as it is, and what to say when it fails."""

from __future__ import annotations

from tunesmith.core.checks.cases import Case
from tunesmith.core.device import Device
from tunesmith.core.errors import BadInput, KernelWrong, TunesmithError
from tunesmith.core.outcome import Status
from tunesmith.core.plan import Plan, Refused, plan_launch, show_sizes
from tunesmith.core.problem import Problem, Workload
from tunesmith.core.template import original
from tunesmith.lab import policies
from tunesmith.lab.builders import COMPILER_CRASHED, Builders, BuiltCode
from tunesmith.lab.references import draw_of
from tunesmith.lab.runner import CaseOutputs, Runner
from tunesmith.lab.verdicts import Verdict

# What they are: `core/checks/draws`.
WIDE = (
    "Inputs called wide have sizes from 1e-3 to 1e3 and both signs; where callers' are tamer, say "
    'values = "normal" or a range for that argument'
)


class Original:
    def __init__(self, problem: Problem, device: Device, builders: Builders, runner: Runner) -> None:
        self._problem = problem
        self._device = device
        self._builders = builders
        self._runner = runner

    def build(self, sizes: dict[str, int]) -> BuiltCode:
        code = self._builders.start(original(self._problem, sizes)).result()
        if isinstance(code, Verdict):
            if code.detail.startswith(COMPILER_CRASHED):
                raise TunesmithError(code.detail, hint="see what is missing with: tunesmith doctor")
            raise BadInput(
                f"the kernel does not compile:\n{code.detail}",
                where=self._problem.kernel.path,
                hint="mend the source, or the entry, flags and defines in problem.toml",
            )
        return code

    def plan(self, case: Case) -> tuple[BuiltCode, Plan]:
        sizes = dict(case.sizes)
        code = self.build(sizes)
        variant = original(self._problem, sizes)
        plan = plan_launch(self._problem, variant, sizes, self._device, code.resources)
        if isinstance(plan, Refused):
            raise BadInput(
                f"the kernel cannot be launched at {show_sizes(sizes)}: {plan.reason}",
                hint="narrow the contract in problem.toml to what the kernel can do on this device",
            )
        return code, plan

    def run(self, case: Case, plan: Plan) -> CaseOutputs | Verdict:
        code = self.build(dict(case.sizes))
        deadline = policies.ORIGINAL_SECONDS + policies.data_seconds(plan)
        run = self._runner.run(code, plan, draw_of(self._problem, case), deadline)
        if isinstance(run, Verdict) and run.status is Status.CRASHED:
            # Perhaps what an earlier kernel did to that process: only a fresh one can tell.
            self._runner.restart()
            run = self._runner.run(code, plan, draw_of(self._problem, case), deadline)
        return run


def original_failed(problem: Problem, verdict: Verdict, where: Case | Workload) -> TunesmithError:
    sizes = show_sizes(dict(where.sizes))
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
    elif by_value and isinstance(where, Case) and where.distribution == "wide":
        hint += f". {WIDE}"
    return KernelWrong(f"the kernel {what} {detail}", hint=hint, where=problem.kernel.path)
