"""Which devices are meant by what the user says, that they are of one kind, and which are one card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from tests.samples import DEVICE, state_of
from tunesmith.backends.messages import Devices
from tunesmith.base.errors import BadInput, DeviceMissing
from tunesmith.problem.device import Device
from tunesmith.run.config import RunConfig
from tunesmith.run.events import Attached, Enlisted, LeftOut
from tunesmith.session import multi_device
from tunesmith.session import place as machine
from tunesmith.session import place as workplace
from tunesmith.session.multi_device import posts_of
from tunesmith.session.place import HERE, WorkerSite, WorkerSource

FOUR = tuple(replace(DEVICE, id=str(number)) for number in range(4))


@dataclass(frozen=True)
class There:
    """A host that is told of, and has no process."""

    name: str
    device: str | None = None
    machine: str = "m"
    cores: int = 16
    host = "box"
    gone = ""
    measures, arrivals = True, None
    known: tuple[tuple[str, str], ...] = (("nvrtc", "13.0"),)

    def identity(self, device: str) -> str:
        return f"{self.name} ({self.host}) {device}"

    def compilers(self, _spec: str) -> tuple[tuple[str, str], ...]:
        return self.known


def posts(
    monkeypatch: pytest.MonkeyPatch,
    sources: Sequence[object] = (HERE,),
    wanted: str | None = None,
    devices: Sequence[Device] = FOUR,
    cards: tuple[str, ...] = (),
) -> tuple[workplace.DeviceSlot, ...]:
    monkeypatch.setattr(machine, "ask_devices", lambda _place: Devices(tuple(devices), cards))
    own: Sequence[WorkerSource] = sources  # type: ignore[assignment]
    return posts_of(RunConfig(device=wanted), own, WorkerSite("fake", Path()))


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        ("0-3", "0123"),
        ("fake:0-2", "012"),
        ("0,2,3", "023"),
        ("1,0-1", "101"),
        ("cuda:0", "0"),
        ("0", "0"),
        (None, ""),
        ("H200", ""),
        ("0:1", ""),  # an id of OpenCL's
        ("sm_90", ""),
        ("0-", ""),
    ],
)
def test_lists_of_devices(wanted: str | None, ids: str) -> None:
    assert machine.device_ids(wanted) == tuple(ids)


@pytest.mark.parametrize("wanted", ["7-0", "0-99999999"])
def test_ranges_that_are_none_are_refused(wanted: str) -> None:
    with pytest.raises(BadInput, match="no range"):
        machine.device_ids(wanted)


def test_devices_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    found = posts(monkeypatch, wanted="fake:0,2")
    assert [post.name for post in found] == ["fake 0", "fake 2"]
    assert len({post.card for post in found}) == 2
    with pytest.raises(DeviceMissing, match="device '7' matches no device"):
        posts(monkeypatch, wanted="0,7")


def test_a_device_that_is_named_twice_has_two_workers_and_one_card(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = posts(monkeypatch, wanted="1,1")
    assert (first.name, second.name) == ("fake 1", "fake 1 (2)")
    assert first.card == second.card


def test_two_ways_to_one_card_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the machine that both lead to, or by what a card says of itself."""
    same = posts(monkeypatch, [There("a", "0"), There("b", "0")])
    assert [post.name for post in same] == ["a (box) 0", "b (box) 0"]
    assert same[0].card == same[1].card
    apart = posts(monkeypatch, [There("a", "0"), There("b", "0", machine="n")])
    assert apart[0].card != apart[1].card
    known = posts(
        monkeypatch, [There("a", "0"), There("b", "0", machine="n")], cards=("u0", "u1", "u2", "u3")
    )
    assert known[0].card == known[1].card == "u0"


def test_several_devices_of_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [post.name for post in posts(monkeypatch, [There("a", "0-1"), There("b", "2", machine="n")])]
    assert names == ["a (box) 0", "a (box) 1", "b (box) 2"]
    assert [p.name for p in posts(monkeypatch, [There("a", "0-1")], wanted="3")] == ["a (box) 3"], (
        "--device wins"
    )
    with pytest.raises(DeviceMissing, match="worker 'a': device '9'"):
        posts(monkeypatch, [There("a", "0,9")])


def test_devices_of_two_kinds_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(FOUR[1], name="another", driver="2.0")
    with pytest.raises(BadInput, match=r"fake 0 is a device \(1\.0\), and fake 1 is another \(2\.0\)"):
        posts(monkeypatch, wanted="0-1", devices=(FOUR[0], other))
    smaller = replace(FOUR[1], limits=replace(FOUR[1].limits, memory=1 << 33))
    assert len(posts(monkeypatch, wanted="0-1", devices=(FOUR[0], smaller))) == 2, "some memory is reserved"


