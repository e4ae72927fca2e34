"""Whom a run may ask, when a client goes on with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.samples import started
from tests.wording import says
from tunesmith.base.errors import BadInput
from tunesmith.plugins.mcp.folders import check_models, check_run, hand_in
from tunesmith.run.events import Settings
from tunesmith.run.folder import RunFolder

HOSTED = "openai:m@http://127.0.0.1:9/v1"


def run_of(folder: Path, models: str) -> Path:
    """As somebody may have left it in a folder that the client names."""
    run = RunFolder.create(folder)
    journal = run.journal()
    journal.append(replace(started(Settings(models=models)), template=""))
    journal.close()
    run.unlock()
    return folder


def test_a_runs_folder_sends_nothing_to_whom_it_names(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", f"planner=mailbox,author={HOSTED}")
    with pytest.raises(BadInput) as error:
        check_run(run, ())
    says(str(error.value), "models through this server are mailbox, expert", HOSTED)
    check_run(run, (HOSTED,))
    check_run(run_of(tmp_path / "own", "planner=mailbox,author=mailbox"), ())


@pytest.mark.parametrize("models", ["", "expert", "mailbox", "planner=expert,author=mailbox"])
def test_the_expert_and_the_runs_own_mailbox_may_be_asked(models: str) -> None:
    check_models(models, ())


@pytest.mark.parametrize("models", ["mailbox:elsewhere", f"planner=mailbox,author={HOSTED}", "nobody"])
def test_others_may_not(models: str) -> None:
    with pytest.raises(BadInput):
        check_models(models, ())


def test_a_mailbox_that_is_a_link_gets_no_reply(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", "mailbox")
    (tmp_path / "elsewhere").mkdir()
    (run / "mailbox").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="this is a link"):
        hand_in(run, "0001-planner", "{}")
    assert not list((tmp_path / "elsewhere").iterdir())
