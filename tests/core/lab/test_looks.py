"""Looks at timed launches on a device that judges for itself: what travels, and what the host makes of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from tests.core.lab.kept_scenarios import TIGHT, TWICE, accuracy, add
from tests.core.lab.labs import scale_problem
from tests.core.lab.oracles import SECONDS, Judges, a_case
from tests.core.lab.python_kernels import Argument, Kernel, PythonSession, then
from tunesmith.backends.messages import Draw, Piece, Timed, TimedLook, TimingPolicy
from tunesmith.backends.port import LaunchFailed
from tunesmith.lab import memory, references, validate_timing
from tunesmith.lab.memory import Verdict
from tunesmith.lab.runner import Race, RaceRun
from tunesmith.lab.validate_timing import SampleJudge
from tunesmith.lab.worker import device_cases, output_sampling
from tunesmith.problem.inputs import SlotPlace, slot_items
from tunesmith.problem.plan import Status

POLICY = TimingPolicy(rounds=3, min_rounds=3, chain_seconds=1e-6, max_seconds=1.0, looks=1, whole=True)
OFF = add(np.float32(0.01), 100)  # further than both being right explains


def judge_of(judges: Judges) -> SampleJudge:
    return SampleJudge(judges.problem, judges.references, judges.runner(), lambda _: SECONDS)


def look(
    original: Kernel,
    candidate: Kernel,
    inputs: str | None = None,
    sends_all: bool = False,
    policy: TimingPolicy = POLICY,
) -> tuple[RaceRun, Verdict]:
    judges = Judges(scale_problem(inputs=inputs), {"original": original, "candidate": candidate})
    plan, draw = judges.plan(a_case()), Draw("normal", 1, judges.problem.inputs)
    own = (judges.code("original"), plan)
    race = Race((own, (judges.code("candidate"), plan)), draw, policy, False, False, own, sends_all)
    runner = judges.runner()
    run = runner.time(race, SECONDS)
    assert isinstance(run, RaceRun), run
    judge = judge_of(judges)
    return run, judge.judge(judges.problem.workloads[0], plan, race, run)


@pytest.fixture(autouse=True)
def _short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_cases, "SPAN", 16)


def test_nothing_travels_of_what_is_alike() -> None:
    run, verdict = look(TWICE, TWICE)
    assert verdict.ok
    assert run.blobs == (b"",)


def test_of_what_may_be_unlike_a_stretch_travels_and_the_reference_convicts() -> None:
    run, verdict = look(TWICE, then(TWICE, OFF))
    (seen,) = run.timed.looks
    assert seen.pieces == seen.originals == (Piece("out", 96 * 4, 16 * 4),)
    assert len(run.blobs[0]) == 2 * 16 * 4
    assert verdict.status is Status.WRONG
    assert "when it was timed at small: out[3, 4]" in verdict.detail  # element 100


def test_or_acquits_where_the_original_is_the_one_that_is_off() -> None:
    run, verdict = look(then(TWICE, OFF), TWICE)
    assert run.timed.looks[0].pieces == (Piece("out", 96 * 4, 16 * 4),)
    assert verdict.ok


ELSEWHERE = add(np.float32(0.01), 300)
TOO_MUCH = then(OFF, ELSEWHERE)  # in more stretches than travel at first


def test_where_too_much_is_unlike_the_first_of_it_convicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_cases, "SPANS", 1)
    run, verdict = look(TWICE, then(TWICE, TOO_MUCH))
    assert run.timed.looks[0].pieces == (Piece("out", 96 * 4, 16 * 4),)
    assert run.timed.looks[0].partial
    assert verdict.status is Status.WRONG


def test_where_the_first_of_it_is_right_all_travels_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that is right at the first places where it differs from the original, and wrong elsewhere."""
    monkeypatch.setattr(device_cases, "SPANS", 1)
    monkeypatch.setattr(output_sampling, "PART", 1 << 10)
    monkeypatch.setattr(validate_timing, "MAX_AT_ONCE", 1 << 11)
    original, candidate = then(TWICE, OFF), then(TWICE, ELSEWHERE)
    run, verdict = look(original, candidate)
    assert run.timed.looks[0].partial
    assert verdict.ok
    run, verdict = look(original, candidate, sends_all=True)
    assert run.timed.looks[0].pieces == tuple(Piece("out", n << 10, 1 << 10) for n in range(3))
    assert len(run.blobs[0]) == 2 * 24 * 32 * 4
    assert verdict.status is Status.WRONG
    assert "out[9, 12]" in verdict.detail  # element 300
    assert look(original, TWICE, sends_all=True)[1].ok


