"""A comparison that a client goes on with: whom it may ask, where its runs lie, what it waits for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.comparisons import plan, ran
from tests.plugins.mcp.test_mailbox import HOSTED, run_of
from tests.wording import says
from tunesmith.base.codec import encode_json
from tunesmith.base.errors import BadInput, TunesmithError, WaitingForModel
from tunesmith.plugins.mcp import jobs
from tunesmith.plugins.mcp.jobs import WorkLine, WorkOrder, _end_state, check_comparison, compared_answer
from tunesmith.plugins.studies.result import summarize_runs
from tunesmith.plugins.studies.run import Compared


def planned_in(folder: Path, problems: str = "p") -> Path:
    folder.mkdir()
    (folder / "compare.json").write_bytes(encode_json(plan(problems=problems, model="mailbox")))
    return folder


def test_every_run_that_has_begun_is_asked_whom_it_names(tmp_path: Path) -> None:
    folder = planned_in(tmp_path / "cmp")
    run_of(folder / "runs" / "p" / "template-1", "mailbox")
    check_comparison(folder, ())
    run_of(folder / "runs" / "p" / "expert-2", f"author={HOSTED}")
    with pytest.raises(BadInput) as error:
        check_comparison(folder, ())
    says(str(error.value), "models through this server are mailbox, expert", HOSTED)
    check_comparison(folder, (HOSTED,))
    named_again = WorkOrder("compare", (), "", problems=("p",), out=str(folder))
    with pytest.raises(BadInput, match="models through this server"):
        jobs.run_compare_job(named_again, lambda _update: None)


@pytest.mark.parametrize("link", ["runs", "runs/p", "runs/p/template-2"])
def test_no_run_lies_elsewhere(tmp_path: Path, link: str) -> None:
    folder = planned_in(tmp_path / "cmp")
    (tmp_path / "elsewhere").mkdir()
    (folder / link).parent.mkdir(parents=True, exist_ok=True)
    (folder / link).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="leads out of it"):
        check_comparison(folder, ())


def test_no_plan_leads_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="leads out of it"):
        check_comparison(planned_in(tmp_path / "cmp", problems="../../elsewhere"), ())


def test_of_what_was_told_before_nothing_is_read(tmp_path: Path) -> None:
    folder = planned_in(tmp_path / "cmp")
    (folder / "compare-data.json").write_text("{torn")
    check_comparison(folder, ())
    (folder / "compare.json").write_text("{torn")
    with pytest.raises(BadInput, match="the plan is damaged"):
        check_comparison(folder, ())


@pytest.mark.parametrize(
    ("error", "state", "step"),
    [
        (WaitingForModel("no reply yet"), "waiting", "next_request"),
        (BadInput("no space"), "stopped", "go on with compare"),
    ],
)
def test_what_it_waits_for_is_the_next_step(error: TunesmithError, state: str, step: str) -> None:
    planned = plan("template", repeats=1, model="mailbox")
    told = summarize_runs(planned, ran(planned, {("p", "template"): [state]}))
    run = Path("/elsewhere/cmp/runs/p/template-1")
    found = compared_answer(Compared(told, Path("/elsewhere/cmp"), "", ((run, error),)))
    assert _end_state(WorkLine(compared=found)) == state
    assert found.waiting == ((str(run),) if state == "waiting" else ())
    says(list(found.lines), "next:", step)
    says(list(found.lines), "resume=/elsewhere/cmp")
