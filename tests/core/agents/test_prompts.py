"""What the prompts say an author may and may not write is what is accepted and refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.opencl_here import needs_opencl
from tests.samples import a_problem, state_of
from tunesmith.agents.material import build_part
from tunesmith.agents.prompting import own_prompt
from tunesmith.backends.hip.compile import read_flags as hip_flags
from tunesmith.problem.vet import vet_flags, vet_source

AUTHORS, PLANNERS = ("author", "author_rewrite", "single"), ("planner", "planner_rewrite")
ORIGINAL = "__kernel void k(__global float *o, __global const float *x, int n) { o[0] = x[0]; }\n"
CUDA = "__global__ void k(float *o, const float *x, int n) { o[0] = x[0]; }\n"


def kernel(body: str, before: str = "") -> str:
    return (
        f"{before}\n__kernel void k(__global float *o, __global const float *x, int n)\n"
        f"{{ int i = get_global_id(0); o[i] = x[i]; {body} }}\n"
    )


def function(attribute: str, name: str = "f") -> str:
    return f"__attribute__(({attribute})) float {name}(float a) {{ return 2.0f * a; }}"


BUILT_INS = {
    "__builtin_prefetch": "__builtin_prefetch(x + i + 64);",
    "__builtin_nontemporal_load": "o[i] = __builtin_nontemporal_load(x + i);",
    "__builtin_nontemporal_store": "__builtin_nontemporal_store(vload4(i, x), (__global float4 *)o + i);",
    "__builtin_shufflevector": "float4 v = vload4(i, x); o[i] = __builtin_shufflevector(v, v, 3, 2, 1, 0).x;",
    "__builtin_expect": "if (__builtin_expect(i < n, 1)) o[i] = 1.0f;",
    "__builtin_assume": "__builtin_assume(n > 0);",
}
ATTRIBUTES = {
    "always_inline": ("inline " + function("always_inline"), "o[i] = f(x[i]);"),
    "noinline": (function("noinline"), "o[i] = f(x[i]);"),
    "aligned": (
        "typedef struct { float a; } __attribute__((aligned(16))) S;",
        "S s; s.a = x[i]; o[i] = s.a;",
    ),
    "packed": (
        "typedef struct __attribute__((packed)) { char c; float a; } S;",
        "S s; s.a = x[i]; o[i] = s.a;",
    ),
    "unused": ("", "int j __attribute__((unused)) = 1;"),
    "const": (function("const"), "o[i] = f(x[i]);"),
    "pure": (function("pure"), "o[i] = f(x[i]);"),
    "overloadable": (function("overloadable"), "o[i] = f(x[i]);"),
    "reqd_work_group_size": ("__attribute__((reqd_work_group_size(64, 1, 1)))", ""),
    "work_group_size_hint": ("__attribute__((work_group_size_hint(64, 1, 1)))", ""),
    "opencl_unroll_hint": (
        "",
        "__attribute__((opencl_unroll_hint(4))) for (int j = 0; j < 8; j++) o[j] = j;",
    ),
}
ALLOWED = {name: kernel(body) for name, body in BUILT_INS.items()}
ALLOWED |= {name: kernel(body, before) for name, (before, body) in ATTRIBUTES.items()}


def test_what_authors_are_told_is_what_is_tested_here() -> None:
    text = build_part(a_problem(), state_of()).text
    assert set(re.findall(r"__builtin_\w+", text)) == BUILT_INS.keys()
    attributes = text.split("`__attribute__((...))`:")[1].splitlines()[0]
    assert set(re.findall(r"`(\w+)`", attributes)) == ATTRIBUTES.keys()
    assert "begin with `-cl-`" in text


@pytest.mark.parametrize("prompt", AUTHORS)
def test_authors_are_told_where_the_rules_of_the_build_are(prompt: str) -> None:
    assert build_part(a_problem(), state_of()).heading in own_prompt(prompt)


@pytest.mark.parametrize("prompt", [*AUTHORS, *PLANNERS])
def test_everybody_is_told_which_configuration_serves(prompt: str) -> None:
    text = " ".join(own_prompt(prompt).split())
    assert re.search(r"Each workload is served by the (configuration|kernel) that is fastest there", text)
    assert "<<" not in text, "every shared part is in its place"


@pytest.mark.parametrize("prompt", [*AUTHORS, *PLANNERS])
def test_nobody_is_told_what_hinders(prompt: str) -> None:
    text = " ".join(own_prompt(prompt).split())
    assert "close to what the kernel does today" not in text
    assert "our to seven parameters" not in text


@pytest.mark.parametrize("prompt", AUTHORS)
def test_authors_are_told_each_rule_that_test_template_rules_proves(prompt: str) -> None:
    text = " ".join(own_prompt(prompt).split())
    rules = ["the original serves", "leaves one out elsewhere", "defines above it", "needs no `#ifndef`"]
    rules += ["`[launch]`, `[require]` and `[workspace]` may name it", "bakes nothing in", "It is not zeroed"]
    rules += ["inserts a size or a define"]
    if prompt == "author":
        rules += [
            "an entry or a flag inserts one by `{VEC}`",
            '`cluster = ["C"]`',
            '`pdl = "PDL == 1"`',
            "skipped is what satisfies it at no workload",
        ]
    assert [rule for rule in rules if rule not in text] == []


@pytest.mark.parametrize("prompt", PLANNERS)
def test_planners_are_told_what_authors_can_and_cannot(prompt: str) -> None:
    text = " ".join(own_prompt(prompt).split())
    can, cannot = text.split("What an author can do")[1].split("What it cannot:")
    words = (
        "`[defines]`",
        "`[require]`",
        "fallback",
        "`[workspace]`",
        "several launches",
        "clusters",
        "`pdl`",
    )
    assert all(word in can for word in words)
    assert all(
        word in cannot for word in ("`#include`", "arguments", "host code", "assembler", "`##`", "header")
    )
    named = set(re.findall(r"__builtin_\w+|always_inline", can))
    assert named
    assert named <= ALLOWED.keys()


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_named_as_allowed_passes(name: str) -> None:
    assert name in ALLOWED[name]
    assert vet_source(ALLOWED[name], ORIGINAL, "opencl") is None


@needs_opencl
@pytest.mark.long
def test_what_is_named_as_allowed_builds(tmp_path: Path) -> None:
    import pyopencl

    device = pyopencl.get_platforms()[0].get_devices()[0]
    if "Portable Computing Language" not in device.platform.name:
        pytest.skip("built-ins are those of PoCL's compiler")
    context = pyopencl.Context([device])
    for text in ALLOWED.values():
        pyopencl.Program(context, text).build(cache_dir=str(tmp_path))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (kernel("", "#define JOIN(a, b) a##b"), "## is not allowed"),
        (kernel('__asm__("nop");'), "has no assembler"),
        (kernel("", "float far(float a);"), "far is declared and not defined"),
        (kernel("", "#include <math.h>"), "is not among the original's"),
        (kernel("", "__attribute__((constructor)) void f(void) { }"), "constructor"),
        (kernel("", '__attribute__((section("x"))) void f(void) { }'), "section"),
        (kernel("", "int main() { return 0; }"), "host code"),
    ],
)
def test_what_is_named_as_forbidden_in_opencl_is_refused(text: str, words: str) -> None:
    assert words in str(vet_source(text, ORIGINAL, "opencl"))


def test_flags_and_assembler_are_as_the_prompts_say() -> None:
    assert vet_flags(["-cl-fast-relaxed-math"], "opencl") is None
    assert vet_flags(["-O3"], "opencl") is not None
    inside = '__device__ void f() { asm volatile("{ .reg .b32 r; mov.u32 r, 1; }"); }\n'
    assert vet_source(CUDA + inside, CUDA, "cuda") is None
    assert "outside of a function" in str(vet_source(f'{CUDA}asm(".globl f");\n', CUDA, "cuda"))
    assert "directive .section" in (
        str(vet_source(f"{CUDA}{inside.replace('mov', '.section x; mov')}", CUDA, "cuda"))
    )


HIP = "#include <hip/hip_runtime.h>\n__global__ void k(float *o, const float *x, int n) { o[0] = x[0]; }\n"


def test_what_is_said_of_hip_is_hips_own() -> None:
    problem = a_problem()
    hip = replace(problem, kernel=replace(problem.kernel, language="hip", text=HIP))
    text = build_part(hip, state_of()).text
    assert "nvcc" not in text
    assert "cuda" not in text
    flags = re.findall(r"`(-[^`]+)`", text.splitlines()[0])
    assert len(flags) >= 6
    assert hip_flags(tuple(flags)) == tuple(flags)
    headers = re.findall(r"<hip/[^>]+>", text)
    assert len(headers) == 3
    assert vet_source("".join(f"#include {h}\n" for h in headers) + HIP, HIP, "hip") is None
    bounds = "__global__ __attribute__((amdgpu_waves_per_eu(4))) __launch_bounds__(64)"
    assert vet_source(HIP.replace("__global__", bounds), HIP, "hip") is None
    shuffled = "__builtin_nontemporal_store(__shfl_down(x[0], 16, 32), o);"
    allowed = HIP.replace("}", f"o[1] = __builtin_nontemporal_load(x); {shuffled} }}")
    assert vet_source(allowed, HIP, "hip") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#include <cuda_fp16.h>\n" + HIP, "<hip/hip_bf16.h>"),
        (HIP.replace("}", 'asm volatile("s_nop 0"); }'), "s_nop"),
        (HIP.replace("}", "__builtin_amdgcn_sched_barrier(0); }"), "__builtin_amdgcn_sched_barrier"),
    ],
)
def test_what_is_named_as_forbidden_in_hip_is_refused(text: str, words: str) -> None:
    assert words in str(vet_source(text, HIP, "hip"))


@pytest.mark.parametrize("name", ["author_rewrite", "single"])
def test_who_writes_one_kernel_is_told_of_no_parameter(name: str) -> None:
    said = own_prompt(name).replace("a file with parameters is turned away", "")
    assert "parameter" not in said
    assert "keeps its name" not in said, "[launch] may name another entry"


@pytest.mark.parametrize("name", AUTHORS)
def test_flags_are_those_of_the_kernels_own_language(name: str) -> None:
    assert "maxrregcount" not in own_prompt(name)
