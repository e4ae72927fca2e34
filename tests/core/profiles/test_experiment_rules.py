"""What experiments tell of a kernel, where nothing was counted and its code shows no fault."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.profiles.made_up import CEILINGS, found, launch, profile
from tests.core.profiles.recorded import BAD, planted, recorded, without_counters
from tunesmith.profiles.diagnose import diagnose_profile
from tunesmith.profiles.facts import Bound, Counters, Experiments, Kind, Profile, WorkNeeded

FITS = WorkNeeded(8 << 20, 8 << 20)  # 16 MiB: the cache holds 50
TAKES = 50e-6  # of a floor of 5.6 µs


def tried(half: float = 0.5, gone: float = 0.2, *, blocks: int = 1 << 14, **changes: object) -> Profile:
    """Half the grid takes `half` of the time, and with data in the cache the share `gone` of it goes."""
    experiments = Experiments(warm=TAKES * (1 - gone), cold=TAKES, whole_grid=TAKES, half_grid=half * TAKES)
    own = profile(work=FITS, seconds=TAKES, experiments=experiments, launch=launch(blocks))
    return replace(own, **changes)  # type: ignore[arg-type]


def test_between_all_of_them_nothing_is_said() -> None:
    assert diagnose_profile(tried()).findings == ()


@pytest.mark.parametrize(
    ("own", "kind", "bound", "gain", "words"),
    [
        # Half the grid takes as long while all blocks are there: a block waits for itself.
        (tried(0.97, blocks=132 * 4), Kind.LATENCY, Bound.LATENCY, 0.5, "half the grid takes 97 %"),
        # There are several rounds: a few blocks take most of it.
        (tried(0.95), Kind.UNEVEN_BLOCKS, Bound.SERIALISATION, 0.5, "16384 blocks"),
        # Blocks share one work and take longer by half.
        (tried(1.9, blocks=132), Kind.TOO_FEW_BLOCKS, Bound.OCCUPANCY, 0.5, "half the grid"),
        (tried(gone=0.7), Kind.MEMORY, Bound.BANDWIDTH, 0.7, "memory is waited for"),
        (tried(0.51, gone=0.02), Kind.COMPUTE, Bound.COMPUTE, 0.3, "compute units are busy"),
    ],
)
def test_what_experiments_tell(own: Profile, kind: Kind, bound: Bound, gain: float, words: str) -> None:
    told = found(own, kind)
    assert (told.source, told.bound, told.gain) == ("experiment", bound, pytest.approx(gain))
    assert words in told.evidence[0]


@pytest.mark.parametrize(
    ("own", "kind"),
    [
        (tried(0.8, blocks=132 * 4), Kind.LATENCY),
        (tried(0.95), Kind.LATENCY),
        (tried(0.95, counters=Counters(sm_active=0.97)), Kind.UNEVEN_BLOCKS),
        (tried(1.9, blocks=132 * 8), Kind.TOO_FEW_BLOCKS),  # there is no room
        (tried(gone=0.7, work=WorkNeeded(1 << 27, 1 << 27)), Kind.MEMORY),  # nothing was in the cache
        (tried(gone=0.7, counters=Counters(dram=0.3)), Kind.MEMORY),
        (tried(0.51, gone=0.02, blocks=132 * 2), Kind.COMPUTE),  # half is one turn of two
        (tried(0.75, gone=0.02), Kind.COMPUTE),
    ],
)
def test_what_they_do_not_tell(own: Profile, kind: Kind) -> None:
    assert not found(own, kind)


def test_it_is_surer_where_a_thread_has_one_element() -> None:
    shared = tried(half=0.97, blocks=132 * 4)
    one_each = replace(shared, launch=replace(shared.launch, idle_threads=0.0))
    assert found(one_each, Kind.LATENCY).confidence > found(shared, Kind.LATENCY).confidence


def test_a_block_for_each_multiprocessor_tells_nothing_where_no_second_fits() -> None:
    full = launch(132, threads=1024, registers=64)
    assert full.blocks_per_sm == 1
    assert diagnose_profile(replace(tried(half=1.0), launch=full)).findings == ()


def test_nothing_is_concluded_from_what_is_mostly_the_launch() -> None:
    slow = replace(CEILINGS, graph_launch=TAKES / 2)
    for own in (tried(half=0.97), tried(gone=0.7), tried(half=0.51, gone=0.0), tried(1.9, blocks=132)):
        assert any(f.source == "experiment" for f in diagnose_profile(own).findings)
        findings = diagnose_profile(replace(own, ceilings=slow)).findings
        assert findings[0].kind is Kind.LAUNCH
        assert not any(f.source == "experiment" for f in findings)


def test_data_that_does_not_fit_the_cache_is_said_to_tell_nothing() -> None:
    large = tried(gone=0.0, work=WorkNeeded(1 << 27, 1 << 27))
    assert any("warm against cold tells nothing" in note for note in diagnose_profile(large).notes)
    assert any("20 % of the time goes" in note for note in diagnose_profile(tried()).notes)


@pytest.mark.parametrize("name", BAD)
def test_no_experiment_takes_the_place_of_a_fault_that_was_read(name: str) -> None:
    """Also were the data in the cache, and it would make no difference."""
    own = without_counters(recorded(name))
    shown = Experiments(own.seconds, own.seconds, own.seconds, 0.5 * own.seconds)
    roomy = replace(own.ceilings, cache_bytes=2 * own.work.bytes)
    assert diagnose_profile(own).findings[0].kind in planted(name)
    first = diagnose_profile(replace(own, experiments=shown, ceilings=roomy)).findings[0]
    assert first.kind in planted(name)
