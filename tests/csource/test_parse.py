from __future__ import annotations

import pytest

from tests.csource.reading import effect_of, expression_of, function_of, source_of, statements_of
from tunesmith.csource.nodes import (
    Assign,
    Binary,
    Braces,
    Call,
    Cast,
    Declare,
    Evaluate,
    For,
    If,
    Index,
    Member,
    Name,
    Number,
    Opaque,
    Parameter,
    Return,
    Scope,
    SizeOf,
    TemplateParameter,
    Type,
    Unary,
    Verbatim,
    While,
)
from tunesmith.csource.parse import read_source_tree
from tunesmith.csource.walk import statements_in

_ZERO = Number("0", 0)


@pytest.mark.parametrize(
    ("text", "expr"),
    [
        ("*p", Index(Name("p"), _ZERO)),
        ("*(p + i)", Index(Name("p"), Name("i"))),
        ("p[i]", Index(Name("p"), Name("i"))),
        ("*&x", Name("x")),
        ("&x[i]", Unary("&", Index(Name("x"), Name("i")))),
        ("*(p - i)", Index(Binary("-", Name("p"), Name("i")), _ZERO)),
        ("threadIdx.x", Name("threadIdx.x")),
        ("v.x", Member(Name("v"), "x")),
        ("v->x", Member(Name("v"), "x", arrow=True)),
        ("-1", Number("-1", -1)),
        ("- 1.5f", Number("-1.5f", -1.5)),
        ("-1u", Unary("-", Number("1u", 1))),
        ("1'000", Number("1'000", 1000)),
        ("true", Number("true", 1)),
        ("'a'", Number("'a'", 97)),
        ("0x1p-3f", Number("0x1p-3f", 0.125)),
        ("static_cast<float>(x)", Cast(Type("float"), Name("x"))),
        ("reinterpret_cast<const uint4 *>(p)", Cast(Type("uint4", 1, const=True), Name("p"))),
        ("(const uint4 *)p", Cast(Type("uint4", 1, const=True), Name("p"))),
        ("(p[i]) && x", Binary("&&", Index(Name("p"), Name("i")), Name("x"))),
        (
            "(int)(p[i]) && (float)(x) > y",
            Binary(
                "&&",
                Cast(Type("int"), Index(Name("p"), Name("i"))),
                Binary(">", Cast(Type("float"), Name("x")), Name("y")),
            ),
        ),
        (
            "x < (y) && i > 3",
            Binary("&&", Binary("<", Name("x"), Name("y")), Binary(">", Name("i"), Number("3", 3))),
        ),
        (
            "x > (int)(y) && i > 3",
            Binary(
                "&&",
                Binary(">", Name("x"), Cast(Type("int"), Name("y"))),
                Binary(">", Name("i"), Number("3", 3)),
            ),
        ),
        ("float(x)", Cast(Type("float"), Name("x"))),
        ("__half(x)", Cast(Type("__half"), Name("x"))),
        ("half(x)", Cast(Type("__half"), Name("x"))),
        ("(unsigned)x", Cast(Type("unsigned int"), Name("x"))),
        ("(unsigned long long int)x", Cast(Type("unsigned long long"), Name("x"))),
        ("(const float)x", Cast(Type("float"), Name("x"))),
        ("(my_t)(x)", Cast(Type("my_t"), Name("x"))),
        ("float2{x, y}", Braces((Name("x"), Name("y")), Type("float2"))),
        ("sizeof(float4)", SizeOf(Type("float4"))),
        ("::max(x, y)", Call("max", (Name("x"), Name("y")))),
        ("std::max(x, y)", Call("std::max", (Name("x"), Name("y")))),
        ("__shfl_xor_sync(0xffffffff, x, 1)",
         Call("__shfl_xor_sync", (Number("0xffffffff", 2**32 - 1), Name("x"), Number("1", 1)))),
        ("hipThreadIdx_x", Name("threadIdx.x")),
        ("hipBlockDim_y", Name("blockDim.y")),
        ("-x++", Unary("-", Unary("++", Name("x"), postfix=True))),
        ("tile.size()", Call("size", of=Name("tile"))),
        ("p->load(q)", Call("load", (Name("q"),), of=Index(Name("p"), Number("0", 0)))),
    ],
)  # fmt: skip
def test_each_thing_has_one_spelling(text: str, expr):
    assert expression_of(text) == expr


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("(T)-x * y", Binary("*", Cast(Type("T"), Unary("-", Name("x"))), Name("y"))),
        ("(T)&x", Cast(Type("T"), Unary("&", Name("x")))),
        ("(float)(T)x", Cast(Type("float"), Cast(Type("T"), Name("x")))),
        ("(x)-y", Binary("-", Name("x"), Name("y"))),
        ("T(x)", Cast(Type("T"), Name("x"))),
    ],
)
def test_a_type_of_the_file_is_known_in_casts(text: str, printed):
    body = f"template <typename T> __device__ T f(T x, T y) {{ return {text}; }}"

    assert function_of(body).body == (Return(printed),)


