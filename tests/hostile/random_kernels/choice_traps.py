"""Traps of what stands for what: objects at places that move, methods and overloads, names of numbers."""

from __future__ import annotations

from collections.abc import Mapping

from tests.hostile.random_kernels.trap import LOOP, TREE, Trap, block_trap, flat_trap

_P = "struct P { int n; float a; __device__ float get() const { return n + a * 10; } };\n"
_THREE = "P ps[3] = {{1, x[i]}, {2, 4.0f}, {0, 6.0f}}; int k = i & 1;\n"
_W = (
    "struct W { float a, b; __device__ float get() { return a; }\n"
    "    __device__ float get() const { return b + 100.0f; } };\n"
)
_ONE = (
    "struct W { float a; __device__ float get() { return a; }\n"
    "    __device__ float get() const { return a + 100.0f; } };\n"
)
_TWO = "W ws[2] = {{x[i], 3}, {1, 2}}; float s = 0;\n"
_N = (
    "struct N { int v; __device__ N(int k) : v(k) {} __device__ operator float() const { return v; }\n"
    "    __device__ explicit operator bool() const { return v > 2; } };\n"
)

CHOICE_TRAPS: Mapping[str, Trap] = {
    "an object copied from a place that moves": flat_trap(
        _THREE + "P p = ps[k++];\nout[i] = p.get() * 10 + k;", _P
    ),
    "an object stored to a place that moves": flat_trap(
        _THREE + "P p{7, x[i]}; ps[k++] = p;\nout[i] = ps[0].get() + ps[1].get() * 100 + k;", _P
    ),
    "a method of a place that moves": flat_trap(_THREE + "out[i] = ps[k++].get() * 10 + k;", _P),
    "an object by its own field": flat_trap(
        _THREE + "P p{k, 1}; p = ps[p.n];\nout[i] = p.get(); p = ps[p.n];\nout[i] += p.get() * 100;", _P
    ),
    "an element by its own field": flat_trap(_THREE + "ps[0] = ps[ps[0].n];\nout[i] = ps[0].get();", _P),
    "a const method by a pointer's value": flat_trap(
        "const W *ws = (const W *)x; auto q = ws + i; auto *r = ws + i;\nout[i] = q->get() + r->get() * 3;",
        _ONE,
    ),
    "a const method in a lambda": flat_trap(
        "W v{x[i], 3}; auto g = [&]() { return v.get(); };\nout[i] = g() * 3;", _W
    ),
    "a const method of all": flat_trap(
        _TWO + "for (const auto &w : ws) s = s * 5 + w.get();\nfor (auto &w : ws) s = s * 5 + w.get();\n"
        "for (const W &w : ws) s = s * 5 + w.get();\nout[i] = s;",
        _W,
    ),
    "a template beside a conversion": flat_trap(
        "A a{x[i], 3};\nout[i] = a.f(1.0f) + a.f(1) * 100 + a.f(2.0) * 10000;",
        "struct A { float v; int w; template <class T> __device__ float f(T t) const { return v + 1; }\n"
        "    __device__ float f(double t) const { return v + 2; } };",
    ),
    "a constructor's template beside a conversion": flat_trap(
        "A a(x[i]), b((int)x[i]), c((double)x[i]);\nout[i] = a.v + a.k * 10 + b.k * 100 + c.k * 1000;",
        "struct A { float v; int k; template <class T> __device__ A(T t) : v(t), k(1) {}\n"
        "    __device__ A(double t) : v(t), k(2) {} };",
    ),
    "an operator's template beside a conversion": flat_trap(
        "A a{x[i], 3};\nout[i] = a * 2.0f + (a * 2) * 100;",
        "struct A { float v; int k; };\n"
        "template <class T> __device__ float operator*(const A &a, T t) { return a.v * t + 1; }\n"
        "__device__ float operator*(const A &a, double t) { return a.v * t + 2; }",
    ),
    "an object as a condition": flat_trap(
        "N n((int)x[i]); float s = 0;\nif (n) s += 1;\nif (n && x[i] < 7) s += 100;\n"
        "out[i] = s + (n ? 1000 : 2000);",
        _N,
    ),
    "an object as a loop's condition": flat_trap(
        "N n((int)x[i]); float s = 0;\nwhile (n) { s += n.v; n = N(n.v - 1); }\nout[i] = s;", _N
    ),
    "a number by another name": flat_trap(
        "int p = 4; int q = p; unsigned u = 4; auto w = u;\nout[i] = p + q * 10 + (w - 5 > 100) + x[i];"
    ),
    "a sum by another name": flat_trap(
        "int p = 4; int q = p + 1; int r = q;\nout[i] = x[(i + r) % (rows * d)] * q;"
    ),
    "a flag by another name": flat_trap(
        "const bool p = d == 64; const bool q = p; bool r = q;\nout[i] = r ? x[i] : 2.0f;"
    ),
    "two ends, one below zero and unsigned": block_trap(
        "float s = 0; const int most = d - 100;\n"
        "for (unsigned i = threadIdx.x; i < d && i < most; i += 64) s += x[i];\n"
        + TREE
        + LOOP
        + "out[i] = x[i] + room[0];"
    ),
    "two ends, one cut to a byte": block_trap(
        "float s = 0;\nfor (int i = threadIdx.x; i < d && (signed char)i < 100; i += 64) s += x[i];\n"
        + TREE
        + LOOP
        + "out[i] = x[i] + room[0];"
    ),
}
