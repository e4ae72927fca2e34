"""What kernel bodies do through their pointers: the sources of every role in a drafted problem."""

from __future__ import annotations

import pytest

from tunesmith.csource.nodes import Language
from tunesmith.expert.reading.source import read_source


def access(body: str, *, declared: str = "float* p", language: Language = "cuda", before: str = "") -> str:
    """ "r", "w", "rw", "" for a parameter p of a kernel with this body; ? where a part is not known."""
    marker = "__kernel" if language == "opencl" else "__global__"
    model = read_source(f"{before}\n{marker} void k({declared}, int n) {{ {body} }}", language)
    p = model.kernels[0].parameters[0]
    return {True: "r", False: "", None: "?"}[p.read] + {True: "w", False: "", None: "?"}[p.written]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("p[n] = 1;", "w"),
        ("p[n] += 1;", "rw"),
        ("*p = 1;", "w"),
        ("*(p + n) = 1;", "w"),
        ("*p++ = 1;", "w"),
        ("++p[n];", "rw"),
        ("float x = p[n];", "r"),
        ("p[n] = p[n] * 2;", "rw"),
        ("((float4*)p)[n] = v;", "w"),
        ("reinterpret_cast<float4*>(p)[n] = v;", "w"),
        ("*reinterpret_cast<float4*>(&p[n]) = v;", "w"),
        ("float4 v = *reinterpret_cast<const float4*>(p + n);", "r"),
        ("float* row = p + n * 4; row[0] = 1;", "w"),
        ("float* a = p; float* b = a + 1; if (n) b = a; *b = *a;", "rw"),
        ("auto q = reinterpret_cast<int4*>(p) + n; q[0] = v;", "w"),
        ("float& cell = p[n]; cell = 1;", "w"),
        ("const float& cell = p[n]; s = cell;", "r"),
        ("for (float* q = p; q < p + n; ++q) *q = 0;", "w"),
        ("for (int i = blockIdx.x; i < n; i += gridDim.x) p[i] = 2.0f;", "w"),
        ("atomicAdd(&p[n], 1.0f);", "rw"),
        ("atomicCAS((int*)p + n, 0, 1);", "rw"),
        ("__stcs(p + n, 1.0f);", "w"),
        ("s = __ldg(p + n);", "r"),
        ("p[n].x = 1;", "w"),
        ("p->x = 1;", "w"),
        ("q[(int)p[n]] = 1;", "r"),
        ("if (p != nullptr) q[n] = 1;", ""),
        ("if (p) q[n] = 1;", ""),
        ("int d = p - q;", ""),
        ("p += n;", ""),
        ("(void)p;", ""),
        ("(n ? p : q)[0] = 1;", "w"),
        ("auto f = [&](int i) { p[i] = 1; }; f(n);", "w"),
        ("out[n] = fmaxf(p[n], expf(p[n + 1]));", "r"),
        ('s = 1; /* p[0] = 1; */ // p[0] = 1;\n printf("p[0] = 1;");', ""),
        ("#if X\n p[0] = 1;\n#else\n s = p[0];\n#endif\n", "rw"),
        # What cannot be followed is said, not guessed.
        ("mystery(p);", "??"),
        ("mystery(p[n]);", "r?"),
        ("p[n] = 1; mystery(p);", "?w"),
        ("Tensor t(p, n);", "??"),
        ("Tensor t{p}; t.store();", "??"),
        ("view.p = p;", "??"),
        ('asm volatile("st.global.f32 [%0], 0;" :: "l"(p));', "??"),
        ("store.run(p + n, v);", "??"),
    ],
)
def test_cuda(body: str, expected: str) -> None:
    assert access(body) == expected


def test_const_decides_where_the_body_does_not() -> None:
    assert access("mystery(p);", declared="const float* p") == "r"
    assert access("((float*)p)[0] = 1;", declared="const float* p") == "w"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("vstore4(v, n, p);", "w"),
        ("float4 v = vload4(n, p);", "r"),
        ("vstore_half_rte(x, n, (__global half*)p);", "w"),
        ("__global float* row = p + n; row[1] = 0.0f;", "w"),
        ("((__global float4*)p)[n] = (float4)(0.0f);", "w"),
        ("float4 v = (float4)(p[0], p[1], p[2], p[3]);", "r"),
        ("p[n].s01 = v.lo;", "w"),
        ("atomic_inc((volatile __global int*)&p[n]);", "rw"),
        ("event_t e = async_work_group_copy(tile, p, n, 0);", "r"),
        ("event_t e = async_work_group_copy(p, tile, n, 0);", "w"),
        ("x = unknown(p[n]);", "r"),
        ("int new = 1; int class = 2; p[new] = class;", "w"),
    ],
)
def test_opencl(body: str, expected: str) -> None:
    assert access(body, declared="__global float* p", language="opencl") == expected


@pytest.mark.parametrize(
    ("helper", "body", "expected"),
    [
        ("__device__ void put(float* q, float v) { *q = v; }", "put(p + n, 1);", "w"),
        ("template <typename T> __device__ void put(T& q, T v) { q = v; }", "put(p[n], 1.0f);", "w"),
        ("__device__ float twice(float v) { return v * 2; }", "s = twice(p[n]);", "r"),
        ("__device__ float sum(const float* q, int n) { return other(q); }", "s = sum(p, n);", "r"),
        (
            "__device__ void a(float* q) { b(q); } __device__ void b(float* q) { q[0]++; a(q); }",
            "a(p);",
            "rw",
        ),
        ("__device__ float* at(float* q) { return q + 1; }", "*at(p) = 1;", "??"),
        ("#define OUT(i) p[i]\n", "OUT(n) = 1;", "??"),
        ("#define STORE(q, v) *(q) = v\n", "STORE(p + n, 1);", "??"),
        ("#define AT(i, j) ((i) * 4 + (j))\n", "p[AT(n, 1)] = 1;", "w"),
    ],
)
def test_helpers_and_macros(helper: str, body: str, expected: str) -> None:
    assert access(body, before=helper) == expected


def test_a_long_chain_of_helpers_ends_in_doubt() -> None:
    helpers = "\n".join(f"__device__ void f{i}(float* q) {{ f{i + 1}(q); }}" for i in range(2000))
    assert access("f0(p);", before=helpers) == "??"
