"""Profiles for the prior of a search: what builds, launches and known times tell, and no timing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tunesmith.backends.backend_kind import ReadInstructions
from tunesmith.core.device import Device
from tunesmith.core.events import Profiled
from tunesmith.core.problem import Problem
from tunesmith.core.profile.diagnose import diagnose
from tunesmith.core.profile.facts import Counting
from tunesmith.core.space import Config
from tunesmith.core.template import Template
from tunesmith.lab.builders import Builders
from tunesmith.lab.ceilings import KeptCeilings, kept_or_measured
from tunesmith.lab.profiling import Profiler, ProfileSubject
from tunesmith.lab.runner import Runner


@dataclass
class Onlooker:
    """Nothing is measured but ceilings, once for a device, and counters where the user wants them."""

    problem: Problem
    device: Device
    counting: Counting
    instructions: ReadInstructions
    saved: KeptCeilings | None
    seed: int
    progress: Callable[[str], None]
    _profiler: Profiler | None = field(default=None, init=False)
    _notes: tuple[str, ...] = field(default=(), init=False)  # of the ceilings

    def prepare(self, builders: Builders, runner: Runner) -> None:
        """Measure what has to be, before anyone's clock runs. After what goes wrong the first look tries
        again."""
        try:
            self._ready(builders, runner)
        except Exception as error:  # see `look`
            self.progress(f"ceilings were not measured: {_words(error)}")

    def look(
        self,
        builders: Builders,
        runner: Runner,
        template: Template | None,
        config: Config | None,
        workload: str,
        seconds: float,
    ) -> Profiled:
        """Whatever goes wrong here is a note: a run needs no profile to go on."""
        try:
            subject = ProfileSubject(template if config is not None else None, config)
            profiler = self._ready(builders, runner)
            looked = profiler.known(subject, self.problem.workload(workload), seconds)
        except Exception as error:  # also what nobody thought of: profilers and disassemblers are not ours
            return Profiled(config, workload, None, (_words(error),))
        return Profiled(config, workload, diagnose(looked.profile), (*looked.notes, *self._notes))

    def _ready(self, builders: Builders, runner: Runner) -> Profiler:
        if self._profiler is not None:
            return self._profiler
        found, notes = kept_or_measured(self.saved, self.device, builders, lambda: runner, self.progress)
        self._notes = tuple(notes)
        self._profiler = Profiler(
            self.problem,
            self.device,
            builders,
            runner,
            self.counting,
            self.instructions,
            ceilings=found,
            seed=self.seed,
            progress=self.progress,
        )
        return self._profiler


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]
