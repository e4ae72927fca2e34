"""What is said of a run: verified figures as such, others not, and the next step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.plugins.studies.test_diff import a_report, workload
from tests.wording import says
from tunesmith.base.errors import DeviceMissing, WaitingForModel
from tunesmith.plugins.mcp.answers import foreign_lines, resource_uri, run_answer, run_lines, sanitize_text
from tunesmith.run.report import Report
from tunesmith.session.result import Run


def said_of(
    report: Report, missing: DeviceMissing | WaitingForModel | None = None, *requests: str
) -> list[str]:
    run = Run(report, Path("/elsewhere/run"), "tunesmith resume run", missing)
    return run_lines(run_answer(run, requests))


def test_a_winner_is_told_with_its_interval() -> None:
    lines = said_of(a_report(workload("small", 10.0)))
    says(lines, "small:", "verified")
    says(lines, "next:", "export")


def test_where_the_original_stays_there_is_nothing_to_export() -> None:
    kept = replace(workload("small", 10.0), config=None)
    lines = said_of(replace(a_report(kept), general=None, tuned=("tuned/original.cl", "tuned/dispatch.json")))
    says(lines, "small: the original stays")
    says(lines, "next: nothing better was found")


@pytest.mark.parametrize(
    ("missing", "state", "step"),
    [
        (None, "stopped", "resume"),
        (WaitingForModel("no reply", hint="h"), "waiting", "next_request"),
        (DeviceMissing("no GPU", hint="go on elsewhere"), "no device", "go on elsewhere"),
    ],
)
def test_a_run_that_is_not_finished_verifies_nothing(
    missing: DeviceMissing | WaitingForModel | None, state: str, step: str
) -> None:
    report = replace(a_report(workload("small", 10.0)), finished=False, reason="stopped")
    lines = said_of(report, missing)
    says(lines, f": {state} (")
    says(lines, "next:", step)
    assert not any("verified" in line for line in lines)


def test_foreign_text_is_cut_and_says_so() -> None:
    assert sanitize_text("a\x1b[31mb" + "c" * 3000).startswith("ab")
    assert len(sanitize_text("c" * 3000)) == 2000
    lines = foreign_lines(["x"] * 500)
    assert len(lines) == 401
    says(lines[-1], "100 lines more")


def test_an_address_has_its_path_in_one_part() -> None:
    assert (
        resource_uri(Path("/a b/c%d"), "kernels", "x/y.cl")
        == "tunesmith://runs/%2Fa%20b%2Fc%25d/kernels/x%2Fy.cl"
    )
