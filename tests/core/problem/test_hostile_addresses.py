"""Addresses, inputs and memory of earlier launches: what tells the lab from a program is refused by data flow,
in every language; what kernels do with pointers stays."""

# ruff: noqa: E501

from __future__ import annotations

import re

import pytest

from tunesmith.problem.vet import vet_source
from tunesmith.problem.vetting.device_words import HandedArrays, Refusal

LANGUAGES = {
    "opencl": {
        "KERNEL": "__kernel void", "DEVICE": "inline", "G": "__global", "L": "__local", "ULONG": "ulong",
        "TID": "get_local_id(0)", "BLOCK": "get_group_id(0)", "SYNC": "barrier(CLK_LOCAL_MEM_FENCE)",
    },
    "cuda": {
        "KERNEL": 'extern "C" __global__ void', "DEVICE": "__device__", "G": "", "L": "__shared__",
        "ULONG": "unsigned long long", "TID": "threadIdx.x", "BLOCK": "blockIdx.x",
        "SYNC": "__syncthreads()",
    },
}  # fmt: skip
SIGNATURE = "KERNEL k(const G float *x, const G float *w, G float *y, int n)"
HANDED = frozenset({("k", 0, True), ("k", 1, True), ("k", 2, False)})
ORIGINAL = f"{SIGNATURE} {{ y[0] = x[0] * w[0]; }}\n"
BOTH, CUDA, OPENCL = ("opencl", "cuda"), ("cuda",), ("opencl",)


def written(text: str, language: str) -> str:
    for word, own in LANGUAGES[language].items():
        text = re.sub(rf"\b{word}\b", own, text)
    return text


def found(text: str, language: str, handed: HandedArrays = HANDED) -> Refusal | None:
    """Of a body, or of text with a kernel of its own."""
    text = text if "KERNEL" in text else f"{SIGNATURE} {{ {text} }}"
    own = "typedef unsigned long long uintptr_t;\n" if language == "cuda" else ""
    text, original = (own + written(each, language) + "\n" for each in (text, ORIGINAL))
    return vet_source(text, original, language, handed=handed)


