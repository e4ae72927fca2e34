"""Traps of objects: how they are made, in which order, what a list leaves out, objects in objects."""

from __future__ import annotations

from collections.abc import Mapping

from tests.hostile.random_kernels.trap import EVEN, Trap, flat_trap, thread_trap

_PAIR = (
    "struct Pair { int n; float f; __device__ Pair() : n(3), f(0.5f) {}\n"
    "    __device__ Pair(int b, float g) : n(b), f(g) {}\n"
    "    __device__ float get() const { return n * f; } };"
)
_ONE = (
    "struct One { float v; __device__ One() : v(2.0f) {}\n    __device__ One(float w) : v(w * 2) {}\n"
    "    __device__ float get() const { return v; } };"
)
_FIXED = (
    "struct Fixed { int x; Fixed() = default; __device__ Fixed(float f) : x((int)(f * 4)) {}\n"
    "    __device__ operator float() const { return x * 0.25f; } };\n"
)
_IN = (
    "struct In { float a, b; __device__ In() : a(1), b(2) {} __device__ In(float p, float q) : a(p), "
    "b(q) {}\n"
    "    __device__ float sum() const { return a + b; } };\n"
)
_PLAIN = "struct Plain { float a, b; };\n"

_MADE: Mapping[str, Trap] = {
    "made in every turn": flat_trap(
        "float s = 0;\nfor (int k = 0; k < 3; k++) { Pair q; One r; q.f += k; s += q.get() + r.get(); "
        "r.v = 9; }\nout[i] = s + x[i];",
        _PAIR + _ONE,
    ),
    "made from elements": flat_trap(
        "Pair q(i & 7, x[i]), p{i & 3, 2};\nOne r(x[i]);\nout[i] = q.get() + r.get() + p.get();", _PAIR + _ONE
    ),
    "numbers in parentheses": flat_trap(
        "float a = x[i];\nfloat q(a * a), r(x[i]), t(-a);\nint k(x[i] * 0.5f), m(threadIdx.x);\n"
        "out[i] = q + r * 2 + t * 3 + k + m;"
    ),
    "made from nothing": flat_trap(
        "Pair q{}; Pair p = {}; Pair o = Pair();\nOne r{};\n"
        "out[i] = q.get() + p.get() + o.get() + r.get() * x[i];",
        _PAIR + _ONE,
    ),
    "made where they are used": flat_trap(
        "out[i] = Pair(2, x[i]).get() + One(x[i]).get() + One{}.get();", _PAIR + _ONE
    ),
    "made in the head of a loop": flat_trap(
        "float s = 0;\nfor (One q; q.v < 5; q.v += 1) s += q.v;\n"
        "for (One q = 1.0f; q.v < 5; q.v += 1) s += q.v;\n"
        "out[i] = s + x[i];",
        _ONE,
    ),
    "an argument by the name of a field": flat_trap(
        "S s(x[i], 3);\nout[i] = s.a * 10 + s.b;",
        "struct S { float a, b; __device__ S(float a, float b) : a(a), b(b * 2) { a = 7; } };",
    ),
    "fields in the order of the structure": flat_trap(
        "int k = i & 3;\nS s(k);\nT t(x[i]);\nout[i] = s.a * 10 + s.b + k * 100 + t.a * 1000 + t.b;",
        "struct S { int a, b; __device__ S(int &k) : b(k++), a(k++) {} };\n"
        "struct T { float a, b; __device__ T(float v) : b(a + 1), a(v) {} };",
    ),
    "values behind fields": flat_trap(
        "S s; S t{x[i]}; S u{}; S w = {1, x[i]};\nout[i] = s.b + t.b * 10 + u.a + w.b * 100;",
        "struct S { float a = 3; float b = a * 2; };",
    ),
    "values behind fields in every turn": flat_trap(
        "float r = 0;\nfor (int k = 0; k < 3; k++) { S s; s.a += k; s.e[1] += 1; r += s.a * s.b + s.e[1] "
        "+ s.e[2]; }\n"
        "out[i] = r + x[i];",
        "struct S { float a = 3, b = 4; float e[3] = {1, 2}; };",
    ),
    "a value behind the only field": flat_trap(
        "float r = 0;\nfor (int k = 0; k < 3; k++) { S s; s.a += k; r += s.get(); }\nout[i] = r + x[i];",
        "struct S { float a = 3; __device__ float get() { return a; } };",
    ),
    "a value behind a field and a constructor": flat_trap(
        "S s; S t(x[i]);\nout[i] = s.a + s.b * 10 + t.a * 100 + t.b * 1000;",
        "struct S { float a = 3, b = 4; __device__ S() {} __device__ S(float v) : a(v) { b += 1; } };",
    ),
    "fields set to nothing": flat_trap(
        "S s;\ns.a += x[i];\nout[i] = s.a + s.b + s.e[0] + s.e[1];",
        "struct S { float a, b, e[2]; __device__ S() : a(), b{}, e() {} };",
    ),
    "arguments that are left out": flat_trap(
        "const int K = i & 3;\nS s; S t(x[i]); S u(1, x[i]);\n"
        "out[i] = s.a + s.b + t.a * t.b + u.a * 5 + u.b + s.f() + K;",
        "constexpr int K = 4;\nstruct S { float a, b; __device__ S(float p = 2, float q = K) : a(p), "
        "b(q) {}\n"
        "    __device__ float f(int k = K) { return k * a; } };",
    ),
    "a constructor that calls another": flat_trap(
        "S s; S t(x[i]);\nout[i] = s.a + s.b + t.a * t.b;",
        "struct S { float a, b; __device__ S(float p) : S(p, 4) { b += 1; }\n"
        "    __device__ S(float p, float q) : a(p), b(q) {} __device__ S() : S(7) { a += 1; } };",
    ),
    "constructors by type": flat_trap(
        "S s(i & 7); S t(x[i]);\nout[i] = s.a * 10 + t.a;",
        "struct S { float a; __device__ S(int p) { a = p * 2; } __device__ S(float p) { a = p * 3; } };",
    ),
    "a constructor that is only asked for": flat_trap(
        "S s = x[i] * 0.5f; S t(x[i] * 0.5f);\nout[i] = s.a + t.a * 10;",
        "struct S { float a; __device__ S(int p) { a = p; } explicit __device__ S(float p) { a = p * 3; } };",
    ),
    "a narrow field": flat_trap(
        "S s(x[i] * 40); S t = x[i];\nout[i] = s.a + t.a;",
        "struct S { unsigned char a; __device__ S(int p) : a(p) {} };",
    ),
    "made from what changes": flat_trap(
        "S s(out[i]);\nout[i] = 5;\nout[i] += s.a + x[i];",
        "struct S { float a; __device__ S(const float &p) : a(p) {} };",
    ),
    "made from itself": flat_trap(
        "S s(x[i], 2);\ns = S(s.b, s.a);\nP p{x[i], 3};\np = {p.b, p.a};\n"
        "out[i] = s.a * 10 + s.b + p.a * 100;",
        "struct S { float a, b; __device__ S(float p, float q) : a(p), b(q) {} };\nstruct P { float a, b; };",
    ),
    "a constructor behind its structure": flat_trap(
        "S s(x[i]);\nout[i] = s.a + s.b * 10;",
        "struct S { float a, b; __device__ S(float a); };\n"
        "__device__ S::S(float a) : b(a), a(a * 2) { a = 3; b += a; }",
    ),
    "a method named as a type": flat_trap(
        "S s(x[i]);\nout[i] = s.a + s.b * 10;",
        "struct S { float a, b; __device__ S(float v) : a(v), b(half()) {}\n"
        "    __device__ float half() { return a * 0.5f; } };",
    ),
    "a constructor of a template": flat_trap(
        "V<float, 2> v(x[i]), w;\nout[i] = v[0] + v[1] * 10 + w[1] * 100;",
        "template <typename T, int N> struct V { T e[N]; __device__ V() { for (int k = 0; k < N; k++) "
        "e[k] = T(k); }\n"
        "    __device__ V(T v) { for (int k = 0; k < N; k++) e[k] = v + k; }\n"
        "    __device__ T &operator[](int k) { return e[k]; } };",
    ),
    "a sum in an object": thread_trap(
        "Sum q;\nfor (int i = 0; i < d; i++) q.add(x[i]);\nout[0] = q.s + q.n;",
        "struct Sum { float s = 0; int n = 0; __device__ void add(float v) { s += v; n++; } };",
    ),
}  # fmt: skip

