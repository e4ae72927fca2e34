"""Examples and zoo on the cpu device: all of a language in one library, each judged by the oracle.

One compiler reads our headers once for all of them, and kernels, references and judge share this process:
what takes minutes kernel by kernel (`test_kernels`, in the long run) takes seconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.cpu_here import needs_cpu
from tests.plugins.cpu_device.test_kernels import EXAMPLES, device
from tests.running import FIXTURES
from tunesmith.backends import messages as m
from tunesmith.lab.build import BuiltCode, unit_of
from tunesmith.lab.judge.cases import HostOracle
from tunesmith.lab.memory import Verdict
from tunesmith.lab.references import References
from tunesmith.lab.runner import CaseRun
from tunesmith.lab.worker.requests import RequestHandler
from tunesmith.plugins.cpu_device import CpuBackend
from tunesmith.problem.cases import Case, smoke_cases
from tunesmith.problem.device import CUDA, HIP, Device
from tunesmith.problem.plan import Plan, plan_launch
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Variant, original_variant
from tunesmith.session.problems import load_problem

pytestmark = needs_cpu
ROOTS = (EXAMPLES, EXAMPLES.parent / "hip", FIXTURES / "zoo")
SMALL = 1 << 14  # product of sizes
WARPS = {CUDA.name: 32, HIP.name: 64}


@dataclass(frozen=True)
class _Placed:
    """A kernel in a namespace of its own, and what it is tried on."""

    folder: Path
    problem: Problem
    case: Case
    variant: Variant  # with the namespace in its entries' names
    text: str


class _WorkerHere:
    """What a worker does, in this process."""

    def __init__(self, own: Device, unit: m.Unit) -> None:
        self.bench = RequestHandler(CpuBackend())
        built = CpuBackend().build(unit, own)
        self.code = BuiltCode(unit, built.data, built.code_digest, built.resources, 0.0)
        assert isinstance(self.request(m.Load(unit, built.code_digest, own), (built.data,))[0], m.Done)

    def request(self, request: Any, sent: Sequence[bytes] = (), deadline: float = 0.0) -> Any:
        return self.bench.handle(request, sent)

    def close(self) -> None:
        """It is there for the next kernel too."""

    def run(self, code: BuiltCode, plan: Plan, draw: m.Draw, deadline: float) -> CaseRun:
        report, outputs = self.request(m.RunCase(code.code_digest, plan, draw))
        assert isinstance(report, m.Ran), report
        return CaseRun(report, outputs)


def _placed(folder: Path, problem: Problem, own_device: Device, number: int) -> _Placed:
    """On one that takes little, with each size as large as that lets it be."""
    cases = [one for one in smoke_cases(problem, original_variant(problem), own_device, 1) if not one.is_odd]
    sizes = {case: sorted(size for _, size in case.sizes) for case in cases}
    small = [case for case in cases if math.prod(sizes[case]) <= SMALL]
    case = max(small, key=sizes.__getitem__) if small else min(cases, key=lambda one: math.prod(sizes[one]))
    own = original_variant(problem, dict(case.sizes))
    place = f"kernel_{number}"
    launches = tuple(replace(one, entry=f"{place}::{one.entry}") for one in own.launches)
    lines = re.sub(r"^[ \t]*#[ \t]*include\b.*$", "", own.source, flags=re.MULTILINE)
    text = re.sub(r'extern\s+"C"\s*', "", lines)
    undone = "".join(f"\n#undef {name}" for name in re.findall(r"^\s*#\s*define\s+(\w+)", text, re.MULTILINE))
    text = f"namespace {place} {{\n#line 1\n{text}\n}}{undone}\n"
    return _Placed(folder, problem, case, replace(own, launches=launches), text)


def _library(kernels: Sequence[_Placed], own: Device) -> _WorkerHere:
    """All of them in one text, behind what they include."""
    includes = {
        line.strip(): None
        for kernel in kernels
        for line in re.findall(r"^[ \t]*#[ \t]*include\b.*$", kernel.variant.source, re.MULTILINE)
    }
    assert not [kernel.folder.name for kernel in kernels if kernel.variant.headers or kernel.variant.flags]
    entries = tuple(dict.fromkeys(entry for kernel in kernels for entry in kernel.variant.entries))
    text = "\n".join((*includes, *(kernel.text for kernel in kernels)))
    return _WorkerHere(own, replace(unit_of(kernels[0].variant), source=text, entries=entries))


def _verdict(kernel: _Placed, own: Device, worker: Any) -> float | Verdict:
    def planned(case: Case) -> tuple[BuiltCode, Plan]:
        plan = plan_launch(kernel.problem, kernel.variant, dict(case.sizes), own, None)
        assert isinstance(plan, Plan), plan
        return worker.code, plan

    references = References(kernel.problem, [worker])
    try:
        return HostOracle(kernel.problem, own, references, worker, planned, worker).establish(kernel.case)
    finally:
        references.close()


@pytest.mark.timeout(240)
@pytest.mark.parametrize("language", WARPS)
def test_every_kernel_is_right(language: str) -> None:
    own = device(WARPS[language])
    folders = sorted(path.parent for root in ROOTS for path in root.glob("*/problem.toml"))
    problems = [(folder, load_problem(folder).definition) for folder in folders]
    of_it = [(folder, problem) for folder, problem in problems if problem.kernel.language == language]
    kernels = [_placed(*one, own, number) for number, one in enumerate(of_it)]
    assert len(kernels) >= (50 if language == CUDA.name else 5)
    worker = _library(kernels, own)
    verdicts = {kernel.folder.name: _verdict(kernel, own, worker) for kernel in kernels}
    assert {name: one.detail for name, one in verdicts.items() if isinstance(one, Verdict)} == {}
