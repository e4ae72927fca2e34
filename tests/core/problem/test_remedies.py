"""Every remedy is explained, and answers a finding that some profile has."""

from __future__ import annotations

from dataclasses import replace

from tests.core.profiles.made_up import access, code, counted, launch, profile, with_code
from tests.core.profiles.recorded import BAD, recorded, without_counters
from tunesmith.problem.device import Resources
from tunesmith.problem.template import Remedy
from tunesmith.profiles.diagnose import diagnose_profile
from tunesmith.profiles.facts import Profile, StaticFacts

THIN = with_code(access(width=4, count=4), bytes_in_flight=4)
ON_THE_STACK = StaticFacts(
    Resources(registers=32, shared=0, spills=0, private=64),
    code(local_load=40, local_store=40),
    doubles=False,
)
FAULTY: tuple[Profile, ...] = (
    *(recorded(name) for name in BAD),
    *(without_counters(recorded(name)) for name in BAD),
    replace(THIN, launch=launch(registers=255)),
    replace(THIN, launch=launch(shared=100_000)),
    profile(launch=launch(threads=40)),
    profile(seconds=1.9e-6, work=None),
    profile(static=ON_THE_STACK),
    with_code(access(), access(direction="atomic", width=4, pattern="uniform")),
    with_code(access(width=4), special=20, total=60),
    counted({"barrier": 0.5}),
    counted(fma=0.9),
    counted(dram=0.7, dram_read=4e8, dram_written=1.4e8),
)


def test_every_remedy_has_a_meaning() -> None:
    assert all(remedy.meaning and "\n" not in remedy.meaning for remedy in Remedy)
    assert all(remedy == remedy.value == remedy.name.lower() for remedy in Remedy)


def test_every_remedy_answers_a_finding() -> None:
    named = {remedy for own in FAULTY for remedy in diagnose_profile(own).remedies}
    assert set(Remedy) - named == set()


def test_a_remedy_for_all_devices_says_where_the_warp_counts() -> None:
    assert "on a GPU a multiple of the warp" in Remedy.BLOCK_SIZE.meaning
