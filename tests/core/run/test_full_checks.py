"""What a model wrote is looked at for long before anybody plans on top of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from tests.core.run.test_loop import FakeLab, delivered
from tests.core.run.test_rounds import cost, survey
from tests.core.run.test_talking import BETTER, GOOD, a_run, model_of, said
from tests.kernel_runs import KernelLab, change, kernel, stop
from tests.kernel_runs import a_run as a_kernel_run
from tests.talkers import plan
from tests.wording import says
from tunesmith.problem.plan import Status
from tunesmith.run.events import Settings
from tunesmith.run.outcome import Outcome, Trial
from tunesmith.run.race import DISBELIEVED

SETTINGS = Settings(evals=60, rounds=4, checks_best=True)
STORY = {1: [plan()], 2: [GOOD], 3: [plan(what="Add in the kernel's own order.", base="1")], 4: [BETTER]}


def refused_outcome(found: Outcome) -> Outcome:
    bad = (replace(r, status=Status.WRONG, timing=None, detail="2 of 99 differ") for r in found.results)
    return replace(found, results=tuple(bad))


@dataclass
class StrictLab(FakeLab):
    """Whose long look refuses candidates, or all configurations of them but one."""

    refused: frozenset[str] = frozenset()
    spared: str = ""

    def _outcome(self, trial: Trial, cost: object) -> Outcome:
        found, config = super()._outcome(trial, cost), trial.config
        if config is None or trial.effort != "long" or config.candidate not in self.refused:
            return found
        return found if self.spared and self.spared in str(config) else refused_outcome(found)


def looks(lab: FakeLab, candidate: str) -> int:
    return sum(t.effort == "long" and t.config.candidate == candidate for t in lab.evaluated if t.config)


def test_a_template_that_a_long_look_refuses_is_no_win_and_its_author_hears_why() -> None:
    lab = StrictLab(cost, cost, survey, refused=frozenset("1"))
    run = a_run({**STORY, 5: [plan("stop")]}, settings=SETTINGS, lab=lab)
    state = run.go()
    third, fourth = said(run, 3), said(run, 4)
    says(third, "dropped: the full check refused", "2.80×", "2 of 99 differ")
    says(third, "template 1 from the original", "refused by the full check")
    says(third, "the best that is right: the original")
    says(fourth, "The full check refused", "2 of 99 differ")
    assert 1 <= looks(lab, "1") <= DISBELIEVED
    assert delivered(state).general.candidate == "2"


def test_one_that_is_right_after_all_is_gone_on_from() -> None:
    lab = StrictLab(cost, cost, survey, refused=frozenset("1"), spared="UNROLL=3")
    run = a_run({**STORY, 5: [plan("stop")]}, settings=SETTINGS, lab=lab)
    run.go()
    third = said(run, 3)
    says(third, "kept:", "1.00× before it; the full check refused")
    says(third, "the best that is right: template 1")


def test_what_is_right_is_looked_at_once() -> None:
    lab = StrictLab(cost, cost, survey)
    run = a_run({1: [plan()], 2: [GOOD], 3: [plan("stop")]}, settings=SETTINGS, lab=lab)
    run.go()
    before = next(t for t in lab.evaluated if t.effort == "long")
    assert "full check" not in said(run, 3)
    assert len(model_of(run).asked) == 3
    assert before.purpose == "finalist"


def test_a_chain_of_kernels_is_told_of_one_that_is_refused() -> None:
    speeds, settings = {"1": 3.0, "2": 2.0}, Settings(strategy="rewrite", rounds=2, checks_best=True)
    script = {1: [change()], 2: [kernel(1)], 3: [change()], 4: [kernel(2)], 5: [stop()]}
    run = a_kernel_run(script, speeds, settings, lab=StrictKernelLab(speeds=speeds))
    state = run.go()
    third = run.said(3)
    says(third, "kernel 1 from the original: refused by the full check")
    says(third, "dropped: the full check refused it", "3.00×", "2 of 99 differ")
    assert delivered(state).general.candidate == "2"


class StrictKernelLab(KernelLab):
    def _outcome(self, trial: Trial, cost: object) -> Outcome:
        found, config = super()._outcome(trial, cost), trial.config
        is_refused = config is not None and trial.effort == "long" and config.candidate == "1"
        return refused_outcome(found) if is_refused else found


@pytest.mark.parametrize("refused", ["", "1", "12"])
@pytest.mark.few(1)
def test_killed_after_any_event_it_ends_alike(refused: str) -> None:
    script = {**STORY, 5: [plan("stop")]}

    def strict() -> StrictLab:
        return StrictLab(cost, cost, survey, refused=frozenset(refused))

    whole = a_run(script, settings=SETTINGS, lab=strict())
    state, records = whole.go(), whole.journal.records
    first = next(n for n, r in enumerate(records) if type(r.event).__name__ == "Searched")
    for cut in range(first, min(first + 12, len(records))):
        again = a_run(script, settings=SETTINGS, lab=strict(), records=list(records[:cut]), kept=whole.texts)
        assert again.go() == state
        assert again.journal.records == records, f"after event {cut}"
