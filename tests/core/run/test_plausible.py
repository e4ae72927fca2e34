"""Events that can be read and cannot have happened: each is refused with its rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.samples import (
    a_device,
    a_problem,
    a_template,
    baseline,
    built,
    config,
    finalist,
    outcome,
    records,
    started,
)
from tests.wording import says
from tunesmith.problem.plan import OutputErrors, Status
from tunesmith.run import events as ev
from tunesmith.run.candidates import Templates
from tunesmith.run.journal import broken_rule, template_mismatch
from tunesmith.run.outcome import Result, Timing
from tunesmith.run.state import State, apply_record
from tunesmith.space.configset import Config

START = replace(started(), files=(("problem.toml", "a1"), ("template:template.cl", "b2")))
BASE = baseline({"small": 1.0, "wide": 1.0})
GIVEN = ev.Admitted("t", 12, 12)
SEARCH = ev.Decided("search", "to find out")
FIRST = outcome(0, config(64), {"small": 0.5, "wide": 0.5})
BEGUN: tuple[ev.Event, ...] = (START, BASE, GIVEN, SEARCH)
ASKED: tuple[ev.Event, ...] = (*BEGUN, ev.Asked((FIRST.trial,)))
DONE: tuple[ev.Event, ...] = (
    *ASKED,
    ev.Measured(FIRST),
    ev.Searched("", "all tried"),
    ev.Decided("finish", "done"),
)
FINAL = finalist(1, config(64), {"small": 2.0})
ALONE = Result("small", Status.OK, Timing((1.0,)))
REFACTOR = ev.Decided("refactor", "for gain")
DRAFT = ev.Drafted("1", "", "c3")
QUESTION = ev.Requested(ev.Request(1, "planner", (), "json"))


def with_errors(*parts: float | None) -> ev.Verified:
    case = ev.CaseSeen((("n", 8),), "normal", 1, "ok", (OutputErrors("out", *parts),))
    return ev.Verified(finalist(1, config(64), {"small": 2.0, "wide": 2.0}), 7, seen=(case,))


def first_fault(events: Sequence[ev.Event]) -> tuple[int, str] | None:
    state = State()
    for record in records(list(events)):
        if (fault := broken_rule(state, record)) is not None:
            return record.number, fault
        state = apply_record(state, record)
    return None


def changed(found: Any, **values: Any) -> ev.Measured:
    return ev.Measured(replace(found, **values))


@pytest.mark.parametrize(
    "events",
    [
        DONE,
        (*DONE, ev.Verified(finalist(1, config(64), {"small": 2.0, "wide": 2.0}), 7), ev.Stopped("done")),
        (*DONE, with_errors(1.0, 1.0, None, None)),
        (*BEGUN, built(config(64)), ev.Pruned(config(64), "spills", "it spills")),
        (START, BASE, REFACTOR, DRAFT, ev.Rejected("1", "wrong"), REFACTOR, ev.Declined("no more")),
        (START, BASE, QUESTION, ev.Unanswered(1, "busy", False, 1), ev.Replied(1, ev.Reply("{}"))),
    ],
)
def test_what_happens_is_plausible(events: Sequence[ev.Event]) -> None:
    assert first_fault(events) is None


@pytest.mark.parametrize(
    ("events", "rule"),
    [
        ((BASE,), "begins with Started"),
        ((START, START), "begins with Started"),
        ((replace(START, settings=ev.Settings(width=0)),), "1 or more"),
        ((replace(START, settings=ev.Settings(seed=-1)),), "0 or more"),
        ((replace(START, settings=ev.Settings(seconds=-1.0)),), "0 or more"),
        ((replace(START, files=(("a", "b"), ("a", "b"))),), "once"),
        ((replace(START, files=(("a", "../../b"), *START.files)),), "no digest"),
        ((replace(START, template="gone"),), "among the files"),
        ((replace(START, device=a_device(warp=0)),), "limits"),
        ((START, baseline({})), "every workload"),
        ((START, BASE, BASE), "once"),
        ((START, baseline({"small": Status.WRONG})), "a time at every workload"),
        ((START, GIVEN, ev.Decided("search", ""), ev.Asked((FIRST.trial,))), "measured first"),
        ((*BEGUN, ev.Asked((replace(FIRST.trial, id=7),))), "place 0"),
        ((*BEGUN, ev.Asked((replace(FIRST.trial, config=None),))), "sentinel"),
        ((*BEGUN, ev.Asked((replace(FIRST.trial, workloads=("tall",)),))), "small, wide"),
        ((*BEGUN, ev.Asked((replace(FIRST.trial, workloads=()),))), "small, wide"),
        ((*BEGUN, ev.Asked((replace(FIRST.trial, config=Config((("BLOCK", 1),), "9")),))), "no template '9'"),
        ((*BEGUN, ev.Asked((replace(FIRST.trial, template="other"),))), "template of its candidate"),
        ((*BEGUN, ev.Asked((replace(FIRST.trial, effort="build", purpose="gate"),))), "searched"),
        ((*BEGUN, ev.Measured(FIRST)), "asked for"),
        ((*ASKED, ev.Measured(FIRST), ev.Measured(FIRST)), "once"),
        ((*ASKED, changed(FIRST, results=FIRST.results * 2)), "one at each"),
        ((*ASKED, changed(FIRST, results=())), "one at each"),
        ((*ASKED, changed(FIRST, seconds=-1.0)), "took -1.0 s"),
        (
            (*ASKED, changed(FIRST, results=(replace(FIRST.results[0], timing=Timing((0.0,))),))),
            "no launch takes 0",
        ),
        (
            (*ASKED, changed(FIRST, results=(replace(FIRST.results[0], timing=Timing((1.0,), (1e300,))),))),
            "no launch takes",
        ),
        (
            (*DONE, ev.Asked((FINAL.trial,)), changed(FINAL, results=(ALONE,))),
            "in pairs",
        ),
        ((*BEGUN, replace(built(config(64)), builds=())), "one build"),
        ((*BEGUN, ev.Pruned(config(64), "spills", "")), "before it was built"),
        ((*BEGUN, ev.Verified(finalist(1, config(32), {"small": 2.0}), 7)), "measured before"),
        ((*DONE, with_errors(1.0, 2.0, 1.0, 1.0)), "rms error of 2.0"),
        ((*DONE, with_errors(1.0, 1.0, 1.0, -1.0)), "rms error of -1.0"),
        ((*BEGUN, ev.Profiled(None, "tall", None)), "small, wide"),
        ((*BEGUN, ev.Primed("other", ())), "priors"),
        ((*BEGUN, ev.Steered(None, "", profiled=3)), "3 profiles"),
        ((*BEGUN, ev.Extended(()), ev.Extended(())), "once"),
        ((*BEGUN, SEARCH), "while search is under way"),
        ((START, BASE, ev.Decided("search", "", candidate="4")), "'4' to search"),
        ((START, BASE, ev.Decided("refactor", "", candidate="4")), "'4' to go on from"),
        ((START, BASE, DRAFT), "decided on"),
        ((START, BASE, REFACTOR, DRAFT, ev.Rejected("1", ""), REFACTOR, DRAFT), "new template"),
        ((START, BASE, REFACTOR, replace(DRAFT, parent="9")), "'9' to go on from"),
        ((START, BASE, ev.Declined("")), "decided on"),
        ((START, BASE, ev.Rejected("1", "")), "no draft"),
        ((START, BASE, REFACTOR, DRAFT, ev.Rejected("1", "", trials=(5,))), "asked for"),
        ((START, BASE, REFACTOR, DRAFT, ev.Rejected("1", ""), ev.Admitted("c3", 1, 1, "1")), "was rejected"),
        ((START, BASE, ev.Admitted("t", 13, 12)), "cannot be feasible"),
        ((START, BASE, GIVEN, ev.Searched("", "")), "not decided on"),
        ((START, BASE, QUESTION, QUESTION), "before request 1 is answered"),
        ((START, BASE, replace(QUESTION, request=replace(QUESTION.request, number=4))), "place 1"),
        ((START, BASE, ev.Replied(1, ev.Reply("")),), "not open"),
        ((START, BASE, QUESTION, ev.Unanswered(1, "busy", False, 3)), "attempt 3"),
        ((START, BASE, ev.Stopped("")), "decision"),
        ((*DONE, ev.Stopped("done"), ev.Stopped("done")), "nothing follows"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_where_it_stands(events: Sequence[ev.Event], rule: str) -> None:
    found = first_fault(events)
    assert found is not None
    number, fault = found
    says(fault, rule)
    assert number == len(events) - 1


@pytest.mark.parametrize("at", [-1.0, float("inf")])
def test_a_clock_that_no_run_shows(at: float) -> None:
    assert broken_rule(State(), ev.Recorded(0, at, START)) is not None


def test_a_clock_that_was_set_back_is_no_fault() -> None:
    state = apply_record(State(), ev.Recorded(0, 100.0, START))
    assert broken_rule(state, ev.Recorded(1, 3.0, BASE)) is None


class _NoTexts:
    def put(self, text: str) -> str:
        raise AssertionError(text)

    get = put


@pytest.mark.parametrize(
    ("event", "rule"),
    [
        (BASE, None),
        (baseline({"small": 1.0}), "small, wide"),
        (GIVEN, None),
        (replace(GIVEN, candidate="2"), "'2'"),
        (ev.Asked((FIRST.trial,)), None),
        (ev.Asked((replace(FIRST.trial, config=config(63)),)), "other parameters or values"),
        (ev.Asked((replace(FIRST.trial, config=Config((("VEC", 1), ("BLOCK", 64)))),)), "other parameters"),
        (built(Config((("BLOCK", 64),))), "other parameters"),
        (ev.Stopped(""), None),
    ],
)
def test_an_event_fits_the_problem_and_the_templates(event: ev.Event, rule: str | None) -> None:
    problem = a_problem()
    templates = Templates(problem, START.device, a_template(problem), _NoTexts())
    state = State()
    for record in records(list(DONE)):
        state = apply_record(state, record)
    fault = template_mismatch(templates, state, event)
    assert (fault is None) == (rule is None)
    if rule is not None:
        says(str(fault), rule)
