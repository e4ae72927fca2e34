from __future__ import annotations

import pytest

from tests.csource.reading import expression_of, function_of, statements_of
from tunesmith.csource.nodes import (
    Binary,
    Call,
    Cast,
    Declare,
    Evaluate,
    Expr,
    For,
    If,
    Index,
    Jump,
    Name,
    Number,
    Return,
    TooDeep,
    Type,
    Unary,
)
from tunesmith.csource.printing import print_expr, print_function, print_statements, print_type

_A, _B, _C = Name("a"), Name("b"), Name("c")


@pytest.mark.parametrize(
    "text",
    [
        "a + b * c",
        "(a + b) * c",
        "a - (b - c)",
        "a - b - c",
        "a / (b / c) % d",
        "-(-a)",
        "-(-3)",
        "!(a < b)",
        "a ? b : c ? d : e",
        "(a ? b : c) ? d : e",
        "f((a, b), c)",
        "a = b = c",
        "(a = b) + c",
        "(float)a[i]",
        "((float *)a)[i]",
        "(T)(-a)",
        "(float)-a",
        "(unsigned int)a >> 3",
        "&a[i]",
        "(&a)[i]",
        "a++ + ++b",
        "a->x.y",
        "(a & 31) == 0",
        "(a << 2) + b",
        "(a && b) || c",
        "f<float, 4>(a)",
        "float2{a, b}",
        "sizeof(float4)",
        "0xffffffffu",
        "std::max(a, b)",
    ],
)
def test_an_expression_keeps_the_parentheses_it_needs_and_no_others(text: str):
    template = "template <typename T, int N> __device__ T f(T x);"

    assert print_expr(expression_of(f"({text})", before=template)) == text


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (Binary("*", Binary("+", _A, _B), _C), "(a + b) * c"),
        (Binary("-", _A, Binary("-", _B, _C)), "a - (b - c)"),
        (Unary("-", Unary("-", _A)), "-(-a)"),
        (Unary("&", Unary("&", _A)), "&(&a)"),
        (Binary("-", _A, Number("-3", -3)), "a - -3"),
        (Index(Binary("+", _A, _B), _C), "(a + b)[c]"),
        (Cast(Type("T"), Number("-3", -3)), "(T)(-3)"),
        (Index(Number("-3", -3), _A), "(-3)[a]"),
    ],
)
def test_parentheses_follow_precedence(expr: Expr, text: str):
    assert print_expr(expr) == text


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (Type("__half", 1, const=True, restrict=True), "const __half *__restrict__ p"),
        (Type("float", 2), "float **p"),
        (Type("T", reference=True), "T &p"),
        (Type("T", 1, reference=True), "T *&p"),
        (Type("int", volatile=True), "volatile int p"),
    ],
)
def test_a_type_stands_around_its_name(type_: Type, text: str):
    assert print_type(type_, "p") == text


def test_opencl_has_words_of_its_own():
    pointer = Type("float", 1, const=True, restrict=True, space="global")
    shared = Declare(Type("float"), "tile", dims=(Number("64", 64),), storage="shared")
    index = Binary("+", Name("blockIdx.x"), Name("threadIdx.y"))

    assert print_type(pointer, "p", "opencl") == "__global const float *restrict p"
    assert print_statements([shared], 0, "opencl") == "__local float tile[64];\n"
    assert print_expr(index, "opencl") == "get_group_id(0) + get_local_id(1)"
    assert print_expr(Call("__syncthreads"), "opencl") == "barrier(CLK_LOCAL_MEM_FENCE)"


@pytest.mark.parametrize(
    ("declare", "text"),
    [
        (Declare(Type("float"), "x", Number("1.0f", 1.0)), "float x = 1.0f"),
        (Declare(Type("float"), "x", dims=(_A, _B)), "float x[a][b]"),
        (
            Declare(Type("float"), "x", dims=(_A,), storage="shared", align=Number("16", 16)),
            "__shared__ __align__(16) float x[a]",
        ),
        (Declare(Type("char"), "x", storage="dynamic shared"), "extern __shared__ char x[]"),
        (Declare(Type("int"), "x", _A, storage="constexpr"), "constexpr int x = a"),
    ],
)
def test_a_declaration_carries_its_storage(declare: Declare, text: str):
    assert print_statements([declare]) == f"{text};\n"


def test_statements_are_indented_and_braced_only_where_needed():
    body = (
        If(_A, (If(_B, (Return(),)),), (Jump("break"),)),
        For(
            (Declare(Type("int"), "i", Number("0", 0)), Declare(Type("int"), "j", _A)),
            Binary("<", Name("i"), _B),
            (Unary("++", Name("i")), Unary("--", Name("j"), postfix=True)),
            (Evaluate(Call("f")), Evaluate(Call("g"))),
            unroll=4,
        ),
        If(_A, (Evaluate(_B),), (If(_B, (Evaluate(_C),), (Return(_A),)),)),
    )

    assert print_statements(body, 1) == (
        "    if (a) {\n"
        "        if (b)\n"
        "            return;\n"
        "    } else\n"
        "        break;\n"
        "#pragma unroll 4\n"
        "    for (int i = 0, j = a; i < b; ++i, j--) {\n"
        "        f();\n"
        "        g();\n"
        "    }\n"
        "    if (a)\n"
        "        b;\n"
        "    else if (b)\n"
        "        c;\n"
        "    else\n"
        "        return a;\n"
    )


def test_a_function_is_printed_whole():
    text = "__global__ void k(const float *__restrict__ x, int n)\n{\n    x[n] = 0;\n}\n"

    assert print_function(function_of(text)) == text


def test_nesting_without_end_is_refused():
    expr: Expr = _A
    for _ in range(300):
        expr = Unary("!", expr)

    with pytest.raises(TooDeep):
        print_expr(expr)


def test_text_that_is_not_understood_is_printed_as_it_was():
    (stmt,) = statements_of('asm volatile("mov.u32 %0, %1;" : "=r"(a) : "r"(b));')

    assert print_statements((stmt,), 1) == '    asm volatile("mov.u32 %0, %1;" : "=r"(a) : "r"(b));\n'
