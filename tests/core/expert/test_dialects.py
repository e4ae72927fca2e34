"""Templates in another language: the expert's from what it read, others by their names, or refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.lab.labs import lab
from tests.cuda_here import needs_nvrtc
from tests.opencl_here import needs_opencl
from tests.running import EXAMPLES, tunesmith
from tunesmith.backends import absent_device, make_backend
from tunesmith.backends.messages import Unit
from tunesmith.expert import dialects
from tunesmith.expert.author import try_read_kernel
from tunesmith.expert.moves import PARAMETERS
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Variant
from tunesmith.problem.template_file import parse_template
from tunesmith.run.ports import Declined, Refactoring, Written
from tunesmith.session.problems import load_problem

TASK = Refactoring(tuple(PARAMETERS))


def made(name: str, to: str, device: str | None = None) -> tuple[Problem, Variant, str]:
    """The problem in that language, with the template's own kernel at its default."""
    problem, _ = load_problem(EXAMPLES / name)
    kernel = try_read_kernel(problem)
    assert not isinstance(kernel, str), kernel
    there = dialects.problem_in(problem, to)
    limits = absent_device(to, device)
    if limits is None:
        (limits, *_) = make_backend(to).devices()
    written = dialects.write_in(TASK, problem, limits, kernel, to)
    assert isinstance(written, Written), written
    template = parse_template(written.text, path=there.kernel.path, problem=there)
    return there, template.render(there, template.default, there.workloads[0].as_dict()), written.text


@needs_nvrtc
@pytest.mark.parametrize("name", ["hip/layernorm", "hip/bias_gelu", "opencl/rmsnorm"])
@pytest.mark.few(2)
def test_to_cuda(name: str) -> None:
    _, variant, text = made(name, "cuda", "H200")
    assert "hip" not in text.partition("// ///\n")[2].replace("// /// tunesmith", "")
    device = absent_device("cuda", "H200")
    assert device is not None
    unit = Unit("k.cu", variant.source, "cuda", variant.flags, variant.entries)
    assert make_backend("cuda").build(unit, device).resources.spills == 0


@needs_nvrtc
@pytest.mark.parametrize("name", ["cuda/rmsnorm", "cuda/silu_and_mul", "cuda/fused_add_rmsnorm"])
@pytest.mark.few(2)
def test_to_hip(name: str) -> None:
    """Built by NVRTC through our headers: clang for AMD need not be here."""
    _, variant, text = made(name, "hip")
    assert "#include <hip/hip_runtime.h>" in text
    assert "__nv_" not in text
    assert "_sync(" not in text
    device = absent_device("cuda", "H200")
    assert device is not None
    unit = Unit("k.hip", variant.source, "hip", variant.flags, variant.entries)
    assert make_backend("cuda").build(unit, device).resources.spills == 0


@needs_opencl
@pytest.mark.long
def test_to_opencl_it_computes_the_same() -> None:
    """Checked as a kernel of its own, against the reference of the HIP example."""
    there, variant, text = made("hip/softmax", "opencl")
    assert "__kernel" in text
    small = replace(there, contract=replace(there.contract, sizes=tuple(
        replace(rule, max=min(rule.max, 40)) for rule in there.contract.sizes)))  # fmt: skip
    shape = {"rows": 7, "d": 37}
    workload = replace(there.workloads[0], sizes=tuple(shape.items()))
    kernel = replace(there.kernel, text=variant.source, entry=variant.entries[0])
    own = replace(small, kernel=kernel, launches=variant.launches, workloads=(workload,))
    with lab(own, spec="opencl", baseline=False) as harness:
        assert harness.lab.check() >= 10


@pytest.mark.parametrize(
    ("text", "source", "to", "word"),
    [
        ("float y = __shfl_xor_sync(0xffffffffu, x, 16);", "cuda", "hip", "'__shfl_xor_sync' (line 1)"),
        ('\nasm volatile("bar.sync 0;");', "cuda", "hip", "'asm' (line 2)"),
        ("__stcs(&a, b);", "cuda", "hip", "AMD's hints are others"),
        ("__nv_fp8_e4m3 x;", "cuda", "hip", "'__nv_fp8_e4m3'"),
        ("float y = __shfl_xor(x, 16);", "hip", "cuda", "the width of a wave is in it"),
        ("__builtin_amdgcn_s_barrier();", "hip", "cuda", "clang's for AMD"),
        ("__kernel void k() {}", "opencl", "cuda", "address spaces"),
    ],
)
def test_what_is_more_than_a_name_is_refused_with_the_word(
    text: str, source: str, to: str, word: str
) -> None:
    found = dialects.translate_names(text, source, to)
    assert isinstance(found, Declined)
    assert word in found.reason


def test_names_that_are_all_it_takes() -> None:
    text = "#include <cuda_bf16.h>\n// asm\n__global__ void k(__nv_bfloat16 *x) { x[threadIdx.x] = x[0]; }\n"
    there = dialects.translate_names(text, "cuda", "hip")
    assert isinstance(there, Written)
    assert there.text.startswith("#include <hip/hip_runtime.h>\n#include <hip/hip_bf16.h>\n")
    assert "__hip_bfloat16 *x" in there.text
    back = dialects.translate_names(there.text, "hip", "cuda")
    assert isinstance(back, Written)
    assert back.text == text
    assert dialects.translate_names("int i = hipThreadIdx_x;", "hip", "cuda") == Written(
        "int i = threadIdx.x;", ()
    )


def test_types_without_a_word_are_refused() -> None:
    problem, _ = load_problem(EXAMPLES / "cuda" / "rmsnorm")
    kernel, device = try_read_kernel(problem), absent_device("cuda", "H200")
    assert not isinstance(kernel, str)
    assert device is not None
    found = dialects.write_in(TASK, problem, device, kernel, "opencl")
    assert found == Declined("__nv_bfloat16 of 'out' has no word in both languages")


@pytest.mark.long
def test_the_command(tmp_path: Path) -> None:
    ended = tunesmith(tmp_path, "template", EXAMPLES / "cuda/silu_and_mul", "--to", "hip", "--out", "x.hip")
    assert ended.code == 0, ended.err
    assert "it goes with a problem whose kernel is hip" in ended.out
    assert "amdgpu_waves_per_eu" in (tmp_path / "x.hip").read_text()
    own = ("--to", "hip", "--template", EXAMPLES / "cuda/silu_and_mul/template.cu")
    refused = tunesmith(tmp_path, "template", EXAMPLES / "cuda/silu_and_mul", *own)
    assert refused.code == 0
    assert "is more than a name" in refused.err
    for wrong in (("--to", "metal"), ("--template", "x.hip"), ("--to", "hip", "--moves", "lanes")):
        assert tunesmith(tmp_path, "template", EXAMPLES / "cuda/silu_and_mul", *wrong).code == 2
