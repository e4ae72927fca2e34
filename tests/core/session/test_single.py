"""One conversation in every role: each request is all that was said, and the lab's word on the last reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.core.run.test_loop import PROBLEM, delivered, events
from tests.kernel_runs import KernelRun, a_run, goes_on_after_any_event, kernel, stop, text
from tests.talkers import Said, file
from tests.wording import says
from tunesmith.agents.prompting import StopReply
from tunesmith.agents.single import CONVERSATION, fit_conversation, read_turn, words_around
from tunesmith.base.errors import WaitingForModel
from tunesmith.problem.plan import Status
from tunesmith.run.events import (
    Declined,
    Drafted,
    Message,
    NoReply,
    Pending,
    Reply,
    Settings,
    Stopped,
    tokens_of,
)
from tunesmith.space.configset import Config

ALONE = Settings(rounds=5, strategy="single")
STORY: dict[int, Sequence[Said]] = {
    1: [NoReply("busy"), kernel(1)],
    2: ["Let me think about it."],
    3: [kernel(2)],
    4: [kernel(3)],
    5: [kernel(4)],
    6: [f"Enough.\n{stop('at the floor')}"],
}
# The second is wrong and mended as the third; the fourth loses.
SPEEDS: dict[str, float | Status] = {"1": 2.0, "2": Status.WRONG, "3": 3.0, "4": 1.5}


def speakers(run: KernelRun, number: int) -> list[str]:
    return [m.speaker for m in run.model.asked[number - 1].messages]


def last_words(run: KernelRun, number: int) -> str:
    return run.model.asked[number - 1].messages[-1].text


def test_a_story() -> None:
    run = a_run(STORY, SPEEDS, ALONE)
    state = run.go()
    assert {r.role for r in run.model.asked} == {"single"}
    assert [(c.id, c.parent, c.status) for c in state.candidates] == [
        ("1", "", "searched"),
        ("2", "1", "rejected"),
        ("3", "2", "searched"),
        ("4", "3", "searched"),
    ]
    assert state.stopped == Stopped("at the floor")
    assert events(run, Declined)[-1] == Declined("the model stops: at the floor")
    assert delivered(state).general == Config((), "3")
    drafted = events(run, Drafted)[0]
    assert isinstance(drafted, Drafted)
    assert (drafted.author, drafted.notes) == ("scripted", ("Here it is. Good luck!",))


def test_each_request_is_the_whole_conversation_so_far() -> None:
    run = a_run(STORY, SPEEDS, ALONE)
    run.go()
    asked = run.model.asked[1:]  # the first was not answered at once
    for number, (before, after) in enumerate(pairwise(asked), 1):
        reply = STORY[number][-1]
        assert isinstance(reply, str)
        assert after.messages[: len(before.messages)] == before.messages
        assert after.messages[len(before.messages)] == Message("assistant", reply)
        assert len(after.messages) == len(before.messages) + 2
    assert speakers(run, 4) == ["system", "user", "assistant", "user", "assistant", "user"]


def test_what_the_lab_says() -> None:
    run = a_run(STORY, SPEEDS, ALONE)
    run.go()
    first = run.said(1)
    assert PROBLEM.kernel.text.strip() in first
    assert "argument `out`: float32* [rows, d], output" in first
    says(first, "small:", "original", "10000000.00 µs")
    says(first, "round 1 of 5", "kernel", "whole", "or stop")
    second = last_words(run, 3)
    heading, _, judged, *_ = second.splitlines()
    says(heading, "## The laboratory on kernel 1")
    says(judged, "Kernel 1 is right")
    says(second, "- small:", "5000000.00 µs")
    says(second, "Result:", "kept:", "2.00×", "1.00× before it")
    says(second, "best that is right:", "kernel 1", "2.00×", "round 2 of 5")
    assert last_words(run, 4).startswith("That cannot be used:\n\nthe reply")
    says(last_words(run, 5), "wrong", "workload small", "so it is")
    says(last_words(run, 6), "kept:", "3.00×", "2.00× before it")
    says(last_words(run, 7), "dropped:", "1.50×", "no gain", "3.00×")


def test_a_round_that_ends_broken_is_reported_and_the_next_begins() -> None:
    script: dict[int, Sequence[Said]] = {n: [kernel(n)] for n in range(1, 5)}
    script |= {5: [kernel(5)], 6: [stop()]}
    speeds: dict[str, float | Status] = {**dict.fromkeys("1234", Status.CRASHED), "5": 2.0}
    run = a_run(script, speeds, ALONE)
    assert run.go().stopped == Stopped("done")
    assert "## The laboratory on kernel 4\n\nResult: turned away: it is crashed" in last_words(run, 5)
    says(last_words(run, 5), "best that is right:", "the original", "round 2")


def test_a_reply_that_is_of_no_use_to_the_end_costs_its_round() -> None:
    script: dict[int, Sequence[Said]] = {n: [f"Words, the {n}th."] for n in range(1, 5)}
    run = a_run({**script, 5: [kernel(1)], 6: [stop()]}, {"1": 2.0}, ALONE)
    state = run.go()
    says(last_words(run, 5), "no kernel", "model's reply", "no fenced block")
    assert delivered(state).general == Config((), "1")


def test_a_model_that_is_silent_ends_the_run_with_what_was_found() -> None:
    run = a_run({1: [kernel(1)], 2: [NoReply("gone", lasts=True)]}, SPEEDS, ALONE)
    state = run.go()
    assert state.stopped == Stopped("the model did not answer: gone")
    assert delivered(state).general == Config((), "1")


@pytest.mark.parametrize(
    ("limits", "words", "asked"),
    [
        ({"rounds": 2}, "the budget of 2 rounds is used up", 2),
        ({"tokens": 200}, "the budget of 200 tokens is used up", 2),
        ({"dollars": 1.0}, "the budget of $1 is used up", 2),
        ({"evals": 2}, "the budget of 2 evaluations is used up", 2),
    ],
)
def test_budgets(limits: dict[str, int], words: str, asked: int) -> None:
    script = {n: [kernel(n)] for n in range(1, 9)}
    speeds: dict[str, float | Status] = {str(n): 1.0 + n for n in range(1, 9)}
    run = a_run(script, speeds, replace(ALONE, **limits))  # type: ignore[arg-type]
    assert run.go().stopped == Stopped(words)
    assert len(run.model.asked) == asked


def test_a_missing_reply_stops_the_run_and_the_same_is_asked_again() -> None:
    run = a_run({1: [kernel(1)], 2: [Pending("the box")]}, SPEEDS, ALONE)
    with pytest.raises(WaitingForModel, match="request 2 is missing"):
        run.go()
    later = a_run({2: [stop()]}, SPEEDS, ALONE, list(run.journal.records), run.texts)
    assert later.go().stopped == Stopped("done")
    assert later.model.asked == run.model.asked[-1:]


def test_a_run_killed_after_any_event_goes_on_and_asks_nothing_twice() -> None:
    goes_on_after_any_event(STORY, SPEEDS, ALONE, frozenset({"Declined"}))


def test_old_turns_are_shortened_and_the_best_kernel_is_whole_in_every_request() -> None:
    long = "".join(f"// line_{n};\n" for n in range(2500))
    script: dict[int, Sequence[Said]] = {n: [file(text(n) + long + f"// own_{n};\n")] for n in range(1, 9)}
    speeds: dict[str, float | Status] = {str(n): 3.0 if n == 1 else 1.5 for n in range(1, 9)}
    run = a_run({**script, 9: [stop()]}, speeds, replace(ALONE, rounds=20))
    run.go()
    best = (text(1) + long + "// own_1;").strip()
    for request in run.model.asked:
        assert sum(tokens_of(m.text) for m in request.messages) < CONVERSATION + tokens_of(best)
        assert PROBLEM.kernel.text.strip() in request.messages[1].text
    for request in run.model.asked[1:]:
        assert any(best in m.text for m in request.messages)
        assert script[request.number - 1][0] == request.messages[-2].text, "its last reply, whole"
    says([m.text for m in run.model.asked[-1].messages], "file", "left out")


def test_of_a_reply_that_is_too_long_the_kernel_stays_and_the_text_does_not() -> None:
    run = a_run({1: ["Well. " * 20_000 + "\n" + kernel(1)], 2: [stop()]}, SPEEDS, ALONE)
    assert run.go().stopped == Stopped("done")
    quoted = run.model.asked[1].messages[2].text
    assert text(1).strip() in quoted
    assert len(quoted) < 1000


def test_the_first_and_the_last_two_messages_are_never_cut() -> None:
    said = [Message("user" if n % 2 else "assistant", f"{n} " + "x" * 4000) for n in range(9)]
    shortened = fit_conversation(said, 100)
    assert shortened[:2] == tuple(said[:2])
    assert shortened[-2:] == tuple(said[-2:])
    assert all(len(m.text) < 700 for m in shortened[2:-2])
    assert fit_conversation(said, 100_000) == tuple(said)


def test_a_file_or_the_word_stop() -> None:
    assert read_turn(Reply(kernel(1))) == text(1)
    assert read_turn(Reply(stop("why not"))) == StopReply("stop", "why not")
    assert read_turn(Reply(f"```json\n{stop()}\n```")) == StopReply("stop", "done")
    assert read_turn(Reply(f"{kernel(1)}\nThen I shall say {stop()}")) == text(1), "a kernel is a kernel"
    assert not isinstance(read_turn(Reply("stop")), (str, StopReply))
    assert words_around(f"Wider.\n\n{kernel(1)}") == "Wider. Here it is. Good luck!"
    assert len(words_around("x" * 10_000)) < 500


def test_fences_without_end_take_no_time() -> None:
    assert words_around("```x\n" * 50_000) == ""
