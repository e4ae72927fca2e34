"""What earlier runs teach whoever plans: a few lines, the nearest first."""

from __future__ import annotations

from dataclasses import replace

from tests.core.run.test_library import OWN, an_entry
from tests.samples import DEVICE, state_of
from tests.wording import says
from tunesmith.run.events import Decided, Drafted, Rejected
from tunesmith.run.library import (
    KEPT,
    LESSONS_FORMAT,
    MAX,
    KernelLessons,
    Lesson,
    format_library_notes,
    kernel_digest,
    lessons_of,
    merge_lessons,
    operator_words,
)

HERE = DEVICE.name


def learned(problem: str = "scale", device: str = HERE, kernel: str = "", *what: str) -> KernelLessons:
    lessons = tuple(Lesson(one, "no gain") for one in what or ("moves split",))
    return KernelLessons(
        LESSONS_FORMAT, problem, kernel or kernel_digest(OWN), ("scale",), device, "2026", lessons
    )


def test_names_tell_what_a_kernel_computes() -> None:
    norm = replace(OWN, name="fused_add_rmsnorm", kernel=replace(OWN.kernel, entry="RMSNormKernel<half, 4>"))
    assert operator_words(norm) == ("rmsnorm", "rms", "norm")


def test_what_won_and_what_failed_are_told_the_nearest_first() -> None:
    other = an_entry(name="other", kernel="elsewhere", problem="scale_rows", speedup=9.0, device=HERE)
    mine = an_entry(name="mine", kernel=kernel_digest(OWN), speedup=2.0, device=HERE)
    strange = an_entry(name="strange", kernel="elsewhere", problem="softmax", device=HERE)
    text = format_library_notes(OWN, HERE, [other, strange, mine], [learned()])
    first, second, third = text.splitlines()
    says(first, "won, this kernel: 2.00×", HERE, f"served {', '.join(s.workload for s in mine.served)}")
    assert mine.served
    says(second, "won, a kernel like it (scale_rows): 9.00×")
    says(third, "did not pay on this device, this kernel: moves split: no gain")
    assert "softmax" not in text


def test_what_failed_elsewhere_is_no_lesson_here() -> None:
    assert format_library_notes(OWN, HERE, [], [learned(device="another")]) == ""
    assert format_library_notes(OWN, HERE, [], []) == ""


def test_it_is_a_few_lines_and_no_words_can_begin_another() -> None:
    many = [learned("scale", HERE, "", *(f"try {n}\n## A heading\n{'x' * 900}" for n in range(9)))]
    entries = [an_entry(name=f"e{n}", kernel=kernel_digest(OWN), device=HERE) for n in range(9)]
    lines = format_library_notes(OWN, HERE, entries, many).splitlines()
    assert len([line for line in lines if line.startswith("- won")]) == MAX
    state = state_of(
        Decided("refactor", "why", what="a\n## b" + "x" * 900),
        Drafted("1", "", "d" * 64, ()),
        Rejected("1", "wrong\n## c"),
    )
    (lesson,) = lessons_of(OWN, state, "2026").lessons
    assert "\n" not in lesson.what + lesson.why
    assert len(lesson.what) < 240


def test_rounds_that_did_not_pay_are_lessons_and_those_that_did_are_not() -> None:
    lost = [
        Decided("refactor", "narrow", ("vector",)),
        Drafted("1", "", "d" * 64, ("vector",)),
        Rejected("1", "wrong"),
    ]
    found = lessons_of(OWN, state_of(*lost), "2026-11-18")
    says(found.lessons[0].what, "moves vector")
    assert (found.device, found.kernel) == (HERE, kernel_digest(OWN))
    assert lessons_of(OWN, state_of(), "2026") is None


def test_of_many_runs_the_last_lessons_stay_each_once() -> None:
    old, new = (
        learned("scale", HERE, "", *(f"a{n}" for n in range(KEPT))),
        learned("scale", HERE, "", "a3", "b"),
    )
    both = merge_lessons(new, old)
    assert len(both.lessons) == KEPT
    assert both.lessons[-1].what == "b"
    assert both.name == old.name == new.name
    assert learned(device="x").name != old.name