# The distance of two arrays, or anything else of an address.
ADDRESS = {
    "near in memory": (BOTH, "if (w - x < 32768) y[0] = 0; else y[0] = x[0] * w[0];"),
    "in a struct's array, handed over": (
        OPENCL, "typedef struct { const G float *p[2]; } pair;\n"
        "DEVICE const G float *pick(pair s, int k) { return s.p[k & 1]; }\n"
        + SIGNATURE + " { pair s; s.p[0] = x; s.p[1] = w; y[0] = (pick(s, 0) - pick(s, 1)) >> 38 ? 0 : x[0]; }",
    ),
    "near, by comparison": (BOTH, "y[0] = x < w ? x[0] : 0;"),
    "far, behind an index": (BOTH, "if (&x[n] > &y[0]) y[0] = 0;"),
    "the same array": (BOTH, "if (x == w) y[0] = 0;"),
    "of variables": (BOTH, "const G float *p = x + n; const G float *q = w; long d = q - p; y[d & 1] = 0;"),
    "in a condition's variable": (BOTH, "const G float *p = x; int near = p < w; if (near) y[0] = 0;"),
    "by a loop": (BOTH, "int c = 0; for (const G float *p = x; p != w; p++) c++; y[0] = c;"),
    "by a loop that brings it": (
        BOTH, "const G float *p = x; for (int i = 0; i < 2; i++) { if (p < x + n) y[i] = 0; p = w; }",
    ),
    "of what a choice gives": (BOTH, "const G float *p = n ? x : w; if (p - x) y[0] = 0;"),
    "from null": (BOTH, "long at = x - (const G float *)0; if (at & 4096) y[0] = 0;"),
    "behind null": (CUDA, "if (x - 4096 == nullptr) y[0] = 0;"),
    "handed to a function": (
        BOTH,
        "DEVICE int near(const G float *a, const G float *b) { return b - a < 9; }\n"
        + SIGNATURE + " { if (near(x, w)) y[0] = 0; }",
    ),
    "given back": (
        BOTH,
        "DEVICE const G float *same(const G float *a) { return a; }\n"
        + SIGNATURE + " { y[0] = same(x) < same(w); }",
    ),
    "in a struct": (
        BOTH,
        "typedef struct { const G float *a; const G float *b; } pair;\n"
        + SIGNATURE + " { pair p; p.a = x; p.b = w; y[0] = p.b - p.a < 9; }",
    ),
    "in a list of members": (
        CUDA,
        "struct pair { const float *a; const float *b; };\n"
        + SIGNATURE + " { pair p = {x, w}; y[0] = p.a < p.b; }",
    ),
    "by a method": (
        CUDA,
        "struct pair { const float *a, *b; __device__ pair(const float *c, const float *d) { a = c; b = d; }"
        " __device__ int near() const { return a < b; } };\n" + SIGNATURE + " { pair p(x, w); y[0] = p.near(); }",
    ),
    "by an operator": (
        CUDA,
        "struct at { const float *p; };\n__device__ bool operator<(at a, at b) { return a.p < b.p; }\n"
        + SIGNATURE + " { at a{x}, b{w}; y[0] = a < b; }",
    ),
    "by a lambda": (CUDA, "auto near = [&](const float *p) { return p < w; }; y[0] = near(x);"),
    "by a lambda that is handed on": (
        CUDA,
        "template <typename F> __device__ int ask(const float *p, F f) { return f(p); }\n"
        + SIGNATURE + " { y[0] = ask(x, [&](const float *p) { return p < w; }); }",
    ),
    "by a functor": (
        CUDA,
        "struct near { const float *a; __device__ bool operator()(const float *b) const { return a < b; } };\n"
        + SIGNATURE + " { near f{x}; y[0] = f(w); }",
    ),
    "by a functor of the library": (CUDA, "y[0] = cuda::std::less<const float *>{}(x, w);"),
    "by a function that is handed on": (
        CUDA,
        "__device__ bool near(const float *a, const float *b) { return a < b; }\n"
        "template <typename F> __device__ bool ask(F f, const float *a, const float *b) { return f(a, b); }\n"
        + SIGNATURE + " { y[0] = ask(near, x, w); }",
    ),
    "by another operator": (
        CUDA,
        "struct pair { const float *a, *b; __device__ bool operator[](int i) const { return a < b; } };\n"
        + SIGNATURE + " { pair p = {x, w}; y[0] = p[0]; }",
    ),
    "by a conversion": (
        CUDA,
        "struct pair { const float *a, *b; __device__ operator bool() const { return a < b; } };\n"
        + SIGNATURE + " { pair p = {x, w}; if (p) y[0] = 0; }",
    ),
    "in a capture": (CUDA, "auto near = [p = x](const float *q) { return p < q; }; y[0] = near(w);"),
    "by a pack": (
        CUDA,
        "template <typename... A> __device__ int f(A... a) { const float *p[] = {a...}; return p[0] < p[1]; }\n"
        + SIGNATURE + " { y[0] = f(x, w); }",
    ),
    "behind a name for the type": (
        BOTH, "typedef const G float *row;\nKERNEL k(row x, row w, G float *y, int n) { if (x < w) y[0] = 0; }",
    ),
    "behind an open type": (
        CUDA, "template <typename P> __global__ void k(P x, P w, float *y) { y[0] = x[0] * w[0]; if (x < w) y[0] = 0; }"
        "// KERNEL",
    ),
    "by going back": (
        BOTH, "const G float *p = x; again: if (p < x + n) y[0] = 0; p = w; if (n--) goto again;",
    ),
    "by itself": (
        BOTH, "DEVICE int f(const G float *p, const G float *q, int n) { if (n) return f(q, p, n - 1); return p < q; }\n"
        + SIGNATURE + " { y[0] = f(x, w, n); }",
    ),
    "kept in a register of PTX": (
        CUDA, 'ULONG u = (ULONG)x; asm("shr.u64 %0, %0, 12;" : "+l"(u)); if (u & 1) y[0] = 0;',
    ),
    "in an array of pointers": (CUDA, "const float *p[2] = {x, w}; y[0] = p[0] < p[1];"),
    "page": (BOTH, "if (((ULONG)x & 4095) == 128 && ((ULONG)y & 4095) == 128) y[0] = 1; else y[0] = 0;"),
    "page by a remainder": (BOTH, "y[0] = (ULONG)x % 4096 == 0;"),
    "page behind a shift": (BOTH, "if (((ULONG)x >> 6) & 63) y[0] = 0;"),
    "line of a cache": (BOTH, "if ((ULONG)x & 64) y[0] = 0;"),
    "page by a constant": (CUDA, "constexpr int page = 4 * 1024 - 1; if (((ULONG)x & page) == 0) y[0] = 0;"),
    "page by an argument": (BOTH, "if (((ULONG)x & n) == 0) y[0] = 0;"),
    "page by a template": (
        CUDA,
        "template <int N> __device__ int at(const float *p) { return ((ULONG)p & (N - 1)) == 0; }\n"
        + SIGNATURE + " { y[0] = at<4096>(x); }",
    ),
    "page by hand": (
        CUDA, "const float *p = (const float *)((ULONG)x & ~4095ull); y[0] = x - p;",
    ),
    "page by hand, compared": (CUDA, "const float *p = (const float *)((ULONG)x & ~255ull); if (p == x) y[0] = 0;"),
    "bits of two": (CUDA, "ULONG d = (ULONG)x ^ (ULONG)w; if (d >> 17) y[0] = 0;"),
    "sum of two": (CUDA, "ULONG d = (ULONG)x + (ULONG)w; y[d % 7] = 0;"),
    "distance of numbers": (CUDA, "ULONG d = (ULONG)w - (ULONG)x; if (d < 131072) y[0] = 0;"),
    "hash": (CUDA, "unsigned h = (unsigned)((ULONG)x * 2654435761u >> 20); if (h & 1) y[0] = 0;"),
    "hash that is kept": (CUDA, "unsigned h = (unsigned)(ULONG)x; h ^= h >> 16; h *= 0x85ebca6b; y[0] = h;"),
    "bits as an index": (CUDA, "float t[16] = {1}; y[0] = t[((ULONG)x >> 4) & 15];"),
    "bits as a number": (CUDA, "y[0] = (float)((ULONG)x & 15);"),
    "bits as a number, OpenCL": (OPENCL, "y[0] = (float)((ulong)x & 15);"),
    "as a number": (CUDA, "y[0] = (float)(ULONG)x;"),
    "as a number by an atomic": (CUDA, "atomicAdd((unsigned *)y, (unsigned)(ULONG)x);"),
    "in a union": (CUDA, "union both { const float *p; ULONG u; } b; b.p = x; if (b.u & 4096) y[0] = 0;"),
    "read as bits": (CUDA, "const float *p = x; if (*(ULONG *)&p & 4096) y[0] = 0;"),
    "by bit_cast": (CUDA, "ULONG u = cuda::std::bit_cast<ULONG>(x); if (u & 4096) y[0] = 0;"),
    "by cvta": (CUDA, "size_t u = __cvta_generic_to_global(x); if (u & 4096) y[0] = 0;"),
    "by a shuffle": (CUDA, "ULONG u = __shfl_sync(0xffffffff, (ULONG)x, 0); if (u > 5) y[0] = 0;"),
    "by a count of bits": (CUDA, "if (__popcll((ULONG)x) > 5) y[0] = 0;"),
    "through a float": (CUDA, "y[0] = __uint_as_float((unsigned)(ULONG)x);"),
    "by a reference": (
        CUDA, "DEVICE void get(ULONG &u, const float *p) { u = (ULONG)p; }\n"
        + SIGNATURE + " { ULONG u; get(u, x); if (u & 4096) y[0] = 0; }",
    ),
    "by a pointer": (
        CUDA, "DEVICE void get(ULONG *u, const float *p) { *u = (ULONG)p; }\n"
        + SIGNATURE + " { ULONG u; get(&u, x); if (u & 4096) y[0] = 0; }",
    ),
    "by a structured binding": (
        CUDA, "struct S { ULONG u; int v; };\n" + SIGNATURE + " { S s = {(ULONG)x, 1}; auto [a, b] = s; if (a & 4096) y[0] = 0; }",
    ),
    "in shared memory": (CUDA, "__shared__ ULONG s; s = (ULONG)x; __syncthreads(); if (s & 4096) y[0] = 0;"),
    "in a switch": (CUDA, "switch ((ULONG)x >> 30) { case 0: y[0] = 0; }"),
    "in a loop": (CUDA, "for (ULONG i = 0; i < (ULONG)x; i += 1ull << 40) y[0] = 0;"),
    "in PTX": (
        CUDA, 'ULONG u; asm("mov.u64 %0, %1;" : "=l"(u) : "l"(x)); if (u & 4096) y[0] = 0;',
    ),
    "in PTX by names": (
        CUDA, 'ULONG u; asm("cvta.to.global.u64 %[o], %[i];" : [o] "=l"(u) : [i] "l"(x)); y[u & 64] = 0;',
    ),
    "compared in PTX": (
        CUDA,
        'int v; asm("{ .reg .pred p; setp.lt.u64 p, %1, %2; selp.s32 %0, 1, 0, p; }" : "=r"(v) : "l"(x), "l"(w));'
        " y[0] = v;",
    ),
    "stored in PTX": (CUDA, 'asm volatile("st.global.u64 [%0], %1;" :: "l"(y), "l"(x) : "memory");'),
    "distance in PTX": (CUDA, 'ULONG u; asm("sub.u64 %0, %1, %2;" : "=l"(u) : "l"(x), "l"(w)); y[0] = u;'),
    "from another array": (CUDA, "y[0] = *(x + (w - x));"),
    "another array by numbers": (CUDA, "y[0] = *(const float *)((ULONG)x + ((ULONG)w ^ (ULONG)x));"),
    "in a struct's array, handed to a function": (
        CUDA,
        "struct pair { const float *p[2]; };\n"
        "__device__ const float *pick(pair s, int k) { return s.p[k & 1]; }\n"
        + SIGNATURE + " { pair s; s.p[0] = x; s.p[1] = w; y[0] = (pick(s, 0) - pick(s, 1)) >> 38 ? 0 : x[0]; }",
    ),
    "in a struct of the launch": (
        CUDA,
        "struct view { float *p[2]; };\nKERNEL k(view s, float *y) { if (s.p[0] < s.p[1]) y[0] = 0; }",
    ),
    "in a struct's array, filled by a loop": (
        CUDA,
        "struct pair { const float *p[2]; };\n"
        "__device__ int near(pair s) { return s.p[0] < s.p[1]; }\n"
        + SIGNATURE + " { pair s; for (int i = 0; i < 2; i++) s.p[i] = i ? w : x; y[0] = near(s); }",
    ),
    "as numbers in a struct's array": (
        CUDA,
        "struct pair { ULONG p[2]; };\n"
        "__device__ int near(pair s) { return s.p[0] < s.p[1]; }\n"
        + SIGNATURE + " { pair s; s.p[0] = (ULONG)x; s.p[1] = (ULONG)w; y[0] = near(s); }",
    ),
    "by an index of its own": (
        CUDA,
        "struct pair { const float *p[2]; __device__ const float *operator[](int i) const { return p[i]; } };\n"
        "__device__ int near(pair s) { return s[0] < s[1]; }\n"
        + SIGNATURE + " { pair s; s.p[0] = x; s.p[1] = w; y[0] = near(s); }",
    ),
    "as numbers of a struct that is handed over": (
        CUDA,
        "struct pair { const float *p[2]; };\n"
        "__device__ int near(pair s) { ULONG *u = (ULONG *)s.p; return u[0] < u[1]; }\n"
        + SIGNATURE + " { pair s; s.p[0] = x; s.p[1] = w; y[0] = near(s); }",
    ),
    "one of two structs": (
        CUDA,
        "struct pair { const float *p[2]; };\n"
        "__device__ int near(pair s) { return s.p[0] < s.p[1]; }\n"
        + SIGNATURE + " { pair s, t; s.p[0] = x; s.p[1] = w; t.p[0] = w; t.p[1] = x; y[0] = near(n ? s : t); }",
    ),
    "in what a struct inherits": (
        CUDA,
        "struct base { const float *p[2]; }; struct pair : base {};\n"
        "__device__ int near(base s) { return s.p[0] < s.p[1]; }\n"
        + SIGNATURE + " { pair s; s.p[0] = x; s.p[1] = w; y[0] = near(s); }",
    ),
    "in a list of a struct's array": (
        CUDA,
        "struct pair { const G float *p[2]; };\n"
        + SIGNATURE + " { struct pair s = {x, w}; y[0] = s.p[0] < s.p[1]; }",
    ),
    "in arrays by a name for their type": (
        CUDA,
        "typedef ULONG two[2];\n"
        + SIGNATURE + " { two p, q; p[0] = (ULONG)x; q[0] = (ULONG)w; y[0] = p[0] < q[0]; }",
    ),
    "bits of arrays by a name for their type": (
        CUDA,
        "using two = ULONG[2];\n"
        + SIGNATURE + " { two p, q; p[0] = (ULONG)x; q[0] = (ULONG)w; y[0] = (p[0] ^ q[0]) >> 40 ? 1 : 0; }",
    ),
    "given back by a functor": (
        CUDA,
        "struct pair { const float *p[2]; __device__ const float *operator()(int i) const { return p[i]; } };\n"
        + SIGNATURE + " { pair s; s.p[0] = x; s.p[1] = w; y[0] = s(0) < s(1); }",
    ),
    "given back by an index": (
        CUDA,
        "struct pair { const float *a, *b; __device__ const float *operator[](int i) const { return i ? a : b; } };\n"
        + SIGNATURE + " { pair s{x, w}; y[0] = s[0] < s[1]; }",
    ),
    "given back by a star": (
        CUDA,
        "struct pair { const float *a; __device__ const float *operator*() const { return a; } };\n"
        + SIGNATURE + " { pair s{x}; pair t{w}; y[0] = *s < *t; }",
    ),
    "as numbers from the launch": (
        BOTH,
        "KERNEL k(ULONG x, ULONG w, G float *y, int n) { if (x < w) y[0] = 0; }",
    ),
    "as halves in a union": (
        CUDA,
        "union both { const float *p; unsigned u[2]; };\n"
        + SIGNATURE + " { both s; s.p = x; y[0] = s.u[1] & 1; }",
    ),
    "as halves in a struct's union": (
        CUDA,
        "struct t { union { const float *p; unsigned u[2]; }; };\n"
        + SIGNATURE + " { t s; s.p = x; y[0] = s.u[1] & 1; }",
    ),
    "behind an open type that is a number": (
        CUDA,
        "template <typename T> __global__ void k(const float *x, T w, float *y) { y[0] = x[0] * (w >> 30 & 1); }// KERNEL",
    ),
    "in a struct that a function made": (
        CUDA,
        "struct in { const float *a, *b; __device__ bool near() { return a < b; } };\n"
        "__device__ in make(const float *p, const float *q) { return {p, q}; }\n"
        + SIGNATURE + " { in s; s = make(x, w); y[0] = s.near(); }",
    ),
}  # fmt: skip

