"""Builds configurations that do not run yet, and says what their builds tell."""

from __future__ import annotations

from collections import deque

from tunesmith.core.device import Device
from tunesmith.core.events import Surveyed, SurveyedBuild
from tunesmith.core.outcome import Result
from tunesmith.core.problem import Problem
from tunesmith.core.space import Config
from tunesmith.core.survey import judge
from tunesmith.core.template import Template, builds_of
from tunesmith.lab.builders import Builders
from tunesmith.lab.verdicts import Verdict


class Surveyor:
    """Answers come in the order of the questions, whichever build was faster."""

    def __init__(self, problem: Problem, device: Device, builders: Builders) -> None:
        self._problem = problem
        self._device = device
        self._builders = builders
        self._queue: deque[tuple[Template | None, Config | None]] = deque()

    def submit(self, template: Template | None, config: Config | None) -> None:
        self._queue.append((template, config))
        for built in builds_of(self._problem, template, config):
            self._builders.start(built.variant)

    def collect(self) -> Surveyed:
        template, config = self._queue[0]
        builds: list[SurveyedBuild] = []
        refused: list[Result] = []
        for built in builds_of(self._problem, template, config):
            names = tuple(w.name for w in built.workloads)
            code = self._builders.start(built.variant).result()
            if isinstance(code, Verdict):
                builds.append(SurveyedBuild(names, built.variant.digest))
                refused += [Result(name, code.status, detail=code.detail) for name in names]
                continue
            found = judge(self._problem, built, self._device, code.resources)
            digests = (built.variant.digest, code.code_digest)
            builds.append(SurveyedBuild(names, *digests, code.resources, found.occupancy, found.launches))
            refused += found.refused
        self._queue.popleft()
        return Surveyed(config, tuple(builds), tuple(refused))

    def drop(self) -> None:
        """Forget what nobody will collect; what the compiler has begun it ends."""
        self._queue.clear()

    def close(self) -> None:
        self._builders.close()
