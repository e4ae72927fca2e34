"""A device that is gone is no verdict about a kernel."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.core.lab.labs import fault_template, lab, scale_problem
from tunesmith.backends import fake, port
from tunesmith.base.errors import DeviceMissing
from tunesmith.problem.device import Device


class Vanishing(fake.FakeBackend):
    """Opened once by each of the two processes; after a crash it is not there again."""

    opened = 0

    def open(self, device: Device) -> port.Session:
        Vanishing.opened += 1
        if Vanishing.opened > 2:
            raise port.Unsupported("the driver sees no device")
        return super().open(device)


class Lost(fake.FakeSession):
    def run(self, *_given: object, **_named: object) -> float:
        raise port.DeviceLost("uncorrectable error")


class Losing(fake.FakeBackend):
    def open(self, device: Device) -> port.Session:
        return Lost(device)


@pytest.mark.parametrize(("backend", "said"), [(Losing, "uncorrectable"), (Vanishing, "sees no device")])
def test_ends_what_is_under_way(backend: Callable[[], port.Backend], said: str) -> None:
    Vanishing.opened = 0
    with lab(scale_problem(), fault_template(), backend=backend, baseline=backend is Vanishing) as harness:
        if backend is Vanishing:
            harness.lab._runner.restart()
        with pytest.raises(DeviceMissing, match=said):
            harness.outcome(KIND=0) if backend is Vanishing else harness.lab.baseline()
