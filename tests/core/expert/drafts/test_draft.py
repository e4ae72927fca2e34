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
from tunesmith.base.errors import BadInput
from tunesmith.expert.drafts.draft import Draft, draft_problem
from tunesmith.problem.problem_file import parse_problem
from tunesmith.source.tree import Language

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


def test_every_fill_has_a_comment() -> None:
    for text, language in ((VECTOR_ADD, "opencl"), (SILU, "cuda"), (SAXPY, "cuda")):
        _, made = draft(text, language)  # type: ignore[arg-type]
        lines = made.files["problem.toml"].splitlines()
        unexplained = [line for line in lines if "FILL" in line and not re.search(r"FILL.*# \w", line)]
        assert unexplained == [lines[0]]


def test_filled_in_it_is_a_problem() -> None:
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


def test_the_skeleton_says_what_is_missing() -> None:
    namespace: dict[str, Any] = {}
    exec(draft(SAXPY)[1].files["reference.py"], namespace)
    with pytest.raises(NotImplementedError, match=r"FILL: compute y of saxpy .* reference\.py"):
        namespace["saxpy"](x=1, y=2, alpha=3.0, n=4)


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