@pytest.mark.parametrize("held", [(), (True,) * 10, (True, False) * 20], ids=["never", "first", "on and off"])
def test_under_a_held_clock_a_look_is_taken_again_and_does_not_come_beside_itself(
    held: tuple[bool, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a round that is discarded nothing is sent, and the inputs are as they were."""
    answers, seen = iter(held), list[str]()
    settle = output_sampling.OutputSampler.settle
    monkeypatch.setattr(
        output_sampling.OutputSampler, "settle", lambda watch: seen.append("settled") or settle(watch)
    )
    monkeypatch.setattr(PythonSession, "throttled", lambda _: seen.append("asked") or next(answers, False))
    run, verdict = look(TWICE, TWICE, policy=replace(POLICY, rounds=31, looks=3))
    assert verdict.ok, verdict.detail  # no input has changed, anywhere
    assert run.timed.discarded == sum(held)
    assert len(run.timed.looks) == seen.count("settled") == 3
    assert seen[0] == "asked", "of the sample's own clock, not of that of the look's journey"


def test_a_round_that_counts_was_looked_at_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that is right, and slow, and hot, while it is discarded does not use up the looks by that."""
    hot = [True]

    def candidate(out: Argument, x: Argument, *rest: Argument) -> None:
        TWICE(out, x, *rest)
        hot[0] = not hot[0]
        if not hot[0]:
            ELSEWHERE(out, x)

    monkeypatch.setattr(PythonSession, "throttled", lambda _: hot[0])
    _, verdict = look(TWICE, candidate)
    assert verdict.status is Status.WRONG


def test_an_output_that_is_too_large_for_the_reference_is_held_to_the_original(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(references, "UNREFERRED_ABOVE", 10)
    _, verdict = look(TWICE, then(TWICE, OFF))
    assert verdict.status is Status.WRONG
    assert "out[3, 4]" in verdict.detail


@pytest.mark.parametrize("most", [10, 1 << 30], ids=["too large", "not too large"])
@pytest.mark.parametrize("may_fail", [False, True])
def test_so_is_one_that_the_host_judges_whatever_may_fail(
    may_fail: bool, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the original may fail, too: as it is when the case is checked."""
    monkeypatch.setattr(references, "UNREFERRED_ABOVE", most)
    problem = scale_problem(accuracy(TIGHT, f"baseline_may_fail = {str(may_fail).lower()}"))
    judges = Judges(problem, {"original": TWICE})
    plan, draw, place = judges.plan(a_case()), Draw("normal", 1), SlotPlace(0, 256)
    seen = TimedLook(place, 0, (Piece("out", 0, plan.buffer("out").nbytes),))
    judge = judge_of(judges)
    right = 2 * slot_items(plan.buffer("x"), "normal", 1, place)
    wrong = right.copy()
    wrong[100] += 5
    for values, status in ((right, Status.OK), (wrong, Status.WRONG)):
        found = judge._judge(plan, judges.original(a_case()), draw, seen, values.tobytes())
        assert found.status is status, found.detail
    assert "out[3, 4]" in found.detail


def pieces_of(*found: tuple[str, int, int]) -> tuple[Piece, ...]:
    return tuple(Piece(*one) for one in found)


@pytest.mark.parametrize(
    "pieces",
    [
        [("out", 3000, 80)],  # beyond its end: 3072 bytes
        [("out", 2, 8)],
        [("out", 0, 6)],
        [("out", -8, 8)],
        [("out", 0, -8), ("out", 0, 8)],
        [("out", 0, 0)],
        [("x", 3000, 80)],
        [("nobody", 0, 8)],
    ],
)
@pytest.mark.parametrize("beside", [False, True])
def test_what_cannot_be_a_piece_of_an_array_is_garbled(
    pieces: list[tuple[str, int, int]], beside: bool
) -> None:
    """A worker of another host may say anything: it is no bug of ours."""
    judges = Judges(scale_problem(), {"original": TWICE})
    plan, case = judges.plan(a_case()), a_case()
    judge = judge_of(judges)
    found = pieces_of(*pieces)
    seen = TimedLook(SlotPlace(0, 256), 0, found, found if beside else ())
    blob = bytes((1 + beside) * max(0, sum(nbytes for _, _, nbytes in pieces)))
    assert judge._judge(plan, judges.original(case), Draw("normal", 1), seen, blob) == validate_timing.GARBLED


@pytest.mark.parametrize("seen", [(-1, 0, 256), (0, -1, 256), (0, 0, 0), (1 << 60, 0, 256), (0, 0, 1 << 60)])
def test_nor_is_what_cannot_be_a_slot(seen: tuple[int, int, int]) -> None:
    read, wrote, apart = seen
    judges = Judges(scale_problem(), {"original": TWICE})
    plan = judges.plan(a_case())
    judge = judge_of(judges)
    look = TimedLook(SlotPlace(read, apart), wrote, pieces_of(("x", 0, 8), ("out", 3072, 64)))
    found = judge._judge(plan, judges.original(a_case()), Draw("normal", 1), look, bytes(72))
    assert found == validate_timing.GARBLED


def test_one_who_says_there_is_more_when_all_was_asked_for_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judges = Judges(scale_problem(), {"original": TWICE})
    plan, own = judges.plan(a_case()), judges.code("original")
    race = Race(((own, plan),), Draw("normal", 1), POLICY, False, False, (own, plan), sends_all=True)
    seen = TimedLook(SlotPlace(0, 256), 0, partial=True)
    run = RaceRun(Timed(((1.0,),), looks=(seen,)), (b"",))
    judge = judge_of(judges)
    assert judge.judge(judges.problem.workloads[0], plan, race, run) == validate_timing.GARBLED


@pytest.mark.parametrize("blob", [1, 7, 64, 100, 3071, 3072, 3073, 1 << 20])
def test_a_look_travels_in_as_many_blobs_as_it_takes(blob: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that there is no output that is too large for one, whose right kernel would speak nonsense."""
    monkeypatch.setattr(memory, "BLOB", blob)
    pieces = pieces_of(("out", 0, 3072), ("x", 0, 64), ("out", 3072, 64), ("x", 8, 1000))
    data = [bytes((n + piece.nbytes) % 251 for n in range(piece.nbytes)) for piece in pieces]
    blobs = output_sampling.as_blobs(data)
    assert max(map(len, blobs)) <= blob
    assert len(blobs) == memory.blobs_of(TimedLook(SlotPlace(0, 256), 0, pieces[:3], pieces[3:]))
    assert [(p, bytes(seen)) for p, seen in validate_timing._out_of(blobs, pieces)] == list(
        zip(pieces, data, strict=True)
    )
    assert len(output_sampling.as_blobs([])) == memory.blobs_of(TimedLook(SlotPlace(0, 256), 0)) == 1


def test_they_are_put_together_again_where_they_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "BLOB", 100)
    run, verdict = look(TWICE, then(TWICE, OFF))
    assert [len(blob) for blob in run.blobs] == [100, 28]
    assert verdict.status is Status.WRONG
    assert "out[3, 4]" in verdict.detail
    run, verdict = look(then(TWICE, OFF), TWICE, policy=replace(POLICY, looks=3))
    assert len(run.blobs) == 6
    assert verdict.ok


def test_each_of_several_timed_at_once_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "BLOB", 100)
    judges = Judges(scale_problem(), {"original": TWICE, "off": then(TWICE, OFF)})
    plan, draw, own = judges.plan(a_case()), Draw("normal", 1), judges.code("original")
    names = ("off", "original", "off")
    races = [Race(((judges.code(n), plan),), draw, POLICY, False, False, (own, plan)) for n in names]
    found = judges.runner().time_all(races, SECONDS)
    assert isinstance(found, list), found
    assert [[len(blob) for blob in run.blobs] for run in found] == [[100, 28], [0], [100, 28]]


def test_where_the_original_fails_at_every_look_nobody_is_cleared() -> None:
    def fails(*_: object) -> None:
        raise LaunchFailed("an illegal access")

    judges = Judges(scale_problem(), {"original": fails})
    plan, draw = judges.plan(a_case()), Draw("normal", 1)
    own = (judges.code("original"), plan)
    race = Race((own, own), draw, POLICY, False, original=own)
    look = TimedLook(SlotPlace(0, 256), 0, (Piece("out", 0, plan.buffer("out").nbytes),))
    run = RaceRun(Timed(((1.0,), (1.0,)), looks=(look,)), (bytes(plan.buffer("out").nbytes),))
    judge = judge_of(judges)
    verdict = judge.judge(judges.problem.workloads[0], plan, race, run)
    assert verdict.status is Status.CRASHED
    assert "cannot be compared, the original fails" in verdict.detail


def test_an_input_changed_anywhere_is_seen_when_all_is_over() -> None:
    """At a place that no look came to, once."""
    launches = count()

    def changes(_out: Argument, x: Argument) -> None:
        if next(launches) == 3:
            x.of("float32")[77] += 1

    _, verdict = look(TWICE, then(TWICE, changes))
    assert verdict.status is Status.WRONG
    assert "it changes the input x" in verdict.detail


def test_so_is_one_that_the_users_function_made() -> None:
    inputs = "def make(rng, rows, d):\n    return {'x': rng.normal(size=(rows, d))}\n"

    def changes(_out: Argument, x: Argument) -> None:
        x.of("float32")[77] += 1

    _, verdict = look(TWICE, then(TWICE, changes), inputs)
    assert verdict.status is Status.WRONG
    assert "it changes the input x" in verdict.detail
    assert look(TWICE, TWICE, inputs)[1].ok