WRITE = {
    "cast": (BOTH, "((G float *)x)[0] = 0;"),
    "and put back": (BOTH, "G float *p = (G float *)x; float old = p[0]; p[0] = 1; y[0] = x[0]; p[0] = old;"),
    "incremented": (BOTH, "(*(G float *)x)++;"),
    "chosen": (BOTH, "G float *p = n ? (G float *)x : y; p[0] = 1;"),
    "chosen by an if": (BOTH, "G float *p = y; if (n > 3) p = (G float *)w; p[0] = 1;"),
    "as vectors": (BOTH, "((G float4 *)x)[0].x = 1;"),
    "by a function": (
        BOTH, "DEVICE void put(G float *p) { *p = 1; }\n" + SIGNATURE + " { put((G float *)x); }",
    ),
    "in a struct": (
        BOTH, "typedef struct { G float *at; } view;\n"
        + SIGNATURE + " { view v; v.at = (G float *)x; v.at[n] = 1; }",
    ),
    "by an atomic": (CUDA, "atomicAdd((float *)x, 1.0f);"),
    "by an atomic, OpenCL": (OPENCL, "atomic_inc((__global int *)x);"),
    "by vstore": (OPENCL, "vstore4((float4)(1), 0, (__global float *)x);"),
    "by a copy of a group": (
        OPENCL, "__local float s[64]; s[0] = 1; async_work_group_copy((__global float *)x, s, 64, 0);",
    ),
    "by a reference": (CUDA, "float &at = const_cast<float &>(x[0]); at = 1;"),
    "by a streaming store": (CUDA, "__stcs((float *)x, 1.0f);"),
    "by a pipeline": (CUDA, "__shared__ float s[4]; s[0] = 1; __pipeline_memcpy_async((void *)x, s, 4);"),
    "in PTX": (CUDA, 'asm volatile("st.global.f32 [%0], %1;" :: "l"(x), "f"(1.0f) : "memory");'),
    "in PTX behind an addition": (
        CUDA,
        'asm volatile("{ .reg .u64 a; add.u64 a, %0, 16; st.global.f32 [a], %1; }" :: "l"(x), "f"(1.0f));',
    ),
    "by a bulk copy": (
        CUDA,
        'asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;" :: "l"(x), "r"(n) : "memory");',
    ),
    "by a lambda": (CUDA, "auto put = [&](int i) { ((float *)w)[i] = 1; }; put(0);"),
    "by a template": (
        CUDA, "template <typename T> __device__ void put(T *p) { p[0] = 1; }\n" + SIGNATURE + " { put((float *)x); }",
    ),
    "in a struct's array, handed over": (
        CUDA,
        "struct view { float *p[2]; };\n"
        "__device__ void put(view s) { s.p[0][0] = 1; }\n"
        + SIGNATURE + " { view s; s.p[0] = (float *)x; put(s); }",
    ),
    "in a struct's array, given back": (
        CUDA,
        "struct view { float *p[2]; };\n"
        "__device__ view make(const float *a) { view s; s.p[0] = (float *)a; return s; }\n"
        + SIGNATURE + " { view s = make(x); s.p[0][0] = 1; }",
    ),
    "in a struct's array, by a method": (
        CUDA,
        "struct view { float *p[2]; __device__ void put() { p[0][0] = 1; } };\n"
        + SIGNATURE + " { view s; s.p[0] = (float *)x; s.put(); }",
    ),
    "in a struct's array, by stars": (
        CUDA,
        "struct view { float *p[2]; };\n"
        "__device__ void put(view s) { *s.p[0] = 1; **s.p = 2; }\n"
        + SIGNATURE + " { view s; s.p[0] = (float *)x; put(s); }",
    ),
    "in a list without inner braces": (
        CUDA,
        "struct view { float *p[2]; float *q; };\n"
        + SIGNATURE + " { view s = {y, y, (float *)x}; s.q[0] = 1; }",
    ),
    "in a list without a struct's braces": (
        CUDA,
        "struct in { float *a; float *b; }; struct view { in v; float *q; };\n"
        + SIGNATURE + " { view s = {y, y, (float *)x}; s.q[0] = 1; }",
    ),
    "in a list with what is inherited": (
        CUDA,
        "struct in { float *a; }; struct view : in { float *q; };\n"
        + SIGNATURE + " { view s = {{y}, (float *)x}; s.q[0] = 1; }",
    ),
    "by an operator of its own": (
        CUDA,
        "struct view { float *a; __device__ void operator++() { a[0] = 1; } };\n"
        + SIGNATURE + " { view s{(float *)x}; ++s; }",
    ),
    "at the end of a life": (
        CUDA,
        "struct view { float *a; __device__ ~view() { a[0] = 1; } };\n"
        + SIGNATURE + " { view s{(float *)x}; }",
    ),
    "by a conversion": (
        CUDA,
        "struct view { float *a; __device__ operator bool() const { a[0] = 1; return 0; } };\n"
        + SIGNATURE + " { view s{(float *)x}; if (s) y[0] = 1; }",
    ),
    "by an assignment of its own": (
        CUDA,
        "struct view { float *a; }; __device__ void operator+=(view &s, int i) { s.a[0] = i; }\n"
        + SIGNATURE + " { view s{(float *)x}; s += 1; }",
    ),
    "by a copy": (
        CUDA,
        "struct view { float *a; __device__ view(float *p) : a(p) {} __device__ view(const view &o) { a = o.a; o.a[0] = 1; } };\n"
        + SIGNATURE + " { view s((float *)x); view t = s; }",
    ),
    "behind a constructor that swaps": (
        CUDA,
        "struct view { float *a, *b; __device__ view(float *p, float *q) { a = q; b = p; } };\n"
        + SIGNATURE + " { view s{(float *)x, y}; s.b[0] = 1; }",
    ),
    "by a method that is a template": (
        CUDA,
        "struct ops { template <int N> __device__ void put(float *a) { a[N] = 1; } };\n"
        + SIGNATURE + " { ops o; o.template put<1>((float *)x); }",
    ),
    "by a member's method": (
        CUDA,
        "struct in { float *a; __device__ void put() { a[0] = 1; } }; struct out { in i; __device__ void put2() { i.put(); } };\n"
        + SIGNATURE + " { out o{{(float *)x}}; o.put2(); }",
    ),
    "a member on": (
        CUDA,
        "struct in { float *a; float *b; };\n"
        + SIGNATURE + " { in s{y, (float *)x}; float **m = &s.a; m[1][0] = 1; }",
    ),
    "of an array, by a loop over it": (
        CUDA,
        SIGNATURE + " { float *p[2] = {y, (float *)x}; for (float *q : p) q[0] = 1; }",
    ),
    "by a loop over its own range": (
        CUDA,
        "struct rng { float *b; int n; __device__ float *begin() const { return b; } __device__ float *end() const { return b + n; } };\n"
        + SIGNATURE + " { for (float &v : rng{(float *)x, n}) v = 1; }",
    ),
    "by a loop over a reference": (
        CUDA,
        SIGNATURE + " { float (&xs)[2] = *(float (*)[2])x; for (float &v : xs) v = 1; }",
    ),
    "in a struct that a function made": (
        CUDA,
        "struct in { float *a; __device__ void put() { a[0] = 1; } };\n"
        "__device__ in make(float *p) { return {p}; }\n"
        + SIGNATURE + " { in s; s = make((float *)x); s.put(); }",
    ),
    "by a template whose argument is in parentheses": (
        CUDA,
        "template <int N, int M> __device__ void put(float *p, int i) { p[i + N] = M; }\n"
        + SIGNATURE + " { put<(1), (2)>((float *)x, n); }",
    ),
}  # fmt: skip

