"""Drafted problem folders: faithful where the source speaks, FILL where only the user knows."""

from __future__ import annotations

import re
import textwrap
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thoroughness import examples
from tunesmith.csource.nodes import Language
from tunesmith.errors import BadInput
from tunesmith.expert.reading.arguments import looks_like_a_size
from tunesmith.expert.reading.draft import Draft, draft_problem
from tunesmith.problem.argument_tables import TOLERANCES
from tunesmith.problem.problem_file import parse_problem

VECTOR_ADD = """
__kernel void add(__global const float* a, __global const float* b, __global float* out, const int n) {
    int i = get_global_id(0);
    if (i < n) out[i] = a[i] + b[i];
}
"""
SILU = """
template <typename T>
__global__ void silu_and_mul(T* __restrict__ out, const T* __restrict__ in, const int d) {
    const T* x = in + blockIdx.x * 2 * d;
    for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = x[i] * x[i + d];
}
void run(half* out, half* in, int tokens, int width) {
    silu_and_mul<half><<<tokens, std::min(width, 1024)>>>(out, in, width);
}
"""
SAXPY = """
#define BLOCK 128
extern "C" __global__ void saxpy(int n, float alpha, const float* x, float* y) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) y[i] += alpha * x[i];
}
void run(int count) {
    dim3 grid((count + BLOCK - 1) / BLOCK);
    saxpy<<<grid, BLOCK>>>(count, 2.0f, x, y);
}
"""


def draft(text: str, language: Language = "cuda", entry: str | None = None) -> tuple[dict[str, Any], Draft]:
    made = draft_problem(textwrap.dedent(text), "kernel.cu", language, entry)
    compile(made.files["reference.py"], "reference.py", "exec")
    return tomllib.loads(made.files["problem.toml"]), made


