"""Rounds of old journals with several plans are read and told; no such run goes on."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.run.test_loop import Watcher
from tests.running import FIXTURES
from tunesmith.base.errors import BadInput
from tunesmith.run.config import RunConfig
from tunesmith.run.events import Decided
from tunesmith.run.folder import JOURNAL, RunFolder
from tunesmith.run.journal import broken_rule
from tunesmith.run.rounds import round_reports
from tunesmith.run.state import State, apply_record
from tunesmith.session import runs
from tunesmith.session.problems import state_and_templates

RUN = "drafts-logsumexp/runs/logsumexp/template-1"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("several")
    with tarfile.open(FIXTURES / "comparisons" / "experiment.tar.xz") as archive:
        own = [one for one in archive if one.name.startswith(RUN)]
        archive.extractall(folder, own, filter="data")
    return folder / RUN


def test_they_are_told_plan_by_plan(recorded: Path) -> None:
    state, templates = state_and_templates(RunFolder.open(recorded))
    rounds = round_reports(templates.problem, state, templates)
    assert [len(one.branches) for one in rounds] == [len(d.plans) for d in state.decided if d.plans]
    for one in rounds:
        assert one.speedup == max(b.speedup for b in one.branches if b.speedup is not None)
        assert sum(b.kept for b in one.branches) == one.kept
        assert one.evaluations == sum(b.evaluations for b in one.branches)
    assert {c.branch for c in state.candidates} == {0, 1, 2}


def test_what_cannot_be_meant_of_them_is_found(recorded: Path) -> None:
    state = State()
    for record in RunFolder.open(recorded).journal().read():
        if isinstance(record.event, Decided) and record.event.plans:
            many = replace(record.event, plans=record.event.plans * 2)
            assert broken_rule(state, replace(record, event=many)) == (
                f"a refactoring has at most 3 plans, nothing else has any: {len(many.plans)}"
            )
            return
        state = apply_record(state, record)
    raise AssertionError("there is no round with several plans")


def test_one_that_has_not_ended_goes_no_further(recorded: Path) -> None:
    journal = recorded / JOURNAL
    whole = journal.read_bytes()
    try:
        journal.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
        with pytest.raises(BadInput, match="with 3 drafts a round, and a round has one") as refused:
            runs.resume(recorded, RunConfig(), Watcher())
    finally:
        journal.write_bytes(whole)
    assert refused.value.hint
