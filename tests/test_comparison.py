"""What each run of a comparison is told: the same for every arm but for its strategy."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from tests.comparisons import plan
from tunesmith.comparison_runs import Work
from tunesmith.config import RunConfig
from tunesmith.core.comparing import ARMS, Planned
from tunesmith.store import RunFolder


class Quiet:
    def event(self, *_: object) -> None: ...

    def note(self, _text: str) -> None: ...

    def section(self, _text: str) -> None: ...


def told(arm: str, repeat: int = 1) -> RunConfig:
    own = RunConfig(cache=True, prior=True, wait=True, seed=99, rounds=77, record="kept", builders=3)
    planned = plan(",".join(ARMS), model="mailbox:box", backend="fake", device="d")
    return Work(RunFolder(Path("cmp")), planned, own, Quiet())._config(Planned("p", arm, repeat))


@pytest.mark.parametrize(
    ("arm", "strategy", "linear", "model"),
    [
        ("template", "template", False, "mailbox:box/p/template-1"),
        ("rewrite", "rewrite", False, "mailbox:box/p/rewrite-1"),
        ("rewrite-linear", "rewrite", True, "mailbox:box/p/rewrite-linear-1"),
        ("single", "single", False, "mailbox:box/p/single-1"),
        ("expert", "template", False, ""),
    ],
)
def test_an_arm_is_a_strategy_and_nothing_else(arm: str, strategy: str, linear: bool, model: str) -> None:
    found = told(arm)
    assert (found.strategy, found.linear, found.model) == (strategy, linear, model)
    assert found.record == (f"kept/p/{arm}-1" if model else "")
    own = {"strategy", "linear", "model", "record"}
    same, other = asdict(found), asdict(told("template"))
    assert {k for k in same if same[k] != other[k]} <= own


def test_no_run_knows_of_another_and_the_plan_wins() -> None:
    found = told("template", 2)
    assert (found.cache, found.prior, found.library, found.wait) == (False, False, False, False)
    assert found.ceilings, "what the device can do is no knowledge of another run"
    assert (found.evals, found.rounds, found.seed) == (40, 3, 1)
    assert (found.backend, found.device, found.builders) == ("fake", "d", 3)
