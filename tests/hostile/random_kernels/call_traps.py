"""Traps of what a call is handed: copies that change, references to what is stored to; const; local types."""

from __future__ import annotations

from collections.abc import Mapping

from tests.hostile.random_kernels.trap import Trap, flat_trap, thread_trap

_S = (
    "struct S { float a, b; __device__ void set(float v) { a = v; }\n"
    "__device__ float twice() { a *= 2; return a; } };\n"
)
_INC = "__device__ void inc(float &k) { k += 1; }\n"
_A = (
    "struct A { float e[2]; __device__ float &operator[](int k) { return e[k]; }\n"
    "__device__ float operator[](int k) const { return e[k]; } };\n"
)
_L = (
    "struct L { float e[2]; __device__ float f() { return e[0]; }\n"
    "__device__ float f() const { return e[1]; } };\n"
)
_OF_S = "S s{x[i], 1}; "
_OF_V = "float v = x[i]; float r = f(v); out[i] = v * 100 + r;"

_COPIES: Mapping[str, Trap] = {
    "a copy handed on by reference": flat_trap(
        _OF_V, _INC + "__device__ float f(float v) { inc(v); return v; }"
    ),
    "copies that are swapped": flat_trap(
        "float v = x[i], w = 3; float r = f(v, w); out[i] = v * 100 + w * 10000 + r;",
        "template <class T> __device__ void sw(T &a, T &b) { T t = a; a = b; b = t; }\n"
        "__device__ float f(float a, float b) { if (a < b) sw(a, b); return a; }",
    ),
    "an index handed on by reference": flat_trap(
        "int k = i; float r = f(x, k, rows * d); out[i] = r + k;",
        "__device__ void inc(int &k, int n) { k = (k + 1) % n; }\n"
        "__device__ float f(const float *x, int k, int n) { inc(k, n); return x[k]; }",
    ),
    "a part of a copy handed on by reference": flat_trap(
        "float4 v = make_float4(x[i], 1, 2, 3); float r = f(v); out[i] = v.x * 100 + r;",
        _INC + "__device__ float f(float4 v) { inc(v.x); return v.x; }",
    ),
    "a copy by another name": flat_trap(
        _OF_V, "__device__ float f(float v) { float &w = v; w += 2; return v; }"
    ),
    "a copied object handed on": flat_trap(
        _OF_S + "out[i] = f(s) + s.a * 1000;",
        _S + "__device__ float g(S &s) { s.a += 1; return s.a; }\n"
        "__device__ float f(S s) { return g(s) + g(s) * 10; }",
    ),
    "a copied object's method": flat_trap(
        _OF_S + "float r = f(s); out[i] = s.a * 10 + r;",
        _S + "__device__ float f(S s) { s.set(50); return s.a + s.b; }",
    ),
    "a copied object in a method": flat_trap(
        _OF_S + "H h{2}; out[i] = h.f(s) + s.a * 1000;",
        _S + "struct H { float k; __device__ float f(S s) { s.set(k); return s.twice(); } };",
    ),
    "a copied object in a functor": flat_trap(
        _OF_S + "out[i] = ap(H{2}, s) + s.a * 1000;",
        _S + "struct H { float k; __device__ float operator()(S s) const { s.set(k); return s.a; } };\n"
        "template <typename F> __device__ float ap(F f, S s) { return f(s) + s.a; }",
    ),
    "a copied functor that counts": flat_trap(
        "C c{0}; float a = ap(c, x[i]); out[i] = a + c.n * 1000;",
        "struct C { int n; __device__ float operator()(float v) { n++; return v + n; } };\n"
        "template <typename F> __device__ float ap(F f, float v) { return f(v) + f(v) * 10; }",
    ),
    "a copied object in a lambda": flat_trap(
        _OF_S + "auto f = [](S p) { p.a += 5; return p.a; }; float r = f(s); out[i] = s.a * 10 + r;", _S
    ),
    "an array in a copied object": flat_trap(
        "A v; v.e[0] = x[i]; v.e[1] = 2; float s = f(v); out[i] = v.e[0] * 10 + s + v.e[1];",
        _A + "__device__ float f(A v) { for (int k = 0; k < 2; k++) v.e[k] += 5; return v.e[0] + v.e[1]; }",
    ),
    "an array in a copied object by its operator": thread_trap(
        "A a; for (int i = 0; i < d; i++) { a[0] = x[i]; a[1] = i; out[i] = f(a) + a[0] * 100; }",
        _A + "__device__ float f(A a) { a[0] += 1; a[1] += a[0]; return a[1]; }",
    ),
    "an array in a copied object by a pointer": flat_trap(
        "A v; v.e[0] = x[i]; v.e[1] = 2; float s = f(v); out[i] = v.e[0] * 10 + s;",
        _A + "__device__ void put(float *p) { p[0] += 3; }\n"
        "__device__ float f(A v) { put(v.e); return v.e[0]; }",
    ),
    "a copy and a pointer to what it is of": flat_trap(
        "float s = x[i]; float *p = &s; out[i] = f(s, p);",
        "__device__ float f(float s, float *p) { p[0] = 7; return s + p[0] * 10; }",
    ),
    "a lambda's copy": flat_trap(
        "float v = x[i]; auto f = [=](float k) { return v + k; }; inc(v); out[i] = f(1) + v * 100;", _INC
    ),
    "a field of the object whose method it is": flat_trap(
        "H h{x[i]}; float r = h.f(h.k); out[i] = r * 100 + h.k;",
        "struct H { float k; float l; __device__ float f(float v) { k = 3; l = v; return v + k; } };",
    ),
}