@pytest.mark.parametrize(
    "text",
    [
        "a < b && c > (d)",
        "f(a < b, c > (d))",
        "a < 1 && 2 > (b)",
        "a < (b >> 1)",
        "a < b >> c",
        "i < N && N > (j)",
    ],
)
def test_a_comparison_is_no_template(text: str):
    expr = expression_of(text, before="constexpr int N = 4;")

    assert isinstance(expr, Binary | Call)
    assert not (isinstance(expr, Call) and expr.template_args)


def test_a_name_that_is_a_type_elsewhere_can_be_a_variable():
    stmts = statements_of("const int half = d / 2; x = (half) - 3;")

    assert stmts[1] == statements_of("x = half - 3;")[0]


def test_an_address_may_stand_on_the_right():
    body = "__device__ float f(const float *p, int i) { return *(i + p); }"

    assert function_of(body).body == (Return(Index(Name("p"), Name("i"))),)


def test_declarations_are_split_and_their_types_canonical():
    assert statements_of(
        "const unsigned a = 1, *b = p, c[2] = {1, 2}; long int d; float4 e(x, y); T4 f{};"
    ) == (
        Declare(Type("unsigned int", const=True), "a", Number("1", 1)),
        Declare(Type("unsigned int", 1, const=True), "b", Name("p")),
        Declare(
            Type("unsigned int", const=True),
            "c",
            Braces((Number("1", 1), Number("2", 2))),
            (Number("2", 2),),
        ),
        Declare(Type("long"), "d"),
        Declare(Type("float4"), "e", Braces((Name("x"), Name("y")), Type("float4"))),
        Declare(Type("T4"), "f", Braces(())),
    )


def test_shared_memory_is_known_with_its_alignment():
    body = """
    extern __shared__ __align__(16) unsigned char bytes[];
    __shared__ alignas(8) float tile[32][33];
    __shared__ float late[4] __attribute__((aligned(32)));
    static __shared__ float one;
    """

    assert statements_of(body) == (
        Declare(Type("unsigned char"), "bytes", storage="dynamic shared", align=Number("16", 16)),
        Declare(Type("float"), "tile", None, (Number("32", 32), Number("33", 33)), "shared", Number("8", 8)),
        Declare(Type("float"), "late", None, (Number("4", 4),), "shared", Number("32", 32)),
        Declare(Type("float"), "one", storage="shared"),
    )


def test_a_pragma_belongs_to_the_loop_after_it():
    body = """
    if (inside)
#pragma unroll
        for (int i = 0; i < 4; i++) a += i;
#pragma unroll 1
    for (;;) break;
#pragma nounroll
    for (;;) break;
#pragma unroll (8)
    for (;;) break;
    for (;;) break;
    """

    loops = [stmt for stmt in statements_in(statements_of(body)) if isinstance(stmt, For)]

    assert [loop.unroll for loop in loops] == [0, 1, 1, 8, None]


def test_control_flow():
    body = """
    if constexpr (a) { f(); } else if (b) g(); else { h(); i(); }
    while (a) b++;
    do { f(); } while (a);
    do { f(); } while (0);
    for (i = 0, j = 1; i < n; ++i, j += 2) { if (a) continue; }
    a = 1, b = 2;
    ;
    """

    stmts = statements_of(body)

    assert isinstance(stmts[0], If)
    assert stmts[0].constexpr
    assert isinstance(stmts[0].otherwise[0], If)
    assert len(stmts[0].otherwise[0].otherwise) == 2
    assert stmts[1] == While(Name("a"), (Evaluate(Unary("++", Name("b"), postfix=True)),))
    assert stmts[2] == While(Name("a"), (Evaluate(Call("f")),), after=True)
    assert stmts[3] == Scope((Evaluate(Call("f")),))
    assert isinstance(stmts[4], For)
    assert len(stmts[4].init) == len(stmts[4].step) == 2
    assert len(stmts) == 7


@pytest.mark.parametrize(
    "text",
    [
        "switch (a) { case 1: b = c; }",
        "again: goto again;",
        'asm("trap;" : : "r"(a));',
        "if (int x = a) b = x;",
    ],
)
def test_what_is_not_understood_is_stored_with_its_names(text: str):
    (stmt,) = statements_of(text)

    assert isinstance(stmt, Verbatim)
    assert stmt.text == text
    assert stmt.names & {"a", "again"}