def test_a_processor_is_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    host = tuple(replace(device, kind="cpu") for device in FOUR)
    with pytest.raises(BadInput, match="is a processor"):
        posts(monkeypatch, wanted="0-1", devices=host)


def test_one_compiler_builds_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    found = posts(monkeypatch, [There("a", "0"), There("b", "1", known=(("nvrtc", "12.4"),))])
    multi_device.without_other_compilers(found, "")
    with pytest.raises(
        DeviceMissing, match=r"builds with nvrtc 13\.0; where b \(box\) 1 is there is: nvrtc 12\.4"
    ):
        multi_device.without_other_compilers(found, "nvrtc 13.0")


def only_building(source: There) -> There:
    object.__setattr__(source, "measures", False)
    return source


def test_one_that_only_builds_does_so_with_the_runs_compiler_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Gone(There):
        def compilers(self, _spec: str) -> tuple[tuple[str, str], ...]:
            raise DeviceMissing("it does not say\nwhy")

    own = There("a", "1,0")
    same, other, gone = There("b"), There("c", known=(("nvrtc", "12.4"),)), Gone("d")
    said: list[str] = []
    sources: Any = (*map(only_building, (same, other, gone)), own)
    measuring = posts(monkeypatch, sources)
    found = multi_device.builder_devices(sources, measuring, "nvrtc 13.0", said.append)
    assert found == {own: FOUR[1], same: FOUR[1]}
    assert said == [
        "worker 'c' does not build: the run does so with nvrtc 13.0, and it has nvrtc 12.4",
        "worker 'd' does not build: the run does so with nvrtc 13.0, and it does not say",
    ]


def test_where_a_driver_builds_one_that_only_builds_has_a_device_of_the_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Called as it is there: the same number may be another device."""
    alike, unlike = only_building(There("b")), only_building(There("c"))
    other = replace(DEVICE, name="another")
    there = {"a": FOUR, "b": (replace(other, id="0"), replace(DEVICE, id="7")), "c": (other,)}
    own = There("a", "0")
    measuring = posts(monkeypatch, (own,))
    monkeypatch.setattr(machine, "ask_devices", lambda place: Devices(there[place.source.name]))
    said: list[str] = []
    sources: Any = (alike, unlike, own)
    found: Any = multi_device.builder_devices(sources, measuring, "", said.append)
    assert found == {own: FOUR[0], alike: there["b"][1]}
    words = f"the run does so with the driver of {DEVICE.name}, and it has no such device"
    assert said == [f"worker 'c' does not build: {words}"]


def test_a_run_that_goes_on_has_the_devices_that_it_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of hosts, where --device said which; and who is gone is named."""
    source: Any = There("a")
    posts(monkeypatch, [source])
    place, said = WorkerSite("fake", Path()), list[str]()
    state = state_of(Enlisted(("a (box) 1", "a (box) 3", "a (box) 3 (2)", "a (box) 9")))
    found = multi_device.posts_for(RunConfig(), [source], place, "", state, said.append)
    assert [post.name for post in found] == ["a (box) 1", "a (box) 3", "a (box) 3 (2)"]
    assert said == ["a (box) 9 is not there any more; the run does without it"]
    said.clear()
    here = state_of(Enlisted(("fake 2", "fake 8")))
    found = multi_device.posts_for(RunConfig(), [HERE], place, "", here, said.append)
    assert [post.name for post in found] == ["fake 2"]
    assert said == ["fake 8 is not there any more; the run does without it"]


def test_a_host_with_another_driver_or_compiler_does_not_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    newer, other, same = There("a"), There("b", known=(("nvrtc", "12.4"),)), There("c")
    there = {"a": tuple(replace(d, driver="999") for d in FOUR), "b": FOUR, "c": FOUR}
    monkeypatch.setattr(machine, "ask_devices", lambda place: Devices(there[place.source.name]))
    state = state_of(Enlisted(("a (box) 0", "b (box) 0", "c (box) 0")))
    state = replace(state, attached=Attached(DEVICE, "nvrtc 13.0", 0))
    said: list[str] = []
    place, sources = WorkerSite("fake", Path()), (newer, other, same)
    assert multi_device.still_there(RunConfig(), sources, place, state, said.append) == [same]  # type: ignore[arg-type]
    assert said[0].startswith(f"a (box) 0 is {DEVICE.name} (999), and the run is on {DEVICE.name} (")
    assert said[1].startswith("the run builds with nvrtc 13.0; where b (box) 0 is there is: nvrtc 12.4")


