"""Who reads hardware counters: this machine, or the host of the device; both on one GPU."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugins.hosts import hosts_elsewhere
from tests.running import EXAMPLES, facts, tunesmith
from tunesmith import backends
from tunesmith.backends.cuda.tools import NcuCounting
from tunesmith.backends.port import Counting, NoCounting
from tunesmith.base.errors import DeviceMissing
from tunesmith.lab.device_tools import CountingThere
from tunesmith.lab.profile import Profiler, ProfileSubject
from tunesmith.plugins.hosts.hosts import HostWorkers, WorkerEntry
from tunesmith.profiles.facts import Ceilings, Profile
from tunesmith.run.protection import AUTO, REQUIRED
from tunesmith.session import place as machine
from tunesmith.session import problems
from tunesmith.session.place import WorkerSite

SILU = EXAMPLES / "cuda" / "silu_and_mul"
PREFILL = "prefill_4096x14336"
FOUND_BY = ("PATH", "CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH")  # where a profiler and the driver are found


def command(folder: Path) -> tuple[str, ...]:
    """Of a host with the same programs as the test."""
    paths = [str(hosts_elsewhere.SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {name: os.environ[name] for name in FOUND_BY if name in os.environ}
    own["PYTHONPATH"] = os.pathsep.join(paths)
    kept = [word for word in hosts_elsewhere.real(folder) if word.partition("=")[0] not in own]
    return (*kept[:4], *(f"{name}={value}" for name, value in own.items()), *kept[4:])


@pytest.fixture(name="host")
def _host(tmp_path: Path) -> Iterator[HostWorkers]:
    made = HostWorkers(WorkerEntry("there", command(tmp_path / "there")), print)
    yield made
    made.close()


def test_each_place_has_its_own_and_no_host_is_asked_before_there_is_something_to_count(tmp_path):
    host = HostWorkers(WorkerEntry("there", ("false",), wait=0.1), print)  # to ask it raises
    assert isinstance(WorkerSite("cuda", tmp_path).counting(), NcuCounting)
    assert isinstance(WorkerSite("cuda", tmp_path, AUTO, host).counting(), CountingThere)
    for spec, sandbox in [("fake", AUTO), ("opencl", AUTO), ("cuda", REQUIRED)]:
        here = WorkerSite(spec, tmp_path, sandbox).counting()
        assert isinstance(here, NoCounting)
        assert WorkerSite(spec, tmp_path, sandbox, host).counting() == here


@pytest.mark.slow
def test_a_run_of_a_host_takes_counters_as_one_here_does(tmp_path: Path) -> None:
    from tests.plugins.hosts.test_workers import hosts_file, placeless, tune

    own = ("--counters", "--evals", 2)
    assert tunesmith(tmp_path, *tune(tmp_path, "here", *own)).code == 0
    ended = tunesmith(tmp_path, *tune(tmp_path, "far", *own, "--workers", hosts_file(tmp_path)))
    assert ended.code == 0, ended.err
    assert placeless(facts(tmp_path / "far")) == placeless(facts(tmp_path / "here"))
    (started,) = [event for kind, event in facts(tmp_path / "far") if kind == "Started"]
    assert started["settings"]["profile"] == "counters"


# -- on a GPU -------------------------------------------------------------------------------------------


def profiled(folder: Path, counting: Counting) -> Profile:
    """The original of an example at a large workload, which nobody times."""
    place = WorkerSite("cuda", folder)
    try:
        device = machine.choose_device(machine.find_local_devices(place), None)
    except DeviceMissing as error:
        pytest.skip(str(error))
    problem, _ = problems.load_problem(SILU)
    builders = machine.make_builders(place, device, 1, "")
    reader = backends.instructions_reader("cuda")
    try:
        own = Profiler(problem, device, builders, None, counting, reader, ceilings=Ceilings())
        return own.known(ProfileSubject(), problem.workload(PREFILL), 1e-3).profile
    finally:
        builders.close()


@pytest.mark.gpu
@pytest.mark.timeout(300)
def test_counters_of_a_host_are_those_of_this_machine(tmp_path: Path, host: HostWorkers) -> None:
    here = profiled(tmp_path, WorkerSite("cuda", tmp_path).counting())
    there = profiled(tmp_path, WorkerSite("cuda", tmp_path, AUTO, host).counting())
    assert there.no_counters == here.no_counters
    one, other = here.counters, there.counters
    if one is None or other is None:
        assert one is other
        pytest.skip(f"in the same words here and there: {here.no_counters}")
    moved = [(c.dram_read or 0.0) + (c.dram_written or 0.0) for c in (one, other)]
    assert moved[0] > 0.8 * (here.work.read + here.work.written)
    assert moved[1] == pytest.approx(moved[0], rel=0.1)
    assert other.threads_per_instruction == pytest.approx(one.threads_per_instruction, rel=0.01)
    assert other.occupancy == pytest.approx(one.occupancy, rel=0.2)
    assert {reason for reason, _ in other.stalls} == {reason for reason, _ in one.stalls}
    assert list((tmp_path / "there/tmp").glob("*/worker-*/ncu-*")) == []


@pytest.mark.gpu
@pytest.mark.timeout(550)
def test_a_run_on_two_workers_has_counters_or_the_words_of_a_run_here(tmp_path: Path) -> None:
    here = profiled(tmp_path, WorkerSite("cuda", tmp_path).counting())
    words = [json.dumps(command(tmp_path / name)) for name in ("a", "b")]
    entries = [
        f'[[worker]]\nname = "{name}"\ncommand = {own}\n' for name, own in zip("ab", words, strict=True)
    ]
    (tmp_path / "hosts.toml").write_text("".join(entries))
    own = ("tune", SILU, "--template", SILU / "template.cu", "--out", "run", "--no-cache", "--evals", 4)
    ended = tunesmith(tmp_path, *own, "--counters", "--workers", "hosts.toml", timeout=500)
    assert ended.code == 0, ended.err
    looks = [event for kind, event in facts(tmp_path / "run") if kind == "Profiled"]
    notes = [
        note for look in looks for note in (*look["notes"], *(look["diagnosis"] or {"notes": ()})["notes"])
    ]
    without = {note for note in notes if note.startswith("no hardware counters")}
    assert looks
    assert without == ({f"no hardware counters: {here.no_counters}"} if here.no_counters else set())
