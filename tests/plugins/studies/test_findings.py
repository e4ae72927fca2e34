"""What a journal tells of what was stopped, of searches, and of tokens: by runs made up in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.core.run.test_loop import PROBLEM
from tests.core.session.test_rewriting import BEST, SPEEDS, STORY
from tests.kernel_runs import a_run, change, kernel, stop, text
from tests.talkers import Said, file
from tunesmith.plugins.studies.plan import (
    StoppedCounts,
    add_counts,
    draft_fault,
    facts_of,
    stopped_counts,
    tokens_by_round,
)
from tunesmith.problem.plan import Status
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Settings


def test_a_wrong_kernel_and_two_replies_without_what_was_asked_for() -> None:
    found = stopped_counts(a_run(STORY, SPEEDS, BEST).go())
    assert found == StoppedCounts(
        replies=10, unusable=2, drafts=4, admitted=3, wrong=1, tried=4, tried_wrong=1
    )
    assert found.turned_away == 1


def test_each_draft_is_counted_by_what_turned_it_away() -> None:
    script: Mapping[int, Sequence[Said]] = {
        1: [change()],
        2: [file("// /// tunesmith\n// [launch]\n// ///\nint no_launch;\n")],
        3: [kernel(2)],
        4: [kernel(3)],
        5: [kernel(3)],
        6: [change(what="Other things.")],
        7: [kernel(5)],
        8: [kernel(5)],
        9: [stop()],
    }
    speeds = {"2": Status.BUILD_FAILED, "3": Status.CRASHED, "5": Status.OVER_LIMITS}
    state = a_run(script, speeds, BEST).go()
    faults = [draft_fault(state, draft) for draft in state.candidates]
    assert faults == ["form", "build", "broken", "repeated", "unfit", "repeated"]
    found = stopped_counts(state)
    assert (found.form, found.build, found.broken, found.repeated, found.unfit) == (1, 1, 1, 2, 1)
    assert (found.drafts, found.admitted, found.turned_away, found.unusable) == (6, 0, 6, 0)
    assert add_counts([found, found]).drafts == 12


def test_a_branch_that_is_given_up_ends_with_a_reply_without_a_file() -> None:
    said: dict[int, Sequence[Said]] = {1: [change()], 6: [stop()]}
    said |= {number: ["no file at all"] for number in (2, 3, 4, 5)}
    found = stopped_counts(a_run(said, {}, BEST).go())
    assert (found.replies, found.unusable, found.drafts) == (6, 4, 0)


def test_tokens_are_those_spent_by_the_end_of_each_round() -> None:
    """110 a reply. The second round has a planner and an author, the third two of each and a repair."""
    state = a_run(STORY, SPEEDS, BEST).go()
    assert tokens_by_round(state) == (220, 440, 990)


def test_in_one_conversation_a_repair_belongs_to_its_round() -> None:
    script: Mapping[int, Sequence[Said]] = {1: [kernel(1)], 2: [kernel(2)], 3: [kernel(3)], 4: [stop()]}
    speeds = {"1": 2.0, "2": Status.WRONG, "3": 3.0}
    state = a_run(script, speeds, Settings(rounds=4, strategy="single")).go()
    assert tokens_by_round(state) == (110, 330, 440)
    assert stopped_counts(state).wrong == 1


def test_facts_of_a_run_have_them() -> None:
    run = a_run(STORY, SPEEDS, BEST)
    state = run.go()
    facts = facts_of(PROBLEM, state, Templates(PROBLEM, state.device, None, run.texts))
    assert (facts.sent, facts.received, facts.tokens_by_length) == (1000, 100, 1100)
    assert facts.searches == (), "a kernel without parameters is not searched"
    assert facts.round_tokens == (220, 440, 990)
    assert facts.rounds == (2.0, 2.0, 3.0)
    assert facts.stopped == stopped_counts(state)
    assert "this_is_kernel_4" in text(4)