_INSIDE: Mapping[str, Trap] = {
    "an object in an object": flat_trap(
        "O o, p(x[i]);\no.in.a += x[i];\nout[i] = o.in.sum() + o.c + p.in.sum() * 10 + p.c;",
        _IN + "struct O { In in; float c; __device__ O() : c(5) {} __device__ O(float v) : in(v, 3), "
        "c(6) {} };",
    ),
    "an object behind a field": flat_trap(
        "O o; o.in.a += x[i];\nout[i] = o.in.sum() * 10 + o.c;",
        _IN + "struct O { In in = In(3, 4); float c = 2; };",
    ),
    "objects in objects, copied": flat_trap(
        "O o = {{x[i], 2}, 3};\nPlain p = o.in;\np.a += 1;\nO q = o;\nq.in.b += 5;\no.in = q.in;\n"
        "out[i] = o.in.a * 10 + o.in.b + o.c + p.a * 100;",
        _PLAIN + "struct O { Plain in; float c; };",
    ),
    "braces that are left out": flat_trap(
        "O o = {x[i], 2, 3}; O p = {{x[i]}, 4};\nout[i] = o.in.a * 10 + o.in.b + o.c + p.in.b * 100 + p.c;",
        _PLAIN + "struct O { Plain in; float c; };",
    ),
    "an array of objects": flat_trap(
        "In in[3], to[2] = {In(x[i], 2)};\nin[1].a = x[i];\nfor (int k = 0; k < 3; k++) in[k].b += k;\n"
        "out[i] = in[0].sum() + in[1].sum() * 10 + in[i % 3].sum() * 100 + to[1].b;",
        _IN,
    ),
    "objects of an array change places": flat_trap(
        "Plain in[2] = {{x[i], 1}, {2, 3}};\nPlain t = in[0];\nin[0] = in[1];\nin[1] = t;\n"
        "out[i] = in[0].a + in[1].a * 10 + in[1].b * 100;",
        _PLAIN,
    ),
    "a number type in an object": flat_trap(
        "V v; W w;\nv.d[0] = Fixed(x[i]);\nv.d[1] = x[i] * 2;\nw.a = x[i];\n"
        "out[i] = float(v.d[0]) + v.d[1] * 10.0f + w.a + w.get();",
        _FIXED + "struct V { Fixed d[2]; int n; };\nstruct W { Fixed a; __device__ float get() { return "
        "a; } };",
    ),
    "an array of a number type": flat_trap(
        "Fixed v[3] = {x[i], 2.0f};\nout[i] = v[0] + v[1] * 10.0f;", _FIXED
    ),
    "objects in memory": flat_trap(
        "const O *o = (const O *)x;\nO c = o[i / 4];\n"
        "out[i] = o[i / 4].in[1].a + c.in[0].sum() * 10 + c.in[i & 1].b;",
        _IN + "struct O { In in[2]; };",
        EVEN,
    ),
    "objects that are longer than their fields": flat_trap(
        "const P *p = (const P *)x;\nout[i] = p[i / 4].a + p[i / 4].f();",
        "struct __align__(16) P { float a, b, c; __device__ float f() const { return b; } };",
        EVEN,
    ),
    "a variable by the name of a field": flat_trap(
        "In q(x[i], 2);\nfloat q_a = 5;\nPlain p{1, 2};\nfloat p_b = 6;\nq.a += q_a;\n"
        "out[i] = q.a * 10 + q_a + p.b * 100 + p_b;",
        _IN + _PLAIN,
    ),
    "an object that is given back": flat_trap(
        "In in = made(x[i]);\nout[i] = in.sum() + made(2).a + picked(x[i]).b;",
        _IN + "__device__ In made(float v) { In q(v, v + 1); q.a += 1; return q; }\n"
        "__device__ In picked(float v) { if (v > 0) { return In(v, 1); } In r; r.b = v; return r; }",
    ),
    "numbers of a structure": flat_trap(
        "float s = 0;\nfor (int k = 0; k < S<float>::N; k++) s += x[i];\nS<short> q{x[i]};\n"
        "out[i] = s + S<float>::M * 10 + q.get() + q.K + ((int)x[i] - 3 < S<float>::N ? 1 : 2);",
        "template <typename T> struct S { enum { N = 16 / sizeof(T), M, K = N * 2 }; float v;\n"
        "    __device__ float get() const { return v * N + M; } };",
    ),
    "a structure for pointers": flat_trap(
        "out[i] = x[i] * S<float *>::get();",
        "template <typename T> struct S { static __device__ float get() { return 1; } };\n"
        "template <typename T> struct S<T *> { static __device__ float get() { return 2; } };",
    ),
}  # fmt: skip

