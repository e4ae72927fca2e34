"""Profiles that need no GPU: a fixture built for a device that is not here, its machine code read."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tests.core.backends.cuda.builds import built
from tunesmith.backends.cuda.cubin import disassemble_cubin, unpack
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.backends.cuda.sass import read_sass
from tunesmith.backends.port import KernelBinary
from tunesmith.problem.plan import Plan, plan_launch
from tunesmith.problem.problem import Problem
from tunesmith.problem.problem_file import parse_problem
from tunesmith.problem.template import original_variant
from tunesmith.profiles.facts import Instructions, Profile, StaticFacts, launch_facts
from tunesmith.profiles.roofline import work_of

BAD = Path(__file__).parents[3] / "fixtures/bad_cuda"
FOLDERS = sorted(path.parent for path in BAD.glob("*/problem.toml"))


def read_problem(folder: Path) -> Problem:
    return parse_problem(
        (folder / "problem.toml").read_text("utf-8"),
        path="problem.toml",
        read=lambda name: (folder / name).read_text("utf-8"),
    )


@cache
def build_of(folder: Path, device: str) -> tuple[KernelBinary, Instructions | None]:
    problem = read_problem(folder)
    binary = built(problem.kernel.text, problem.kernel.entry, device=device, flags=problem.kernel.flags)
    symbols, cubin = unpack(binary.data)
    listing = disassemble_cubin(cubin).kernels.get(symbols[problem.kernel.entry], "")
    return binary, read_sass(listing)


def static_profile(folder: Path, workload: str, device: str = "H200") -> Profile:
    problem, target = read_problem(folder), absent_device(device)
    binary, instructions = build_of(folder, device)
    sizes = problem.workload(workload).as_dict()
    plan = plan_launch(problem, original_variant(problem), sizes, target, binary.resources)
    assert isinstance(plan, Plan), plan
    return Profile(
        kernel=problem.name,
        workload=workload,
        limits=target.limits,
        work=work_of(problem, sizes),
        static=StaticFacts(
            resources=binary.resources,
            instructions=instructions,
            doubles=any(a.type.startswith("float64") for a in problem.arguments),
        ),
        launch=launch_facts(plan.launches[0], target.limits, binary.resources),
        no_counters="there is no GPU here",
    )
