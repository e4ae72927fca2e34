"""What tuning could give, from records alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.plugins.repo.capture.made_up import capture, kernel, launch, pointer, without_device
from tunesmith.plugins.repo.capture.ranking import (
    LEAST,
    KernelKind,
    amdahl_speedup,
    bytes_of,
    kind_of,
    rank_kernels,
)


def test_share_distance_and_amdahl() -> None:
    far = kernel("far", launch(pointer(10**8), seconds=0.4))  # 0.1 ms at 1e12
    near = kernel("near", launch(pointer(5 * 10**11), seconds=0.5))
    first, second = rank_kernels(capture(near, far, span=1.0, copies=0.1))
    assert (first.name, second.name) == ("far", "near")
    assert first.share == pytest.approx(0.4)
    assert first.distance == pytest.approx(4000)
    assert first.score == pytest.approx(0.4, rel=1e-3)
    assert first.end_to_end == first.on_device == pytest.approx(1 / 0.6, rel=1e-3)
    assert second.distance == pytest.approx(1.0)
    assert second.end_to_end == pytest.approx(1.0)
    assert any("as fast as the memory allows" in reason for reason in second.missing)


def test_a_launch_takes_its_least_however_little_it_moves() -> None:
    (ranked,) = rank_kernels(capture(kernel("tiny", launch(pointer(64), seconds=10 * LEAST, count=10))))
    assert ranked.distance == pytest.approx(1.0)
    assert ranked.saving == pytest.approx(0.0)


def test_pointers_into_one_allocation_count_once() -> None:
    both = launch(pointer(1000), pointer(1000, offset=400), pointer(50, base=1 << 41))
    assert bytes_of(both) == 1050
    assert bytes_of(launch(pointer(1000, least=300))) == 300
    assert bytes_of(replace(both, complete=False)) is None


def test_allocations_larger_than_the_arrays_give_no_floor() -> None:
    (ranked,) = rank_kernels(capture(kernel("pooled", launch(pointer(10**12), seconds=1e-3))))
    assert (ranked.floor, ranked.distance) == (None, None)
    assert ranked.saving == pytest.approx(1e-3 - LEAST)
    assert any("--exact" in reason for reason in ranked.missing)


def test_without_a_device_or_arguments_nothing_is_made_up() -> None:
    (ranked,) = rank_kernels(without_device(capture(kernel("k", launch(pointer(8))))))
    assert ranked.distance is None
    unread = replace(launch(), complete=False)
    (ranked,) = rank_kernels(capture(kernel("k", unread)))
    assert ranked.distance is None
    assert any("arguments are not known" in reason for reason in ranked.missing)
    (ranked,) = rank_kernels(capture(kernel("k", replace(launch(), timed=0, seconds=0.0)), span=0.0))
    assert (ranked.score, ranked.end_to_end) == (0.0, None)


def test_what_cannot_be_tuned_comes_last() -> None:
    vendor = kernel("sm90_xmma_gemm_f16", launch(pointer(8), seconds=0.9))
    own = kernel("_Z3ownPf", launch(pointer(8), seconds=0.1), demangled="own(float*)")
    ranked = rank_kernels(capture(vendor, own))
    assert [one.tunable for one in ranked] == [True, False]
    assert "without source" in ranked[1].missing[0]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("own::scale<float>(float*, int)", KernelKind.CUSTOM),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)",
            KernelKind.TORCH,
        ),
        ("void cub::DeviceReduceKernel<int>(int*)", KernelKind.TEMPLATES),
        ("sm90_xmma_gemm_f16f16_f16f32_tn", KernelKind.VENDOR),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT", KernelKind.VENDOR),
        ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>(int)", KernelKind.VENDOR),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", KernelKind.VENDOR),
        ("triton_poi_fused_add_0", KernelKind.TRITON),
        ("triton_red_fused__softmax_1", KernelKind.TRITON),
        ("cupy_multiply__float32_float_float32", KernelKind.CUPY),
        ("", KernelKind.NAMELESS),
        ("void vllm::rms_norm_kernel<float>(float*)", KernelKind.CUSTOM),
    ],
)
def test_kinds_by_name(name: str, kind: KernelKind) -> None:
    assert kind_of(kernel("_Zx" if "(" in name else name, demangled=name)) is kind


def test_a_plain_name_from_a_python_file_is_tritons() -> None:
    assert kind_of(replace(kernel("add"), sources=("/x/kernels.py",))) is KernelKind.TRITON
    assert kind_of(replace(kernel("add"), sources=("/x/kernels.cu",))) is KernelKind.CUSTOM


def test_amdahl() -> None:
    assert amdahl_speedup(10.0, 5.0) == 2.0
    assert amdahl_speedup(10.0, 0.0) == 1.0
    assert amdahl_speedup(0.0, 0.0) is None
    assert amdahl_speedup(1.0, 2.0) is None, "kernels that overlap take longer than the span"