def arguments(problem: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {argument["name"]: argument for argument in problem["argument"]}


class TestProblem:
    def test_how_to_say_that_floats_are_tame_stands_beside_each_float_that_is_read(self) -> None:
        made = draft(SAXPY)[1].files["problem.toml"]
        tables = {table.splitlines()[1]: table for table in made.split("[[argument]]")[1:]}
        offered = {name for name, table in tables.items() if '\n# values = "normal"' in table}
        assert offered == {'name = "x"', 'name = "y"'}
        uncommented = tomllib.loads(made.replace("# values", "values"))
        assert arguments(uncommented)["x"]["values"] == "normal"

    def test_how_to_promise_alignment_stands_beside_each_array_of_a_gpu_kernel(self) -> None:
        made = draft(SAXPY)[1].files["problem.toml"]
        assert made.count("\n# align = 16") == 2
        promised = arguments(tomllib.loads(made.replace("# align", "align")))
        assert {name for name, table in promised.items() if "align" in table} == {"x", "y"}
        assert "align" not in draft(VECTOR_ADD, "opencl")[1].files["problem.toml"]

    def test_opencl(self) -> None:
        problem, made = draft(VECTOR_ADD, "opencl")
        assert set(made.files) == {"problem.toml", "reference.py"}
        assert problem["name"] == "add"
        assert problem["kernel"] == {"source": "kernel.cu", "entry": "add", "language": "opencl", "flags": []}
        assert problem["argument"] == [
            {"name": "a", "type": "float32*", "shape": ["n"], "role": "input"},
            {"name": "b", "type": "float32*", "shape": ["n"], "role": "input"},
            {"name": "out", "type": "float32*", "shape": ["n"], "role": "output"},
            {"name": "n", "type": "int32", "value": "n"},
        ]
        assert problem["launch"] == {"grid": ["ceildiv(n, 256)"], "block": ["256"]}
        assert "say what callers launch" in made.files["problem.toml"]
        assert problem["contract"] == {"n": {"min": 1, "max": "FILL"}}
        assert problem["workloads"] == {"example": {"n": "FILL"}}
        rtol, atol = TOLERANCES["float32"]
        assert problem["accuracy"] == {"reference": "reference.py:add", "rtol": rtol, "atol": atol}

    def test_every_fill_has_a_comment(self) -> None:
        for text, language in ((VECTOR_ADD, "opencl"), (SILU, "cuda"), (SAXPY, "cuda")):
            _, made = draft(text, language)  # type: ignore[arg-type]
            lines = made.files["problem.toml"].splitlines()
            unexplained = [line for line in lines if "FILL" in line and not re.search(r"FILL.*# \w", line)]
            assert unexplained == [lines[0]]

    def test_filled_in_it_is_a_problem(self) -> None:
        _, made = draft(VECTOR_ADD, "opencl")
        text = made.files["problem.toml"]
        with pytest.raises(BadInput, match=f"{made.fills} places still say FILL"):
            parse_problem(text, path="problem.toml", read=lambda name: made.files.get(name, VECTOR_ADD))
        for old, new in (
            ('max = "FILL"', "max = 1000"),
            ('n = "FILL"', "n = 100"),
        ):
            assert old in text
            text = text.replace(old, new)
        with pytest.raises(BadInput, match=r"^reference.py:11: 1 place still says FILL: raise NotImpl"):
            parse_problem(text, path="problem.toml", read=lambda name: made.files.get(name, VECTOR_ADD))
        files = {"kernel.cu": VECTOR_ADD, "reference.py": "def add(*, a, b): return a + b"}
        problem = parse_problem(text, path="problem.toml", read=files.__getitem__)
        assert [argument.role for argument in problem.arguments] == ["input", "input", "output", "scalar"]

    def test_template(self) -> None:
        problem, made = draft(SILU + "void other() { silu_and_mul<float><<<8, 32>>>(out, in, 8); }")
        assert problem["kernel"]["entry"] == "silu_and_mul<FILL>"
        assert "line 8 launches silu_and_mul<half>" in made.files["problem.toml"]
        assert arguments(problem)["out"]["type"] == "FILL*"
        assert problem["accuracy"]["rtol"] == problem["accuracy"]["atol"] == "FILL"
        assert problem["launch"] == {"grid": ["FILL"], "block": ["min(d, 1024)"]}
        assert "line 8 says tokens" in made.files["problem.toml"]

    def test_a_name_python_cannot_have(self) -> None:
        problem, made = draft(SILU)
        assert list(arguments(problem)) == ["out", "in_", "d"]
        assert "def silu_and_mul(*, in_, tokens, d):" in made.files["reference.py"]

    def test_template_arguments_chosen(self) -> None:
        problem, _ = draft(SILU, entry="silu_and_mul<__half>")
        assert problem["kernel"]["entry"] == "silu_and_mul<__half>"
        assert arguments(problem)["out"]["type"] == "float16*"
        assert (problem["accuracy"]["rtol"], problem["accuracy"]["atol"]) == TOLERANCES["float16"]

    def test_launch_site(self) -> None:
        problem, _ = draft(SAXPY)
        assert problem["launch"] == {"grid": ["ceildiv(n, 128)"], "block": ["128"]}
        found = arguments(problem)
        assert found["alpha"] == {"name": "alpha", "type": "float32", "value": "FILL"}
        assert found["y"]["role"] == "inout"

    def test_hip_with_shared_memory(self) -> None:
        problem, _ = draft(
            """
            __global__ void rows(const float* in, float* out, int rows, int cols) { out[rows] = in[cols]; }
            void run(int r, int c) {
                const int threads = 64;
                int shared = threads * sizeof(float);
                hipLaunchKernelGGL(rows, dim3(r, 1, 1), dim3(threads), shared, 0, in, out, r, c);
            }
            """,
            "hip",
        )
        assert problem["kernel"]["language"] == "hip"
        assert problem["launch"] == {"grid": ["rows"], "block": ["64"], "shared": "256"}

    @pytest.mark.parametrize(
        "host",
        [
            "void run(int c) { int g = c / 2; if (c) g = 1; k<<<g, 64>>>(p, c); }",
            "void run(int c) { int g = c / 2; c = 7; k<<<g, 64>>>(p, c); }",
            "void run(int c) { int g; cudaOccupancy(&g); k<<<g, 64>>>(p, c); }",
            "void run(int c) { dim3 g; g.x = c; k<<<g, 64>>>(p, c); }",
            "const int g = 4; void run(int g, int c) { k<<<g, 64>>>(p, c); }",
            "void run(int c) { k<<<c, 64>>>(p, next_pow2(c)); }",
        ],
    )
    def test_a_launch_that_is_not_plain_is_not_guessed(self, host: str) -> None:
        problem, _ = draft("__global__ void k(float* p, int n) { p[n] = 1; }\n" + host)
        assert problem["launch"] == {"grid": ["FILL"], "block": ["64"]}

    def test_one_host_name_for_two_sizes_means_neither(self) -> None:
        problem, _ = draft(
            "__global__ void k(float* p, int m, int n) { p[n] = m; }\n"
            "void run(int c) { k<<<c, 64>>>(p, c, c); }"
        )
        assert problem["launch"]["grid"] == ["FILL"]

    def test_local_memory_and_required_group_size(self) -> None:
        problem, _ = draft(
            """
            #define TILE 16
            __kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
            void t(__global const float4* in, __global float* out, __local float* tile, int width) {
                out[width] = tile[0] + in[0].x;
            }
            """,
            "opencl",
        )
        assert problem["launch"] == {"grid": ["FILL"], "block": ["16", "16"]}
        found = arguments(problem)
        assert found["tile"] == {"name": "tile", "type": "float32*", "shape": ["FILL"], "role": "local"}
        assert (found["in_"]["type"], found["in_"]["align"]) == ("float32*", 16)

    def test_what_cannot_be_known(self) -> None:
        problem, made = draft(
            "__global__ void k(Params p, float4 v, float* x, int* idx, int stride)"
            "{ mystery(x); use(idx[0]); }"
        )
        found = arguments(problem)
        assert [found[name]["type"] for name in ("p", "v")] == ["FILL", "FILL"]
        assert found["x"]["role"] == found["idx"]["role"] == "FILL"
        assert found["stride"]["value"] == "FILL"
        assert problem["contract"] == {"FILL": {"min": 1, "max": "FILL"}}
        assert problem["workloads"] == {"example": {"FILL": "FILL"}}
        assert "def k(*, x, idx, p, v, stride):" in made.files["reference.py"]

    def test_dynamic_shared_memory_without_a_launch(self) -> None:
        problem, _ = draft("__global__ void k(int* p, int n) { extern __shared__ int s[]; p[n] = s[0]; }")
        assert problem["launch"]["shared"] == "FILL"

    def test_tolerances_by_type(self) -> None:
        integers, _ = draft("__global__ void k(int* p, int n) { p[n] = 1; }")
        assert "rtol" not in integers["accuracy"]
        mixed, _ = draft("__global__ void k(float* p, __half* q, int* r, int n) { p[n] = q[n] = r[n] = 1; }")
        assert mixed["accuracy"]["rtol"] == TOLERANCES["float32"][0]
        found = arguments(mixed)
        assert found["q"]["rtol"] == TOLERANCES["float16"][0]
        assert "rtol" not in found["p"]
        assert "rtol" not in found["r"]


class TestReference:
    def test_the_skeleton_says_what_is_missing(self) -> None:
        _, made = draft(SAXPY)
        namespace: dict[str, Any] = {}
        exec(made.files["reference.py"], namespace)
        with pytest.raises(NotImplementedError, match=r"FILL: compute y of saxpy .* reference\.py"):
            namespace["saxpy"](x=1, y=2, alpha=3.0, n=4)

    def test_several_outputs(self) -> None:
        _, made = draft("__global__ void k(float* a, float* b, int n) { a[n] = b[n] = 1; }")
        assert "{'a': ..., 'b': ...}" in made.files["reference.py"]


class TestChoice:
    TWO = "__global__ void one(int* p) { *p = 1; } namespace s { __global__ void two(int* p) { *p = 1; } }"

    def test_several_kernels_need_a_choice(self) -> None:
        with pytest.raises(BadInput, match="defines 2: one, s::two") as caught:
            draft(self.TWO)
        assert "--entry one" in (caught.value.hint or "")
        assert caught.value.where == "kernel.cu"

    @pytest.mark.parametrize(("entry", "found"), [("one", "one"), ("two", "s::two"), ("s::two", "s::two")])
    def test_chosen(self, entry: str, found: str) -> None:
        problem, _ = draft(self.TWO, entry=entry)
        assert problem["kernel"]["entry"] == found

    def test_the_others_are_asked_for(self) -> None:
        text = VECTOR_ADD + VECTOR_ADD.replace("add", "other")
        problem, made = draft(text, "opencl", entry="add")
        assert "launch other kernels of the file too (other)?" in made.files["problem.toml"]
        assert problem["launch"] == {"grid": ["ceildiv(n, 256)"], "block": ["256"]}
        assert "too (" not in draft(VECTOR_ADD, "opencl")[1].files["problem.toml"]

    def test_unknown(self) -> None:
        with pytest.raises(BadInput, match="got 'three', it defines one, s::two"):
            draft(self.TWO, entry="three")


@pytest.mark.parametrize(
    "name", ["n", "N", "rows", "num_tokens", "hidden_size", "nRows", "seqLen", "d", "HEAD_DIM"]
)
def test_sizes(name: str) -> None:
    assert looks_like_a_size(name)


@pytest.mark.parametrize("name", ["seed", "row_stride", "lda", "batch_idx", "causal", "offset", "i", "alpha"])
def test_no_sizes(name: str) -> None:
    assert not looks_like_a_size(name)


WORD = st.sampled_from(
    ["in", "n", "rows", "é", "lambda", "FILL", "weight", "device", "min", "x1", "None", "p"]
)
TYPE = st.sampled_from(
    ["float*", "const half*", "int", "float", "T*", "X", "float4*", "float4", "double**", "bool"]
)
HOST = st.sampled_from(
    ["n", "(n + 3) / 4", "dim3(2, n)", "f(n)", '"\x7f"', "n ? 1 : 2", "'\\n'", "{1, 2}", ""]
)


@examples()
@given(
    declared=st.lists(st.tuples(TYPE, WORD), max_size=6),
    template=st.booleans(),
    geometry=st.tuples(HOST, HOST, HOST),
    file_name=st.text(min_size=1),
    body=st.text(alphabet="pn[]=+*;(){} \n1in&", max_size=40),
)
def test_every_draft_is_valid(
    declared: list[tuple[str, str]], template: bool, geometry: tuple[str, str, str], file_name: str, body: str
) -> None:
    parameters = ", ".join(f"{type_} {name}" for type_, name in declared)
    head = "template <typename T>\n" if template else ""
    launch = f"void run(int n) {{ k<<<{', '.join(geometry)}>>>(n); }}"
    text = f"{head}__global__ void k({parameters}) {{ {body} }}\n{launch}"
    made = draft_problem(text, file_name, "cuda", "k")
    problem = tomllib.loads(made.files["problem.toml"])
    assert len(problem.get("argument", [])) == len(declared)
    compile(made.files["reference.py"], "reference.py", "exec")
