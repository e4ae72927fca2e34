"""One problem, its kernels in Python, and both oracles to judge them: on the host and on the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from tests.core.lab.in_process import InProcessWorker, Log
from tests.core.lab.python_kernels import Kernel, PythonBackend, PythonSession
from tunesmith.backends.messages import CheckCase, Judged, StoreCase, Unit
from tunesmith.lab.build import BuiltCode
from tunesmith.lab.judge.cases import DeviceOracle, HostOracle
from tunesmith.lab.references import References, draw_of
from tunesmith.lab.runner import Runner
from tunesmith.lab.worker.device_cases import StoredCases
from tunesmith.problem.cases import Case
from tunesmith.problem.device import Device, Resources
from tunesmith.problem.plan import Plan, plan_launch
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import original_variant

SECONDS = 10.0


def a_case(rows: int = 24, d: int = 32, distribution: str = "normal", errors: bool = True) -> Case:
    return Case((("rows", rows), ("d", d)), distribution, 1, "full", errors)


@dataclass
class Judges:
    """`kernels` by name, one of them "original"."""

    problem: Problem
    kernels: Mapping[str, Kernel]
    memory: int = 1 << 28
    log: Log = field(default_factory=Log)

    @cached_property
    def gpu(self) -> Device:
        found = PythonBackend(self.kernels).devices()[0]
        return replace(found, limits=replace(found.limits, memory=self.memory))

    def plan(self, case: Case) -> Plan:
        sizes = dict(case.sizes)
        made = plan_launch(self.problem, original_variant(self.problem, sizes), sizes, self.gpu, None)
        assert isinstance(made, Plan)
        return made

    def code(self, name: str) -> BuiltCode:
        return BuiltCode(Unit("kernel.fake", name, "fake", (), ("scale",)), b"", name, Resources(), 0.1)

    @cached_property
    def references(self) -> References:
        worker = InProcessWorker("reference", lambda: PythonBackend({}), self.log)
        return References(self.problem, [worker])  # type: ignore[list-item]

    def keep_request(self, case: Case, name: str) -> tuple[StoreCase, tuple[bytes, ...]]:
        plan, accuracy = self.plan(case), self.problem.accuracy
        referred = self.references.ask(case, plan, digests=False)
        request = StoreCase(
            name,
            "original",
            plan,
            draw_of(self.problem, case),
            referred.answer.arrays,
            tuple(referred.rows.tolist()) if referred.rows is not None else (),
            tuple(sorted(referred.sampled)),
            accuracy.deterministic,
            accuracy.baseline_may_fail,
            case.is_odd,
        )
        return request, referred.blobs

    def check_request(self, kernel: str, case: Case, name: str) -> CheckCase:
        return CheckCase(name, kernel, self.plan(case), case.compares_errors)

    def runner(self, spare: bool = False) -> Runner:
        workers = [InProcessWorker("device", lambda: PythonBackend(self.kernels), self.log) for _ in range(2)]
        return Runner(workers[0], self.gpu, workers[1] if spare else None)  # type: ignore[arg-type]

    def on_the_host(self) -> HostOracle:
        return HostOracle(
            self.problem, self.gpu, self.references, self.runner(), self.original, self.runner()
        )

    def on_the_device(self, runner: Runner | None = None) -> DeviceOracle:
        return DeviceOracle(self.problem, self.gpu, self.references, runner or self.runner(), self.original)

    def original(self, case: Case) -> tuple[BuiltCode, Plan]:
        return self.code("original"), self.plan(case)


class Keeper:
    """Cases kept in a session that the test can look into."""

    def __init__(self, judges: Judges) -> None:
        self.judges = judges
        self.session = PythonSession(judges.gpu, judges.kernels)
        assert self.session.inspector is not None
        self.kept = StoredCases(self.session, self.session.inspector, judges.gpu)

    def keep(self, case: Case, name: str = "case") -> Judged:
        request, blobs = self.judges.keep_request(case, name)
        return self.kept.store(request, blobs, self.session.load(self.judges.code("original").unit, b""))

    def check(self, kernel: str, case: Case, name: str = "case") -> Judged | None:
        request = self.judges.check_request(kernel, case, name)
        return self.kept.check(request, self.session.load(self.judges.code(kernel).unit, b""))
