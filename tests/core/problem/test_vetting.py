"""Sources of strangers: what may be compiled and what may not."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tunesmith.problem.vet import vet_flags, vet_source
from tunesmith.problem.vetting.device_words import keeps_in_cache

EXAMPLES = Path(__file__).parents[3] / "examples"
CUDA = "#include <cuda_fp16.h>\n__global__ void k(float *x) { x[0] = 1.0f; }\n"
OPENCL = "__kernel void k(__global float *x) { x[0] = 1.0f; }\n"


@pytest.mark.parametrize("template", sorted(EXAMPLES.glob("*/*/template.*")), ids=lambda p: p.parent.name)
def test_our_own_templates_pass(template: Path) -> None:
    (kernel,) = template.parent.glob("kernel.*")
    language = "opencl" if template.suffix == ".cl" else "cuda"
    original = kernel.read_text()
    # A hand template may bring a header of its own; an author's may not.
    extra = "".join(f"{line}\n" for line in template.read_text().splitlines() if line.startswith("#include"))
    assert vet_source(template.read_text(), original + extra, language) is None


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ("#include </etc/passwd>", "#include </etc/passwd> is not among the original's"),
        ('#include "secrets.h"', '"secrets.h"'),
        ("#  include <cub/cub.cuh>", "which are: <cooperative_groups.h>"),
        ("#/* hidden */include <stdio.h>", "<stdio.h>"),
        ("#inc\\\nlude <stdio.h>", "<stdio.h>"),
        ("%:include <stdio.h>", "`%:` is not allowed"),
        ("??=include <stdio.h>", "line 3: ??= is not allowed"),
        ("#??/\ninclude <stdio.h>", "line 3: ??/ is not allowed"),
        ("#/* over\ntwo lines */include <stdio.h>", "<stdio.h>"),
        ("// a comment\r#include <stdio.h>", "a control character"),
        ("#define Q ' /*\n#include <stdio.h>\n// */", "' is opened and not closed"),
        ("__device__ int f() { int a = 1'000; asm(\".incbin x;\"); return 1'000; }", "directive .incbin"),
        ('#define X R"d(\n)\\\nd" /*\n)d"\n#include <stdio.h>\n// */', "raw strings are not allowed"),
        ("#define H <stdio.h>\n#include H", "#include H"),
        ("#include_next <cuda_fp16.h>", "#include_next is not allowed"),
        ("#import <x>", "#import is not allowed"),
        ("#embed </etc/passwd>", "#embed is not allowed"),
        ("#if __has_include(</etc/passwd>)\n#endif", "__has_include reads files"),
        ("int main() { return 0; }", "host code"),
        ("void f() { k<<<1, 1>>>(0); }", "host code"),
        ("void f() { cudaMalloc(0, 1); }", "host code"),
        ('_Pragma("nv_exec_check_disable")', "_Pragma is not allowed"),
        ('void f() { system("id"); }', "system() is host code"),
        ('void f() { fopen("/etc/passwd", "r"); }', "fopen() is host code"),
        ('asm(".incbin \\"/etc/passwd\\"");', "asm outside of a function"),
        ('__device__ void f() { asm(".incbin \\"/etc/passwd\\";"); }', "the directive .incbin"),
        ('__device__ void f() { asm volatile("mov.u32 %0, 1;\\n .section x;" : : ); }', "directive .section"),
        ('__device__ void f() { asm("." "incbin x;"); }', "the directive .incbin"),
        ('#define A asm\n__device__ void f() { A(".incbin x;"); }', "the directive .incbin"),
        ("#define S(x) #x\n__device__ void f() { asm(S(.incbin x)); }", "the directive .incbin"),
    ],
)
def test_what_reaches_out_is_refused(added: str, said: str) -> None:
    found = vet_source(CUDA + added + "\n", CUDA, "cuda")
    assert said in str(found)


@pytest.mark.parametrize(
    "added",
    [
        "// #include </etc/passwd>",
        "/* int main() { k<<<1,1>>>(); } */",
        "#include <cuda_fp16.h>",
        "#include <cuda_bf16.h>",
        "#define VEC 4\n#if VEC > 2\n#pragma unroll\n#endif",
        "__device__ void f() { cudaGridDependencySynchronize(); }",
        '__device__ void f() { asm volatile("membar.gl;"); }',
        "__device__ int main_index(int i) { return i; }",
        "__device__ float read(const float *p) { return *p; }\n__device__ void g(float *p) { read(p); }",
        '__device__ void f(int &x) { asm("{ .reg .pred p; setp.ne.b32 p, %0, 0; }" : "+r"(x)); }',
        """__device__ uint4 f(const uint4 *p) { uint4 v; asm volatile("ld.global.nc.L1::no_allocate.v4.u32 "
        "{%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p)); return v; }""",
    ],
)
def test_device_code_passes(added: str) -> None:
    assert vet_source(CUDA + added + "\n", CUDA, "cuda") is None


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ("int system(const char *);", "system is declared and not defined"),
        ("void f() { int mine(int); mine(1); }", "mine is declared and not defined"),
        ("#define P(n) int n(__constant char *)\nP(system);", "system is declared and not defined"),
        ("#define P(n) int sys##n(__constant char *)\nP(tem);", "## is not allowed"),
        ("extern int system(\n    __constant char *c);", "extern is not allowed"),
        ('void f() { __asm__(".incbin \\"/etc/passwd\\""); }', "no assembler"),
        ("__attribute__((constructor)) void f() {}", "constructor"),
        (f"__attribute__(({'unused, ' * 30} constructor)) void f() {{}}", "constructor"),
        ("#include <stdio.h>", "not among the original's"),
        (
            '#define R\n__constant char a[] = R"("; int system(int); __constant char b[] = ")";',
            "raw strings are not allowed",
        ),
    ],
)
def test_native_code_calls_only_what_it_defines(added: str, said: str) -> None:
    found = vet_source(OPENCL + added + "\n", OPENCL, "opencl")
    assert said in str(found)


