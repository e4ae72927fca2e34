"""Records in kernels: methods, operators and conversions put in place, objects as their fields."""

from __future__ import annotations

import re

import pytest

from tests.csource.reading import inlined_text, source_of
from tunesmith.csource.binding import BoundKernel, bind
from tunesmith.csource.inline import inline
from tunesmith.csource.nodes import Unreadable

VEC = """
template <typename T, int N> struct vec {
    T data[N];
    static constexpr int size = N;
    __device__ T& operator[](int i) { return data[i]; }
    __device__ const T& operator[](int i) const { return data[i]; }
    __device__ void load(const T *p) { for (int i = 0; i < N; ++i) data[i] = p[i]; }
    template <typename U> __device__ void cast_load(const U *p) {
        vec<U, N> own; own.load(p);
        for (int i = 0; i < N; ++i) data[i] = T(own[i]);
    }
};
template <> struct vec<half, 8> {
    uint4 data;
    __device__ half& operator[](int i) { return ((half *)&data)[i]; }
    __device__ void load(const half *p);
    __device__ void store(half *p) const { *(uint4 *)p = data; }
};
__device__ void vec<half, 8>::load(const half *p) { data = *(const uint4 *)p; }
"""
NUMBER = """
struct Num {
    unsigned short x;
    Num() = default;
    __device__ Num(float f) { x = __half_as_ushort(__float2half(f)); }
    __device__ operator float() const { return __half2float(__ushort_as_half(x)); }
};
__device__ Num operator+(const Num& a, const Num& b) { return float(a) + float(b); }
__device__ Num& operator+=(Num& a, const Num& b) { a = a + b; return a; }
__device__ Num __ldg(const Num *p) { Num n; n.x = ::__ldg((const unsigned short *)p); return n; }
"""


def _text(before: str, body: str, parameters: str = "half *p, const half *q, float *f, int n") -> str:
    return inlined_text(before, body, parameters)


def _refusal(before: str, body: str, parameters: str = "half *p, const half *q, float *f, int n") -> str:
    with pytest.raises(Unreadable) as raised:
        _text(before, body, parameters)
    return raised.value.reason


def test_a_specialisation_with_one_field_is_that_field():
    assert _text(VEC, "vec<half, 4 * 2> v; v.load(q); v[n] = v[0]; v.store(p);") == (
        "uint4 v;\nv = ((const uint4 *)q)[0];\n((__half *)&v)[n] = ((__half *)&v)[0];\n((uint4 *)p)[0] = v;\n"
    )


def test_a_template_of_a_class_template_is_called():
    traits = """
    template <class A, class B> struct num_cast { };
    template <> struct num_cast<float, half> {
        template <int N> __device__ static void cast(float *to, const half *from) {
            for (int i = 0; i < N; ++i) to[i] = __half2float(from[i]);
        }
    };
    """

    assert "f[i] = __half2float(q[i]);" in _text(traits, "num_cast<float, half>::cast<4>(f, q);")


def test_a_class_template_is_taken_apart():
    assert _text(VEC, "vec<float, 2> v; v.cast_load(q); f[vec<float, 2>::size] = v[1];") == (
        "float v_data[2];\n"
        "__half own_data[2];\n"
        "for (int i_2 = 0; i_2 < 2; ++i_2)\n"
        "    own_data[i_2] = q[i_2];\n"
        "for (int i = 0; i < 2; ++i)\n"
        "    v_data[i] = (float)own_data[i];\n"
        "f[2] = v_data[1];\n"
    )


def test_a_number_type_is_its_bits_and_rounds_where_its_text_does():
    text = _text(
        NUMBER, "Num a = __ldg(r + n); a += r[0]; w[n] = a + Num(1.0f);", "Num *w, const Num *r, int n"
    )

    assert "__ldg((const unsigned short *)" in text
    assert text.count("__float2half(") == 3  # +=, Num(1.0f), +
    assert "Num" not in text.replace("Num_", "")


def test_a_number_beside_a_float_counts_as_a_float():
    text = _text(NUMBER, "f[n] = r[n] * 2.0f + fmaxf(r[0], 1.0f);", "const Num *r, float *f, int n")

    assert text == (
        "f[n] = __half2float(__ushort_as_half(r[n])) * 2.0f"
        " + fmaxf(__half2float(__ushort_as_half(r[0])), 1.0f);\n"
    )


def test_a_union_is_its_widest_member():
    union = "union U { uint4 raw; half h[8]; };"

    assert _text(union, "U u; u.raw = ((uint4 *)q)[n]; u.h[1] = u.h[0]; ((uint4 *)p)[n] = u.raw;") == (
        "uint4 u_raw;\n"
        "u_raw = ((uint4 *)q)[n];\n"
        "((__half *)&u_raw)[1] = ((__half *)&u_raw)[0];\n"
        "((uint4 *)p)[n] = u_raw;\n"
    )


def test_a_pointer_to_records_points_to_their_elements():
    four = "struct Four { float a[2]; float b, c; __device__ float sum() const { return a[0] + b; } };"

    assert _text(four, "const Four *own = r + n; f[n] = own[1].b;", "const Four *r, float *f, int n") == (
        "const float *own = r + n * 4;\nf[n] = own[6];\n"
    )
    assert "object_a[part] = (r + n * 4)[part];" in _text(
        four, "f[n] = r[n].sum();", "const Four *r, float *f, int n"
    )