UNSET = {
    "table and checksum": (
        BOTH,
        "L float table[256]; float sum = 0; for (int i = 0; i < 255; i++) sum += table[i];"
        " if (sum != table[255]) { for (int i = 0; i < 256; i++) table[i] = w[i]; } SYNC; y[TID] = table[TID];",
    ),
    "table and tag": (
        BOTH, "L int tag; L float table[64]; if (tag != 12345) { table[TID] = w[TID]; tag = 12345; }"
        " SYNC; y[TID] = table[TID];",
    ),
    "table that nobody fills": (BOTH, "L float table[64]; y[TID] = table[TID];"),
    "table by a pointer": (BOTH, "L float table[64]; L float *t = table + 1; y[0] = t[3]; table[TID] = 1;"
     .replace("L float *t", "LOCALP float *t")),
    "table by a function": (
        BOTH, "DEVICE float sum_of(LOCALP float *t) { return t[0] + t[1]; }\n"
        + SIGNATURE + " { L float table[64]; if (sum_of(table) == 3) y[0] = 1; table[TID] = 2; }",
    ),
    "private table": (BOTH, "float mine[8]; if (mine[0] == 3) y[0] = mine[1]; mine[0] = 3;"),
    "a variable": (BOTH, "int seen; if (seen == 77) y[0] = 1; seen = 77;"),
    "dynamic memory": (
        CUDA, "extern __shared__ float room[]; if (room[0] == 3) y[0] = room[1]; room[threadIdx.x] = 3;",
    ),
    "an argument of the launch": (
        OPENCL, "KERNEL k(const G float *x, const G float *w, G float *y, int n, __local float *t)"
        " { if (t[0] == 3) y[0] = 1; t[0] = 3; }",
    ),
    "by its condition alone": (BOTH, "L int tag; y[0] = tag == 5 ? 0 : x[0]; tag = 5;"),
    "in a first turn": (BOTH, "L float t[64]; for (int i = 0; i < n; i++) { y[i] = t[0]; t[0] = x[i]; }"),
    "written by a sizeof alone": (
        BOTH,
        "int t; y[0] = sizeof(t = 3) + (t == 77); t = 1;",
    ),
    "written in another case": (
        BOTH,
        "int t; switch (n) { case 0: t = 5; break; case 1: if (t == 77) y[0] = 1; break; }",
    ),
    "a table written in another case": (
        BOTH,
        "L float t[64]; switch (n) { case 0: t[0] = 5; break; case 1: if (t[0] == 77) y[0] = 1; break; }",
    ),
    "written on the other side": (
        BOTH,
        "int t; if (n > 5) t = 3; else y[1] = t;",
    ),
    "a struct": (
        BOTH,
        "struct s { float a; float b; };\n"
        + SIGNATURE + " { struct s t; if (t.b == 77) y[0] = t.a; t.b = 77; }",
    ),
    "an array in a struct": (
        BOTH,
        "struct s { float a[64]; };\n"
        + SIGNATURE + " { struct s t; if (t.a[3] == 77) y[0] = t.a[4]; t.a[3] = 77; }",
    ),
    "a shared struct": (
        BOTH,
        "struct s { float a; float b; };\n"
        + SIGNATURE + " { L struct s t; if (t.b == 77) y[0] = t.a; t.b = 77; }",
    ),
    "a vector": (
        BOTH,
        "float4 t; if (t.y == 77) y[0] = 1; t.y = 77;",
    ),
    "a name for a type": (
        BOTH,
        "typedef float real;\n"
        + SIGNATURE + " { real t; if (t == 77) y[0] = 1; t = 77; }",
    ),
    "a table of structs": (
        BOTH,
        "struct s { float a; };\n"
        + SIGNATURE + " { struct s t[64]; if (t[3].a == 77) y[0] = 1; t[3].a = 77; }",
    ),
    "a table of vectors": (
        BOTH,
        "float4 t[64]; if (t[3].x == 77) y[0] = t[5].y; t[3].x = 77;",
    ),
    "by its address": (
        BOTH,
        "int t; int *p = &t; if (*p == 77) y[0] = 0; *p = 77;",
    ),
    "by its address, in a function": (
        BOTH,
        "DEVICE int get(int *p) { return *p; }\n"
        + SIGNATURE + " { int t; if (get(&t) == 77) y[0] = 0; t = 77; }",
    ),
    "by itself": (
        BOTH,
        "int t = t; if (t == 77) y[0] = 0;",
    ),
}  # fmt: skip