_REFERENCES: Mapping[str, Trap] = {
    "a const reference to what is stored to": flat_trap(
        "f(out + i, out[i]);", "__device__ void f(float *o, const float &k) { o[0] += k; o[0] += k; }"
    ),
    "a const reference in a loop": thread_trap(
        "for (int i = 0; i < d; i++) f(out + i, out[i], x[i]);",
        "__device__ void f(float *o, const float &k, float v) { o[0] += v; o[0] += k; }",
    ),
    "two references to one element": flat_trap(
        "axpy(out[i], x[i], out[i]);",
        "__device__ void axpy(float &y, const float &a, const float &b) { y = a + 1; y += b; }",
    ),
    "a const reference into an object": flat_trap(
        "A a; a.e[0] = x[i]; a.e[1] = 3; add_all(a.e, a.e[0]); out[i] = a.e[0] * 10 + a.e[1];",
        _A + "__device__ void add_all(float *p, const float &v) { for (int k = 0; k < 2; k++) p[k] += v; }",
    ),
    "a const reference into an array": flat_trap(
        "float b[2] = {x[i], 2}; f(b, b[0]); out[i] = b[0] * 10 + b[1];",
        "__device__ void f(float (&b)[2], const float &k) { b[0] += k; b[1] += k; }",
    ),
    "a const reference through a pointer to a variable": flat_trap(
        "float s = x[i]; float *p = &s; f(s, p[0]); out[i] = s;",
        "__device__ void f(float &s, const float &v) { s += v; s += v; }",
    ),
    "a reference whose index changes": flat_trap(
        "float b[3] = {x[i], 2, 5}; int k = 0; f(k, b[k]); out[i] = b[0] * 10 + b[1] * 100 + k;",
        "__device__ void f(int &k, float &v) { k = 1; v += 7; }",
    ),
    "a const reference whose index changes": flat_trap(
        "float b[3] = {x[i], 2, 5}; int k = 0; float r = f(k, b[k]); out[i] = r + k;",
        "__device__ float f(int &k, const float &v) { k = 1; return v; }",
    ),
}

_CONST: Mapping[str, Trap] = {
    "a method for const objects": flat_trap(
        "L l{{x[i], 5}}; const L m = l; out[i] = l.f() + m.f() * 100;", _L
    ),
    "a method for const references": flat_trap(
        "L l{{x[i], 5}}; out[i] = g(l) + l.f() * 100;",
        _L + "__device__ float g(const L &l) { return l.f(); }",
    ),
    "a method of a const method": flat_trap(
        "L l{{x[i], 5}}; out[i] = l.g();",
        _L.replace("} };", "}\n__device__ float g() const { return f(); } };"),
    ),
    "an operator for const objects": flat_trap(
        "A l; l[0] = x[i]; l[1] = 4; const A m = l; l[0] = 50; out[i] = m[i & 1] + l[0];",
        _A.replace("const { return e[k]; }", "const { return e[k] + 1000; }"),
    ),
}

_TYPES: Mapping[str, Trap] = {
    "a type of a block hides another": flat_trap(
        "typedef int T; T v = (T)(x[i] / 2);\n{ typedef float T; T w = (T)(x[i] / 2); out[i] = v * 10 + w; }"
    ),
    "a type in each of two blocks": flat_trap(
        "{ using T = int; out[i] = (T)(x[i] / 2); }\n{ using T = float; out[i] += (T)(x[i] / 2) * 100; }"
    ),
    "a type of a block hides the file's": flat_trap(
        "T v = (T)(x[i] / 2);\n{ using T = float; out[i] = v * 10 + (T)(x[i] / 2); }", "typedef int T;"
    ),
}

CALL_TRAPS: Mapping[str, Trap] = {**_COPIES, **_REFERENCES, **_CONST, **_TYPES}
