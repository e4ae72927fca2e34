"""Objects as they are made: the order of fields, what lists leave out, objects in objects."""

from __future__ import annotations

from tests.csource.reading import source_of
from tunesmith.csource.binding import BoundKernel, bind
from tunesmith.csource.inline import inline
from tunesmith.csource.printing import print_statements

PAIR = """
struct Pair {
    int n; float f;
    __device__ Pair() : f(0.5f), n(3) {}
    __device__ Pair(int n, float f) : n(n), f(f) {}
    __device__ float get() const { return n * f; }
};
"""


def _text(before: str, body: str) -> str:
    source = source_of(f"{before}\n__global__ void k(const float *x, float *f, int n)\n{{\n{body}\n}}\n")
    bound = bind(source, "k")
    assert isinstance(bound, BoundKernel), bound
    found = inline(bound.function, source)
    assert found.notes == ()
    return print_statements(found.function.body)


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