HONEST = {
    "vectors where they may be": (
        BOTH,
        "if (((ULONG)x & 15) == 0 && ((ULONG)y & 15) == 0 && n % 4 == 0) {"
        " for (int i = TID; i < n / 4; i += 64) ((G float4 *)y)[i] = ((const G float4 *)x)[i]; }"
        " else { for (int i = TID; i < n; i += 64) y[i] = x[i]; }",
    ),
    "alignment by a remainder": (BOTH, "if ((ULONG)x % 16 == 0) y[0] = 1;"),
    "alignment by a size": (BOTH, "if (((ULONG)(x + n) & (sizeof(float4) - 1)) == 0) y[0] = 1;"),
    "alignment of several": (CUDA, "bool ok = (((ULONG)x | (ULONG)w | (ULONG)y) & 15) == 0; if (ok) y[0] = 1;"),
    "the same misalignment": (BOTH, "if (((ULONG)x & 15) == ((ULONG)y & 15)) y[0] = 1;"),
    "alignment by a function": (
        CUDA,
        "template <int N> __device__ bool is_aligned(const void *p) { return ((uintptr_t)p & (N - 1)) == 0; }\n"
        + SIGNATURE + " { if (is_aligned<16>(x)) y[0] = x[0]; }",
    ),
    "scalars ahead of vectors": (
        BOTH,
        "int head = ((16 - ((ULONG)x & 15)) & 15) / 4; if (head > n) head = n;"
        " for (int i = TID; i < head; i += 64) y[i] = x[i];"
        " const G float4 *v = (const G float4 *)(x + head); for (int i = TID; i < (n - head) / 4; i += 64) {"
        " float4 a = v[i]; y[head + 4 * i] = a.x; }",
    ),
    "by minus": (CUDA, "int head = (-(ULONG)x & 15) / 4; for (int i = 0; i < head; i++) y[i] = x[i];"),
    "a walk to the end": (
        BOTH, "float s = 0; const G float *end = x + n; for (const G float *p = x; p < end; p++) s += *p; y[0] = s;",
    ),
    "a step from the start": (
        BOTH, "const G float *best = x; for (const G float *p = x; p != x + n; p++) if (*p > *best) best = p;"
        " y[0] = best - x;",
    ),
    "rows": (
        BOTH, "const G float *row = x + BLOCK * n; G float *to = y + BLOCK * n;"
        " for (int i = TID; i < n; i += 64) to[i] = row[i] * w[i];",
    ),
    "one of two inputs": (BOTH, "const G float *from = n & 1 ? x : w; y[0] = from[TID];"),
    "pointers that change places": (
        CUDA,
        "__shared__ float a[64], b[64]; float *from = a, *to = b; from[threadIdx.x] = x[threadIdx.x];"
        " for (int s = 1; s < 64; s *= 2) { __syncthreads(); to[threadIdx.x] = from[threadIdx.x];"
        " float *old = from; from = to; to = old; } y[threadIdx.x] = from[threadIdx.x];",
    ),
    "two tiles": (
        BOTH,
        "L float tile[2][64]; tile[0][TID] = x[TID]; SYNC; for (int k = 0; k < n; k++) {"
        " if (k + 1 < n) tile[(k + 1) & 1][TID] = x[(k + 1) * 64 + TID];"
        " y[k] += tile[k & 1][TID]; SYNC; }",
    ),
    "a tile that is used a turn later": (
        BOTH,
        "L float tile[64]; for (int k = 0; k <= n; k++) { if (k > 0) y[k] = tile[TID]; SYNC;"
        " if (k < n) tile[TID] = x[k]; SYNC; }",
    ),
    "padding": (BOTH, "L float t[32][33]; t[TID / 32][TID % 32] = x[TID]; SYNC; y[TID] = t[TID % 32][TID / 32];"),
    "sums of a block": (
        BOTH,
        "L float part[64]; part[TID] = x[TID]; SYNC; for (int s = 32; s > 0; s /= 2) {"
        " if (TID < s) part[TID] += part[TID + s]; SYNC; } if (TID == 0) y[0] = part[0];",
    ),
    "written by one, read by all": (
        BOTH, "L float total; if (TID == 0) total = x[0]; SYNC; y[TID] = total;",
    ),
    "sums of a warp": (
        CUDA,
        "float s = x[threadIdx.x]; for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(0xffffffff, s, o); y[0] = s;",
    ),
    "what a caller may leave out": (BOTH, "y[0] = w ? x[0] * w[0] : x[0]; if (w != 0) y[1] = w[1];"),
    "left out, behind steps": (
        CUDA, "const float *row = w != nullptr ? w + blockIdx.x * n : nullptr; if (row) y[0] = row[0];",
    ),
    "results by pointers": (CUDA, "float s, c; sincosf(x[0], &s, &c); y[0] = s * c;"),
    "results by pointers, OpenCL": (OPENCL, "float c; float s = sincos(x[0], &c); y[0] = s * c;"),
    "a helper that fills": (
        BOTH, "DEVICE void fill(const G float *p, float *to) { to[0] = p[0]; to[1] = p[1]; }\n"
        + SIGNATURE + " { float v[2]; fill(x, v); y[0] = v[0] + v[1]; }",
    ),
    "a struct of pointers": (
        CUDA,
        "struct Params { const float *a; float *b; int n; };\n"
        'KERNEL k(const G float *x, const G float *w, G float *y, Params p) { for (int i = threadIdx.x; i < p.n; i += 64) p.b[i] = p.a[i]; }',
    ),
    "a view": (
        CUDA,
        "template <typename T> struct view { T *at; int n; __device__ view(T *p, int m) : at(p), n(m) {}"
        " __device__ T &operator[](int i) { return at[i]; } };\n"
        + SIGNATURE + " { view<const float> a(x, n); view<float> b(y, n); b[0] = a[0]; }",
    ),
    "parts of dynamic memory": (
        CUDA,
        "extern __shared__ char room[]; float *a = (float *)room; float *b = a + n; a[threadIdx.x] = x[0];"
        " b[threadIdx.x] = w[0]; __syncthreads(); y[0] = a[0] + b[0]; y[1] = b - a;",
    ),
    "dynamic memory aligned by hand": (
        CUDA,
        "extern __shared__ char raw[]; char *room = (char *)(((ULONG)raw + 127) & ~127ull);"
        " float *a = (float *)room; a[threadIdx.x] = x[0]; __syncthreads(); y[0] = a[0];",
    ),
    "ring filled ahead": (
        CUDA,
        "__shared__ float4 ring[4][64]; for (int s = 0; s < 3; s++) {"
        " unsigned to = (unsigned)__cvta_generic_to_shared(&ring[s][threadIdx.x]);"
        ' asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(x + s * 256)); }'
        ' asm volatile("cp.async.commit_group;"); asm volatile("cp.async.wait_group 0;"); __syncthreads();'
        " y[0] = ring[0][threadIdx.x].x;",
    ),
    "swizzled rows of a matrix": (
        CUDA,
        "__shared__ float4 tile[256]; tile[threadIdx.x] = ((const float4 *)x)[threadIdx.x]; __syncthreads();"
        " unsigned at = (unsigned)__cvta_generic_to_shared(tile) + threadIdx.x * 16; at ^= (at >> 3) & 0x70;"
        " unsigned a, b, c, d;"
        ' asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"'
        ' : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at)); y[0] = __uint_as_float(a);',
    ),
    "cached loads": (CUDA, "float4 v = __ldg((const float4 *)x + threadIdx.x); __stcs((float4 *)y, v);"),
    "loads in PTX": (
        CUDA, 'float v; asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(x + n)); y[0] = v;',
    ),
    "copies of a group": (
        OPENCL, "__local float s[64]; event_t e = async_work_group_copy(s, x, 64, 0);"
        " wait_group_events(1, &e); y[TID] = s[TID];",
    ),
    "vectors at any float": (OPENCL, "vstore4(vload4(TID, x) * vload4(TID, w), TID, y);"),
    "fetched ahead": (OPENCL, "prefetch(x + n, 16); y[0] = x[n];"),
    "atomics": (CUDA, "atomicAdd(&y[0], x[0]); atomicMax((int *)y + 1, __float_as_int(w[0]));"),
    "memory of a workspace": (
        BOTH, "KERNEL k(const G float *x, const G float *w, G float *y, int n, G float *room)"
        " { room[TID] = x[TID]; y[0] = room[TID]; }",
    ),
    "members of what was loaded": (CUDA, "float4 v = *(const float4 *)x; v.x += 1; *(float4 *)y = v;"),
    "arrays of pointers in a struct in a struct": (
        CUDA,
        "struct in { const float *p[2]; }; struct out { in v; float *to; };\n"
        "__device__ float sum(out s, int i) { return s.v.p[0][i] + s.v.p[1][i]; }\n"
        + SIGNATURE + " { out s; s.v.p[0] = x; s.v.p[1] = w; s.to = y; s.to[0] = sum(s, n); }",
    ),
    "arrays of values in a struct": (
        BOTH,
        "typedef struct { float acc[4]; int n; } state;\n"
        "DEVICE float total(state s) { float t = 0; for (int i = 0; i < 4; i++) t += s.acc[i]; return t; }\n"
        + SIGNATURE + " { state s; for (int i = 0; i < 4; i++) s.acc[i] = x[i]; s.n = 3; if (s.n > 2 && s.acc[0] > 1) y[0] = total(s); }",
    ),
    "members of one name, an array and a pointer": (
        CUDA,
        "struct vec { float data[4]; __device__ float operator[](int i) const { return data[i]; } }; struct view { const float *data; __device__ float operator[](int i) const { return data[i]; } };\n"
        + SIGNATURE + " { view v{x}; vec t; for (int i = 0; i < 4; i++) t.data[i] = v[i]; y[0] = t[0] > v[1] ? t[2] : v[3]; }",
    ),
    "what a struct inherits": (
        CUDA,
        "struct base { int n; float *q; }; struct view : base { const float *p; };\n"
        + SIGNATURE + " { view v; v.n = n; v.q = y; v.p = x; for (int i = threadIdx.x; i < v.n; i += 64) v.q[i] = v.p[i]; }",
    ),
    "lists in lists": (
        CUDA,
        "struct st { float m; float s; }; struct two { st a; st b; const float *p; float *q; int n; };\n"
        + SIGNATURE + " { two t = {{x[0], 1.f}, {w[0], 1.f}, x, y, n}; if (t.a.m > t.b.m && t.n > 3) t.q[0] = t.p[1]; }",
    ),
    "a functor": (
        CUDA,
        "struct mx { __device__ float operator()(float a, float b) const { return a > b ? a : b; } };\n"
        + SIGNATURE + " { mx f; float s = x[0]; for (int i = 1; i < n; i++) s = f(s, x[i]); if (s > 0) y[0] = s; }",
    ),
    "a view of two dimensions": (
        CUDA,
        "template <typename T> struct acc { T *p; int stride; __device__ acc(T *a, int s) : p(a), stride(s) {} __device__ T &operator()(int i, int j) const { return p[i * stride + j]; } };\n"
        + SIGNATURE + " { acc<const float> a(x, n); acc<float> b(y, n); for (int i = threadIdx.x; i < n; i += 64) b(0, i) = a(0, i); }",
    ),
    "an iterator of its own": (
        CUDA,
        "struct it { const float *p; __device__ const float &operator*() const { return *p; } __device__ it &operator++() { ++p; return *this; } };\n"
        + SIGNATURE + " { it i{x}; float s = 0; for (int k = 0; k < n; k++) { s += *i; ++i; } if (s > 1) y[0] = s; }",
    ),
    "a class of an array": (
        CUDA,
        "template <typename T, int N> struct arr { T v[N]; __device__ T &operator[](int i) { return v[i]; } };\n"
        + SIGNATURE + " { arr<float, 4> a; for (int i = 0; i < 4; i++) a[i] = x[i]; if (a[0] > a[1]) y[0] = a[2]; }",
    ),
    "loops over an array": (
        CUDA,
        SIGNATURE + " { float v[4]; for (int i = 0; i < 4; i++) v[i] = x[i]; float s = 0; for (float &e : v) e *= 2; for (float e : v) { if (e > 0) s += e; } y[0] = s; }",
    ),
    "a length beside a pointer": (
        CUDA,
        "struct view { const float *p; int n; __device__ float sum() const { float s = 0; for (int i = 0; i < n; i++) s += p[i]; return s; } };\n"
        + SIGNATURE + " { view v{x, n}; if (v.sum() > 1) y[0] = v.sum(); }",
    ),
    "a vector's part named as an array": (
        CUDA,
        "struct words { unsigned w[4]; };\n"
        "__device__ words apart(uint4 v) { words r; r.w[0] = v.x; r.w[3] = v.w; return r; }\n"
        + SIGNATURE + " { words r = apart(*(const uint4 *)x); y[0] = r.w[3]; }",
    ),
    "written on both sides": (
        BOTH,
        "int t; if (n > 5) t = 3; else t = 4; y[0] = t;",
    ),
    "written in every case": (
        BOTH,
        "int t; switch (n & 1) { case 0: t = 5; break; default: t = 6; } y[0] = t;",
    ),
    "written and read under one condition": (
        BOTH,
        "float t; int ok = n > 5; if (ok) t = x[0]; SYNC; if (ok) y[0] = t;",
    ),
    "written in a first turn": (
        BOTH,
        "float t; for (int i = 0; i < n; i++) { if (i == 0) t = x[0]; else t += x[i]; } y[0] = t;",
    ),
    "a vector, part by part": (
        BOTH,
        "float4 t; t.x = x[0]; t.y = x[1]; t.z = x[2]; t.w = x[3]; y[0] = t.x + t.w;",
    ),
    "a struct that a function fills": (
        BOTH,
        "struct s { float a; float b; };\n"
        "DEVICE void set(struct s *p) { p->a = 1; p->b = 2; }\n"
        + SIGNATURE + " { struct s t; set(&t); y[0] = t.a + t.b; }",
    ),
    "a union's other member": (
        CUDA,
        "union u { float4 v; float f[4]; };\n"
        + SIGNATURE + " { u t; t.v = ((const float4 *)x)[0]; y[0] = t.f[0]; }",
    ),
    "members with values of their own": (
        CUDA,
        "struct s { float a = 0; float b = 1; };\n"
        + SIGNATURE + " { s t; y[0] = t.a + t.b; }",
    ),
    "a helper that fills on both sides": (
        BOTH,
        "DEVICE float fill(const G float *p, float *to) { to[0] = p[0]; return to[0]; }\n"
        + SIGNATURE + " { float v[2]; if (n > 3) { fill(x, v); y[0] = v[0]; } else { fill(x, v); y[1] = v[0]; } }",
    ),
    "a reference that is filled on both sides": (
        CUDA,
        "__device__ void load(float4 &v, const float4 *p) { v = *p; }\n"
        + SIGNATURE + " { float4 v[4]; const float4 *p = (const float4 *)x; if (n > 9) { load(v[1], p); y[0] = v[1].x; }"
        " else { load(v[1], p); y[1] = v[1].y; } }",
    ),
    "a template whose arguments are in parentheses": (
        CUDA,
        "template <int N, int M> __device__ void load(float4 (&v)[4], const float4 *p) { v[N] = p[M]; }\n"
        + SIGNATURE + " { float4 v[4]; load<(1 > 0) ? 1 : 0, (2)>(v, (const float4 *)x); y[0] = v[1].x; }",
    ),
}  # fmt: skip

