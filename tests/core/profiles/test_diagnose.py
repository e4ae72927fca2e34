"""Diagnoses of kernels with a planted fault, of healthy ones, and of anything whatever."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.core.profiles.made_up import CEILINGS, WORK, access, counted, found, profile, with_code
from tests.core.profiles.made_up import launch as made_launch
from tests.core.profiles.recorded import (
    BAD,
    HEALTHY,
    NAMES,
    code_alone,
    origin,
    planted,
    recorded,
    without_counters,
)
from tests.core.run.arbitrary import arbitrary
from tests.thoroughness import examples
from tests.wording import says
from tunesmith.base.codec import decode_json, encode_json
from tunesmith.profiles.costs import ABOUT
from tunesmith.profiles.diagnose import NEAR, diagnose_profile
from tunesmith.profiles.facts import (
    Bound,
    Ceilings,
    Counters,
    Diagnosis,
    Instructions,
    Kind,
    LaunchFacts,
    LaunchPart,
    Operations,
    Profile,
)


def first(diagnosis: Diagnosis) -> str:
    return diagnosis.findings[0].kind if diagnosis.findings else ""


def test_there_are_ten_planted_faults_and_three_healthy_kernels() -> None:
    assert (len(BAD), len(HEALTHY)) == (10, 3)


@pytest.mark.parametrize("name", NAMES)
def test_profiles_were_recorded_with_counters_on_a_device(name: str) -> None:
    assert "NVIDIA H200" in origin(name)["all"]
    assert recorded(name).counters is not None
    assert recorded(name).seconds is not None


def missed(known: Callable[[Profile], Profile]) -> list[str]:
    return [name for name in BAD if first(diagnose_profile(known(recorded(name)))) not in planted(name)]


def test_with_counters_the_planted_fault_comes_first_in_nine_of_ten() -> None:
    assert len(missed(lambda profile: profile)) <= 1


@pytest.mark.parametrize("known", [without_counters, code_alone])
def test_without_counters_it_comes_first_in_eight_of_ten(known: Callable[[Profile], Profile]) -> None:
    assert len(missed(known)) <= 2


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_kernel_has_no_fault(name: str) -> None:
    for known in (recorded(name), without_counters(recorded(name))):
        diagnosis = diagnose_profile(known)
        assert diagnosis.findings == ()
        assert diagnosis.distance is not None
        assert diagnosis.distance < 1.2
        if diagnosis.distance <= NEAR:
            assert diagnosis.bound is Bound.BANDWIDTH
            assert diagnosis.summary.startswith("near the ceiling of memory bandwidth")
    assert diagnose_profile(code_alone(recorded(name))).findings == ()


def test_most_healthy_kernels_are_near_their_ceiling() -> None:
    assert sum(diagnose_profile(recorded(name)).bound is Bound.BANDWIDTH for name in HEALTHY) >= 2


@pytest.mark.parametrize("name", NAMES)
def test_every_finding_has_numbers_and_remedies(name: str) -> None:
    for finding in diagnose_profile(recorded(name)).findings:
        assert finding.remedies
        assert any(character.isdigit() for word in finding.evidence for character in word)


# -- any profile ----------------------------------------------------------------------------------------


@examples(100, suppress_health_check=list(HealthCheck))
@given(arbitrary(Profile))
def test_no_profile_is_too_strange(strange: Profile) -> None:
    check_form(diagnose_profile(strange))


@examples(50, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(NAMES),
    st.none() | arbitrary(Counters),
    st.none() | arbitrary(LaunchFacts),
    st.none() | arbitrary(Instructions),
    arbitrary(Ceilings),
)
def test_no_part_is_too_strange_beside_sound_ones(
    name: str,
    counters: Counters | None,
    launch: LaunchFacts | None,
    instructions: Instructions | None,
    ceilings: Ceilings,
) -> None:
    sound = recorded(name)
    static = replace(sound.static, instructions=instructions)
    for changed in (
        replace(sound, counters=counters),
        replace(sound, launch=launch, counters=counters),
        replace(sound, static=static, counters=None),
        replace(sound, ceilings=ceilings),
    ):
        check_form(diagnose_profile(changed))


def check_form(diagnosis: Diagnosis) -> None:
    scores = [f.score for f in diagnosis.findings]
    assert all(0 <= f.gain <= 1 and 0 <= f.confidence <= 1 and f.evidence for f in diagnosis.findings)
    assert all(0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)
    assert diagnosis.distance is None or diagnosis.distance > 0
    assert len({f.kind for f in diagnosis.findings}) == len(diagnosis.findings)


def test_nothing_known_is_said_to_be_unknown() -> None:
    diagnosis = diagnose_profile(Profile("k", "large"))
    assert diagnosis.bound is Bound.UNKNOWN
    assert diagnosis.distance is None
    assert len(diagnosis.notes) == 3
    assert diagnosis.summary == "no fault found; not timed"
    assert "not timed" in diagnosis.notes


def test_not_timed_is_distinguished_from_no_floor() -> None:
    unknown = diagnose_profile(profile(ceilings=Ceilings(), limits=None))
    assert unknown.summary == "no fault found; no floor is known"
    says(unknown.notes, "no ceiling is known")
    untimed = diagnose_profile(code_alone(recorded("spills")))
    assert untimed.summary.endswith("; not timed")
    says(untimed.notes, "estimates", "code alone")
    assert untimed.findings


def test_what_cannot_run_is_said_and_nothing_else() -> None:
    reason = "4096 threads in a block, 1024 are allowed"
    refused = diagnose_profile(Profile("BLOCK=4096", "large", cannot_run=reason))
    assert refused.summary == f"cannot run: {reason}"
    assert (refused.findings, refused.notes) == ((), ())
    assert refused.bound is Bound.UNKNOWN


@pytest.mark.parametrize(("times", "faster"), [(0.6, True), (0.85, True), (0.95, False), (1.1, False)])
def test_faster_than_the_floor_is_no_praise(times: float, faster: bool) -> None:
    own = diagnose_profile(profile(seconds=64e-6 * times))
    said = [note for note in own.notes if note.startswith("faster than its floor: traffic or ceilings")]
    assert bool(said) is faster
    assert own.summary.startswith("faster than its floor" if faster else "near the ceiling")
    assert (own.confidence < 0.5) is faster
    assert own.findings == ()


def test_faster_than_what_was_stated_blames_that() -> None:
    stated = replace(WORK, operations=Operations(fp32=6e10))
    own = diagnose_profile(profile(work=stated, ceilings=replace(CEILINGS, fp32=6e13)))
    assert own.ceiling == "fp32 rate"
    assert any(note.startswith("faster than its floor: `operations` or ceilings") for note in own.notes)


def test_operations_without_a_measured_rate_are_noted() -> None:
    stated = replace(WORK, operations=Operations(fp32=1e6, fp64=1e6, tensor=1e6))
    own = diagnose_profile(profile(work=stated, ceilings=replace(CEILINGS, fp32=6e13)))
    says(own.notes, "fp64 and tensor operations", "not measured")
    measured = replace(CEILINGS, fp32=6e13, fp64=3e13, tensor=9e14)
    assert not any(
        "operations" in note for note in diagnose_profile(profile(work=stated, ceilings=measured)).notes
    )


def test_a_profile_survives_its_journey_as_json() -> None:
    for name in NAMES:
        assert decode_json(encode_json(recorded(name)), Profile) == recorded(name)


# -- how findings are weighed ---------------------------------------------------------------------------


def test_nothing_gains_more_than_the_distance_to_the_floor() -> None:
    diagnosis = diagnose_profile(replace(recorded("too_few_blocks"), seconds=160e-6))
    assert diagnosis.distance is not None
    assert diagnosis.findings[0].gain == pytest.approx(1 - 1 / diagnosis.distance)


def test_what_is_shown_is_what_was_ranked() -> None:
    """Where both could gain all there is to be had, the surer one comes first."""
    few = profile(launch=made_launch(33), seconds=64e-6 * 1.3)
    both = replace(few, counters=Counters(special=0.99))
    kinds = [(f.kind, f.gain) for f in diagnose_profile(both).findings]
    most = pytest.approx(1 - 1 / 1.3)
    assert kinds == [(Kind.TOO_FEW_BLOCKS, most), (Kind.SPECIAL_FUNCTIONS, most)]
    unsure = replace(few, launch=made_launch(120), counters=Counters(special=0.99))
    assert [f.kind for f in diagnose_profile(unsure).findings] == [
        Kind.SPECIAL_FUNCTIONS,
        Kind.TOO_FEW_BLOCKS,
    ]
    # By what they gain before that is capped the doubt would come first.
    doubtful = with_code(access(direction="atomic", width=4, pattern="uniform"), access())
    doubtful = replace(doubtful, seconds=64e-6 * 1.17, launch=replace(made_launch(), idle_lanes=0.15))
    assert [f.kind for f in diagnose_profile(doubtful).findings][:2] == [Kind.IDLE_THREADS, Kind.ATOMICS]


def test_saturation_of_one_launch_is_not_that_of_several() -> None:
    sound = counted(dram=0.9, dram_read=1.3e8, dram_written=1.3e8)
    assert sound.launch is not None
    parts = (LaunchPart("one", sound.static, sound.launch), LaunchPart("two", sound.static, made_launch(5)))
    assert diagnose_profile(sound).summary.startswith("near the ceiling")
    assert not diagnose_profile(replace(sound, parts=parts)).summary.startswith("near the ceiling")


def test_near_the_floor_there_is_no_fault() -> None:
    floor = diagnose_profile(recorded("uncoalesced")).floor
    assert floor is not None
    assert diagnose_profile(replace(recorded("uncoalesced"), seconds=floor * (NEAR - 0.01))).findings == ()
    assert diagnose_profile(replace(recorded("uncoalesced"), seconds=floor * (NEAR + 0.1))).findings != ()


def test_saturated_memory_is_near_where_no_bytes_are_moved_in_vain() -> None:
    sound = counted(dram=0.9, dram_read=1.3e8, dram_written=1.3e8)
    assert diagnose_profile(sound).findings == ()
    wasteful = counted(dram=0.9, dram_read=3e8, dram_written=1.3e8)
    assert first(diagnose_profile(wasteful)) == Kind.EXTRA_TRAFFIC
    unknown = counted(dram=0.9)
    assert diagnose_profile(unknown).bound is Bound.UNKNOWN


def test_without_measured_ceilings_the_data_sheet_serves() -> None:
    diagnosis = diagnose_profile(profile(ceilings=Ceilings()))
    assert diagnosis.distance == pytest.approx(192e-6 / ((1 << 28) / 4.8e12))
    assert "data sheet" in diagnosis.summary


def test_a_symptom_is_reported_only_where_no_fault_explains_it() -> None:
    waiting = counted({"memory": 0.9}, dram=0.2, issue=0.1)
    assert first(diagnose_profile(waiting)) == Kind.LATENCY
    few = replace(waiting, launch=recorded("too_few_blocks").launch)
    assert found(few, Kind.TOO_FEW_BLOCKS)
    assert not found(few, Kind.LATENCY)


def test_a_fault_of_little_weight_explains_little() -> None:
    waiting = counted({"memory": 0.9}, dram=0.2, issue=0.1)
    slightly = replace(waiting, launch=made_launch(125))
    assert [f.kind for f in diagnose_profile(slightly).findings] == [Kind.LATENCY, Kind.TOO_FEW_BLOCKS]


def test_symptoms_are_not_explained_in_a_circle() -> None:
    for kind, about in ABOUT.items():
        assert kind not in about.causes
        assert all(kind not in ABOUT[cause].causes for cause in about.causes)


def test_counters_outweigh_what_was_read() -> None:
    read = with_code(access("shared", "load", 4, stride=128, count=64))
    assert found(read, Kind.BANK_CONFLICTS)
    seen = replace(read, counters=Counters(shared_wavefronts=1e6, shared_conflicts=0.0, dram=0.3))
    assert not found(seen, Kind.BANK_CONFLICTS)


def test_where_the_cache_makes_no_difference_a_busy_unit_is_likelier() -> None:
    bad = without_counters(recorded("bank_conflicts"))
    bad = replace(bad, ceilings=replace(bad.ceilings, cache_bytes=1 << 30))
    sure, unsure = (
        found(replace(bad, experiments=replace(bad.experiments, warm=warm, cold=330e-6)), Kind.BANK_CONFLICTS)
        for warm in (325e-6, 60e-6)
    )
    assert sure.confidence > unsure.confidence


def test_what_was_not_known_is_noted_with_the_reason() -> None:
    diagnosis = diagnose_profile(without_counters(recorded("spills")))
    says(diagnosis.notes[0], "no hardware counters", "administrator")
    assert diagnose_profile(replace(profile(), ceilings=CEILINGS, counters=Counters())).notes == ()