_TWO = (
    "struct L { float e[2]; __device__ float f() { return e[0]; } __device__ float f() const { return "
    "e[1]; }\n"
    "    __device__ float &operator[](int k) { return e[k]; }\n"
    "    __device__ float operator[](int k) const { return e[k] * 2; }\n"
    "    __device__ float g() const { return f(); } __device__ float h() { return this->f(); } };\n"
)

_CONST: Mapping[str, Trap] = {
    "a method for what is const": flat_trap(
        "L l{{x[i], 5}};\nconst L m = l;\nL n = m;\nout[i] = l.f() + m.f() * 10 + n.f() * 100;", _TWO
    ),
    "const by parameter": flat_trap(
        "L l{{x[i], 5}};\nout[i] = g(l) + h(l) * 10 + v(l) * 100 + l.f();",
        _TWO + "__device__ float g(const L &l) { return l.f(); }\n"
        "__device__ float h(L &l) { return l.f(); }\n__device__ float v(const L l) { return l.f(); }",
    ),
    "const by method": flat_trap("L l{{x[i], 5}};\nout[i] = l.g() + l.h() * 10;", _TWO),
    "an index for what is const": flat_trap(
        "const float w[2] = {2, 3};\nL l{{x[i], 5}};\nconst L m = l;\nl[1] += 1;\n"
        "out[i] = l[0] * w[1] + m[0] * 10 + l[1] + of(l, w);",
        _TWO + "__device__ float of(const L &l, const float *w) { return l[0] + l[1] * w[0]; }",
    ),
    "const by object": flat_trap(
        "O o;\no.l.e[0] = x[i];\no.l.e[1] = 3;\nconst O p = o;\n"
        "out[i] = o.l.f() + p.l.f() * 10 + o.get() * 100;",
        _TWO + "struct O { L l; float b; __device__ float get() const { return l.f(); } };",
    ),
    "const by element": flat_trap(
        "L l[2];\nl[0].e[0] = x[i];\nl[0].e[1] = 2;\nl[1] = l[0];\nout[i] = l[1].f() + of(l) * 10;",
        _TWO + "__device__ float of(const L *l) { return l[0].f(); }",
    ),
    "const by memory": flat_trap("const L *l = (const L *)x;\nout[i] = l[i / 2].f();", _TWO, EVEN),
    "const by template": flat_trap(
        "L l{{x[i], 5}};\nconst L m = l;\nout[i] = g(l) + g(m) * 100;",
        _TWO + "template <typename T> __device__ float g(T &l) { return l.f(); }",
    ),
    "const by what is given back": flat_trap(
        "L l{{x[i], 5}};\nout[i] = l.me().f() + l.same().f() * 10;",
        "struct L { float e[2]; __device__ float f() { return e[0]; } __device__ float f() const { "
        "return e[1]; }\n"
        "    __device__ L &me() { return *this; } __device__ const L &same() { return *this; } };",
    ),
    "const by lambda": flat_trap(
        "L l{{x[i], 5}};\nconst L m = l;\nauto go = [&](float k) { return m.f() * k; };\n"
        "out[i] = go(2) + l.f();",
        _TWO,
    ),
    "a conversion of what is const": flat_trap(
        "L l{x[i]};\nconst L m = l;\nout[i] = float(l) + float(m) * 10;",
        "struct L { float e; __device__ operator float() { return e; }\n"
        "    __device__ operator float() const { return e * 2; } };",
    ),
}  # fmt: skip

