"""Devices that are not here, by name or architecture."""

from __future__ import annotations

import pytest

from tunesmith.backends.cuda.devices import ARCHITECTURES, GPUS, absent_device
from tunesmith.base.errors import BadInput


def test_the_usual_one_is_an_h200() -> None:
    device = absent_device(None)
    assert (device.backend, device.kind, device.absent, device.driver) == ("cuda", "gpu", True, "")
    assert (device.id, device.name, device.platform) == ("absent:H200", "NVIDIA H200", "NVIDIA CUDA")
    limits = device.limits
    assert (limits.capability, limits.sms, limits.shared) == (90, 132, 227 * 1024)
    assert (limits.max_threads, limits.threads_per_sm, limits.blocks_per_sm) == (1024, 2048, 32)


@pytest.mark.parametrize("text", ["H200", "h200", "nvidia h200", "NVIDIA H200", " H200 "])
def test_names_are_read_as_people_write_them(text: str) -> None:
    assert absent_device(text) == absent_device(None)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("4090", "NVIDIA GeForce RTX 4090"),
        ("rtx-5090", "NVIDIA GeForce RTX 5090"),
        ("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090"),
        ("a100", "NVIDIA A100-SXM4-80GB"),
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3"),
        ("t4", "Tesla T4"),
    ],
)
def test_a_gpu_is_found_by_its_short_name_and_by_the_drivers(text: str, name: str) -> None:
    assert absent_device(text).name == name


@pytest.mark.parametrize("text", ["sm_90", "SM_90", "sm90", "90", "9.0", "compute_90", "sm_90a"])
def test_an_architecture_is_a_device_too(text: str) -> None:
    device = absent_device(text)
    assert device.id == "absent:sm_90"
    assert device.limits == absent_device("H200").limits


def test_three_digits_are_an_architecture_as_well() -> None:
    assert absent_device("100").limits.capability == absent_device("10.0").limits.capability == 100


@pytest.mark.parametrize("text", ["", "sm_35", "H2000", "Radeon", "120.0", "nvidia"])
def test_what_is_not_known_is_reported_with_what_is(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        absent_device(text)
    assert repr(text) in caught.value.message
    assert "H200" in str(caught.value.hint)
    assert "sm_90" in str(caught.value.hint)


def test_the_tables_fit_together() -> None:
    for capability, architecture in ARCHITECTURES.items():
        assert GPUS[architecture.example].capability == capability
        assert architecture.shared == architecture.shared_per_sm - architecture.shared_reserved
    assert {gpu.capability for gpu in GPUS.values()} == set(ARCHITECTURES)