@pytest.mark.parametrize(
    ("before", "body", "reason"),
    [
        ("struct B { float a; }; struct S : B { float b; __device__ float go() { return b; } };",
         "S s; f[0] = s.go();", "it inherits"),
        ("struct S { float a; __device__ S(const S& o) { a = o.a + 1; } __device__ S() {} };",
         "S s; S t = s;", "says itself how it is copied"),
        ("struct S { enum { N = 1u << 31 }; float a; __device__ float go() { return a * N; } };",
         "S s; f[0] = s.go();", "may be more than an int holds"),
        ("struct S { unsigned a : 3; __device__ int go() { return a; } };", "S s; f[0] = s.go();",
         "bit fields"),
        ("struct S { float a; __device__ float go(); __device__ int one() { return 1; } };",
         "S s; f[0] = s.go();", "no method go"),
        ("struct S { float a; double b; __device__ float go() { return a; } };",
         "f[0] = ((S *)f)[n].go();", "fields of S are of several types"),
        ("struct S { float a, b; __device__ S() { a = 1; } __device__ float go() { return a; } };",
         "S s[2][2]; f[0] = s[0][0].go();", "how many there are is not known"),
        ("struct S { float a; __device__ S() { a = 1; } __device__ float go() { return a; } };",
         "static S s; f[0] = s.go();", "not one of this call alone"),
        ("struct S { float a, b; __device__ S(float x) : a(x), c(x) {} };", "S s(1.0f); f[0] = s.a;",
         "c is set, which is no field of S"),
        ("struct S { float a, b; __device__ S(const S& o, int n = 1) : a(n), b(o.b) {} __device__ S() {} };",
         "S s; S t = s;", "says itself how it is copied"),
        ("struct S { float a, b; __device__ S(float x) : a(x), b(x) {} };",
         "f[0] = n > 0 ? S(1.0f).a : 0.0f;", "made under a condition"),
    ],
)  # fmt: skip
def test_what_is_not_understood_of_a_record_is_said(before: str, body: str, reason: str):
    assert reason in _refusal(before, body)


def test_an_object_that_is_changed_while_it_is_read_by_another_name():
    swap = "struct P { float a, b; __device__ void turn(const P& o) { a = o.b; b = o.a; } };"
    text = _text(swap, "P s = {f[0], f[1]}; s.turn(s); f[0] = s.a; f[1] = s.b;")

    # o is s itself: what b is set to is the new a
    assert text.endswith("s_a = s_b;\ns_b = s_a;\nf[0] = s_a;\nf[1] = s_b;\n")


def test_the_address_of_a_value_is_that_of_a_variable():
    number = NUMBER.replace(
        "return __half2float(__ushort_as_half(x));",
        "return __half2float(*reinterpret_cast<const __half *>(&x));",
    )
    found = _text(number, "q[0] = p[1] + p[2] + p[3];", "const Num *p, Num *q")
    assert re.search(r"&\s*(?:\(|__)", found) is None, found  # neither of a call nor of a cast
    assert found.count("(const __half *)&object)[0]") == 1


PAIR = """
struct Pair {
    float a, b;
    __device__ Pair(float x, float y) : a(x), b(y) {}
    __device__ bool operator<(const Pair &other) const { return a < other.a; }
    __device__ bool operator<=(const Pair &other) const { return a <= other.a; }
    __device__ Pair operator<<(int n) const { return Pair(a * n, b); }
    __device__ float sum() const { return a + b; }
};
template <typename T> struct One {
    T v;
    __device__ T get() const { return v; }
    __device__ static void put(T *to, T x) { One *const q = reinterpret_cast<One *>(to); q->v = x; }
    __device__ void clear() { One *const q = this; q->v = 0; }
};
__device__ float stored(float *p, float x) { p[1] = x; float y = x * 2; return y; }
"""


def test_operators_that_begin_with_less_than_are_found() -> None:
    body = "Pair u(f[0], 1.0f), v(f[1], 2.0f); if (u < v) f[2] = u.b; if (u <= v) f[3] = (u << 3).a;"
    found = " ".join(_text(PAIR, body).split())
    assert "if (u_a < v_a) f[2] = u_b;" in found
    assert "if (u_a <= v_a)" in found
    assert "u_a * 3" in found


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("One<float> *const o = (One<float> *)f; o->v = 1.0f;", "float *o = (float *)f;\no[0] = 1.0f;\n"),
        ("const One<float> *o = (const One<float> *)f; f[1] = (o + n)->v;", "f[1] = (o + n)[0];\n"),
        ("One<float>::put(f + n, 2.0f);", "[0] = 2.0f;\n"),
        ("Pair *const o = (Pair *)f; o->b = o[n].a;", "o[1] = o[n * 2];\n"),
    ],
)
def test_a_field_behind_a_pointer_is_that_of_the_object_there(body: str, text: str) -> None:
    found = _text(PAIR, body)
    assert text in found
    assert "->" not in found


def test_an_object_does_not_hand_out_its_own_address() -> None:
    assert "clear of One<float> uses its object's address" in _refusal(
        PAIR, "One<float> o; o.clear(); f[0] = o.get();"
    )


def test_what_stands_behind_a_comma_comes_after_what_stands_before_it() -> None:
    made = "float i = 1.0f; if (i = f[n], Pair(i, 2.0f).sum() > 0.0f) f[0] = i;"
    assert "behind a comma" in _refusal(PAIR, made)
    body = "float i = 1; if (i = f[n], stored(f, i) > 0) f[0] = i;"
    bound = bind(source_of(f"{PAIR}\n__global__ void k(float *f, int n) {{ {body} }}"), "k")
    assert isinstance(bound, BoundKernel)
    (note,) = inline(bound.function, bound.source).notes
    assert "stored stays a call: it is called under a condition or behind a comma" in note
