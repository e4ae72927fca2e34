"""A kernel before there is a problem, in words: read or not and why, and what a draft would say."""

from __future__ import annotations

import pytest

from tunesmith.csource.nodes import Language
from tunesmith.expert.reading.draft import bare_kernels
from tunesmith.expert.reading.explained import ExplainedText, explain_text


def explained(
    text: str, language: Language = "cuda", entry: str | None = None, **defines: str
) -> ExplainedText:
    (bare,) = bare_kernels(text, "kernel.cu", language, entry, tuple(defines.items()))
    return explain_text(bare)


ROWS = """
__global__ void scale_rows(float* out, const float* in, const float* gain, float by, int d) {
    int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) out[row * d + i] = in[row * d + i] * gain[i] * by;
}
"""


def test_what_is_read_is_told_with_what_a_draft_fills_in_and_leaves() -> None:
    found = explained(ROWS)
    assert found.is_read
    assert found.obstacles == ()
    assert found.lines[0].startswith("scale_rows: independent tasks, one for each row below rows.")
    assert "blocks of 256 threads, a usual number" in found.lines[-1]
    assert "out: float32*, output, shape [rows, d]" in found.filled
    assert "launch: grid [rows], block [256]" in found.filled
    assert "independent: rows" in found.filled
    assert [line.split(":")[0] for line in found.left] == ["by, value", "sizes", "reference"]


def test_what_is_assumed_of_the_compiler_is_told_where_the_text_asks_for_it() -> None:
    asks = ROWS.replace("    int row", "#if __CUDA_ARCH__ >= 800\n    by *= 2.0f;\n#endif\n    int row")
    found = explained(asks)
    assert found.is_read
    assert "assumed to be that of NVRTC, C++17, sm_90: no compiler was asked" in found.lines[-1]
    assert not any("compiler" in line for line in explained(ROWS).lines)


def test_all_obstacles_are_told_at_once_each_with_its_line_and_what_to_change() -> None:
    found = explained(
        """
        __global__ void odd(float* out, int n) {
            int i = threadIdx.x;
            printf("here");
            if (i < n) out[i] = elsewhere(out[i]);
            asm volatile("bar.sync 0;");
        }
        """
    )
    assert not found.is_read
    assert [line.split(":")[0] for line in found.obstacles] == ["line 4", "line 5", "line 6"]
    assert all("(to change: " in line for line in found.obstacles)
    assert found.problem is not None
    assert "out, shape" in [line.split(":")[0] for line in found.left]


def test_what_the_text_leaves_open_is_told_with_what_the_body_hides() -> None:
    found = explained(
        """
        struct Shape { int rows, d; };
        __global__ void of(float* out, Shape shape, Texel by) { out[threadIdx.x] = elsewhere(shape.d); }
        """
    )
    shape, texel, call = found.obstacles
    assert shape.startswith("line 3: the type of shape, Shape, is not known (to change: pass its fields")
    assert texel.startswith("line 3: the type of by, Texel, is not known (to change: say it, as in --define")
    assert call.startswith("line 3: elsewhere is called")
    assert found.problem is None


def test_a_template_asks_for_its_arguments_as_a_launch_has_them() -> None:
    text = """
    template <typename T, int N> __global__ void copy(T* out, const T* in) {
        out[blockIdx.x * N + threadIdx.x] = in[blockIdx.x * N + threadIdx.x];
    }
    void run() { copy<float, 64><<<1, 64>>>(a, b); copy<half, 64><<<1, 64>>>(c, d); }
    """
    (obstacle,) = explained(text).obstacles
    assert "--entry 'copy<float, 64>'; line 5 launches it so" in obstacle
    assert explained(text, entry="copy<float, 64>").is_read


@pytest.mark.parametrize("language", ["cuda", "hip"])
def test_macros_of_the_build_settle_types(language: Language) -> None:
    text = "__global__ void twice(T* out, int n) { int i = threadIdx.x; if (i < n) out[i] *= FACTOR; }"
    assert "--define T=float" in explained(text, language).obstacles[0]
    found = explained(text, language, T="float", FACTOR="2.0f")
    assert found.is_read
    assert found.filled[0].startswith("out: float32*, inout")


def test_opencl() -> None:
    text = """
    __kernel void add(__global const T *a, __global T *out, int n) {
        int i = get_global_id(0);
        if (i < n) out[i] += a[i];
    }
    """
    found = explained(text, "opencl", T="float")
    assert found.is_read
    assert "out: float32*, inout, shape [n]" in found.filled


def test_every_kernel_of_a_file() -> None:
    text = ROWS + ROWS.replace("scale_rows", "other")
    assert [bare.entry for bare in bare_kernels(text, "kernel.cu", "cuda", None)] == ["scale_rows", "other"]
