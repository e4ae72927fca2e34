"""Runs of problems whose device is not here: loop, expert, roles and searcher are real, outcomes are made up.

What comes of a trial follows from the digest of its configuration: most values are right, a few are wrong by
themselves, each choice has a factor of its own. So a run is recorded in the time that its decisions take.
"""

from __future__ import annotations

import contextlib
import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

from tests import samples
from tests.core.profiles.recorded import BAD, recorded
from tests.golden import entry
from tests.golden.replay import Silence

ROUNDS = 6  # samples of a time
WRONG = 0.03  # of the values that are not the default


def part(*about: object) -> float:
    """From 0 to 1, and always the same."""
    return int.from_bytes(sha256(repr(about).encode()).digest()[:6], "big") / 2**48


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


class MadeUpLab:
    lacks: ClassVar[dict[entry.Power, str]] = {}

    def __init__(self, problem: entry.Problem, device: entry.Device, clock: Clock) -> None:
        self._problem, self._device, self._clock = problem, device, clock
        self._default: dict[str, dict[str, int]] = {}
        self._queue: list[entry.Trial] = []
        self._builds: list[entry.Trial] = []

    def _is_wrong(self, config: entry.Config) -> bool:
        default = self._default[config.candidate]
        return any(v != default.get(n) and part("wrong", n, v) < WRONG for n, v in config.items)

    def _seconds(self, config: entry.Config | None, workload: str) -> float:
        base = 1e-5 * (1 + part(self._problem.name, workload))
        if config is None:
            return base
        return base * math.exp(sum(0.6 * part(n, v, workload) - 0.35 for n, v in config.items) / 2)

    def _outcome(self, trial: entry.Trial) -> entry.Outcome:
        self._clock.now += 0.25
        wrong = trial.config is not None and self._is_wrong(trial.config)
        results: dict[str, Any] = {name: self._seconds(trial.config, name) for name in trial.workloads}
        if wrong:
            results = dict.fromkeys(results, entry.Status.WRONG)
        original = {name: self._seconds(None, name) for name in trial.workloads}
        paired = original if trial.effort == "long" and trial.config is not None else None
        made = samples.outcome(trial.id, trial.config, results, trial.purpose, paired, noise=0.002)
        return replace(made, trial=trial)

    def baseline(self) -> entry.Baseline:
        return samples.baseline({w.name: self._seconds(None, w.name) for w in self._problem.workloads})

    def extend(self, wanted: entry.Extended) -> entry.Extended:
        return wanted

    def admit(self, template: entry.Template) -> None:
        self._default[template.default.candidate] = dict(template.default.items)

    def build(self, trial: entry.Trial) -> None:
        self._builds.append(trial)

    def built(self) -> entry.Surveyed:
        trial = self._builds.pop(0)
        alike = f"code {part(trial.config) * 40:.0f}"  # now and then two are the same
        spills = 8 if part("spills", trial.config) < 0.1 else 0
        return samples.built(trial.config, alike, spills=spills, workloads=trial.workloads)

    def drop_builds(self) -> None:
        self._builds.clear()

    def changed(self) -> None: ...

    def submit(self, trial: entry.Trial, device: str = "") -> None:
        self._queue.append(trial)

    def collect(self) -> entry.Outcome:
        return self._outcome(self._queue.pop(0))

    def profile(self, config: entry.Config | None, workload: str, _seconds: float) -> entry.Profiled:
        name = BAD[int(part(self._problem.name, workload) * len(BAD))]
        return entry.Profiled(config, workload, entry.diagnose_profile(recorded(name)), ("made up",))

    def verify(self, trial: entry.Trial, _later: Sequence[entry.Trial] = ()) -> entry.Verified:
        return entry.Verified(self._outcome(trial), cases=7, seed=11, reach=())

    def serve(self, delivery: entry.Delivery, calls: Sequence[entry.SizedCall]) -> entry.Served:
        served = []
        for call in calls:
            chosen = delivery.dispatch.entry_for(dict(call.sizes))
            config = delivery.configs.get(chosen.digest)
            seconds, name = self._seconds(config, call.name), call.name
            slow = 1.5 if part("slow", call.sizes) < 0.1 else 1.0
            original = {name: self._seconds(None, name)}
            made = samples.outcome(0, config, {name: seconds * slow}, "finalist", original, 0.002)
            served.append(entry.ServedSize(call.sizes, chosen.file, config, made.results[0]))
        return entry.Served(delivery.general, delivery.entries_digest, tuple(served))

    def close(self) -> None: ...


def device_for(problem: entry.Problem) -> entry.Device:
    language = problem.kernel.language
    limits = {"cuda": samples.HOPPER, "opencl": samples.LIMITS}
    if language in limits:
        return entry.Device(language, "0", "a made-up GPU", "made up", "1", "gpu", limits[language])
    assumed = entry.device.find_language(language).assumed
    assert assumed is not None, language
    return replace(assumed, id="0", name="a made-up GPU", absent=False)


def record(place: Path, problem: Path, template: str = "", replies: Path | None = None, **more: Any) -> Path:
    """The folder of a finished run. `replies`: a recording of models that play the roles."""
    loaded = entry.load_problem(problem)
    definition, files = loaded
    given = entry.load_template(problem / template, definition, files) if template else None
    device, folder = device_for(definition), entry.RunFolder.create(place / "run")
    stored = entry.keep_texts(folder, definition, files, given)
    models = "recorded:replies" if replies is not None else ""
    if replies is not None:
        shutil.copytree(replies, place / "replies")
    with contextlib.chdir(place):
        prompts = entry.prompts_for(models, "", more.get("strategy", "template"))
    stored |= {f"prompt:{role}": folder.put(text.encode()) for role, text in prompts.items()}
    about = {"rounds": 2, "steer": True, "seed": 3, "checks_best": True, **more}
    settings = entry.Settings(models=models, **about)
    started = replace(
        samples.started(settings),
        problem=definition.name,
        files=tuple(stored.items()),
        template=f"template:{given.path}" if given is not None else "",
        backend=device.backend,
        device=device,
        weights=tuple((w.name, w.weight) for w in definition.workloads),
    )
    clock = Clock()
    journal = folder.journal(clock)
    state = entry.apply_record(entry.State(), journal.append(started))
    templates = entry.templates_of(folder, state)
    cast = entry.casting_of_run(folder, started, entry.RunConfig(), Silence())
    lab = MadeUpLab(definition, device, clock)
    with contextlib.chdir(place):
        talk = entry.create_talking(definition, templates, state, cast)
        world = entry.World(definition, templates, lab, entry.load_searcher(settings.search), talk)
        world.heeds_words = False
        entry.Loop(world, entry.RunLog(journal, state, Silence())).run()
    journal.close()
    folder.unlock()
    return folder.path
