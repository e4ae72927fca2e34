"""What an author who is paid by the claimed speed-up would write: each is refused by the rule it breaks."""

from __future__ import annotations

import pytest

from tunesmith.problem.vet import vet_source
from tunesmith.problem.vetting.device_words import Refusal

CUDA = "#include <cuda_fp16.h>\n__global__ void k(float *x, int n) { x[0] = 1.0f; }\n"
JOINS = "#define OWN(a, b) a##b\n"  # so that pasting is allowed
OPENCL = "__kernel void k(__global float *x, int n) { x[0] = 1.0f; }\n"


def body(text: str) -> str:
    return f"void f(__global float *x, int n) {{ {text} }}"


def device(text: str) -> str:
    return f"__device__ void f(float *x, int n) {{ {text} }}"


NATIVE = {
    # of the host's C library, by every way to name it
    "macro for a name": ("#define S system\nint (S)(__constant char *);", "declaration"),
    "second declarator": ("int a, getpid(void);", "state"),
    "second declarator in a function": (body("int a, getpid(void); a = getpid();"), "declaration"),
    "prototype": ("int system(__constant char *);", "declaration"),
    "prototype in a function": (body("int unlink(__constant char *);"), "declaration"),
    "prototype after a definition": ("void g(void) {} int getpid(void);", "declaration"),
    "prototype without parameters": ("int getpid();", "declaration"),
    "prototype in parentheses": ("int ((getpid))(void);", "declaration"),
    "prototype of a pointer": ("char *(getenv)(__constant char *);", "declaration"),
    "extern": ("extern int getpid(void);", "declaration"),
    "extern variable": ("extern char **environ;", "state"),
    "pasted name": ("#define P(a, b) a##b\nint P(sys, tem)(__constant char *);", "declaration"),
    "pasted twice": ("#define J(a, b) a##b\n#define I(a, b) J(a, b)\n" + body("I(get, pid)();"), "call"),
    "spliced name": ("int get\\\npid(void);", "declaration"),
    "call without a declaration": (body("system(0);"), "call"),
    "called in parentheses": (body("(system)(0);"), "call"),
    "a name that nobody declared": (body("x[0] = (float)(size_t)environ;"), "name"),
    "variadic": ("int g(int a, ...) { return a; }", "text"),
    "old style": ("int g(a) int a; { return a; }", "name"),
    "defined through typedef": ("typedef int fn(void); fn getpid;", "state"),
    "declared through typedef": ("typedef int fn(void);\n" + body("fn getpid; getpid();"), "declaration"),
    "main": ("int main(void) { return 0; }", "host"),
    "printf": (body('printf("%n", &n);'), "call"),
    # pointers to code and to anywhere
    "number called": (body("((int (*)(void))0x1234)();"), "pointer"),
    "pointer to a function": (body("int (*p)(void) = 0;"), "pointer"),
    "parameter that is a function": ("int g(int h(void)) { return h(); }", "pointer"),
    "pointer from a number": (body("*(__global int *)0x7fff0000 = 1;"), "pointer"),
    "pointer from a sum": (body("*(__global int *)(ulong)(n * 8 + 4096) = 1;"), "pointer"),
    "pointer from a variable": (body("ulong at = 4096; *(__global int *)at = 1;"), "pointer"),
    "pointer read as bits": (body("ulong at = 1; x = *(__global float **)&at;"), "pointer"),
    "union with a pointer": ("typedef union { ulong a; __global float *p; } both;", "pointer"),
    "pointer from nothing": (body("*(__global int *)((size_t)x - (size_t)x + 0x400000) = 1;"), "pointer"),
    "pointer to a number": (body("ulong at = (ulong)x;"), "pointer"),
    "pointer to a number by as_": (body("ulong at = as_ulong(x);"), "pointer"),
    "pointer to a number by itself": (body("ulong at = x;"), "pointer"),
    "pointer to numbers": (body("ulong2 at = (ulong2)(x, x);"), "pointer"),
    "more than an alignment": (body("ulong at = (ulong)x & 0xffffffffff;"), "pointer"),
    "alignment to a large type": (
        "typedef struct { char a[64][64][64]; } big;\n" + body("ulong at = (ulong)x & (sizeof(big) - 1);"),
        "pointer",
    ),
    "number by itself": (body("__global float *p = 0x400000; *p = 1;"), "pointer"),
    "number assigned": (body("__global float *p; p = n;"), "pointer"),
    "number assigned to a field": (
        "struct S { __global float *p; };\n" + body("struct S s; s.p = n;"), "pointer",
    ),
    "number handed over": ("void g(__global float *y) { }\n" + body("g(0x400000);"), "pointer"),
    "number returned": ("__global float *g(int n) { return n; }", "pointer"),
    "pointer returned as a number": ("ulong g(__global float *y) { return y; }", "pointer"),
    "number in a list": (body("__global float *p[2] = { x, 0x400000 };"), "pointer"),
    "number in a struct": ("struct S { __global float *p; };\n" + body("struct S s = { n };"), "pointer"),
    "number in one branch": (body("__global float *p = n ? x : n;"), "pointer"),
    "pointer's own bits": (body("__global float *p = x; *(ulong *)&p = 0x400000;"), "pointer"),
    "pointers' own bits": (body("__global float *p[2]; ulong *at = (ulong *)p;"), "pointer"),
    "own bits handed over": ("void g(ulong *at) { }\n" + body("__global float *p = x; g(&p);"), "pointer"),
    "own bits loaded": (body("__global float *p = x; vload2(0, &p);"), "pointer"),
    "pointer out of data": (
        "struct S { __global float *p; };\n" + body("((__global struct S *)x)->p[0] = 1;"), "pointer",
    ),
    "pointer out of an argument": (
        "struct S { __global float *p; };\n__kernel void j(__global struct S *s) { s->p[0] = 1; }", "pointer",
    ),
    "distance from nothing": (body("long at = x - (__global float *)0;"), "pointer"),
    "distance from a name for it": (body("__global float *z = 0; long at = x - z;"), "pointer"),
    "two meanings": (body("{ ulong p = 4096; *(__global int *)p = 1; } __global int *p;"), "pointer"),
    "high bits": (body("ulong at = ((ulong)x >> 40) & 15;"), "pointer"),
    "prefetched and kept": (body("ulong at; prefetch((__global float *)(at = (ulong)x), 1);"), "pointer"),
    "a prefetch of its own": (
        "void __builtin_prefetch(__global float *p) { *p = 1; }\n"
        + body("__builtin_prefetch((__global float *)((ulong)x + 1));"), "pointer",
    ),
    "behind nothing": (body("*((__global float *)0 + n) = 1;"), "pointer"),
    "behind a variable that is nothing": (body("__global float *p = 0; p += n; p[0] = 1;"), "pointer"),
    "pointer that nobody set": (body("__global float *p; p[0] = 1;"), "pointer"),
    "number in one branch, not kept": (body("(n ? x : n)[0] = 1;"), "pointer"),
    "an argument's own bits": (body("*(ulong *)&x = 4096; x[0] = 1;"), "pointer"),
    "own bits behind void": (body("void *v = &x; ulong *q = v; *q = 1; x[0] = 1;"), "pointer"),
    "in a struct behind a pointer": (
        "struct S { __global float *p; };\n"
        + body("struct S s; struct S *q = &s; q->p = n; s.p[0] = 1;"), "pointer",
    ),
    "in a struct of an array": (
        "struct S { __global float *p; };\n" + body("struct S v[2]; v->p = n; v->p[0] = 1;"), "pointer",
    ),
    "as another struct": (
        "struct S { __global float *p; }; struct N { ulong a; };\n"
        + body("struct N m; m.a = 4096; struct S s = *(struct S *)&m; s.p[0] = 1;"), "pointer",
    ),
    "one name for both": (
        "struct S { __global float *p; }; struct A { ulong p; };\n"
        + body("struct S s; s.p = x; s.p = n; s.p[0] = 1;"), "pointer",
    ),
    "union by a name": ("typedef __global float *fp; typedef union { ulong a; fp p; } both;", "pointer"),
    "computed goto": (body("goto *x;"), "pointer"),
    "label's address": (body("l: x = &&l;"), "name"),
    # what compilers add
    "assembler": (body('__asm__ volatile("syscall");'), "assembler"),
    "assembler at file scope": ('asm(".globl x");', "assembler"),
    "pasted assembler": ("#define A(a, b) a##b\n" + body('A(__as, m__)("nop");'), "assembler"),
    "constructor": ("__attribute__((constructor)) void f(void) {}", "attribute"),
    "constructor in underscores": ("__attribute__((__constructor__)) void f(void) {}", "attribute"),
    "constructor behind others": ("__attribute__((unused, constructor)) void f(void) {}", "attribute"),
    "constructor in brackets": ("[[gnu::constructor]] void f(void) {}", "attribute"),
    "section": ('__attribute__((section(".init_array"))) int x = 1;', "attribute"),
    "alias": ('void f(void) __attribute__((alias("system")));', "attribute"),
    "ifunc by macro": ("#define A(x) __attribute__((x))\nA(destructor) void f(void) {}", "attribute"),
    "declspec": ("__declspec(dllimport) int f(void) { return 1; }", "name"),
    "frame address": (body("x = __builtin_frame_address(0);"), "name"),
    "return address": (body("x = __builtin_return_address(0);"), "name"),
    "alloca": (body("float *p = __builtin_alloca(8);"), "name"),
    "library built-in": (body("__builtin_printf(0);"), "name"),
    "function pointers by extension": (
        "#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable", "pragma",
    ),
    "any pragma": ("#pragma weak getpid", "pragma"),
    "clang's pragma": ("#pragma clang attribute push(__attribute__((constructor)))", "pragma"),
    "redefine_extname": ("#pragma redefine_extname f system", "pragma"),
    "pragma operator": (body('_Pragma("weak getpid")'), "pragma"),
    "pragma by pasting": ("#define P(a, b) a##b\n" + body('P(_Pra, gma)("weak getpid")'), "pragma"),
    "cycle counter": (body("x[0] = __builtin_readcyclecounter();"), "clock"),
    # files
    "include": ("#include </etc/passwd>", "include"),
    "include_next": ("#include_next <stdio.h>", "directive"),
    "include by macro": ("#define H <stdio.h>\n#include H", "include"),
    "embed": ("__constant char t[] = {\n#embed </etc/passwd>\n};", "directive"),
    "has_include": ("#if __has_include(</etc/passwd>)\n#endif", "directive"),
    "has_include by pasting": (
        "#define H(a, b) a##b\n#if H(__has_inc, lude)(</etc/passwd>)\n#endif", "directive",
    ),
    # tricks with the text
    "digraph": (body("int a<:2:>;"), "text"),
    "trigraph": ("??=include <stdio.h>", "text"),
    "universal character": (body("int \\u0061 = 1;"), "text"),
    "raw string": ('__constant char a[] = R"(";int system(int);__constant char b[] = ")";', "text"),
    "elifdef": ("#if 0\n#elifndef X\nint getpid(void);\n#endif", "directive"),
    "in a branch of the compiler's": ("#ifdef __POCL__\nint getpid(void);\n#endif", "directive"),
    "in the other branch": ("#if __OPENCL_VERSION__ >= 200\n#else\nint getpid(void);\n#endif", "declaration"),
    "compiler's name redefined": ("#define __kernel __attribute__((constructor))", "directive"),
    "macros without end": (
        "".join(f"#define A{i} A{i + 1} A{i + 1} A{i + 1}\n" for i in range(12)) + "int x = A0;",
        "text",
    ),
    # what outlives a launch
    "counter": ("__global int calls = 0;", "state"),
    "counter without a word": ("int calls;", "state"),
    "array": ("__global float memo[1024];", "state"),
    "static variable": (body("static __global int calls; calls++;"), "state"),
    "pointer that moves": ("__global float *memo;", "state"),
    "beside a prototype": ("int calls, g(int); int g(int a) { return a; }", "state"),
    "struct with a variable": ("struct S { int a; } memo;", "state"),
}  # fmt: skip

