"""Whether a kernel's time rests on what its last launch left in local memory, on a simulated device."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from tunesmith.lab.worker import host_cases
from tunesmith.lab.worker.host_cases import PAIRS, tell_left_over


@dataclass
class Device:
    """A kernel that takes longer where its table is gone; neighbours make launches longer."""

    gain: float
    busy: float  # share of launches that it holds up
    missed: float = 0.0  # of fillings, that leave the table where it was
    chance: random.Random = field(default_factory=lambda: random.Random(1))
    is_gone: bool = False
    launches: int = 0

    def scramble(self, is_local: bool, is_patient: bool) -> None:
        assert is_patient
        self.is_gone = is_local and self.chance.random() >= self.missed

    def launch(self) -> float:
        self.launches += 1
        held_up = self.chance.expovariate(1.0) * 40 if self.chance.random() < self.busy else 0.0
        return 1e-4 * ((self.gain if self.is_gone else 1.0) * self.chance.gauss(1, 0.02) + held_up)


def found(device: Device) -> bool:
    return bool(tell_left_over(device, device.launch))  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_cases, "CHANCE", random.Random(2))


@pytest.mark.parametrize(("missed", "busy", "least"), [(0.0, 0.0, 200), (0.02, 0.0, 190), (0.0, 0.2, 170)])
def test_a_table_that_is_kept_is_found(missed: float, busy: float, least: int) -> None:
    assert sum(found(Device(1.5, busy, missed, random.Random(n))) for n in range(200)) >= least


@pytest.mark.parametrize("busy", [0.0, 0.3, 0.9])
def test_who_does_not_care_is_believed(busy: float) -> None:
    devices = [Device(1.0, busy, chance=random.Random(n)) for n in range(1000)]
    assert not any(map(found, devices))
    assert sum(device.launches for device in devices) < 1000 * PAIRS