def test_a_lambda_that_keeps_a_value_of_its_own_stays_text():
    (stmt,) = statements_of("auto f = [b = a](int q) { return q + b; };")

    assert stmt == Declare(
        Type("auto"),
        "f",
        Opaque("[b = a](int q) { return q + b; }", frozenset({"int", "q", "return", "a", "b"})),
    )


def test_a_lambda_is_a_function_that_is_given_what_it_captures():
    source = read_source_tree(
        "__device__ int f(int a) { int n = a; auto add = [&](int q) { n += q; return n; }; return add(3); }",
        "cuda",
    )
    add, f = source.functions

    assert [p.name for p in add.parameters] == ["q", "n"]
    assert add.parameters[1].type == Type("int", reference=True)
    assert f.body[-1] == Return(Call(add.name, (Number("3", 3), Name("n"))))


def test_a_function_has_its_head_its_text_and_its_line():
    text = """// comment
template <typename T, int N = 4, class U = float>
__global__ void __launch_bounds__(128, 2) kernel(const T *__restrict__ x, T *const y, int (&r)[4],
                                                 const U &u, float z[], unsigned)
{
}
"""

    function = function_of(text)

    assert function.name == "kernel"
    assert function.is_kernel
    assert function.line == 3
    assert function.text.startswith(
        "template <typename T, int N = 4, class U = float>\n__global__ void __launch"
    )
    assert function.text.endswith("}")
    assert function.template == (
        TemplateParameter("T", "type"),
        TemplateParameter("N", "value", Type("int"), "4"),
        TemplateParameter("U", "type", default="float"),
    )
    assert function.parameters == (
        Parameter(Type("T", 1, const=True, restrict=True), "x"),
        Parameter(Type("T", 1), "y"),
        Parameter(Type("int", 1), "r"),
        Parameter(Type("U", const=True, reference=True), "u"),
        Parameter(Type("float", 1), "z"),
        Parameter(Type("unsigned int"), ""),
    )


def test_what_stands_around_the_functions():
    source = source_of("""
#include <cuda_fp16.h>
#include "own.h"
using V = float4;
typedef const __half *P;
typedef unsigned int u32;
constexpr int N = 4, M = N * 2;
static const float scale = 1.5f;
__constant__ float table[4];
enum { A = 3, B };
struct Pair { float x, y; };
extern __shared__ float pool[];
__device__ int later(int);
int host(int n) { return n; }
__device__ int later(int x) { return x; }
""")

    assert source.includes == ("<cuda_fp16.h>", '"own.h"')
    assert [function.name for function in source.functions] == ["later"]
    assert dict(source.aliases) == {"V": "float4", "u32": "unsigned int"}
    assert dict(source.constants)["N"] == Number("4", 4)
    assert dict(source.constants)["scale"] == Number("1.5f", 1.5)
    assert dict(source.constants)["B"] == Number("4", 4)
    assert source.shared == (Declare(Type("float"), "pool", storage="dynamic shared"),)
    assert "__constant__ float table[4];" in source.preamble
    assert "struct Pair { float x, y; };" in source.preamble
    assert not any("later" in text or "host" in text or "pool" in text for text in source.preamble)


def test_namespaces_of_the_file_are_taken_away():
    source = source_of("""
namespace own { namespace { __device__ float f(float x) { return x; } }
__global__ void k(float *p) { p[0] = own::f(1.0f) + std::max(1, 2); } }
""")

    kernel = source.functions[1]
    assert kernel.body == (
        Evaluate(
            effect_of("p[0] = f(1.0f) + std::max(1, 2);"),
        ),
    )
    assert "own::" not in kernel.text


def test_static_functions_of_a_struct_are_read():
    source = source_of("struct Op { static __device__ float apply(float a) { return -a; } };")

    assert [function.name for function in source.functions] == ["Op::apply"]
    assert source.functions[0].text == ""


def test_one_broken_function_does_not_hide_the_others():
    source = read_source_tree(
        "__device__ int one() { return 1; }\n__global__ void two() {\n  int x = ;\n}\n"
        "__device__ int three() { return 3; }",
        "cuda",
    )

    assert [function.name for function in source.functions] == ["one", "three"]
    assert len(source.unread) == 1
    assert source.unread[0].startswith("line 3: two could not be read")


def test_lines_are_those_of_the_file():
    text = "__device__ int f(int a)\n{\n    a = TWICE(\n  a);\n    return a;\n}\n"

    source = source_of(f"#define TWICE(x) \\\n    (x) + \\\n    (x)\n{text}")

    assert [stmt.line for stmt in source.functions[0].body] == [6, 8]