def test_a_run_that_goes_on_does_without_devices_that_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that begins does not: it may be a slip of the pen."""
    place, said = WorkerSite("fake", Path()), list[str]()
    sources = (There("a", "9"), There("b", "0-1,7"), There("c", known=(("nvrtc", "12.4"),)), There("d"))
    state = state_of(Enlisted(("a (box) 9", "b (box) 0", "b (box) 1", "b (box) 7", "c (box) 0", "d (box) 0")))

    def listed(at: WorkerSite) -> Devices:
        if at.source.name == "d":
            raise DeviceMissing("the driver did not answer")
        return Devices(FOUR)

    monkeypatch.setattr(machine, "ask_devices", listed)
    left = multi_device.still_there(RunConfig(), sources, place, state, said.append)
    assert [source.name for source in left] == ["b", "c"]
    assert [words.partition(":")[0] for words in said] == ["worker 'a'", "worker 'd'"]
    said.clear()
    found = multi_device.posts_for(RunConfig(), left, place, "nvrtc 13.0", state, said.append)
    assert [post.name for post in found] == ["b (box) 0", "b (box) 1"]
    assert len(said) == 2
    assert said[0].startswith("worker 'b': device '7' matches no device")
    assert said[1].startswith("the run builds with nvrtc 13.0; where c (box) ")
    assert all(words.endswith("; the run does without it") for words in said)
    for some in (sources[:1], sources[3:]):
        assert multi_device.still_there(RunConfig(), some, place, state, said.append) == some
        with pytest.raises(DeviceMissing):
            multi_device.posts_for(RunConfig(), some, place, "", state, said.append)
    with pytest.raises(DeviceMissing, match="worker 'b': device '7' matches no device"):
        multi_device.posts_for(RunConfig(), sources[1:2], place, "")


def test_a_host_without_devices_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for wanted in (None, "0"):
        with pytest.raises(DeviceMissing, match="worker 'a': the fake backend sees no device"):
            posts(monkeypatch, [There("a")], wanted, devices=())


def test_each_machine_builds_with_the_cores_that_its_devices_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [There("a", "0-3"), There("b", "0", machine="n", cores=4)]
    found = posts(monkeypatch, sources)
    assert list(multi_device.builders_at(found, 0).values()) == [12, 3]
    assert list(multi_device.builders_at(found, 2).values()) == [2, 2]


def test_a_run_is_resumed_on_the_devices_that_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    posts(monkeypatch)
    state = state_of(Enlisted(("fake 1", "fake 3", "fake 3 (2)")))
    place = WorkerSite("fake", Path())
    assert multi_device.is_wanted(RunConfig(), (HERE,), state)
    assert [p.name for p in posts_of(RunConfig(), (HERE,), place, state)] == [
        "fake 1",
        "fake 3",
        "fake 3 (2)",
    ]
    assert not multi_device.is_wanted(RunConfig(device="0"), (HERE,))


def test_a_post_without_its_device_is_done_without_if_another_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[str] = []

    class Parts:
        options: ClassVar[dict[str, object]] = {}
        builders = SimpleNamespace(close=lambda: closed.append("builders"))

        def lab(self, post: workplace.DeviceSlot, _count: int, **_own: object) -> object:
            if post.name in broken:
                raise broken[post.name]
            return SimpleNamespace(name=post.name, close=lambda: closed.append(post.name))

    parts: Any = Parts()
    three = posts(monkeypatch, wanted="0-2")
    broken: dict[str, Exception] = {"fake 0": DeviceMissing("it fell off\nthe bus")}
    labs, _, lost = multi_device._open_labs(parts, three, {HERE: 1})
    assert [lab.name for lab in labs] == ["fake 1", "fake 2"]
    assert lost == [LeftOut("fake 0", "it fell off", lost=True)]
    broken["fake 2"] = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        multi_device._open_labs(parts, three, {HERE: 1})
    assert closed == ["fake 1", "builders"]
    broken |= dict.fromkeys(("fake 1", "fake 2"), DeviceMissing("no"))
    with pytest.raises(DeviceMissing, match="fell off"):
        multi_device._open_labs(parts, three, {HERE: 1})


def test_whoever_verifies_the_processor_watches_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the next one, where the first was lost."""
    given: list[object] = []

    def make_lab(*_parts: object, **options: object) -> multi_device.DeviceLab:
        given.append(options["beside"])
        return multi_device.DeviceLab.__new__(multi_device.DeviceLab)

    monkeypatch.setattr(machine, "make_lab", make_lab)
    monkeypatch.setattr(multi_device, "references_of", lambda *_: None)
    beside: Any = object()
    parts = multi_device.PoolParts(
        *(SimpleNamespace(), SimpleNamespace(), [], SimpleNamespace()),  # type: ignore[arg-type]
        {"beside": beside},
    )
    for post in posts(monkeypatch, wanted="0-1"):
        parts.lab(post, 1)
    assert given == [beside, beside]
