"""A backend with a language of its own, on the simulated device."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.backends.fake import FakeBackend
from tunesmith.backends.port import BackendKind, DoctorFinding
from tunesmith.problem.device import Device, SourceLanguage


class ToyBackend(FakeBackend):
    name = "toy"

    def devices(self) -> tuple[Device, ...]:
        return tuple(replace(d, backend="toy", name="toy device") for d in super().devices())


KIND = BackendKind(
    name="toy",
    languages=(SourceLanguage("toy", "Toy", (".toy",), self_contained=True, is_c_family=False),),
    simulated=True,
    make=lambda _argument: ToyBackend(),
    check=lambda devices: [DoctorFinding("toy", True, devices()[0].name)],
    environment=lambda scratch, _inherited: {"TOY_CACHE": str(scratch)},
    no_profiles="a toy has nothing to profile",
)