def test_opencl_words_become_the_same_tree():
    source = source_of(
        """
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
inline float twice(float x) { return 2 * x; }
__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void k(__global const float *restrict in, __local float *scratch, __constant int *table, uint n)
{
    __local float tile[64];
    __local float *p = scratch;
    size_t i = get_global_id(0);
    float4 v = (float4)(1.0f, 2.0f, 3.0f, 4.0f);
    tile[get_local_id(1)] = v.s0;
    barrier(CLK_LOCAL_MEM_FENCE);
    barrier(CLK_GLOBAL_MEM_FENCE);
    i = get_group_id(get_work_dim());
}
""",
        "opencl",
    )

    kernel = source.functions[1]
    assert source.preamble == ("#pragma OPENCL EXTENSION cl_khr_fp16 : enable",)
    assert not source.functions[0].is_kernel
    assert kernel.is_kernel
    assert kernel.parameters == (
        Parameter(Type("float", 1, const=True, restrict=True, space="global"), "in"),
        Parameter(Type("float", 1, space="local"), "scratch"),
        Parameter(Type("int", 1, space="constant"), "table"),
        Parameter(Type("unsigned int"), "n"),
    )
    group = Binary("*", Name("blockIdx.x"), Name("blockDim.x"))
    assert kernel.body == (
        Declare(Type("float"), "tile", None, (Number("64", 64),), "shared"),
        Declare(Type("float", 1, space="local"), "p", Name("scratch")),
        Declare(Type("size_t"), "i", Binary("+", group, Name("threadIdx.x"))),
        Declare(
            Type("float4"),
            "v",
            Braces(tuple(Number(f"{n}.0f", float(n)) for n in (1, 2, 3, 4)), Type("float4")),
        ),
        Evaluate(effect_of("tile[threadIdx.y] = v.s0;")),
        Evaluate(Call("__syncthreads")),
        Evaluate(Call("__syncthreads", (Name("CLK_GLOBAL_MEM_FENCE"),))),
        Evaluate(effect_of("i = get_group_id(get_work_dim());", "opencl")),
    )


@pytest.mark.parametrize("opening", ["(", "{", "[", "f(", "if (a) ", "!", "a ? b : ", "-", "#if 1\n", "a + "])
@pytest.mark.few(3)
def test_hostile_nesting_is_refused_in_words(opening: str):
    source = read_source_tree(f"__global__ void k(int a) {{ a = {opening * 5000} 1; }}", "cuda")

    assert len(source.unread) >= 1
    assert all("line " in reason for reason in source.unread)


@pytest.mark.parametrize(
    "text", ["", "\0\x01", "}}}}", "#", "#define", "#if\n", "/*", '"', "template <", "\\\n"]
)
def test_scraps_do_not_raise(text: str):
    source = read_source_tree(text, "cuda")

    assert source.functions == ()


def test_operators_are_left_to_the_compiler():
    source = source_of("__device__ float2 operator+(float2 a, float2 b) { return a; }")

    assert source.functions == ()
    assert source.preamble == ("__device__ float2 operator+(float2 a, float2 b) { return a; }",)


def test_a_struct_may_have_operators():
    source = source_of("""
template <class T> struct alignas(16) Pack {
    __device__ T &operator[](int i) { return payload[i]; }
    __device__ const T &operator[](int i) const { return payload[i]; }
    __device__ T operator()(T a) const { return a; }
    __device__ bool operator<(const Pack &b) const { return payload[0] < b.payload[0]; }
    T payload[4];
};
""")

    assert len(source.preamble) == 1


def test_a_pragma_may_come_from_a_macro():
    (loop,) = statements_of("UNROLL for (;;) break;", before='#define UNROLL _Pragma("unroll 2")')

    assert isinstance(loop, For)
    assert loop.unroll == 2


def test_signs_may_be_written_as_words():
    assert expression_of("a and not (b or c)") == expression_of("a && !(b || c)")


def test_the_call_of_a_variable_is_not_understood():
    stmts = statements_of("auto f = [n = 1](int q) { return q; }; a = f(3);")

    assert stmts[1] == Evaluate(Assign("=", Name("a"), Opaque("f(3)", frozenset({"f"}))))


def test_broken_host_code_does_not_hide_the_kernels():
    source = read_source_tree(
        """
namespace own {
template <typename T> __global__ void k(T *p) { p[0] = 1; }
struct S { int a; };
}
STRANGE(x, #x { "a" ...
__device__ int f(int a)
{
    return a;
}
""",
        "cuda",
    )

    assert "k" in [function.name for function in source.functions]
    assert len(source.unread) >= 1


def test_what_only_names_a_kernel_is_left_out():
    source = read_source_tree(
        """
template <typename T> __global__ void k(T *p, int n);
template <typename T> __device__ T twice(T x);
template <typename T> __global__ void k(T *p, int n) { p[n] = T(1); }
template __global__ void k<float>(float *p, int n);
""",
        "cuda",
    )

    assert [text.split(">")[1].strip() for text in source.preamble] == ["__device__ T twice(T x);"]
    assert [f.name for f in source.functions] == ["k"]