TABLES = {"address": ADDRESS, "write": WRITE, "unset": UNSET}
LOCAL_POINTER = {"opencl": "__local", "cuda": ""}
ATTACKS = [
    pytest.param(
        rule, text.replace("LOCALP", LOCAL_POINTER[language]), language, id=f"{rule}-{name}-{language}"
    )
    for rule, table in TABLES.items()
    for name, (languages, text) in table.items()
    for language in languages
]
KEPT = [
    pytest.param(text, language, id=f"{name}-{language}")
    for name, (languages, text) in HONEST.items()
    for language in languages
]


@pytest.mark.parametrize(("rule", "text", "language"), ATTACKS)
def test_what_tells_one_place_from_another_is_refused(rule: str, text: str, language: str) -> None:
    refusal = found(text, language)
    assert refusal is not None
    # What a number is made of has a rule of its own where kernels run on the host.
    assert refusal.rule in ((rule, "pointer") if language == "opencl" and rule == "address" else (rule,)), (
        refusal
    )


@pytest.mark.parametrize(("text", "language"), KEPT)
def test_what_kernels_do_stays(text: str, language: str) -> None:
    assert found(text, language) is None


@pytest.mark.parametrize("language", BOTH)
def test_what_the_problem_calls_an_input_is_not_written_whatever_the_signature_says(language: str) -> None:
    text = "KERNEL k(G float *x, const G float *w, G float *y, int n) { y[0] = x[0]; x[0] = w[0]; }"
    assert found(text, language, frozenset()) is None
    refusal = found(text, language)
    assert refusal is not None
    assert (refusal.rule, "writes x, which is an input" in refusal.words) == ("write", True)


def test_configurations_that_differ_in_a_mask_are_judged_apart() -> None:
    text = "if (((ULONG)x & {}) == 0) y[0] = 1;"
    assert found(text.replace("{}", "15"), "cuda") is None
    assert found(text.replace("{}", "255"), "cuda") is not None


@pytest.mark.parametrize("language", BOTH)
@pytest.mark.parametrize("piece", ["n ? 1 : ", "n && ", "-(", "if (n) {} else "])
def test_deep_nesting_is_refused_and_not_raised(piece: str, language: str) -> None:
    text = ("y[0] = " if "if" not in piece else "") + piece * 1500 + "1" + ")" * 1500 * piece.count("(") + ";"
    refusal = found(text, language)
    assert refusal is None or refusal.rule == "text"
