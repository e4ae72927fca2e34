"""Without the device: a kernel judged without a time, tried on all cases and watched on some of them; and a
lab that only builds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from tunesmith.lab.builders import Builders, BuildSurveyor
from tunesmith.lab.case_judge import CaseJudge
from tunesmith.lab.memory import RIGHT, Verdict
from tunesmith.lab.sanitizing import Sanitizing, verdict_of
from tunesmith.problem.template import Template, ToBuild
from tunesmith.run.events import Surveyed
from tunesmith.run.outcome import Trial
from tunesmith.run.ports import Power


@dataclass(frozen=True)
class Rehearsal:
    verdict: Verdict
    cases: int = 0
    watched: str = ""  # what looked for faults that results need not show


def rehearsed(
    builds: Sequence[ToBuild],
    builders: Builders,
    cases: CaseJudge,
    sanitizing: Sanitizing,
    seed: int,
    whole: bool = True,
) -> Rehearsal:
    """Of one configuration: all its builds, up to the first that is not right. `whole`: on all cases, not
    only on the few that a search begins with."""
    tried, watched = 0, list[str]()
    for item in builds:
        code = builders.start(item.variant).result()
        if isinstance(code, Verdict):
            return Rehearsal(code)
        for level in ("smoke", "full") if whole else ("smoke",):
            verdict = cases.level(code, item.variant, level)
            if not verdict.ok:
                return Rehearsal(verdict)
            tried += len(cases.of_level(level, item.variant))
        look = sanitizing.look_at_gate(code, item.variant, seed)
        if not (verdict := verdict_of(look)).ok:
            return Rehearsal(verdict)
        watched.append(look.by if look.tools else "")
    return Rehearsal(RIGHT, tried, watched[0] if watched and all(watched) else "")


class OfflineLab:
    """A lab whose device is absent."""

    def __init__(self, surveyor: BuildSurveyor, missing: str) -> None:
        self.lacks: dict[Power, str] = {"time": missing, "serve": missing, "profile": missing}
        self._surveyor = surveyor
        self._templates: dict[str, Template] = {}

    def admit(self, template: Template) -> None:
        self._templates[template.digest] = template

    def build(self, trial: Trial) -> None:
        self._surveyor.submit(self._templates.get(trial.template), trial.config)

    def built(self) -> Surveyed:
        return self._surveyor.collect()

    def drop_builds(self) -> None:
        self._surveyor.drop()

    def close(self) -> None:
        self._surveyor.close()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise NotImplementedError(self.lacks["time"])

    baseline = extend = submit = collect = changed = leave_out = verify = serve = profile = _refuse
