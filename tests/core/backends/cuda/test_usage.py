"""What a build says a kernel uses: the worst of its entries, and each of them."""

from __future__ import annotations

import pytest

from tests.core.backends.cuda.builds import BOTH, built
from tests.cuda_here import needs_nvrtc
from tests.samples import HOPPER
from tunesmith.backends.cuda.cubin import Cubin, parse_spills, resources_of, unpack, without_chatter

# Sixty values that live at once.
FAT = """extern "C" __global__ void fat(float* x, int n) {
    float v[60];
#pragma unroll
    for (int i = 0; i < 60; i++) v[i] = x[i * n];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 60; i++) x[i * n] = v[59 - i] * v[i];
}
extern "C" __global__ void __launch_bounds__(96) thin(float* x) {
    __shared__ float s[96];
    s[threadIdx.x] = *x;
    __syncthreads();
    x[threadIdx.x] = s[95 - threadIdx.x];
}
"""


@pytest.mark.parametrize("compiler", BOTH)
@pytest.mark.few(1)
def test_each_entry_and_the_worst_of_all(compiler: str) -> None:
    both = built(FAT, "fat", "thin", compiler=compiler).resources
    fat, thin = both.of("fat"), both.of("thin")
    assert fat.registers is not None
    assert thin.registers is not None
    assert fat.registers > 60 > thin.registers
    assert (fat.shared, thin.shared) == (0, 384)
    assert (fat.max_threads, thin.max_threads) == (65536 // (fat.registers + 7 & ~7) // 128 * 128, 96)
    assert (both.registers, both.shared, both.max_threads) == (fat.registers, 384, 96)
    assert (both.spills, both.private) == (0, 0)


@pytest.mark.parametrize("compiler", BOTH)
@pytest.mark.few(1)
def test_too_few_registers_spill(compiler: str) -> None:
    resources = built(FAT, "fat", "thin", compiler=compiler, flags=("-maxrregcount=24",)).resources
    assert resources.registers == 24
    assert resources.of("fat").spills
    assert resources.of("fat").private
    assert resources.of("thin").spills == 0
    assert resources.spills == resources.of("fat").spills
    assert resources.max_threads == 96


@needs_nvrtc
def test_only_the_entries_count() -> None:
    resources = built(FAT, "thin").resources
    assert resources.registers == resources.of("thin").registers
    assert [name for name, _ in resources.by_entry] == ["thin"]


@needs_nvrtc
@pytest.mark.parametrize(
    ("device", "shared"), [("sm_75", 384), ("sm_80", 384), ("sm_90", 384), ("sm_120", 384)]
)
def test_what_the_system_keeps_of_shared_memory_is_not_the_kernels(device: str, shared: int) -> None:
    assert built(FAT, "thin", device=device).resources.shared == shared


@needs_nvrtc
def test_a_log_that_says_nothing_leaves_spills_unknown() -> None:
    """NVRTC's cache, where there is a driver, gives the code of an earlier build without its log."""
    binary = built(FAT, "fat", flags=("-maxrregcount=24",))
    symbols, cubin = unpack(binary.data)
    silent = resources_of(Cubin(cubin), symbols, "", HOPPER)
    assert silent.spills is None
    assert silent.of("fat").spills is None
    assert (silent.registers, silent.private) == (binary.resources.registers, binary.resources.private)


def test_spills_are_read_from_both_compilers_words() -> None:
    nvrtc = """ptxas info    : Function properties for k
ptxas         .     112 bytes stack frame, 88 bytes spill stores, 76 bytes spill loads
ptxas info    : Used 24 registers
"""
    nvcc = """ptxas info    : Function properties for k
    112 bytes stack frame, 88 bytes spill stores, 76 bytes spill loads
ptxas info    : Used 24 registers"""
    assert parse_spills(nvrtc) == parse_spills(nvcc) == {"k": 164}
    assert without_chatter(f"a warning\n{nvrtc}ptxas error   : no") == "a warning\nptxas error   : no"
    assert without_chatter(nvcc) == ""
    loss = "ptxas info    : (C7508) Potential Performance Loss: wgmma.mma_async instructions are serialized"
    assert without_chatter(f"{nvrtc}{loss}") == loss
