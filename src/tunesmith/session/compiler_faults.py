"""What is said where no compiler takes a kernel, or its device cannot run it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tunesmith.backends.port import Toolchain
from tunesmith.errors import BadInput, TunesmithError
from tunesmith.lab.builders import COMPILER_CRASHED, BuiltCode
from tunesmith.lab.memory import Verdict
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Variant, builds_of
from tunesmith.run.survey import judge

DOCTOR = "see what is missing with: tunesmith doctor"


def refuse_over_limits(problem: Problem, device: Device, done: Mapping[Variant, BuiltCode | Verdict]) -> None:
    for build in builds_of(problem, None, None):
        code = done[build.variant]
        resources = code.resources if isinstance(code, BuiltCode) else None
        refused = judge(problem, build, device, resources).refused
        if refused:
            raise BadInput(
                f"the kernel cannot run on {device.name} at workload {refused[0].workload}: "
                f"{refused[0].detail}",
                where=problem.kernel.path,
                hint="mend [launch] or the workload in problem.toml, or name another device with --device",
            )


def blame(
    problem: Problem,
    failed: Sequence[tuple[Variant, Verdict, str]],
    toolchain: Toolchain | None,
    here: Mapping[str, str],
) -> TunesmithError:
    """The fault worth reading: not that of a compiler which only lacks headers, where another has them."""
    lacking = [f for f in failed if toolchain and toolchain.lacks(f[2].partition(" ")[0], f[1].detail)]
    variant, verdict, compiler = next((f for f in failed if f not in lacking), failed[-1])
    by = f" with {compiler}" if compiler else ""
    if verdict.detail.startswith(COMPILER_CRASHED):
        return TunesmithError(f"{verdict.detail}{f' ({compiler})' if compiler else ''}", hint=DOCTOR)
    hint = "mend the source, or the entry, flags, include and defines in problem.toml"
    if toolchain is not None and len(lacking) == len(failed):
        hint = toolchain.advice(here)
    elif variant.config is not None:
        hint = "mend the template: the compiler that builds the original must take it too"
    what = "the kernel" if variant.config is None else f"the template, at {variant.config},"
    where = problem.kernel.path if variant.config is None else variant.path
    return BadInput(f"{what} does not compile{by}:\n{verdict.detail}", where=where, hint=hint)
