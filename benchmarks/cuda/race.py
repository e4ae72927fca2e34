"""Kernels built first and then timed in alternation, with no builder and no other work beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np

from tunesmith.backends.messages import Draw, TimingPolicy
from tunesmith.base.text import seed_of
from tunesmith.lab.build import BuiltCode
from tunesmith.lab.memory import Verdict
from tunesmith.lab.runner import Race, Runner
from tunesmith.problem.device import Device
from tunesmith.problem.plan import CannotRun, Plan, plan_launch
from tunesmith.problem.problem import Problem, Workload
from tunesmith.problem.template import Variant
from tunesmith.run.outcome import median
from tunesmith.session import place as machine

DEADLINE = 400.0


@dataclass(frozen=True)
class Contender:
    code: BuiltCode
    plan: Plan

    @property
    def key(self) -> str:
        """Equal for equal code launched alike."""
        return repr((self.code.code_digest, self.plan))


class Track:
    """The device with one worker on it, and builders that are gone before anything is timed."""

    def __init__(self, spec: str, wanted: Device | None = None) -> None:
        """`wanted`: the same device that an earlier run used, else the first."""
        self._spec = spec
        self._wanted = wanted
        self._stack = ExitStack()

    def __enter__(self) -> Track:
        self.scratch: Path = self._stack.enter_context(machine.temporary_scratch())
        here = machine.find_local_devices(machine.WorkerSite(self._spec, self.scratch))
        if not here.devices:
            raise SystemExit(f"there is no device here: {here.trouble}")
        wanted = self._wanted
        same = [d for d in here.devices if wanted is None or d.key == wanted.key]
        if not same:
            raise SystemExit(f"the runs were made on {wanted.name if wanted else '?'}, which is not here")
        self.device = same[0]
        self.runner = Runner(machine.WorkerSite(self._spec, self.scratch).spawn("device"), self.device)
        self._stack.callback(self.runner.restart)  # ends its worker
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def build(self, variants: Iterable[Variant], compiler: str) -> dict[str, BuiltCode | Verdict]:
        """By the variant's digest; when this returns, no builder is left."""
        count = machine.builder_count(self.device, 0)
        builders = machine.make_builders(
            machine.WorkerSite(self._spec, self.scratch), self.device, count, compiler
        )
        try:
            waiting = {v.digest: builders.start(v) for v in variants}
            return {digest: future.result() for digest, future in waiting.items()}
        finally:
            builders.close()

    def contender(
        self, problem: Problem, variant: Variant, sizes: Mapping[str, int], code: BuiltCode | Verdict
    ) -> Contender | str:
        """Or why it cannot run at these sizes."""
        if isinstance(code, Verdict):
            return code.detail
        plan = plan_launch(problem, variant, sizes, self.device, code.resources)
        return plan.reason if isinstance(plan, CannotRun) else Contender(code, plan)

    def time(
        self,
        problem: Problem,
        workload: Workload,
        field: Sequence[Contender],
        policy: TimingPolicy,
        passes: int = 1,
        *,
        seed: int,
    ) -> list[list[float]]:
        """Samples of every contender. In each pass they stand in another order, so that neighbours change."""
        samples: list[list[float]] = [[] for _ in field]
        draw = Draw("normal", seed_of(seed, "timing"), problem.inputs)
        for number in range(passes):
            order = np.random.default_rng(seed_of(seed, workload.name, number)).permutation(len(field))
            pairs = tuple((field[i].code, field[i].plan) for i in order)
            timed = self.runner.time(Race(pairs, draw, policy, workload.cache == "warm"), DEADLINE)
            if isinstance(timed, Verdict):
                raise SystemExit(f"timing at {workload.name} failed: {timed.status}: {timed.detail}")
            for place, i in enumerate(order):
                samples[i] += timed.timed.samples[place]
        return samples


def behind(samples: Sequence[float], best: Sequence[float]) -> float:
    """How much longer one takes than the other, in per cent: the median over the rounds both ran in."""
    return 100.0 * (median([a / b for a, b in zip(samples, best, strict=True)]) - 1.0)
