"""Occupancy by the rules of CDNA and RDNA, against what AMD and LLVM have published and what clang built."""

from __future__ import annotations

import pytest

from tests.running import FIXTURES
from tunesmith.backends.hip.code_object import ARCHITECTURES, GPUS, CodeObject, pack, resources_of, unpack
from tunesmith.backends.hip.devices import absent_device, is_architecture
from tunesmith.base.codec import Malformed
from tunesmith.base.errors import BadInput
from tunesmith.problem.device import Occupancy, Resources, compute_occupancy

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


def held(name: str, threads: int, vgprs: int, lds: int = 0) -> Occupancy:
    limits = absent_device(name).limits
    return compute_occupancy(limits, Resources(registers=vgprs, shared=lds), threads, 0)


@pytest.mark.parametrize("name", PUBLISHED)
def test_waves_by_registers(name: str) -> None:
    """In blocks of a wave for each SIMD."""
    chip = ARCHITECTURES[name]
    found = {vgprs: held(name, chip.simds * chip.wave, vgprs).blocks_per_sm for vgprs in PUBLISHED[name]}
    assert found == PUBLISHED[name]


@pytest.mark.parametrize(
    ("name", "threads", "vgprs", "lds", "blocks", "percent"),
    [
        ("gfx942", 256, 64, 0, 8, 100),  # 32 waves in all
        ("gfx942", 256, 64, 16 << 10, 4, 50),
        ("gfx942", 256, 64, (16 << 10) + 1, 3, 37),  # a unit of 512 bytes more
        ("gfx942", 128, 64, 0, 16, 100),
        ("gfx1100", 64, 32, 0, 16, 100),
        ("gfx1100", 64, 32, 8 << 10, 8, 50),
        ("gfx1100", 64, 32, (7 << 10) + 512, 8, 50),  # 1024 bytes at a time: as much as 8 KiB
        ("gfx1100", 64, 32, 7 << 10, 9, 56),
    ],
)
def test_blocks_on_a_compute_unit(
    name: str, threads: int, vgprs: int, lds: int, blocks: int, percent: int
) -> None:
    found = held(name, threads, vgprs, lds)
    assert (found.blocks_per_sm, found.percent) == (blocks, percent)


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
    ("name", "most"), [("gfx90a", 512 // 8), ("gfx942", 512 // 8), ("gfx1100", 1536 // 8)]
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
    used = resources_of(code, {"a": "row_sums", "b": mixed.symbol})
    assert used.registers == most
    assert used.spills == 4 * mixed.spilled
    assert used.of("a").spills == 0
    assert used.max_threads == 64


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
