"""Profiles for steering: nothing is timed, and whatever goes wrong is a note."""

from __future__ import annotations

import pytest

from tests.core.lab.in_process import Log, spawner
from tests.core.lab.labs import device_of, fake_kernel, scale_problem, template_text
from tests.core.lab.test_profiling import BLOCKS, CEILINGS, Recorder
from tunesmith.backends.messages import TimeRuns
from tunesmith.backends.port import Counting, NoCounting
from tunesmith.lab.build import Builders
from tunesmith.lab.profile import Onlooker, ProfileSubject
from tunesmith.lab.runner import Runner
from tunesmith.problem.device import Device
from tunesmith.problem.template_file import parse_template
from tunesmith.profiles.facts import Ceilings, Instructions
from tunesmith.run.events import Profiled
from tunesmith.space.configset import Config

PROBLEM = scale_problem()
CODE = "int other = BLOCK + OTHER;\n" + fake_kernel(time="1000 + 10 * BLOCK")
TEMPLATE = parse_template(template_text(BLOCKS, CODE), path="t.fake", problem=PROBLEM)


class Kept:
    def __init__(self, ceilings: Ceilings | None = CEILINGS, notes: tuple[str, ...] = ()) -> None:
        self.ceilings = ceilings
        self.notes = notes
        self.asked = 0

    def get(self, device: Device) -> tuple[Ceilings, tuple[str, ...]] | None:
        self.asked += 1
        return None if self.ceilings is None else (self.ceilings, self.notes)

    def put(self, device: Device, ceilings: Ceilings, notes: tuple[str, ...] = ()) -> None:
        raise AssertionError("a simulated device has none to keep")


def nothing_read(_binary: bytes, _entry: str) -> tuple[Instructions | None, str]:
    return None, "there is no machine code"


class Watching:
    def __init__(self, cache: Kept, counting: Counting | None = None) -> None:
        self.log = Log()
        device = device_of("fake")
        spawn = spawner("fake", self.log, None)
        self.builders = Builders(lambda: spawn("build"), device, 1)  # type: ignore[arg-type,return-value]
        self.runner = Runner(spawn("device"), device)  # type: ignore[arg-type]
        none = counting or NoCounting("nobody counts here")
        self.said: list[str] = []
        self.onlooker = Onlooker(PROBLEM, device, none, nothing_read, cache, 0, self.said.append)

    def look(self, config: Config | None, seconds: float = 1e-4) -> Profiled:
        name = PROBLEM.workloads[0].name
        subject = ProfileSubject(TEMPLATE if config is not None else None, config)
        return self.onlooker.look(self.builders, self.runner, subject, name, seconds)


@pytest.mark.parametrize("config", [None, TEMPLATE.default], ids=["original", "configuration"])
def test_it_is_what_the_known_time_means_and_nothing_is_timed(config: Config | None) -> None:
    cache = Kept()
    watching = Watching(cache)
    once, twice = watching.look(config, 1e-4), watching.look(config, 2e-4)
    assert once.config == config
    assert twice.diagnosis.distance == pytest.approx(2 * (once.diagnosis.distance or 0))
    assert watching.log.of(TimeRuns) == []
    assert cache.asked == 1, "once for all of a run"


def test_ceilings_are_there_before_the_first_look_and_their_notes_go_along() -> None:
    cache = Kept(notes=("fp16 was not measured",))
    watching = Watching(cache)
    watching.onlooker.prepare(watching.builders, watching.runner)
    assert cache.asked == 1
    looks = [watching.look(None), watching.look(TEMPLATE.default)]
    assert cache.asked == 1
    assert all("fp16 was not measured" in looked.notes for looked in looks)


def test_ceilings_that_cannot_be_measured_do_not_end_the_run() -> None:
    class Broken(Kept):
        def get(self, device: Device) -> tuple[Ceilings, tuple[str, ...]] | None:
            raise RuntimeError("the disk\nis gone")

    watching = Watching(Broken())
    watching.onlooker.prepare(watching.builders, watching.runner)
    assert watching.said == ["ceilings were not measured: RuntimeError: the disk"]
    assert watching.look(None).notes == ("RuntimeError: the disk",)


def test_counters_are_taken_where_someone_counts() -> None:
    recorder = Recorder(Log())
    looked = Watching(Kept(), recorder).look(None)
    assert len(recorder.asked) == 1
    assert not any("no hardware counters" in note for note in looked.diagnosis.notes)


def test_whatever_goes_wrong_is_a_note() -> None:
    class Broken:
        def count(self, what: object, binary: bytes) -> object:
            raise RuntimeError("the profiler\nfell over")

    looked = Watching(Kept(), Broken()).look(None)  # type: ignore[arg-type]
    assert looked == Profiled(None, PROBLEM.workloads[0].name, None, ("RuntimeError: the profiler",))


def test_without_cached_ceilings_they_are_measured() -> None:
    looked = Watching(Kept(None)).look(None)
    assert looked.diagnosis.ceiling != "launch", "there are no kernels to measure a simulated device with"
