"""CUDA as a backend: builds here, devices and launches through the driver, each loaded on use."""

from __future__ import annotations

from tunesmith.core.backend import Binary, Session
from tunesmith.core.device import Device
from tunesmith.core.messages import Unit


class CudaBackend:
    name = "cuda"
    languages: tuple[str, ...] = ("cuda",)

    def devices(self) -> tuple[Device, ...]:
        from tunesmith.backends.cuda.devices import describe_all

        return describe_all()

    def build(self, unit: Unit, device: Device) -> Binary:
        from tunesmith.backends.cuda.compile import build

        return build(unit, device)

    def open(self, device: Device) -> Session:
        from tunesmith.backends.cuda.session import CudaSession

        return CudaSession(device)
