"""Direct rewriting: concrete kernels by planner and author, from the best, or in a chain from the last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from tests.core.run.test_loop import PROBLEM, delivered, events
from tests.core.run.test_rounds import WIDE
from tests.drafts import a_draft
from tests.kernel_runs import KernelLab, KernelRun, a_run, change, goes_on_after_any_event, kernel, stop, text
from tests.talkers import Said, file
from tests.wording import says
from tunesmith.deliver.pages.page import report_markdown
from tunesmith.deliver.pages.terminal import report_text
from tunesmith.problem.plan import Status
from tunesmith.profiles.facts import Bound, Diagnosis
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Asked, Decided, Declined, NoReply, Rejected, Settings, Stopped
from tunesmith.run.report import Report, build_report
from tunesmith.run.state import State
from tunesmith.space.configset import Config

BEST = Settings(rounds=5, strategy="rewrite")
CHAIN = replace(BEST, linear=True)
# The second kernel loses; the third is broken, and mended as the fourth.
STORY: dict[int, Sequence[Said]] = {
    1: [NoReply("busy", wait=3.0), change(expected_gain=2.0)],
    2: [kernel(1)],
    3: [change(what="Keep the row.")],
    4: [kernel(2)],
    5: ["no plan at all"],
    6: [change(what="Split the row.")],
    7: ["no file at all"],
    8: [kernel(3)],
    9: [kernel(4)],
    10: [stop()],
}
SPEEDS: dict[str, float | Status] = {"1": 2.0, "2": 1.5, "3": Status.WRONG, "4": 3.0}


def report_of(run: KernelRun, state: State) -> Report:
    templates = Templates(PROBLEM, state.device, None, run.texts)
    return build_report(PROBLEM, state, templates=templates)


def tree(state: State) -> list[tuple[str, str, str]]:
    return [(c.id, c.parent, c.status) for c in state.candidates]


def test_rounds_go_on_from_the_best_and_a_loser_is_left_behind() -> None:
    run = a_run(STORY, SPEEDS, BEST)
    state = run.go()
    assert tree(state) == [
        ("1", "", "searched"),
        ("2", "1", "searched"),
        ("3", "1", "rejected"),
        ("4", "3", "searched"),
    ]
    assert state.stopped == Stopped("done")
    assert delivered(state).general == Config((), "4")
    assert [trial.config for trial in run.lab.proven] == [Config((), "4")]
    assert not any(t.purpose == "search" for e in events(run, Asked) for t in e.trials), "nobody searches"  # type: ignore[union-attr]
    report = report_of(run, state)
    assert [(r.base, r.speedup, r.default, r.gain, r.kept) for r in report.rounds] == [
        ("", 2.0, 2.0, 2.0, True),
        ("1", 1.5, 1.5, 0.75, False),
        ("1", 3.0, 3.0, 1.5, True),
    ]
    assert (report.strategy, report.chain) == ("rewrite", None)
    assert report.evaluations == {"ok": 3, "wrong": 1}, "a broken kernel is one, too"


def test_what_planner_and_author_are_sent() -> None:
    run = a_run(STORY, SPEEDS, BEST)
    run.go()
    first, author, second = (run.said(n) for n in (1, 3, 4))
    for words in (first, author):
        assert PROBLEM.kernel.text.strip() in words
        says(words, "small:", "original", "10000000.00 µs")
        assert "bytes must move" in words
        assert "## A reply of the right shape" in words
    assert "## Tested anyway\n\nSizes (" in author
    says(first, "0 rounds begun", "5 at most", "Go on from", "kernel as it is")
    assert "What to change: Read four at once." in author
    assert "Go on from kernel 1." in second
    assert text(1).strip() in second
    assert "- small: 5000000.00 µs, a speed-up of 2.00×" in second
    assert "Result: kept: 2.00×, 1.00× before it" in second
    third = run.said(7)
    assert "kernel 2 from kernel 1: right, 1.50×" in third
    assert "the best that is right: kernel 1, 2.00×" in third
    says(third, "dropped:", "1.50×", "no gain", "2.00×")
    says(run.said(10), "wrong", "workload small", "so it is")  # the oracle's own words
    assert not any(word in third for word in ("template 1", "Template", "Moves"))


def test_the_analyst_reads_the_numbers_before_each_plan() -> None:
    analysis = '{"bound": "memory", "evidence": ["small takes 987 ns"], "advice": ["wider loads"]}'
    script: Mapping[int, Sequence[Said]] = {
        1: [analysis],
        2: [change()],
        3: [kernel(1)],
        4: [analysis],
        5: [stop()],
    }
    run = a_run(script, SPEEDS, BEST, roles=("analyst", "planner", "author"))
    assert run.go().stopped == Stopped("done")
    assert [r.role for r in run.model.asked] == ["analyst", "planner", "author", "analyst", "planner"]
    assert "Result: kept: 2.00×, 1.00× before it" in run.said(4)
    assert "kernel 1, 2.00×" in run.said(4)
    assert "emplate" not in run.said(4)
    assert "Advice: wider loads" in run.said(5)


def test_after_each_kernel_the_original_is_timed_again() -> None:
    run = a_run(STORY, SPEEDS, BEST)
    state = run.go()
    purposes = [t.purpose for t in state.asked if t.purpose in ("gate", "sentinel")]
    assert purposes == ["gate", "sentinel", "gate", "sentinel", "gate", "gate", "sentinel"]


def test_a_chain_goes_on_from_the_last_also_when_it_is_slower() -> None:
    run = a_run(STORY, SPEEDS, CHAIN)
    state = run.go()
    assert [c.parent for c in state.candidates] == ["", "1", "2", "3"]
    assert "Go on from kernel 2." in run.said(7)
    says(run.said(8), "best", "right", "kernel 1")


def test_a_chain_goes_on_from_a_broken_kernel_and_says_what_the_last_gave() -> None:
    broken = [kernel(n) for n in (2, 3, 4, 5)]
    script: dict[int, Sequence[Said]] = {1: [change()], 2: [kernel(1)], 3: [change()]}
    script |= {4 + n: [reply] for n, reply in enumerate(broken)}
    script |= {8: [change()], 9: [kernel(6)], 10: [stop()]}
    speeds: dict[str, float | Status] = {"1": 2.0, **dict.fromkeys("2345", Status.CRASHED), "6": 1.2}
    run = a_run(script, speeds, CHAIN)
    state = run.go()
    assert tree(state)[-1] == ("6", "5", "searched")
    for words in (run.said(8), run.said(9)):
        assert "Kernel 5, which this goes on from" in words
        assert "It is broken:\n\nit is crashed (workload small): so it is" in words
        assert text(5).strip() in words
    assert delivered(state).general == Config((), "1"), "delivered is the best, all the same"
    report = report_of(run, state)
    assert report.chain is not None
    says(report.chain.words, "kernel 6", "1.20×")
    shown = report_text(report, "run", "tunesmith resume run", full=True)
    says(shown, "chain", "kernel 6", "1.20×", "by the search, not verified")
    cut = a_run(script, speeds, replace(CHAIN, rounds=2))
    end = report_of(cut, cut.go()).chain
    assert end is not None
    says(end.words, "kernel 5", "nothing", "broken", "crashed", "workload small", "so it is")


@pytest.mark.parametrize(("settings", "seen"), [(BEST, ["", "1", "1", "4"]), (CHAIN, ["", "1", "2", "4"])])
def test_what_is_profiled_is_what_is_gone_on_from(settings: Settings, seen: list[str]) -> None:
    def diagnosis(config: Config | None, workload: str) -> Diagnosis:
        whose = config.label if config else "the original"
        return Diagnosis(Bound.BANDWIDTH, f"{whose} waits at {workload}", 0.9, (), 2.0)

    lab = KernelLab(speeds=SPEEDS, no_profiles="", diagnosis=diagnosis)
    run = a_run(STORY, SPEEDS, replace(settings, steer=True), lab=lab)
    run.go()
    looked = list(dict.fromkeys(config.candidate if config else "" for config, _, _ in lab.profiled))
    assert looked == list(dict.fromkeys(seen))
    asked = [run.said(n) for n in (1, 4, 6, 11)]
    for words, own in zip(asked, seen, strict=True):
        whose = f"kernel {own}" if own else "the original"
        assert f"Diagnosis of {whose}\n" in words
        assert f"{whose} waits at small" in words


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("words, no file", "the reply has no fenced block"),
        ("```\n// /// tunesmith\n", "it was cut off"),
        (file("int main() {}"), "the file has no header: it begins with `// /// tunesmith`"),
        (file(a_draft(WIDE)), "it has parameters (VEC, UNROLL), and nobody searches here"),
        (kernel(1, '// [require]\n// no = "rows < 0"\n'), "breaks require"),
        (kernel(1).replace(";", ";\n#include </etc/passwd>"), "#include </etc/passwd> is not among"),
        (kernel(1).replace(";", "; int main() { return 0; }"), "host code"),
        ("x" * 300_000, "the reply is longer than"),
    ],
)
def test_what_is_wrong_goes_back_in_exact_words_and_the_round_ends(bad: str, words: str) -> None:
    repairs = Settings().repairs
    replies = [bad.replace("tunesmith\n", f"tunesmith\n// # {n}\n", 1) for n in range(repairs + 1)]
    script: dict[int, Sequence[Said]] = {1: [change()]}
    script |= {2 + n: [reply] for n, reply in enumerate(replies)}
    script[3 + repairs] = [stop()]
    run = a_run(script, {}, BEST)
    state = run.go()
    assert words in run.said(3)
    assert len(run.model.asked) == 3 + repairs
    assert words in [*events(run, Rejected), *events(run, Declined)][-1].reason  # type: ignore[union-attr]
    assert state.stopped == Stopped("done")
    assert not run.lab.evaluated, "nothing of it was built"


def test_without_a_plan_the_author_chooses_and_without_both_the_run_ends() -> None:
    gone = [NoReply("gone", lasts=True)]
    script: Mapping[int, Sequence[Said]] = {1: gone, 2: [kernel(1)], 3: gone, 4: gone, 5: gone}
    run = a_run(script, {"1": 2.0}, BEST)
    state = run.go()
    first = events(run, Decided)[0]
    assert isinstance(first, Decided)
    says(first.reason, "planner", "not answer", "gone", "author chooses")
    says(run.said(2), "choose yourself")
    says(state.stopped, "neither planner nor author", "gone")
    assert delivered(state).general == Config((), "1")


def test_a_plan_that_cannot_be_used_goes_back_and_then_the_author_chooses() -> None:
    script: dict[int, Sequence[Said]] = {
        1: ["[]"],
        2: [change(what=" ")],
        3: [change(moves=["vector"])],
        4: ['{"decision": "search", "why": "more"}'],
        5: [kernel(1)],
        6: [stop()],
    }
    run = a_run(script, {"1": 2.0}, BEST)
    assert run.go().stopped == Stopped("done")
    assert "`what` is empty" in run.said(3)
    assert "unknown field `moves`" in run.said(4)
    first = events(run, Decided)[0]
    assert isinstance(first, Decided)
    assert first.reason.startswith("the planner's reply cannot be used (the JSON is not of the shape")


def test_the_report_says_that_nobody_searched() -> None:
    run = a_run(STORY, SPEEDS, CHAIN)
    report = report_of(run, run.go())
    written = report_markdown(report)
    says(written, "Strategy rewrite:", "models plan")
    says(written, "refactoring", "all of the gain", "nobody searched")
    assert "| 2 | by scripted | kernel 1 | 1 | 1.50× | 0.75× | 2.00× | dropped: 1.50×" in written
    says(written, "chain", "kernel 4", "3.00×")
    assert "by search" not in written
    assert "General configuration: kernel 4" in written
    assert "nobody searched" not in report_text(report, "run", "")
    says(report_text(report, "run", "", full=True), "Strategy rewrite:", "models plan")


@pytest.mark.parametrize("settings", [BEST, CHAIN], ids=["best", "linear"])
@pytest.mark.few(1)
def test_a_run_killed_after_any_event_goes_on_and_asks_nothing_twice(settings: Settings) -> None:
    goes_on_after_any_event(STORY, SPEEDS, settings, frozenset({"Searched"}))