_SECOND: Mapping[str, Trap] = {
    "a second name for a variable": flat_trap(
        "float v = x[i];\nauto &&r = v;\nr += 1;\nconst auto &s = v;\nv *= 2;\nout[i] = v + r + s * 10;"
    ),
    "a const reference to what changes": flat_trap(
        "const auto &r = out[i];\nout[i] = x[i];\nfloat v = 2;\nconst float &s = v;\nv += 1;\n"
        "out[i] += r + s;"
    ),
    "a const reference to another type": flat_trap(
        "int v = (int)x[i];\nconst float &r = v;\nv += 1;\nout[i] = r;"
    ),
    "a second name for an object": flat_trap(
        "In p(x[i], 2);\nauto &r = p;\nconst In &s = p;\nr.a += 1;\n"
        "out[i] = p.sum() + s.a * 10 + r.sum() * 100;",
        _IN,
    ),
    "a second name for one of several": flat_trap(
        "In p[2] = {{x[i], 2}, {3, 4}};\nint k = i & 1;\nIn &r = p[k];\nk = 1 - k;\nr.a += 1;\n"
        "out[i] = p[0].sum() + p[1].sum() * 10 + p[k].a * 100;",
        _IN,
    ),
    "a const reference to what is given back": flat_trap(
        "const In &r = made(x[i]);\nout[i] = r.sum();", _IN + "__device__ In made(float v) { return "
        "In(v, 1); }"
    ),
    "a second name for what is const": flat_trap(
        "L l{{x[i], 5}};\nconst L m = l;\nauto &r = m;\nconst auto &s = l;\n"
        "out[i] = r.f() + s.f() * 10;", _TWO
    ),
    "each element, by copy": flat_trap(
        "float w[3] = {x[i], 2, 3};\nint k[3] = {1, 2, 3};\nfloat s = 0;\n"
        "for (auto v : w) { v *= 2; s = s * 2 + v; }\n"
        "for (float v : k) { if (v == 2) continue; s += v / 2; }\nout[i] = s + w[0];"
    ),
    "each element, by reference": flat_trap(
        "float w[3] = {x[i], 2, 3};\nfor (auto &v : w) { if (v > 2) break; v += 1; }\nfloat s = 0;\n"
        "for (const auto &v : w) s = s * 2 + v;\nout[i] = s;"
    ),
    "each element of each row": flat_trap(
        "float w[2][2] = {{x[i], 2}, {3, 4}};\nfloat s = 0;\nfor (auto &r : w) for (float v : r) s = s * "
        "2 + v;\n"
        "{ float w[3] = {1, 2, 3}; for (float v : w) s += v; }\nout[i] = s;"
    ),
    "each object": flat_trap(
        "In w[2] = {{x[i], 2}, {3, 4}};\nfloat s = 0;\nfor (auto &v : w) { v.a += 1; s += v.sum(); }\n"
        "for (auto v : w) v.a = 9;\nout[i] = s + w[0].a;",
        _IN,
    ),
    "a type by an expression": flat_trap("decltype(x[i] * 2) v = x[i];\nout[i] = v;"),
}  # fmt: skip

OBJECT_TRAPS: Mapping[str, Trap] = {**_MADE, **_INSIDE, **_CONST, **_SECOND}
