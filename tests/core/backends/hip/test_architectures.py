"""Occupancy by the rules of CDNA and RDNA, against what AMD and LLVM have published and what clang built."""

from __future__ import annotations

import pytest

from tests.running import FIXTURES
from tunesmith.backends.hip.code_object import (
    ARCHITECTURES,
    GPUS,
    CodeObject,
    describe_amd_kernel,
    groups_per_unit,
    occupancy_percent,
    pack,
    resources_of,
    unpack,
    waves_per_simd,
)
from tunesmith.backends.hip.devices import absent_device, is_architecture
from tunesmith.base.codec import Malformed
from tunesmith.base.errors import BadInput
from tunesmith.problem.device import Resources, compute_occupancy

# Waves on a SIMD by VGPRs of a wave. CDNA 2 and 3: AMD's "Register pressure in CDNA2 GPUs", the table of
# occupancy; RDNA 3: LLVM's AMDGPU target, 1536 registers of waves of 32 in units of 24.
PUBLISHED = {
    "gfx90a": {64: 8, 65: 7, 72: 7, 73: 6, 80: 6, 81: 5, 96: 5, 97: 4, 128: 4, 129: 3, 168: 3, 169: 2,
               256: 2, 257: 1, 512: 1},
    "gfx942": {64: 8, 72: 7, 80: 6, 96: 5, 128: 4, 168: 3, 256: 2, 512: 1},
    "gfx908": {24: 10, 25: 9, 28: 9, 32: 8, 36: 7, 40: 6, 48: 5, 64: 4, 84: 3, 128: 2, 256: 1},
    "gfx1100": {96: 16, 97: 12, 120: 12, 144: 10, 168: 9, 192: 8, 216: 7, 240: 6, 256: 5},
    "gfx1030": {64: 16, 65: 12, 80: 12, 96: 10, 112: 9, 128: 8, 144: 7, 160: 6, 192: 5, 256: 4},
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_waves_by_registers(name: str) -> None:
    own = ARCHITECTURES[name]
    assert {vgprs: waves_per_simd(own, vgprs) for vgprs in PUBLISHED[name]} == PUBLISHED[name]


def test_scalar_registers_limit_cdna_alone() -> None:
    held = {sgprs: waves_per_simd(ARCHITECTURES["gfx90a"], 32, sgprs) for sgprs in (96, 97, 102)}
    assert held == {96: 8, 97: 7, 102: 7}  # 800 of them, in units of 16
    assert waves_per_simd(ARCHITECTURES["gfx1100"], 32, 106) == 16


def test_waves_of_64_on_rdna_have_half_the_registers() -> None:
    own = ARCHITECTURES["gfx1100"]
    assert {v: waves_per_simd(own, v, wave=64) for v in (48, 49, 96, 128)} == {48: 16, 49: 12, 96: 8, 128: 5}


def test_blocks_on_a_compute_unit() -> None:
    mi300, rdna = ARCHITECTURES["gfx942"], ARCHITECTURES["gfx1100"]
    assert groups_per_unit(mi300, 256, 64) == 8  # 32 waves in all
    assert groups_per_unit(mi300, 256, 64, lds=16 << 10) == 4
    assert groups_per_unit(mi300, 256, 64, lds=(16 << 10) + 1) == 3  # a unit of 512 bytes more
    assert groups_per_unit(mi300, 64, 64) == 32  # of one wave: no barrier, not counted
    assert groups_per_unit(mi300, 128, 64) == 16
    assert groups_per_unit(rdna, 64, 32) == 16
    assert groups_per_unit(rdna, 64, 32, lds=8 << 10) == 8
    assert groups_per_unit(rdna, 64, 32, lds=(7 << 10) + 512) == 8  # 1024 bytes at a time: as much as 8 KiB
    assert groups_per_unit(rdna, 64, 32, lds=7 << 10) == 9
    assert occupancy_percent(rdna, 64, 16) == 100
    assert occupancy_percent(mi300, 256, 3) == 37


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("threads", [128, 256, 1024])
def test_limits_say_the_same_as_the_rules(name: str, threads: int) -> None:
    """Expressions and plans see the limits alone."""
    own, limits = ARCHITECTURES[name], absent_device(name).limits
    for vgprs in (16, 40, 64, 72, 100, 128, 200, 256):
        for lds in (0, 1000, 20_000, 64 << 10):
            found = compute_occupancy(limits, Resources(registers=vgprs, shared=lds), threads, 0)
            wanted = groups_per_unit(own, threads, vgprs, lds=lds)
            assert found.blocks_per_sm == wanted, (vgprs, lds)
            assert found.percent == occupancy_percent(own, threads, wanted)


def test_devices_that_are_not_here() -> None:
    assert absent_device(None).name == "AMD Instinct MI300X"
    assert absent_device("radeon rx 7900 xtx").target == "gfx1100"
    device = absent_device("gfx90a")
    assert (device.target, device.limits.warp, device.absent) == ("gfx90a", 64, True)
    assert is_architecture(device, "GFX90A")
    assert not is_architecture(device, "sm_90")
    assert {gpu.architecture for gpu in GPUS.values()} == set(ARCHITECTURES)
    with pytest.raises(BadInput, match="none is known as 'H200'"):
        absent_device("H200")


def recorded(name: str) -> CodeObject:
    return CodeObject((FIXTURES / "hip" / f"sums_{name}.hsaco").read_bytes())


@pytest.mark.parametrize(
    ("name", "most"),
    [("gfx90a", 512 // 8), ("gfx942", 512 // 8), ("gfx1100", 1536 // 8)],
)
def test_what_clang_built_is_read(name: str, most: int) -> None:
    """`sums.hip` as clang 19 built it. Told to fit eight waves on a SIMD, it used that many registers."""
    code, wave = recorded(name), ARCHITECTURES[name].wave
    assert code.target == name
    sums, mixed = (code.kernels[symbol] for symbol in code.listed(2))
    assert (sums.symbol, mixed.symbol) == ("row_sums", "_Z5mixedILi8EEvPdPKd")
    assert (sums.wave, sums.spilled, sums.shared, sums.most_threads) == (wave, 0, 128, 256)
    assert (sums.parameters, mixed.parameters) == ((8, 8, 4), (8, 8))
    assert mixed.vgprs == most
    assert mixed.spilled > 100
    assert mixed.private >= 4 * 100
    assert waves_per_simd(ARCHITECTURES[name], mixed.vgprs) == 8
    used = resources_of(code, {"a": "row_sums", "b": mixed.symbol})
    assert used.registers == most
    assert used.spills == 4 * mixed.spilled
    assert used.of("a").spills == 0
    assert used.max_threads == 64
    assert "100 %" in describe_amd_kernel(code, "row_sums", 256)


def test_a_digest_is_of_code_alone() -> None:
    digests = {name: recorded(name).code_digest() for name in ("gfx90a", "gfx942", "gfx1100")}
    assert len(set(digests.values())) == 3
    assert recorded("gfx942").code_digest() == digests["gfx942"]


def test_damage_is_noticed() -> None:
    data = (FIXTURES / "hip" / "sums_gfx942.hsaco").read_bytes()
    packed = pack({"k": "row_sums"}, data)
    assert unpack(packed) == ({"k": "row_sums"}, data)
    for bad in (b"", packed[:-1], packed[:100] + b"x" + packed[101:], b"other" + packed):
        with pytest.raises(Malformed):
            unpack(bad)
    for cut in (0, 5, 64, 300, len(data) // 2):
        with pytest.raises(Malformed):
            CodeObject(data[:cut])