ON_DEVICE = {
    "host function": ("void f() { }", "host"),
    "host initialiser": ("int f(); int x = f();", "declaration"),
    "global constructor": ("struct S { S() { } } s;", "state"),
    "system": ('__device__ void f() { system("id"); }', "call"),
    "system in std": ('__device__ void f() { std::system("id"); }', "call"),
    "function by a template": ("template <int N> __device__ void f() { fopen(0, 0); }", "call"),
    "launch from the device": (device("k<<<1, 1>>>(x, n);"), "host"),
    "launch by its name": (device("cudaLaunchKernel(0, 1, 1, 0, 0, 0);"), "call"),
    "heap": (device("float *p = (float *)malloc(8);"), "call"),
    "heap by new": (device("float *p = new float[8];"), "name"),
    "heap back": (device("free(x);"), "call"),
    "using namespace": ("using namespace thrust;", "declaration"),
    "another namespace": (device("thrust::sort(x, x + n);"), "call"),
    "internals": (device("__nv_cudaEntityRegisterCallback(0);"), "name"),
    "vprintf": (device("vprintf(0, 0);"), "call"),
    "printf": (device('printf("%d", n);'), "call"),
    # clocks and places
    "clock": (device("x[0] = clock64();"), "clock"),
    "clock handed on": (device("auto f = clock64; x[0] = f();"), "clock"),
    "clock by macro": ("#define C(a, b) a##b\n" + device("x[0] = C(clo, ck)();"), "clock"),
    "clock in PTX": (device('asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(n));'), "clock"),
    "multiprocessor in PTX": (device('asm("mov.u32 %0, %smid;" : "=r"(n));'), "clock"),
    "multiprocessor by name": (device("x[0] = cuda::ptx::get_sreg_smid();"), "clock"),
    "chrono": (device("auto t = cuda::std::chrono::system_clock::now();"), "clock"),
    # assembler
    "directive": (device('asm(".incbin \\"/etc/passwd\\";");'), "assembler"),
    "directive in hexadecimal": (device('asm("\\x2eincbin x;");'), "assembler"),
    "call in PTX": (device('asm("call.uni vprintf, (a, b);");'), "assembler"),
    "break point": (device('asm("brkpt;");'), "assembler"),
    "second instruction": (device('asm("mov.u32 %0, 1;\\n\\t.section x;" : "=r"(n));'), "assembler"),
    "behind a predicate": (device('asm("{ .reg .pred p; @p pmevent 1; }");'), "assembler"),
    "instructions by macro": ('#define S(x) #x\n__device__ void f() { asm(S(.incbin x)); }', "assembler"),
    "variable in PTX": (device('asm(".global .u32 calls;");'), "assembler"),
    # what outlives a launch
    "counter": ("__device__ int calls = 0;", "state"),
    "beside a prototype": ("__device__ int calls, g(int); __device__ int g(int a) { return a; }", "state"),
    "behind a body": ("__device__ struct S g() { } __device__ int calls;", "declaration"),
    "in a named type": ("typedef struct S { inline static __device__ int calls; } T;", "state"),
    "with a constructor": (device("static float4 memo(1, 2, 3, 4);"), "state"),
    "managed": ("__managed__ int calls;", "name"),
    "static": (device("static int calls; x[0] = ++calls;"), "state"),
    "static of a class": ("struct S { static __device__ int calls; };", "state"),
    "template of a variable": ("template <int N> __device__ int calls;", "state"),
    "in a namespace": ("namespace a { __device__ float memo[64]; }", "state"),
    "pointer to a constant": ("__device__ const float *memo;", "state"),
    "constant that nobody sets": ("__constant__ float memo;", "state"),
    "thread_local": ("thread_local int calls;", "name"),
    "built-in property": (device("__nv_associate_access_property(x, 0);"), "name"),
    "mode by constant": (
        device('asm("ld.global.%2.u32 %0, [%1];" : "=r"(n) : "l"(x), "C"("L2::evict" "_last"));'),
        "assembler",
    ),
    "constraint in hexadecimal": (device('asm("mov.u32 %0, %1;" : "=r"(n) : "\\x43"(x));'), "assembler"),
    # the rest
    "attribute": ("[[gnu::constructor]] __device__ void f() { }", "attribute"),
    "pragma": ("#pragma nv_exec_check_disable", "pragma"),
    "include": ("#include <cstdlib>", "include"),
    "pointer from a number": (device("*reinterpret_cast<int *>(0x7f0000001000ull) = 1;"), "pointer"),
    "pointer from a variable": (device("unsigned long long at = 4096; *(int *)at = 1;"), "pointer"),
    "table of functions": (device("float (*table[2])(float);"), "pointer"),
    "virtual": ("struct S { virtual __device__ void f(); };", "name"),
}  # fmt: skip


def rule_of(found: Refusal | None) -> str:
    return "accepted" if found is None else found.rule


@pytest.mark.parametrize("name", NATIVE)
def test_native_code(name: str) -> None:
    text, rule = NATIVE[name]
    found = vet_source(OPENCL + text + "\n", JOINS + OPENCL, "opencl")
    assert rule_of(found) == rule, found


@pytest.mark.parametrize("name", ON_DEVICE)
def test_code_for_a_gpu(name: str) -> None:
    text, rule = ON_DEVICE[name]
    found = vet_source(CUDA + text + "\n", CUDA, "cuda")
    assert rule_of(found) == rule, found


def test_a_refusal_names_line_value_and_what_to_do() -> None:
    found = vet_source(OPENCL + "\n\n__global int calls;\n", OPENCL, "opencl")
    assert found is not None
    assert found.line == 4
    assert "calls" in found.words
    assert "workspace" in found.words
