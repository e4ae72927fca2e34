"""What a kernel's text alone says of its problem: shapes, launch, roles, and what it leaves to say."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tunesmith.csource.nodes import Language
from tunesmith.expert.model.words import explain_lines
from tunesmith.expert.reading.bare import BareFailure, BareReading, read_bare
from tunesmith.expert.reading.bare_text import not_said
from tunesmith.expert.reading.draft import bare_kernel, draft_problem

ZOO = Path(__file__).parents[2] / "fixtures" / "zoo"
LANGUAGES: dict[str, Language] = {".cu": "cuda", ".cl": "opencl", ".hip": "hip"}


def draft(text: str, language: Language = "cuda", entry: str | None = None) -> dict[str, Any]:
    return tomllib.loads(draft_problem(text, "kernel.cu", language, entry).files["problem.toml"])


def shapes(problem: dict[str, Any]) -> dict[str, list[str]]:
    return {one["name"]: one["shape"] for one in problem["argument"] if "shape" in one}


def reading(text: str) -> BareReading:
    found = read_bare(bare_kernel(text, "kernel.cu", "cuda", None))
    assert isinstance(found, BareReading)
    return found


ROWS = """
__global__ void scale_rows(float* out, const float* in, const float* gain, int d) {
    int row = blockIdx.x;
    for (int i = threadIdx.x; i < d; i += blockDim.x) out[row * d + i] = in[row * d + i] * gain[i];
}
"""


def test_only_sizes_and_workloads_of_a_row_kernel_are_left_to_say() -> None:
    made = draft_problem(ROWS, "kernel.cu", "cuda")
    problem = tomllib.loads(made.files["problem.toml"])
    assert shapes(problem) == {"out": ["rows", "d"], "in_": ["rows", "d"], "gain": ["d"]}
    assert problem["launch"] == {"grid": ["rows"], "block": ["256"]}
    assert problem["accuracy"]["independent"] == "rows"
    assert problem["contract"] == {"rows": {"min": 1, "max": "FILL"}, "d": {"min": 1, "max": "FILL"}}
    assert made.fills == 5  # two sizes, each in the contract and in a workload; the reference


def test_a_size_that_the_host_passes_has_the_name_of_the_kernel() -> None:
    problem = draft("""
        __global__ void twice(float *out, const float *x, int rows, int cols) {
            for (int i = threadIdx.x; i < cols; i += blockDim.x)
                out[blockIdx.x * cols + i] = 2 * x[blockIdx.x * cols + i];
        }
        void run(float *o, float *x, int r, int c) { twice<<<r, 256>>>(o, x, r, c); }
    """)
    assert shapes(problem) == {"out": ["rows", "cols"], "x": ["rows", "cols"]}
    assert problem["launch"]["grid"] == ["rows"]
    assert list(problem["contract"]) == ["rows", "cols"]


def test_wide_accesses_say_alignment_and_what_divides_a_size() -> None:
    problem = draft(
        """
        __global__ void twice(float* out, const float* in, int rows, int d) {
            const float4* from = reinterpret_cast<const float4*>(in + blockIdx.x * d);
            float4* to = reinterpret_cast<float4*>(out + blockIdx.x * d);
            for (int i = threadIdx.x; i < d / 4; i += blockDim.x) {
                float4 v = from[i];
                to[i] = make_float4(v.x * 2.0f, v.y * 2.0f, v.z * 2.0f, v.w * 2.0f);
            }
        }
        """
    )
    assert shapes(problem) == {"out": ["rows", "d"], "in_": ["rows", "d"]}
    assert {one["align"] for one in problem["argument"] if "shape" in one} == {16}
    assert problem["contract"]["d"] == {"min": 4, "max": "FILL", "multiple_of": 4}


def test_a_block_that_the_text_counts_on_is_found() -> None:
    found = reading(
        "__global__ void f(float* u, int w, int h) {"
        " int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;"
        " if (x < w && y < h) u[y * w + x] *= 2.0f; }"
    )
    assert (found.grid, found.block) == (("ceildiv(w, 16)", "ceildiv(h, 16)"), ("16", "16"))
    assert found.own_block


def test_what_only_data_tell_is_left_open() -> None:
    problem = draft(
        "__global__ void take(float* out, const float* table, const int* ids, int dim) {"
        " int token = blockIdx.x;"
        " for (int i = threadIdx.x; i < dim; i += blockDim.x)"
        " out[token * dim + i] = table[(long long)ids[token] * dim + i]; }"
    )
    assert shapes(problem) == {"out": ["tokens", "dim"], "table": ["FILL", "dim"], "ids": ["tokens"]}


def test_strides_that_nothing_orders_make_no_shape() -> None:
    problem = draft(
        "__global__ void f(float* out, int a_step, int b_step, int n) {"
        " for (int i = threadIdx.x; i < n; i += blockDim.x)"
        " out[blockIdx.x * a_step + blockIdx.y * b_step + i] = 1.0f; }"
    )
    assert shapes(problem) == {"out": ["FILL"]}


def test_rows_that_read_their_neighbours_are_not_independent() -> None:
    body = "if (y < h && x < w) out[y * w + x] = in[y * w + x]{more};"
    text = (
        "__global__ void f(float* out, const float* in, int h, int w) {"
        " int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y; "
    )
    alone = draft(text + body.format(more="") + "}")
    beside = draft(text + body.format(more=" + (y > 0 ? in[(y - 1) * w + x] : 0.0f)") + "}")
    assert alone["accuracy"]["independent"] == "h"
    assert shapes(beside) == shapes(alone) == {"out": ["h", "w"], "in_": ["h", "w"]}
    assert "independent" not in beside["accuracy"]


def test_scattered_stores_leave_the_rest_as_it_was() -> None:
    problem = draft(
        "__global__ void put(float* cache, const float* in, const int* slots, int d) {"
        " for (int i = threadIdx.x; i < d; i += blockDim.x)"
        " cache[slots[blockIdx.x] * d + i] = in[blockIdx.x * d + i]; }"
    )
    assert {one["name"]: one.get("role") for one in problem["argument"]}["cache"] == "inout"


def test_a_kernel_beyond_reading_is_drafted_as_before() -> None:
    text = (ZOO / "argmax" / "kernel.cu").read_text()
    found = read_bare(bare_kernel(text, "kernel.cu", "cuda", None))
    assert isinstance(found, BareFailure)
    assert "is carried from one element to the next" in found.reason.reason
    assert set(map(tuple, shapes(draft(text)).values())) == {("FILL",)}


BY_HAND = (
    "bias_relu_2d", "cl_softmax", "hip_silu", "int8_dynamic_quant", "layernorm", "matvec_in_memory",
    "moe_top2", "rope_interleaved", "split_parts", "stencil2d", "stencil5_rows",
)  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
@pytest.mark.few(5)
def test_drafts_agree_with_problems_written_by_hand(name: str) -> None:
    """Where something is said, it is the same; kernels' names for arrays may differ from the problem's."""
    [source] = (path for path in (ZOO / name).glob("kernel.*"))
    problem = tomllib.loads((ZOO / name / "problem.toml").read_text())
    made = draft_problem(
        source.read_text(), source.name, LANGUAGES[source.suffix], problem["kernel"]["entry"]
    )
    drafted = tomllib.loads(made.files["problem.toml"])
    for mine, theirs in zip(drafted["argument"], problem["argument"], strict=True):
        assert mine.get("role") == theirs.get("role")
        axes = zip(mine.get("shape", ()), theirs.get("shape", ()), strict=True)
        assert all(one in ("FILL", other) for one, other in axes)
    axes = zip(drafted["launch"]["grid"], problem["launch"]["grid"], strict=True)
    assert all(one.split(",")[0] == other.split(",")[0] for one, other in axes)


ROTATE = """template <typename T, int HEAD_DIM>
__global__ void rotate(T *q, const float *angle, int heads) {
  int token = blockIdx.x, head = blockIdx.y, i = threadIdx.x;
  T *row = q + (token * heads + head) * HEAD_DIM;
  if (i < HEAD_DIM / 2) {
    float c = cosf(angle[token * (HEAD_DIM / 2) + i]), s = sinf(angle[token * (HEAD_DIM / 2) + i]);
    float a = row[i], b = row[i + HEAD_DIM / 2];
    row[i] = a * c - b * s;
    row[i + HEAD_DIM / 2] = b * c + a * s;
  }
}"""


def test_a_size_in_the_entry_is_a_size_of_the_draft() -> None:
    problem = draft(ROTATE, entry="rotate<float, {head_dim}>")
    assert problem["kernel"]["entry"] == "rotate<float, {head_dim}>"
    assert shapes(problem) == {"q": ["tokens", "heads", "head_dim"], "angle": ["tokens", "head_dim // 2"]}
    assert problem["launch"]["grid"] == ["tokens", "heads"]
    assert list(problem["contract"]) == ["tokens", "heads", "head_dim"]


def test_two_halves_of_a_row_are_the_whole_of_it() -> None:
    problem = draft(ROTATE, entry="rotate<float, 128>")
    assert shapes(problem) == {"q": ["tokens", "heads", "128"], "angle": ["tokens", "64"]}
    third = ROTATE.replace("HEAD_DIM / 2", "HEAD_DIM / 4")
    assert shapes(draft(third, entry="rotate<float, 128>")) == {"q": ["FILL"], "angle": ["FILL"]}


def test_where_types_follow_a_size_of_the_entry_a_number_is_asked_for() -> None:
    text = (
        "template <int N> struct some { float at[N]; __device__ float &operator[](int i) { return at[i]; }"
        " };\n"
        "template <int N> __global__ void f(float *x) {"
        " some<N> *all = reinterpret_cast<some<N> *>(x);"
        " some<N> v = all[blockIdx.x * blockDim.x + threadIdx.x];"
        " for (int k = 0; k < N; ++k) v[k] = v[k] + 1.0f;"
        " all[blockIdx.x * blockDim.x + threadIdx.x] = v; }"
    )
    found = read_bare(bare_kernel(text, "k.cu", "cuda", "f<{n}>"))
    assert isinstance(found, BareFailure)
    assert (
        "types depend on {n}: say a number in its place to have it read, as in --entry 'f<128>'"
        in found.reason.reason
    )


VECTORS = """template <typename T, int N> struct {alignas} vec_t {{
  T at[N];
  __device__ T &operator[](int i) {{ return at[i]; }}
  __device__ void load(const T *p) {{ *this = *reinterpret_cast<const vec_t *>(p); }}
  __device__ void store(T *p) const {{ *reinterpret_cast<vec_t *>(p) = *this; }}
}};
__global__ void twice(float *out, const float *in, int d) {{
  for (int i = threadIdx.x * 4; i < d; i += blockDim.x * 4) {{
    vec_t<float, 4> v;
    v.load(in + blockIdx.x * d + i);
    for (int k = 0; k < 4; ++k) v[k] = v[k] * 2.0f;
    v.store(out + blockIdx.x * d + i);
  }}
}}"""


def test_vector_classes_say_how_arrays_lie_and_what_divides_rows() -> None:
    problem = draft(VECTORS.format(alignas="alignas(sizeof(T) * N)"))
    assert [one.get("align") for one in problem["argument"]] == [16, 16, None]
    assert problem["contract"]["d"] == {"min": 4, "max": "FILL", "multiple_of": 4}
    loose = draft(VECTORS.format(alignas=""))
    assert [one.get("align") for one in loose["argument"]] == [None, None, None]
    assert loose["contract"]["d"]["multiple_of"] == 4


TREE = """__kernel void total(__global float *out, __global const float *x, int n, __local float *part) {
  int lid = get_local_id(0);
  float sum = 0.0f;
  for (int i = lid; i < n; i += get_local_size(0)) sum += x[get_group_id(0) * n + i];
  part[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int s = get_local_size(0) / 2; s > 0; s >>= 1) {
    if (lid < s) part[lid] += part[lid + s];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lid == 0) out[get_group_id(0)] = part[0];
}"""


def test_local_memory_is_as_long_as_threads_store() -> None:
    problem = draft(TREE, "opencl")
    assert shapes(problem)["part"] == problem["launch"]["block"] == ["256"]
    twice = TREE.replace("part[", "part[2 * ").replace("2 * lid + s", "2 * (lid + s)")
    assert shapes(draft(twice, "opencl"))["part"] == ["FILL"]


def test_places_that_are_kept_inside_tell_how_far_an_array_goes() -> None:
    text = (
        "__global__ void blur(float *dst, const float *src, int width, int height) {"
        " int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;"
        " if (x >= width || y >= height) return;"
        " float sum = 0.0f;"
        " for (int dy = -1; dy <= 1; ++dy) for (int dx = -1; dx <= 1; ++dx)"
        "  sum += src[min(max(y + dy, 0), height - 1) * width + min(max(x + dx, 0), width - 1)];"
        " dst[y * width + x] = sum; }"
    )
    assert shapes(draft(text)) == {"dst": ["height", "width"], "src": ["height", "width"]}
    assert any("a loop of 3 turns" in line for line in explain_lines(reading(text).kernel))


SOFTMAX = """__global__ void softmax(float *out, const float *x, int n) {
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 32) {
    float e = expf(x[blockIdx.x * n + i]);
    %s
    sum += e;
  }
  for (int m = 16; m > 0; m >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, m);
  for (int i = threadIdx.x; i < n; i += 32) out[blockIdx.x * n + i] /= sum;
}"""


@pytest.mark.parametrize(
    ("store", "role"),
    [
        ("out[blockIdx.x * n + i] = e;", "output"),
        ("if (e > 1.0f) out[blockIdx.x * n + i] = e;", "inout"),
        ("out[blockIdx.x * n + i] += e;", "inout"),
        ("", "inout"),
    ],
)
@pytest.mark.few(2)
def test_what_a_loop_has_stored_in_every_turn_is_no_input(store: str, role: str) -> None:
    assert draft(SOFTMAX % store)["argument"][0]["role"] == role


def test_what_a_template_is_asked_for_is_of_its_kind() -> None:
    text = "template <typename T, bool B, int N> __global__ void f(T *x) { x[threadIdx.x] = N; }"
    assert not_said(bare_kernel(text, "k.cu", "cuda", None)) == [
        "its template arguments are not known: say them, as in --entry 'f<float, true, 128>'"
    ]
