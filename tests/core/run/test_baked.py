"""Builds with sizes in them serve other sizes that have the same build: as far as they were verified, and
where calls through the dispatch found them no slower."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import pytest

from tests.core.deliver.deliveries import BAKED
from tests.samples import a_problem, a_template, config, finalist, outcome, state_of, timing, verified
from tunesmith.deliver.tuned import build_delivery
from tunesmith.problem.cases import verify_cases
from tunesmith.problem.plan import Status
from tunesmith.problem.template import Variant
from tunesmith.run.delivery import (
    BAKED_ON_GPU,
    BakedService,
    assemble_delivery,
    baked_probes,
    baked_services,
    builds_known,
    next_calls,
)
from tunesmith.run.events import CaseSeen, Served, ServedSize
from tunesmith.run.outcome import Result
from tunesmith.run.ports import Delivery
from tunesmith.run.race import Winners, failed_verification, verified_choice
from tunesmith.run.state import State

PROBLEM = a_problem()
TEMPLATE = a_template(PROBLEM, BAKED)
OWN = config(64, 4)  # with d in its build
Ratio = Callable[[dict[str, int]], float | Status]


def rendered(workload: str) -> Variant:
    return TEMPLATE.render(PROBLEM, OWN, PROBLEM.workload(workload).as_dict())


@lru_cache
def cases_seen() -> tuple[CaseSeen, ...]:
    device = state_of().device
    cases = [c for name in ("small", "wide") for c in verify_cases(PROBLEM, rendered(name), device, 7, set())]
    return tuple(CaseSeen(c.sizes, c.distribution, c.seed, "ok") for c in cases)


def after(*more: Served, seen: bool = True) -> State:
    tried = outcome(0, OWN, {"small": 0.5, "wide": 0.5})
    race = finalist(1, OWN, {"small": 2.0, "wide": 2.0})
    proven = replace(verified(OWN, {"small": 2.0, "wide": 2.0}), seen=cases_seen() if seen else ())
    return state_of(tried, race, proven, *more)


def made_of(state: State) -> tuple[Winners, tuple[BakedService, ...], Delivery]:
    choice = verified_choice(PROBLEM, state)
    services = baked_services(PROBLEM, state, lambda _config: TEMPLATE, choice)
    parts = (PROBLEM, lambda _config: TEMPLATE, state.device, choice, builds_known(state), "")
    return choice, services, assemble_delivery(*parts, services)


def through(ratio: Ratio) -> tuple[State, list[Served]]:
    """As a lab would answer, until enough was seen."""
    events: list[Served] = []
    for _ in range(20):
        state = after(*events)
        choice, services, made = made_of(state)
        calls = next_calls(PROBLEM, state, choice, made, None, services)
        if not calls:
            return state, events
        found = []
        for call in calls:
            entry = made.dispatch.entry_for(dict(call.sizes))
            own, value = made.configs.get(entry.digest), ratio(dict(call.sizes))
            if own is None or isinstance(value, Status):
                words = value if isinstance(value, Status) else Status.INFEASIBLE
                result = Result(call.name, words, detail="so")
            else:
                result = Result(call.name, Status.OK, timing(1.0 / value, 1.0))
            found.append(ServedSize(call.sizes, entry.file, own, result))
        events.append(Served(choice.general, made.entries_digest, tuple(found)))
    raise AssertionError("it never ends")


def test_other_sizes_with_the_same_build_are_called_and_then_served() -> None:
    state, events = through(lambda _sizes: 1.5)
    dispatch = build_delivery(PROBLEM, state, lambda _config: TEMPLATE).dispatch
    assert events[-1].dispatch == made_of(state)[2].entries_digest
    assert dispatch.entries == made_of(state)[2].dispatch.entries, "what was called is what is delivered"
    timed = [call for served in events for call in served.calls if "=" in call.result.workload]
    for call in timed:
        sizes = dict(call.sizes)
        assert call.config == OWN
        workload = next(w for w in PROBLEM.workloads if w.as_dict()["d"] == sizes["d"])
        made = TEMPLATE.render(PROBLEM, OWN, sizes)
        assert made.digest == rendered(workload.name).digest, "to the letter the same build"
        assert dispatch.entry_for(sizes).digest == made.digest
    assert {dict(call.sizes)["rows"] for call in timed} > {1}
    assert dispatch.entry_for({"rows": 64, "d": 264}).config is None, "no such build was made"
    assert "timed at" in dispatch.shown


@pytest.mark.long
def test_it_ends_where_it_was_slower_or_nothing_was_timed_or_verified() -> None:
    state, events = through(lambda sizes: 0.5 if sizes["rows"] > 40 else 1.5)
    dispatch = build_delivery(PROBLEM, state, lambda _config: TEMPLATE).dispatch
    wide = PROBLEM.workload("wide").as_dict()
    assert dispatch.entry_for({**wide, "rows": 41}).config is None
    calls = [call for served in events for call in served.calls if call.config == OWN]
    assert max(dict(call.sizes)["rows"] for call in calls) > 40, "it was tried"
    named = {w.name for w in PROBLEM.workloads}
    for call in calls:
        if dict(call.sizes)["rows"] > 40 and call.result.workload not in named:
            assert dispatch.entry_for(dict(call.sizes)).config is None
    furthest = max(dict(case.sizes)["rows"] for case in after().verified[0].seen)
    assert made_of(after())[2].dispatch.entry_for({**wide, "rows": furthest + 1}).config is None


def test_untimed_they_serve_the_workloads_alone() -> None:
    for state in (after(), after(seen=False)):
        dispatch = build_delivery(PROBLEM, state, lambda _config: TEMPLATE).dispatch
        assert [entry.file for entry in dispatch.entries] == [
            "scale-small.cl",
            "scale-wide.cl",
            "original.cl",
        ]
        assert dispatch.shown == ""
    assert made_of(after(seen=False))[1] == (), "nobody knows how far it was verified"


def test_each_build_is_asked_at_some_sizes() -> None:
    state = after()
    _, services, made = made_of(state)
    assert len(services) == 2
    for service in services:
        calls = baked_probes(PROBLEM, state, made, service)
        assert 0 < len({call.sizes for call in calls}) <= BAKED_ON_GPU


@pytest.mark.long
def test_one_that_is_wrong_at_such_a_size_is_delivered_nowhere() -> None:
    state, _ = through(lambda sizes: Status.WRONG if sizes["rows"] > 40 else 1.5)
    assert OWN in failed_verification(state)
    assert build_delivery(PROBLEM, state, lambda _config: TEMPLATE).dispatch.tuned == ()
