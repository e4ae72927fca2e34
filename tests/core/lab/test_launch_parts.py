"""Operators of several launches: what each takes, and which of them a profile tells of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.lab.in_process import Log
from tests.core.lab.labs import plan_at, scale_problem
from tests.core.lab.test_profiling import Recorder, profiler
from tests.wording import says
from tunesmith.lab.profile import ProfileSubject, launch_prefixes, launch_shares, main_place
from tunesmith.profiles.diagnose import diagnose_profile
from tunesmith.profiles.facts import LaunchFacts, LaunchPart, Profile, StaticFacts

TWO = (
    '[launch]\ngrid = ["rows"]\nblock = ["64"]',
    '[[launch]]\nentry = "scale"\ngrid = ["2"]\nblock = ["64"]\nargs = ["out", "x", "rows", "d"]\n'
    '[[launch]]\nentry = "scale"\ngrid = ["rows"]\nblock = ["64"]\nargs = ["out", "x", "rows", "d"]',
)


def test_prefixes_are_all_but_the_whole() -> None:
    plan = plan_at(scale_problem())
    (one,) = plan.launches
    three = replace(plan, launches=tuple(replace(one, entry=name) for name in "abc"))
    assert [[g.entry for g in p.launches] for p in launch_prefixes(three)] == [["a"], ["a", "b"]]
    assert launch_prefixes(plan) == ()


@pytest.mark.parametrize(
    ("first_ones", "whole", "expected"),
    [
        ([1.0], 4.0, [0.25, 0.75]),
        ([1.0, 3.0], 4.0, [0.25, 0.5, 0.25]),
        ([2.0], 1.9, [1.0, 0.0]),
        ([], 3.0, [1.0]),
    ],
)
def test_shares_are_what_each_adds(first_ones: list[float], whole: float, expected: list[float]) -> None:
    assert launch_shares(first_ones, whole) == pytest.approx(expected)


def test_a_profile_covers_every_launch() -> None:
    problem = scale_problem(TWO)
    recorder = Recorder(Log())
    with profiler(problem, recorder) as own:
        found = own.profile(ProfileSubject(), problem.workloads[0]).profile
    assert [part.launch.blocks for part in found.parts] == [2, 16]
    assert [part.share for part in found.parts] == pytest.approx([0.5, 0.5])
    assert found.static.resources.registers == 32
    with profiler(problem, recorder) as own:
        known = own.known(ProfileSubject(), problem.workloads[0], 1e-5).profile
    assert [part.share for part in known.parts] == [None, None]
    assert known.launch.blocks == 16, "the one with the most threads"
    assert main_place(plan_at(problem).launches) == 1
    main = found.parts.index(found.main) if found.main else None
    assert [what.main for what, _ in recorder.asked] == [main, 1], "counters are those of the launch told of"


def facts(blocks: int) -> LaunchFacts:
    return LaunchFacts((blocks, 1, 1), (64, 1, 1), 64, blocks, 132)


def a_profile(*shares_: float | None) -> Profile:
    parts = tuple(
        LaunchPart(f"k{i}", StaticFacts(), facts(10 * (i + 1)), share) for i, share in enumerate(shares_)
    )
    main = max(parts, key=lambda part: part.share or 0.0)
    return Profile("k", "w", static=main.static, launch=main.launch, parts=parts)


def test_the_diagnosis_names_the_launch_that_costs_most() -> None:
    diagnosis = diagnose_profile(a_profile(0.2, 0.7, 0.1))
    assert diagnosis.launch == "k1"
    says(diagnosis.notes[0], "3 launches", "k1 takes most", "k0 20 %", "k1 70 %", "k2 10 %")
    assert diagnosis.summary.startswith("in k1, ")
    unknown = diagnose_profile(a_profile(None, None))
    says(unknown.notes[0], "2 launches", "not known")
    single = diagnose_profile(Profile("k", "w", launch=facts(16)))
    assert (single.launch, single.summary.startswith("in ")) == ("", False)
