"""The runner, on a worker that dies between two requests through nobody's fault."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.lab.labs import device_of
from tunesmith.backends.messages import Done, Draw, Load, Reply, Request, Timed, TimingPolicy, Unit
from tunesmith.base.errors import TunesmithError
from tunesmith.lab.build import BuiltCode
from tunesmith.lab.process import WorkerReplaced
from tunesmith.lab.runner import Race, RaceRun, Runner
from tunesmith.problem.device import Resources
from tunesmith.problem.plan import Plan, Status

PLAN = Plan((), (), (), (), (), ())
POLICY = TimingPolicy(rounds=1, min_rounds=1, chain_seconds=0.01, max_seconds=1.0)


class Dying:
    """Forgets everything after each of its first `deaths` loads, as a killed process does."""

    def __init__(self, deaths: int, second: float = 2.0) -> None:
        self._second = second
        self.generation = 0
        self._deaths = deaths
        self._alive = False
        self._loaded: set[str] = set()

    def ensure_started(self) -> None:
        if not self._alive:
            self._alive, self._loaded = True, set()
            self.generation += 1

    def request(
        self, request: Request, blobs: Sequence[bytes] = (), *, deadline: float, generation: int | None = None
    ) -> tuple[Reply, tuple[bytes, ...]]:
        self.ensure_started()
        if generation != self.generation:
            raise WorkerReplaced
        if isinstance(request, Load):
            self._loaded.add(request.code_digest)
            self._deaths -= 1
            self._alive = self._deaths < 0
            return Done(), ()
        assert {c.code_digest for c in request.contenders} <= self._loaded, "asked of one that was never told"
        return Timed(((1.0,), (self._second,))), ()


def timed(deaths: int, second: float = 2.0, backend: str = "fake") -> object:
    unit = Unit("k.fake", "", "fake", (), ("k",))
    pair = [(BuiltCode(unit, b"", name, Resources(), 0.1), PLAN) for name in ("original", "candidate")]
    device = replace(device_of("fake"), backend=backend)
    runner = Runner(Dying(deaths, second), device)  # type: ignore[arg-type]
    return runner.time(Race(tuple(pair), Draw("normal", 0), POLICY, True), 1.0)


@pytest.mark.parametrize("deaths", [0, 1, 2])
def test_the_successor_is_sent_everything_again(deaths: int) -> None:
    assert timed(deaths) == RaceRun(Timed(((1.0,), (2.0,))), ())


def test_workers_that_all_die_are_no_kernels_fault() -> None:
    with pytest.raises(TunesmithError, match="die as soon as they are started"):
        timed(9)


@pytest.mark.parametrize("second", [0.0, -1.0, math.inf, math.nan])
def test_a_time_that_cannot_be_is_not_believed(second: float) -> None:
    verdict = timed(0, second)
    assert verdict.status is Status.SUSPECT


def test_launches_do_not_take_longer_than_the_request() -> None:
    verdict = timed(0, backend="opencl")
    assert verdict.status is Status.SUSPECT
    assert "launches took 3 s of" in verdict.detail
