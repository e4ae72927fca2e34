"""What expressions may know of a device and of a build."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.samples import DEVICE, a_device
from tunesmith.problem.device import DEVICE_NAMES, RESOURCE_NAMES, Resources


def test_every_name_promised_before_a_device_is_known_has_a_value() -> None:
    assert set(DEVICE.limits.names()) == set(DEVICE_NAMES)
    assert DEVICE.limits.names()["device.max_threads"] == 1024
    assert set(a_device(pin_bandwidth=1e9).limits.names()) == set(DEVICE_NAMES)


def test_what_the_compiler_does_not_say_has_no_name() -> None:
    assert Resources(registers=0, spills=3).names() == {"resources.registers": 0, "resources.spills": 3}
    assert Resources().names() == {}
    assert set(Resources(1, 2, 3, 4, 5, 6, 7).names()) == set(RESOURCE_NAMES)


@pytest.mark.parametrize("field", ["backend", "platform", "name", "driver"])
def test_another_chip_or_driver_is_another_device(field: str) -> None:
    assert replace(DEVICE, **{field: "other"}).key != DEVICE.key


def test_the_same_chip_in_another_slot_is_the_same() -> None:
    assert replace(DEVICE, id="7").key == DEVICE.key


def test_only_a_cpu_shares_its_cores_with_builds() -> None:
    assert [replace(DEVICE, kind=kind).is_host for kind in ("cpu", "gpu", "simulated")] == [
        True,
        False,
        False,
    ]
