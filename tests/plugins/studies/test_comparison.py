"""What each run of a comparison is told: the same for every arm but for its strategy."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.comparisons import plan
from tests.samples import DEVICE, a_problem, state_of
from tunesmith.base.errors import WaitingForModel
from tunesmith.plugins.studies.plan import ARMS, Planned
from tunesmith.plugins.studies.run import ComparisonRuns
from tunesmith.run.candidates import Templates
from tunesmith.run.config import RunConfig
from tunesmith.run.events import Settings
from tunesmith.run.folder import CeilingsCache, RunFolder
from tunesmith.session import place as machine
from tunesmith.session import runs
from tunesmith.session.place import WorkerSite


class Quiet:
    def event(self, *_: object) -> None: ...

    def note(self, _text: str) -> None: ...

    def say(self, _text: str) -> None: ...


def config_of(arm: str, repeat: int = 1) -> RunConfig:
    own = RunConfig(cache=True, prior=True, wait=True, seed=99, rounds=77, record="kept", builders=3)
    planned = plan(",".join(ARMS), model="mailbox:box", backend="fake", device="d")
    return ComparisonRuns(RunFolder(Path("cmp")), planned, own, Quiet())._config(Planned("p", arm, repeat))


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
    found = config_of(arm)
    assert (found.strategy, found.linear, found.model) == (strategy, linear, model)
    assert found.record == (f"kept/p/{arm}-1" if model else "")
    own = {"strategy", "linear", "model", "record"}
    same, other = asdict(found), asdict(config_of("template"))
    assert {k for k in same if same[k] != other[k]} <= own


def test_no_run_knows_of_another_and_the_plan_wins() -> None:
    found = config_of("template", 2)
    assert (found.cache, found.prior, found.library, found.wait) == (False, False, False, False)
    assert found.ceilings, "what the device can do is no knowledge of another run"
    assert (found.evals, found.rounds, found.seed) == (40, 3, 1)
    assert (found.backend, found.device, found.builders) == ("fake", "d", 3)


class Enough(Exception):
    pass


@pytest.mark.parametrize(("kept", "wanted"), [(True, CeilingsCache), (False, type(None))])
def test_cached_ceilings_are_used_where_timings_are_not(tmp_path, monkeypatch, kept, wanted):
    given: dict[str, Any] = {}

    def lab(*_: Any, **more: Any) -> None:
        given.update(more)
        raise Enough

    monkeypatch.setattr(machine, "make_lab", lab)
    missing: Any = None
    config = RunConfig(cache_dir=str(tmp_path))
    state = state_of(settings=Settings(use_cache=False, ceilings=kept))
    templates = Templates(a_problem(), DEVICE, None, missing)
    run = runs.OpenRun(missing, state, Quiet(), missing, templates)
    place = machine.Place(WorkerSite("fake", tmp_path), machine.LocalDevices("fake", (DEVICE,)), DEVICE)
    with pytest.raises(Enough):
        runs.run_loop(run, place, config, missing)
    assert given["cache"] is None
    assert isinstance(given["ceilings"], wanted)


def test_while_waiting_a_reply_under_another_name_is_reported(tmp_path: Path) -> None:
    target, near = tmp_path / "0001-planner.reply.md", tmp_path / "0001-planner.reply.txt"
    near.write_text("{}")
    said: list[str] = []

    class Renames(Quiet):
        def say(self, text: str) -> None:
            said.append(text)
            if "rename" in text:
                near.rename(target)

    work = ComparisonRuns(RunFolder(tmp_path), plan("template", model="mailbox"), RunConfig(), Renames())
    item = Planned("p", "template", 1)
    work.errors[item] = WaitingForModel("missing", awaits=str(target))
    assert work._answered() == [item]
    assert said == [
        f"waiting for 1 reply, the first is {target}",
        f"{target}: there is {near.name}: rename it to {target.name}",
    ]