@pytest.mark.parametrize(
    "added",
    [
        "float twice(float x);\nfloat twice(float x) { return 2.0f * x; }",
        "#define VEC 4\ntypedef struct __attribute__((aligned(VEC * 4))) { float at[VEC]; } pack;",
        "__attribute__((reqd_work_group_size(64, 1, 1)))\n__kernel void j(__global float *x) { *x = 1; }",
        "int half_of(int n) { if (n < 0) return abs(n); else return max(n, 1) / 2; }",
        "#pragma OPENCL EXTENSION cl_khr_fp16 : enable",
        "void f() { float y = exp(1.0f); barrier(CLK_LOCAL_MEM_FENCE); }",
        "float4 f(__global float *x, int i) { return *(__global const float4 *)(x + i); }",
        "float f(__global float *x, int i) { __global float *p = &x[i]; p += 4; return p[0] + *(p + 1); }",
        "float4 f(__global float *x) { return vload4(0, (__global float *)((__global char *)x + 4)); }",
        "int f(__global float *x) { return ((ulong)x & 15) == 0 && (uintptr_t)(x + 1) % 16 == 0; }",
        "int f(__global float *x) { return (-(size_t)(x) & (sizeof(float4) - 1)) / sizeof(float); }",
        "int f(__global float *x) { return (16 - (((size_t)x >> 2) & 15)) & 15; }",
        "void f(__global int *x, size_t n) { prefetch((__global int *)((uintptr_t)x + (uintptr_t)n), 1); }",
        "void f(__global float *x) { float t[4]; *(float4 *)t = ((__global float4 *)x)[1]; }",
        "long f(__global float *x, __global float *y) { return y - x; }",
        "__global float *g(__global float *x, int n) { return n ? x : x + 1; }\n"
        "float f(__global float *x) { __global float *rows[2] = {x, g(x, 1)}; return rows[1][0]; }",
        "typedef struct { __global float *at; int n; } view;\n"
        "float f(__global float *x) { view v; v.at = x; v.n = 1; return v.at[v.n]; }",
        "void f(__global int *x, __local float *s) { atomic_add(x + 1, 1); atomic_inc(&x[0]); s[0] = 1; }",
    ],
)
def test_opencl_as_people_write_it_passes(added: str) -> None:
    assert vet_source(OPENCL + added + "\n", OPENCL, "opencl") is None


@pytest.mark.parametrize(
    "text",
    [
        'asm("ld.global.L2::evict_last.u32 %0, [%1];" : "=r"(n) : "l"(x));',
        'asm("ld.global.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(n) : "l"(x), "l"(p));',
        "cuda::access_property::persisting kept;",
    ],
)
def test_a_cache_may_be_asked_to_keep_data_which_timing_knows(text: str) -> None:
    own = f"{CUDA}__device__ void f(float *x, int n, long p) {{ {text} }}\n"
    assert vet_source(own, CUDA, "cuda") is None or "access_property" in text
    assert keeps_in_cache(own)
    assert not keeps_in_cache(CUDA)


