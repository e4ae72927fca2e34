from __future__ import annotations

import pytest

from tunesmith.source.printing import print_expr, print_statements, print_type
from tunesmith.source.tree import Binary, Call, Cast, Declare, Expr, Index, Name, Number, TooDeep, Type, Unary

_A, _B, _C = Name("a"), Name("b"), Name("c")


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


def test_nesting_without_end_is_refused():
    expr: Expr = _A
    for _ in range(300):
        expr = Unary("!", expr)

    with pytest.raises(TooDeep):
        print_expr(expr)
