"""What is delivered is called: at sizes that nobody timed, then at the workloads, until nothing is slower."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.samples import a_problem, a_template, config, finalist, outcome, state_of, timing, verified
from tunesmith.deliver.pages.terminal import event_line
from tunesmith.problem.dispatch import read_dispatch
from tunesmith.problem.domain import Domain
from tunesmith.problem.plan import Status
from tunesmith.run.delivery import ON_GPU, assemble_delivery, builds_known, next_calls
from tunesmith.run.events import Event, Recorded, Served, ServedSize
from tunesmith.run.journal import broken_rule
from tunesmith.run.outcome import Result
from tunesmith.run.ports import Delivery, SizedCall
from tunesmith.run.race import Winners, failed_verification, most_rounds, unverified_winners, verified_choice
from tunesmith.run.state import State

PROBLEM = a_problem()
TEMPLATE = a_template(PROBLEM)
DOMAIN = Domain(PROBLEM, ())
FAST = config(64)
Ratio = Callable[[dict[str, int]], float | Status]
CallRatio = Callable[[SizedCall], float | Status]


def after(*more: Event) -> State:
    tried = outcome(0, FAST, {"small": 0.5, "wide": 0.5})
    race = finalist(1, FAST, {"small": 2.0, "wide": 2.0})
    return state_of(tried, race, verified(FAST, {"small": 2.0, "wide": 2.0}), *more)


def made_of(state: State) -> tuple[Winners, Delivery]:
    choice = verified_choice(PROBLEM, state)
    return choice, assemble_delivery(
        PROBLEM, lambda _config: TEMPLATE, state.device, choice, builds_known(state)
    )


def calls_of(state: State) -> tuple[SizedCall, ...]:
    choice, made = made_of(state)
    general = TEMPLATE.render(PROBLEM, choice.general) if choice.general else None
    return next_calls(PROBLEM, state, choice, made, general)


def nbytes(call: SizedCall) -> float:
    return float(DOMAIN.bytes(np.array([[value for _, value in call.sizes]]))[0])


def served(state: State, ratio: Ratio) -> Served:
    """As a lab would answer: through the dispatch that is delivered."""
    return served_calls(state, lambda call: ratio(dict(call.sizes)))


def served_calls(state: State, ratio: CallRatio) -> Served:
    choice, made = made_of(state)
    found = []
    for call in calls_of(state):
        entry = made.dispatch.entry_for(dict(call.sizes))
        chosen, value = made.configs.get(entry.digest), ratio(call)
        if chosen is None or isinstance(value, Status):
            result = Result(call.name, value if isinstance(value, Status) else Status.INFEASIBLE, detail="so")
        else:
            result = Result(call.name, Status.OK, timing(1.0 / value, 1.0))
        found.append(ServedSize(call.sizes, entry.file, chosen, result))
    return Served(choice.general, made.entries_digest, tuple(found))


def through(ratio: Ratio) -> tuple[State, list[Served]]:
    return through_calls(lambda call: ratio(dict(call.sizes)))


def through_calls(ratio: CallRatio) -> tuple[State, list[Served]]:
    """Until enough was seen."""
    events: list[Served] = []
    for _ in range(20):
        state = after(*events)
        if not calls_of(state):
            return state, events
        events.append(served_calls(state, ratio))
    raise AssertionError("it never ends")


def test_first_other_sizes_then_the_workloads_with_fresh_ones() -> None:
    state, events = through(lambda _sizes: 1.5)
    first, second = events
    names = {w.name for w in PROBLEM.workloads}
    assert len({call.sizes for call in first.calls}) == ON_GPU
    assert not any(call.result.workload in names for call in first.calls)
    assert {call.result.workload for call in second.calls if call.result.workload in names} == names
    assert len({call.sizes for call in second.calls}) == ON_GPU + len(names)
    assert not {call.sizes for call in first.calls} & {call.sizes for call in second.calls}
    choice, made = made_of(state)
    assert second.dispatch == made.entries_digest  # what was called is what is delivered
    assert "slower" not in choice.shown


def test_small_sizes_are_timed_cold_and_warm_and_the_worse_counts() -> None:
    calls = calls_of(after())
    llc = after().device.limits.llc
    small = {call.sizes for call in calls if nbytes(call) <= llc}
    assert small
    assert {call.sizes for call in calls if call.cache == "warm"} == small
    assert {call.sizes for call in calls if call.cache == "cold"} == {call.sizes for call in calls}
    names = [call.name for call in calls]
    assert len(set(names)) == len(names)

    def slow_when_warm(call: SizedCall) -> float:
        return 0.5 if call.cache == "warm" and call.sizes[0][1] < 4 else 1.5

    state, _ = through_calls(slow_when_warm)
    assert made_of(state)[1].dispatch.entry_for({"rows": 3, "d": 64}).config is None
    assert made_of(state)[1].dispatch.entry_for({"rows": 64, "d": 256}).config == FAST.as_dict()


@pytest.mark.parametrize("corner", [("rows", "d"), ("d", "rows")])
@pytest.mark.few(1)
def test_a_slow_corner_of_the_contract_is_found(corner: tuple[str, str]) -> None:
    """Where one size is large beside the other: two sizes of a hundred drawn at random lie there."""
    one, other = corner

    def slow(sizes: dict[str, int]) -> bool:
        return sizes[one] > 1500 and sizes[other] < 400

    state, _ = through(lambda sizes: 0.9 if slow(sizes) else 1.2)
    dispatch = made_of(state)[1].dispatch
    drawn = [dict(sizes) for sizes in DOMAIN.named(DOMAIN.sample(np.random.default_rng(7)))]
    assert any(map(slow, drawn))
    tuned = [sizes for sizes in drawn if dispatch.entry_for(sizes).config is not None]
    assert len(tuned) > len(drawn) // 2
    assert not any(map(slow, tuned))


def test_what_is_slower_is_served_by_the_original() -> None:
    state, events = through(lambda sizes: 0.5 if sizes["rows"] < 4 else 1.5)
    choice, made = made_of(state)
    assert choice.general == FAST
    assert made.dispatch.entry_for({"rows": 3, "d": 64}).config is None
    assert made.dispatch.entry_for({"rows": 64, "d": 256}).config == FAST.as_dict()
    assert "slower at" in choice.shown
    last = [call for call in events[-1].calls if call.config == FAST]
    assert all(dict(call.sizes)["rows"] >= 4 for call in last)


NAMED = [w.as_dict() for w in PROBLEM.workloads]


@pytest.mark.parametrize(
    "ratio",
    [
        lambda s: 2.0 if s in NAMED or (s["rows"] * 7 + s["d"]) % 5 else 0.9,  # whatever is cut off
        lambda s: 2.0 if s in NAMED else 0.5,  # everywhere else
    ],
)
def test_where_no_boundary_holds_the_workloads_alone_are_served(ratio: Ratio) -> None:
    state, events = through(ratio)
    made = made_of(state)[1]
    assert verified_choice(PROBLEM, state).general is None
    assert made.dispatch.entry_for({"rows": 33, "d": 64}).config is None
    assert all(made.dispatch.entry_for(sizes).config == FAST.as_dict() for sizes in NAMED)
    assert read_dispatch(made.files["dispatch.json"]) == made.dispatch
    assert len(events) <= most_rounds(state.device) + 1


def test_a_workload_that_is_slower_when_called_keeps_the_original() -> None:
    small = PROBLEM.workload("small").as_dict()
    state, _ = through(lambda sizes: 0.9 if sizes == small else 2.0)
    picks = {pick.workload: pick.config for pick in verified_choice(PROBLEM, state).picks}
    assert picks == {"small": None, "wide": FAST}
    assert made_of(state)[1].dispatch.entry_for(small).config is None


def test_what_is_wrong_when_called_has_failed() -> None:
    state = after()
    state = after(served(state, lambda sizes: Status.WRONG if sizes["rows"] > 100 else 2.0))
    assert failed_verification(state) == {FAST}
    assert verified_choice(PROBLEM, state).general is None
    assert unverified_winners(PROBLEM, state) == ()


def test_where_it_cannot_run_the_original_serves() -> None:
    state, _ = through(lambda sizes: Status.OVER_LIMITS if sizes["d"] > 1024 else 2.0)
    assert failed_verification(state) == set()
    assert made_of(state)[1].dispatch.entry_for({"rows": 2, "d": 1536}).config is None


def test_without_a_winner_nothing_is_called() -> None:
    assert calls_of(state_of()) == ()


@pytest.mark.parametrize(("slow", "is_none"), [(4, False), (0, True)])
def test_people_are_told_what_came_of_the_calls(slow: int, is_none: bool) -> None:
    line = event_line(served(after(), lambda sizes: 0.5 if sizes["rows"] < slow else 1.5), after())
    words = f"called through its dispatch at {ON_GPU} sizes, slower than the original at "
    assert line.text.startswith(words)
    assert line.text.endswith("none") is is_none


def test_an_event_about_a_template_that_nobody_wrote_is_refused() -> None:
    found = served(after(), lambda _sizes: 1.5)
    strange = replace(found, general=replace(FAST, candidate="7"))
    assert broken_rule(after(), Recorded(9, 9.0, found)) is None
    assert "there is no template '7'" in (broken_rule(after(), Recorded(9, 9.0, strange)) or "")