@pytest.mark.parametrize(
    ("own", "language"),
    [
        ("__device__ int calls;", "cuda"),
        ("__device__ float memo[64];", "cuda"),
        ("__device__ int f() { static int calls; return ++calls; }", "cuda"),
        ("__global int calls = 0;", "opencl"),
        ("void f(void) { static __global int calls; calls++; }", "opencl"),
    ],
)
def test_nothing_outlives_a_launch_even_where_it_does_in_the_original(own: str, language: str) -> None:
    original = (CUDA if language == "cuda" else OPENCL) + own + "\n"
    found = vet_source(original, original, language)
    assert found is not None
    assert (found.rule, found.line) == ("state", original.count("\n"))
    assert "[workspace]" in found.words


@pytest.mark.parametrize(
    ("header", "uses"),
    [
        ("__device__ int calls;", "calls++;"),
        ("#define DEVICE __device__\nDEVICE int calls;", "atomicAdd(&calls, 1);"),
        ("__device__ int calls;\n__device__ int count() { return ++calls; }", "count();"),
        ("__device__ int calls;\n#define COUNT calls++", "COUNT;"),
        ("__device__ int count() { static int calls; return ++calls; }", "count();"),
        ("namespace a { __device__ int calls; }", "a::calls++;"),
    ],
)
def test_nor_is_it_reached_in_the_users_headers(header: str, uses: str) -> None:
    include, use = '#include "own.h"\n', f"__device__ void f() {{ {uses} }}\n"
    found = vet_source(include + use + CUDA, include + CUDA, "cuda", (header,))
    assert found is not None
    assert (found.rule, found.line) == ("state", 2)
    harmless = "__device__ const int calls = 1;\n__device__ int count() { return calls; }"
    assert vet_source(include + CUDA, include + CUDA, "cuda", (header,)) is None, "what is not used"
    clean = "__device__ void f() { int a = calls + count(); }\n"
    assert vet_source(include + clean + CUDA, include + CUDA, "cuda", (harmless,)) is None


@pytest.mark.parametrize(
    "before",
    [
        "\n\n",
        "// a\n// b\n",
        "/* a\nb */\n",
        "#define A \\\n    1\n",
        "// a \\\nb\n",
        '#define A "" /* \\\n*/\n',
    ],
)
def test_a_line_is_named(before: str) -> None:
    found = vet_source(f"{before}#include <stdio.h>\n", "", "cuda")
    assert str(found).startswith("line 3:")


def test_the_includes_of_a_source_that_we_would_not_read_are_known() -> None:
    """It is the user's own."""
    assert vet_source("#include <a.h>\n", "#if 0\ndon't\n#endif\n#include <a.h>\n", "cuda") is None


@pytest.mark.parametrize("flag", ["-I/etc", "-include", "/etc/passwd", "-cl-std=CL1.2 -I/etc", "-x"])
def test_flags_that_name_files_are_refused(flag: str) -> None:
    found = vet_flags(("-cl-mad-enable", flag), "opencl")
    assert found is not None
    assert repr(flag) in found


@pytest.mark.parametrize("language", ["cuda", "opencl"])
@pytest.mark.parametrize(
    "text",
    [
        "x",
        " ",
        "\\ ",
        "\\\n",
        "x \\\n\n",
        "__attribute__((",
        "f(",
        "{asm();",
        "int ",
        "1'0",
        "a;",
        "/**/",
        '""',
    ],
)
@pytest.mark.few(2)
def test_no_text_takes_long(text: str, language: str) -> None:
    """Of the length that is looked at; what is found is another matter."""
    began = time.process_time()
    vet_source(text * ((256 << 10) // len(text)), "", language)
    assert time.process_time() - began < 5.0


def test_flags_that_shape_code_pass() -> None:
    flags = ("-cl-fast-relaxed-math", "-cl-std=CL1.2", "-cl-nv-maxrregcount={REGS}")
    assert vet_flags(flags, "opencl") is None
    assert vet_flags(("-maxrregcount=64",), "cuda") is None, (
        "what CUDA's compilers are given is read elsewhere"
    )
