"""Devices and compilers of this machine, and how a run moves to them. What they are is made up here."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.core.run.test_loop import MemoryTexts
from tests.samples import DEVICE, a_problem, a_template, config, outcome, records, started
from tests.wording import says
from tunesmith import backends
from tunesmith.backends.cuda.compile import TOOLCHAIN
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import Toolchain
from tunesmith.base.errors import BadInput, DeviceMissing, TunesmithError
from tunesmith.lab.build import COMPILER_CRASHED, COMPILER_SLOW, BuiltCode
from tunesmith.lab.memory import Verdict
from tunesmith.problem.device import Device, Resources
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, Variant, builds_of
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Admitted, Attached, Baseline, Event, Surveyed, SurveyedBuild
from tunesmith.run.outcome import Result
from tunesmith.run.protection import Protection
from tunesmith.run.state import State, fold_records
from tunesmith.session import place as machine
from tunesmith.session import place as workplace
from tunesmith.session.place import LocalDevices, WorkerSite, choose_compiler, choose_device

PROBLEM = a_problem()
TEMPLATE = a_template(PROBLEM)
GPU = replace(DEVICE, backend="cuda", kind="gpu", limits=replace(DEVICE.limits, capability=90))
ABSENT = replace(GPU, name="the usual one", absent=True)
NOWHERE = LocalDevices("cuda", (), "there is no driver")
HOSTED = "catastrophic error: cannot open source file"
CUDA = WorkerSite("cuda", Path())
NVRTC, NVCC = ("nvrtc", "13.4"), ("nvcc", "13.0.88")


@dataclass
class Compilers:
    """Which compilers are here and which sources they take."""

    monkeypatch: pytest.MonkeyPatch
    known: tuple[tuple[str, str], ...] | None = (NVRTC, NVCC)
    takes: Callable[[str, Variant], str] = lambda name, variant: ""  # why not, empty: it does
    asked: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.monkeypatch.setattr(backends, "find_toolchain", lambda spec: self._toolchain())
        self.monkeypatch.setattr(machine, "make_builders", self._builders)

    def _toolchain(self) -> Toolchain | None:
        known = self.known
        if known is None:
            return None
        lacks = lambda name, log: name == "nvrtc" and HOSTED in log  # noqa: E731
        return replace(TOOLCHAIN, compilers=lambda: known, lacks=lacks)

    def _builders(self, place: WorkerSite, device: Device, count: int, compiler: str) -> _Pool:
        return _Pool(self, compiler)

    def choose(self, problem: Problem = PROBLEM, template: Template | None = TEMPLATE, **device: bool) -> str:
        return choose_compiler(problem, template, replace(GPU, **device), CUDA, lambda _text: None)


@dataclass
class _Pool:
    all: Compilers
    compiler: str
    closed: bool = False

    def start(self, variant: Variant) -> Future[BuiltCode | Verdict]:
        what = "original" if variant.config is None else str(variant.config)
        self.all.asked.append((self.compiler, what))
        done: Future[BuiltCode | Verdict] = Future()
        fault = self.all.takes(self.compiler, variant)
        built = BuiltCode(Unit("", "", "", (), ()), b"", "", Resources(), 0.0)
        done.set_result(Verdict(Status.BUILD_FAILED, fault) if fault else built)
        return done

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def compilers(monkeypatch: pytest.MonkeyPatch) -> Compilers:
    return Compilers(monkeypatch)


def wanting(name: str) -> Problem:
    return replace(PROBLEM, kernel=replace(PROBLEM.kernel, compiler=name))


class TestCompiler:
    def test_the_first_that_takes_both_sides(self, compilers: Compilers) -> None:
        assert compilers.choose() == "nvrtc 13.4"
        assert compilers.asked == [("nvrtc", "original"), ("nvrtc", str(TEMPLATE.default))]

    @pytest.mark.parametrize("side", ["original", "template"])
    def test_nvcc_where_nvrtc_fails_at_either(self, compilers: Compilers, side: str) -> None:
        compilers.takes = lambda name, v: (
            HOSTED if name == "nvrtc" and (v.config is None) == (side == "original") else ""
        )
        assert compilers.choose() == "nvcc 13.0.88"

    def test_the_one_the_problem_asks_for(self, compilers: Compilers) -> None:
        assert compilers.choose(wanting("nvcc")) == "nvcc 13.0.88"
        assert {name for name, _ in compilers.asked} == {"nvcc"}
        compilers.known = (NVRTC,)
        with pytest.raises(BadInput, match=r"asks for compiler = 'nvcc', here there is: nvrtc 13\.4") as no:
            compilers.choose(wanting("nvcc"))
        says(no.value.hint, "CUDA toolkit", "nvcc", "PATH", "compiler", "[kernel]")

    def test_there_is_none(self, compilers: Compilers) -> None:
        compilers.known = ()
        with pytest.raises(DeviceMissing, match="neither NVRTC nor nvcc") as no:
            compilers.choose()
        assert no.value.hint == "install it with: pip install 'tunesmith[cuda]'"

    def test_a_backend_with_only_one_is_asked_where_nobody_else_will(self, compilers: Compilers) -> None:
        compilers.known = None
        assert compilers.choose() == ""
        assert compilers.asked == []
        assert compilers.choose(absent=True) == ""
        assert compilers.asked == [("", "original"), ("", str(TEMPLATE.default))]
        compilers.takes = lambda name, v: "error: no"
        with pytest.raises(BadInput, match=r"^kernel\.cl: the kernel does not compile:\nerror: no$"):
            compilers.choose(absent=True)

    def test_an_original_over_the_limits_is_reported_where_nothing_can_run(
        self, compilers: Compilers
    ) -> None:
        small = replace(ABSENT, limits=replace(GPU.limits, max_threads=1))
        with pytest.raises(BadInput) as no:
            choose_compiler(PROBLEM, None, small, CUDA, lambda _text: None)
        assert str(no.value).startswith(
            "kernel.cl: the kernel cannot run on the usual one at workload small: "
        )
        assert no.value.message.endswith(" threads per block, the device allows 1")
        assert "or name another device" in (no.value.hint or "")
        here = replace(small, absent=False)
        assert choose_compiler(PROBLEM, None, here, CUDA, lambda _text: None) == "nvrtc 13.4"

    def test_without_a_template_only_the_original_is_built(self, compilers: Compilers) -> None:
        compilers.choose(template=None)
        assert compilers.asked == [("nvrtc", "original")]

    def test_a_default_that_this_device_forbids_is_no_judge(self, compilers: Compilers) -> None:
        limits = replace(GPU.limits, max_threads=32)
        choose_compiler(PROBLEM, TEMPLATE, replace(GPU, limits=limits), CUDA, lambda _text: None)
        assert compilers.asked[1][1].startswith("BLOCK=32")

    def test_what_no_compiler_takes_is_reported_by_the_one_that_could(self, compilers: Compilers) -> None:
        compilers.takes = lambda name, v: f"{HOSTED} <vector>" if name == "nvrtc" else "k.cu(3): error: y"
        with pytest.raises(BadInput) as no:
            compilers.choose()
        first, second = str(no.value).splitlines()
        says(first, "kernel.cl:", "not compile", "nvcc 13.0.88")
        assert second == "k.cu(3): error: y"
        compilers.takes = lambda name, v: f"{name}: {HOSTED} <nowhere>"
        with pytest.raises(BadInput, match=r"nvcc: .* <nowhere>") as no:
            compilers.choose()
        assert "entry, flags, include and defines" in (no.value.hint or ""), "nvcc has the host's headers"
        compilers.takes = lambda name, v: f"{name}: error: y" if v.config else ""
        with pytest.raises(BadInput) as no:
            compilers.choose()
        says(no.value, "template.cl:", "template", "BLOCK=64 VEC=1", "not compile")
        assert "nvrtc: error: y" in no.value.message
        says(no.value.hint, "mend the template", "compiler", "original")

    def test_host_headers_and_no_nvcc(self, compilers: Compilers) -> None:
        compilers.known = (NVRTC,)
        compilers.takes = lambda name, v: f"{HOSTED} <vector>"
        with pytest.raises(BadInput, match="<vector>") as no:
            compilers.choose()
        assert "put nvcc on the PATH, or include only what device code needs" in (no.value.hint or "")
        compilers.known = (NVRTC, NVCC)
        with pytest.raises(BadInput) as no:
            compilers.choose(wanting("nvrtc"))
        assert "say compiler = 'nvcc' in [kernel], or" in (no.value.hint or "")

    def test_a_compiler_that_dies_is_no_fault_of_the_source(self, compilers: Compilers) -> None:
        compilers.takes = lambda name, v: f"{COMPILER_CRASHED}: killed by SIGSEGV"
        with pytest.raises(TunesmithError, match=r"crashed: killed by SIGSEGV \(nvrtc 13\.4\)") as no:
            compilers.choose()
        assert not isinstance(no.value, BadInput)


class TestDevice:
    def test_one_that_is_here(self) -> None:
        here = LocalDevices("fake", (DEVICE, replace(DEVICE, id="1", name="another")))
        assert choose_device(here, None) == DEVICE
        assert choose_device(here, "another").id == "1"
        with pytest.raises(DeviceMissing, match="matches no device"):
            choose_device(here, "sm_90")
        assert choose_device(here, "fake:1").id == "1"
        for several in ("0-1", "fake:0,1", "0,0"):
            with pytest.raises(BadInput, match=f"--device {several} names several devices"):
                choose_device(here, several)

    def test_by_its_architecture(self) -> None:
        old = replace(GPU, id="1", limits=replace(GPU.limits, capability=80))
        for name in ("sm_80", "SM_80", "sm_80a", "compute_80", "80", "8.0"):
            assert choose_device(LocalDevices("cuda", (GPU, old)), name) == old
        with pytest.raises(DeviceMissing, match="matches no device"):
            choose_device(LocalDevices("cuda", (GPU, old)), "10.0")

    def test_one_that_is_not(self) -> None:
        absent = choose_device(NOWHERE, "sm_90")
        assert (absent.absent, absent.limits.capability) == (True, 90)
        assert choose_device(NOWHERE, None).absent
        with pytest.raises(BadInput, match="'S3 Virge'"):
            choose_device(NOWHERE, "S3 Virge")
        assert choose_device(LocalDevices("fake:absent", ()), None).absent

    def test_backends_that_cannot_build_without_one(self) -> None:
        with pytest.raises(DeviceMissing, match="no platform") as no:
            choose_device(LocalDevices("opencl", (), "no platform"), None)
        assert no.value.hint == machine.DOCTOR

    def test_why_there_is_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        held = Protection(())
        monkeypatch.setattr(machine, "worker_protection", lambda *_: held)
        monkeypatch.setattr(machine, "list_devices", lambda *_: ())
        assert machine.find_local_devices(CUDA) == LocalDevices(
            "cuda", (), "the cuda backend sees no device", held
        )

        def broken(*_: object) -> tuple[Device, ...]:
            raise DeviceMissing("the driver is too old", hint="a newer one")

        monkeypatch.setattr(machine, "list_devices", broken)
        assert machine.find_local_devices(CUDA) == LocalDevices("cuda", (), "the driver is too old", held)


def failed(block: int) -> Surveyed:
    (built,) = builds_of(PROBLEM, TEMPLATE, config(block))
    refused = tuple(Result(w.name, Status.BUILD_FAILED) for w in built.workloads)
    return Surveyed(config(block), (SurveyedBuild(("small", "wide"), built.variant.digest),), refused)


def a_run(device: Device, *events: Event, compiler: str = "nvrtc 13.4") -> State:
    begun = replace(started(), device=device, compiler=compiler, backend=device.backend)
    return fold_records(records([begun, *events]))


def place(state: State, here: LocalDevices) -> machine.Place:
    templates = Templates(PROBLEM, state.device, TEMPLATE, MemoryTexts())
    at = machine.Place(WorkerSite(here.spec, Path()), here, state.device)
    return machine.attach_run(at, state, templates, 5, lambda _text: None)


class TestPlace:
    SURVEY = (Admitted("t", 12, 12), failed(64), failed(128))
    TIMED = Baseline(outcome(-1, None, {"small": 1.0, "wide": 1.0}, "sentinel"), "original")

    def test_the_same_device_and_compiler_need_no_event(self, compilers: Compilers) -> None:
        moved = replace(GPU, id="3")
        found = place(a_run(GPU, self.TIMED), LocalDevices("cuda", (moved,)))
        assert (found.device, found.missing, found.attached) == (moved, "", None)
        assert compilers.asked == []

    def test_another_device_than_the_runs_own(self, compilers: Compilers) -> None:
        other = replace(GPU, name="another chip")
        with pytest.raises(DeviceMissing, match=r"this run belongs to a device .*; here there is: another"):
            place(a_run(GPU), LocalDevices("cuda", (other,)))
        with pytest.raises(DeviceMissing, match=r"units \(1\.0\); there is no driver"):
            place(a_run(GPU), NOWHERE)

    def test_an_absent_device_that_is_still_absent(self, compilers: Compilers) -> None:
        found = place(a_run(ABSENT, *self.SURVEY), NOWHERE)
        assert (found.device, found.attached) == (ABSENT, None)
        says(found.missing, "the usual one", "not here", "no driver")
        old = replace(GPU, name="an old one", limits=replace(GPU.limits, capability=80))
        says(
            place(a_run(ABSENT), LocalDevices("cuda", (old,))).missing,
            "the usual one",
            "not here",
            "an old one",
        )

    def test_an_absent_device_that_is_found(self, compilers: Compilers) -> None:
        found = place(a_run(ABSENT, *self.SURVEY), LocalDevices("cuda", (GPU,)))
        assert (found.device, found.missing) == (GPU, "")
        assert found.attached == Attached(GPU, "nvrtc 13.4", 10, (config(64), config(128)))

    def test_what_an_accident_prevented_from_building_is_tried_again(self, compilers: Compilers) -> None:
        details = (f"{COMPILER_CRASHED}: SIGKILL", f"{COMPILER_SLOW} 60 s")
        found = [
            replace(f, refused=tuple(replace(r, detail=detail) for r in f.refused))
            for f, detail in zip((failed(64), failed(128)), details, strict=True)
        ]
        attached = place(a_run(ABSENT, *found, failed(256)), LocalDevices("cuda", (GPU,))).attached
        assert attached is not None
        assert attached.unable == (config(256),)

    def test_the_one_of_that_name_if_there_are_several(self, compilers: Compilers) -> None:
        named = replace(GPU, id="1", name=ABSENT.name)
        assert place(a_run(ABSENT), LocalDevices("cuda", (GPU, named))).device == named

    def test_another_compiler_before_anything_is_timed(self, compilers: Compilers) -> None:
        compilers.known = (("nvrtc", "12.8"), NVCC)
        found = place(a_run(ABSENT, *self.SURVEY), LocalDevices("cuda", (GPU,)))
        assert found.attached == Attached(GPU, "nvrtc 12.8", 10), "what the other one said does not count"
        found = place(a_run(ABSENT, *self.SURVEY), NOWHERE)
        assert found.attached == Attached(ABSENT, "nvrtc 12.8", 10)
        assert found.missing
        found = place(a_run(GPU), LocalDevices("cuda", (GPU,)))
        assert found.attached == Attached(GPU, "nvrtc 12.8", 10)

    def test_another_compiler_after_that(self, compilers: Compilers) -> None:
        compilers.known = (("nvrtc", "12.8"), NVCC)
        with pytest.raises(
            DeviceMissing, match=r"built with nvrtc 13\.4; here there is: nvrtc 12\.8, nvcc 13\.0\.88"
        ) as no:
            place(a_run(GPU, self.TIMED), LocalDevices("cuda", (GPU,)))
        assert "start a new run" in (no.value.hint or "")
        compilers.known = ()
        with pytest.raises(DeviceMissing, match="here there is: none"):
            place(a_run(GPU, self.TIMED), LocalDevices("cuda", (GPU,)))

    def test_a_recording_is_always_there(self, compilers: Compilers) -> None:
        compilers.known = None
        recorded = replace(DEVICE, backend="replay")
        assert place(a_run(recorded, compiler=""), LocalDevices("replay:x", ())).device == recorded


class TestHowMuchAtOnce:
    @pytest.mark.parametrize(
        ("kind", "cores", "wanted", "builders", "ahead"),
        [
            ("cpu", 16, 0, 16, 0),
            ("simulated", 16, 0, 15, 30),
            ("gpu", 16, 0, 15, 30),
            ("gpu", 2, 0, 1, 8),
            ("gpu", 1, 0, 1, 8),
            ("gpu", 16, 4, 4, 8),
            ("gpu", 16, 5, 5, 10),
        ],
    )
    def test_builders_and_what_is_built_ahead(
        self, monkeypatch: pytest.MonkeyPatch, kind: str, cores: int, wanted: int, builders: int, ahead: int
    ) -> None:
        monkeypatch.setattr(workplace, "usable_cores", lambda: cores)
        device = replace(DEVICE, kind=kind)
        assert machine.builder_count(device, wanted) == builders
        assert machine.builder_count(replace(device, absent=True), wanted) == (wanted or cores)
        assert machine.built_ahead(device, builders) == ahead
