"""Objects as they are made: the order of fields, what lists leave out, objects in objects."""

from __future__ import annotations

from tests.csource.reading import inlined_text

PAIR = """
struct Pair {
    int n; float f;
    __device__ Pair() : f(0.5f), n(3) {}
    __device__ Pair(int n, float f) : n(n), f(f) {}
    __device__ float get() const { return n * f; }
};
"""


def _text(before: str, body: str) -> str:
    return inlined_text(before, body, "const float *x, float *f, int n")


def test_fields_are_set_where_they_are_declared_in_their_order():
    assert _text(PAIR, "Pair p;\nf[0] = p.f;") == "int p_n = 3;\nfloat p_f = 0.5f;\nf[0] = p_f;\n"


def test_an_argument_hides_the_field_of_its_name():
    text = _text(PAIR, "Pair p(n, 2.0f), q{n, x[0]};\nf[0] = q.f;")

    assert "int p_n = n;\nfloat p_f = 2.0f;\n" in text
    assert "float q_f = f_2;\n" in text


def test_a_number_in_parentheses_is_no_function():
    assert _text("", "float a(x[n]), b(n * n);\nf[0] = a * b;").startswith(
        "float a = (float)x[n];\nfloat b = (float)(n * n);\n"
    )


def test_what_a_list_leaves_out_has_the_value_behind_the_field_or_none():
    default = "struct S { float a = 3.0f; float b; float e[2]; };"

    assert _text(default, "S s{x[0]};\nf[0] = s.a + s.b + s.e[0];") == (
        "float s_e[2];\nfloat s_a = x[0];\nfloat s_b = 0;\ns_e[0] = 0;\ns_e[1] = 0;\n"
        "f[0] = s_a + s_b + s_e[0];\n"
    )
    assert _text(default, "S s;\nf[0] = s.a;") == (
        "float s_b;\nfloat s_e[2];\nfloat s_a = 3.0f;\nf[0] = s_a;\n"
    )


def test_many_elements_are_set_in_a_loop():
    text = _text(PAIR, "Pair p[20];\nf[0] = p[n].f;")

    assert "for (int part = 0; part < 20; ++part) {\n    p_n[part] = 3;\n    p_f[part] = 0.5f;\n}\n" in text


def test_an_object_in_an_object_is_its_fields():
    outer = PAIR + "struct Outer { Pair of[2]; float c = 1.0f; };"

    text = _text(outer, "Outer o;\nOuter p = o;\nf[0] = p.of[1].get() + o.c;")
    assert "int o_of_n[2];\nfloat o_of_f[2];\n" in text
    assert "p_of_f[part] = o_of_f[part];\n" in text


def test_a_variable_by_the_name_of_a_field_is_another_one():
    assert "float p_f_2 = 0.5f;\n" in _text(PAIR, "float p_f = 1.0f;\nPair p;\nf[0] = p.f + p_f;")


def test_a_method_is_chosen_by_whether_its_object_is_const():
    two = """
    struct L {
        float a, b;
        __device__ float go() { return a; }
        __device__ float go() const { return b; }
        __device__ float same() const { return go(); }
    };
    __device__ float of(const L &l) { return l.go(); }
    """

    text = _text(two, "L l = {x[0], x[1]};\nf[0] = l.go();\nf[1] = l.same();\nf[2] = of(l);")
    assert text.endswith("f[0] = l_a;\nf[1] = l_b;\nf[2] = l_b;\n")


def test_a_second_name_for_an_object_is_the_object():
    text = _text(PAIR, "Pair p[2];\nint k = n;\nPair &r = p[k];\nk = 0;\nr.f += 1.0f;\nf[0] = p[1].f;")

    assert "const int r_index = k;\nk = 0;\np_f[r_index] += 1.0f;\n" in text


def test_a_loop_over_an_array_counts():
    text = _text("", "float w[2] = {x[0], 1.0f};\nfor (auto &v : w) v *= 2.0f;\nfor (float v : w) f[0] += v;")

    assert "for (int v_at = 0; v_at < 2; ++v_at)\n    w[v_at] *= 2.0f;\n" in text
    assert "    float v = w[v_at];\n    f[0] += v;\n" in text


def test_an_array_whose_name_is_used_again_is_not_gone_through():
    text = _text("", "float w[2];\n{ float w[3]; for (float v : w) f[0] += v; }")

    assert "for (float v : w)" in text
