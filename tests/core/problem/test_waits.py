"""Launches that overlap: what waits for the launch ahead before it touches an array, and what does not."""

from __future__ import annotations

import pytest

from tests.hostile.cheats.cuda_cheats import RMSNORM, problem
from tunesmith.base.errors import BadInput
from tunesmith.problem.template_file import parse_template
from tunesmith.problem.vet import foreign_fault, vet_source

ORIGINAL = "__global__ void k(float *x, const float *y, int n) { x[0] = y[0]; }\n"
SYNC = "cudaGridDependencySynchronize();"
PTX = 'asm volatile("griddepcontrol.wait;" ::: "memory");'
HELPER = f"__device__ __forceinline__ void ahead() {{ {PTX} }}\n"
GUARDED = f"__device__ void ahead() {{\n#if __CUDA_ARCH__ >= 900\n{SYNC}\n#endif\n}}\n"
BOTH = (
    f"__device__ void ahead() {{\n#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 900)\n{SYNC}\n#endif\n}}\n"
)


def kernel(body: str, before: str = "") -> str:
    return f"{before}__global__ void k(float *x, const float *y, int n)\n{{\n{body}\n}}\n"


WAITS = {
    "at once": kernel(f"{SYNC} x[0] = y[0];"),
    "in PTX": kernel(f"{PTX} x[0] = y[0];"),
    "by its full name": kernel(f"::{SYNC} x[0] = y[0];"),
    "by a function": kernel("ahead(); x[0] = y[0];", HELPER),
    "by one that calls it": kernel("f(); x[0] = y[0];", HELPER + "__device__ void f() { ahead(); }\n"),
    "where there is one": kernel("ahead(); x[0] = y[0];", GUARDED),
    "where there is one, at length": kernel("ahead(); x[0] = y[0];", BOTH),
    "behind a trigger": kernel(f'asm volatile("griddepcontrol.launch_dependents;"); {PTX} x[0] = y[0];'),
    "behind indices": kernel(f"const int i = threadIdx.x * 4 + n; {SYNC} x[i] = y[i];"),
    "behind addresses": kernel(
        f"const float *p = y + n * 4, *q = p; auto v = reinterpret_cast<const float4 *>(p + n);\n{SYNC}"
    ),
    "behind shared memory": kernel(
        f"__shared__ float s[4][32]; for (int i = 0; i < 4; i++) {{ s[i][threadIdx.x] = 0.0f; }}"
        f" __syncthreads(); const int m = min(n, 4); {SYNC} x[0] = s[0][0] + y[m];"
    ),
    "behind a branch": kernel(f"int m = 0; if (n > 4) {{ m = 1; }} else {{ m = 2; }} {SYNC} x[m] = y[0];"),
}
DOES_NOT = {
    "never": kernel("x[0] = y[0];"),
    "elsewhere alone": kernel("x[0] = y[0];", HELPER),
    "at the end": kernel(f"x[0] = y[0]; {SYNC}"),
    "in a branch": kernel(f"if (n < 0) {SYNC} x[0] = y[0];"),
    "in a block of one": kernel(f"if (n < 0) {{ {SYNC} }} x[0] = y[0];"),
    "in the other branch": kernel(f"if (n > 0) n = 1; else {SYNC} x[0] = y[0];"),
    "in a loop": kernel(f"for (int i = 0; i < n; i++) {SYNC} x[0] = y[0];"),
    "in what is called in a branch": kernel("if (n < 0) ahead(); x[0] = y[0];", HELPER),
    "by a function that may not": kernel(
        "f(n); x[0] = y[0];", f"__device__ void f(int n) {{ if (n) {SYNC} }}\n"
    ),
    "by one that ends first": kernel(
        "f(n); x[0] = y[0];", f"__device__ void f(int n) {{ if (n) return; {SYNC} }}\n"
    ),
    "by a name of its own": kernel(
        f"{SYNC} x[0] = y[0];", "namespace a { __device__ void cudaGridDependencySynchronize() { } }\n"
    ),
    "by a predicate": kernel('asm volatile("@p griddepcontrol.wait;"); x[0] = y[0];'),
    "in a comment": kernel('asm volatile("// griddepcontrol.wait;"); x[0] = y[0];'),
    "if it has not ended": kernel(f"if (n > 9) return; {SYNC} x[0] = y[0];"),
    "when it has read": kernel(f"float a = y[0]; {SYNC} x[0] = a;"),
    "when it has read by a star": kernel(f"float a = *y; {SYNC} x[0] = a;"),
    "when it has read what it cast": kernel(f"float a = (float)*y; {SYNC} x[0] = a;"),
    "when it has read in parentheses": kernel(f"float a = (y + n)[0]; {SYNC} x[0] = a;"),
    "when it has read by an index": kernel(f"float a = 0[y]; {SYNC} x[0] = a;"),
    "when it has read by another name": kernel(f"const float *p = y + n; float a = p[0]; {SYNC} x[0] = a;"),
    "when it has read by a third": kernel(f"auto p = y; auto q = p; float a = *q; {SYNC} x[0] = a;"),
    "when a function has read": kernel(f"float a = __ldg(y); {SYNC} x[0] = a;"),
    "when a template has read": kernel(
        f"float a = f<1>(y); {SYNC} x[0] = a;",
        "template <int N> __device__ float f(const float *p) { return *p; }\n",
    ),
    "when PTX has read": kernel(
        f'float a; asm("ld.global.f32 %0, [%1];" : "=f"(a) : "l"(y)); {SYNC} x[0] = a;'
    ),
    "when an object has": kernel(
        f"S s{{y}}; float a = s.get(); {SYNC} x[0] = a;",
        "struct S { const float *p; __device__ float get() { return *p; } };\n",
    ),
    "when the one that waits has": kernel(
        "f(x); x[0] = y[0];", f"__device__ void f(float *p) {{ p[0] = 1.0f; {SYNC} }}\n"
    ),
}


@pytest.mark.parametrize("name", WAITS)
def test_waits(name: str) -> None:
    assert vet_source(WAITS[name], ORIGINAL, "cuda", (), ("k",)) is None


@pytest.mark.parametrize("name", DOES_NOT)
def test_does_not(name: str) -> None:
    found = vet_source(DOES_NOT[name], ORIGINAL, "cuda", (), ("k",))
    assert found is not None
    assert found.rule == "wait", found
    assert found.line
    assert "begin its body with cudaGridDependencySynchronize();" in found.words
    assert vet_source(DOES_NOT[name], ORIGINAL, "cuda") is None, "only where launches overlap"


def template(begin: str = "", end: str = "") -> str:
    text = RMSNORM.replace('// block = ["BLOCK"]', '// block = ["BLOCK"]\n// pdl = true')
    text = text.replace('"]  // args', '"]').replace("/*more*/", "").replace("/*head*/", "")
    return text.replace("/*begin*/", begin).replace("/*end*/", end)


def test_a_template_that_never_waits_is_no_template_whoever_wrote_it() -> None:
    own = problem("rmsnorm")
    with pytest.raises(BadInput, match="the code never waits") as refused:
        parse_template(template(begin=f"// {SYNC}"), path="t.cu", problem=own)
    assert "pdl = true" in str(refused.value)
    assert "begin its body with cudaGridDependencySynchronize();" in str(refused.value.hint)


def test_a_models_waits_before_it_reads() -> None:
    own = problem("rmsnorm")
    early, late = (
        parse_template(text, path="t.cu", problem=own) for text in (template(SYNC), template("", SYNC))
    )
    assert foreign_fault(own, early) is None
    assert "before it waits" in str(foreign_fault(own, late))
