"""A capture made on an H200: own kernels, PyTorch, Triton, cuBLAS, a graph, torch.compile.

Kernels and launches were left out to make it small.
"""

from __future__ import annotations

import gzip
import math

import pytest

from tests.running import FIXTURES
from tunesmith.plugins.repo.capture.ranking import KernelKind, RankedKernel, rank_kernels
from tunesmith.plugins.repo.capture.records import Capture, CapturedKernel, CapturedProgram, read_capture
from tunesmith.plugins.repo.capture.trace import StoredFiles, assemble_capture, demangle_names, read_trace

SEEN = FIXTURES / "captures" / "h200"


@pytest.fixture(scope="module")
def capture() -> Capture:
    return read_capture(SEEN)


@pytest.fixture(scope="module")
def ranked(capture: Capture) -> dict[str, RankedKernel]:
    return {one.demangled: one for one in rank_kernels(capture)}


def one(capture: Capture, name: str) -> CapturedKernel:
    (kernel,) = capture.named(name)
    return kernel


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("slow_copy(Both)", KernelKind.CUSTOM),
        ("own::histogram(int const*, float*, int, int)", KernelKind.CUSTOM),
        ("clustered(float*)", KernelKind.CUSTOM),
        ("triton_add", KernelKind.TRITON),
        ("triton_per_fused_add_mul_sin_sum_0", KernelKind.TRITON),
        ("nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT", KernelKind.VENDOR),
    ],
)
def test_whose_kernels_they_are(ranked: dict[str, RankedKernel], name: str, kind: KernelKind) -> None:
    assert ranked[name].kind is kind
    assert ranked[name].tunable is (kind is KernelKind.CUSTOM)


def test_the_slow_one_is_first_and_far_from_its_floor(capture: Capture) -> None:
    first = rank_kernels(capture)[0]
    assert first.demangled == "slow_copy(Both)"
    assert first.distance is not None
    assert 10 < first.distance < 15


def test_launches_as_they_were(capture: Capture) -> None:
    scale = one(capture, "scale_rows")
    assert scale.demangled == "void scale_rows<float, 1>(float*, float const*, float const*, int, int)"
    assert (scale.registers, scale.ptx_version, scale.sources) == (16, 90, ("own.cu",))
    (launch, _) = scale.launches
    assert (launch.grid, launch.block, launch.count) == ((4096, 1, 1), (256, 1, 1), 20)
    sizes = [argument.memory.extent for argument in launch.arguments if argument.memory]
    assert sizes == [64 << 20, 64 << 20, 2 << 20]
    assert [int.from_bytes(a.value, "little") for a in launch.arguments[3:]] == [4096, 4096]
    assert one(capture, "clustered").launches[0].cluster == (2, 1, 1)
    copied = one(capture, "slow_copy").launches[0].arguments[0]
    assert [pointer.at for pointer in copied.pointers] == [0, 8]
    assert copied.size == 24


def test_the_program_as_a_whole(capture: Capture) -> None:
    assert capture.graphs == 50
    assert capture.devices[0].name == "NVIDIA H200"
    assert math.isclose(capture.devices[0].bandwidth or 0.0, 4.8e12, rel_tol=0.01)
    assert capture.span > 100 * capture.seconds, "most of it is torch.compile"


def test_a_trace_as_the_library_wrote_it_there() -> None:
    """Of the same program, with --exact and --keep; before kept launches were timed."""
    data = gzip.decompress((FIXTURES / "captures" / "h200-exact.trace.gz").read_bytes())
    trace = read_trace("1510", data)
    assert not trace.notes
    program = CapturedProgram(("python3", "bench.py"), "", 12.0, 0)
    made = assemble_capture(program, [trace], StoredFiles(), demangle_names)
    assert made.kernels[0].demangled.startswith("void at::native::radixSortKVInPlace")
    scale = one(made, "scale_rows")
    assert (scale.count, scale.timed) == (40, 38)
    sizes = [argument.memory.size for argument in scale.launches[0].arguments if argument.memory]
    assert sizes == [64 << 20, 64 << 20, 16384], "exactly what the program asked for"
    kept = [(one.kernel, one.launch, len(one.ranges)) for one in made.kept]
    assert kept == [
        ("_Z10scale_rowsIfLi1EEvPT_PKS0_S3_ii", 5, 3),
        ("_Z10scale_rowsIfLi1EEvPT_PKS0_S3_ii", 6, 3),
        ("_ZN3own9histogramEPKiPfii", 7, 2),
        ("_Z9slow_copy4Both", 8, 2),
    ]
    follow = {(one.before, one.after): one.count for one in made.successions}
    assert follow[5, 6] == follow[6, 7] == follow[7, 8] == 20
    assert any("forked 1 time;" in note for note in made.notes)
