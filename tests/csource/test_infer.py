from __future__ import annotations

import pytest

from tests.csource.reading import function_of, source_of
from tunesmith.csource.nodes import Return, Type
from tunesmith.csource.types import declared_types, type_of
from tunesmith.csource.walk import statements_in

_HEAD = """
template <typename T> __device__ T same(T x) { return x; }
__device__ double own(int x) { return x; }
"""
_BODY = """
    const __half *row = h + n;
    auto moved = row + 3;
    float x[4]; uint4 v; __half2 pair; unsigned u = n; long long l = n; char c = 1; __half one;
    float twice; { int twice; }
"""


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("1", Type("int")),
        ("1.0", Type("double")),
        ("1.0f", Type("float")),
        ("1u", Type("unsigned int")),
        ("1LL", Type("long long")),
        ("5000000000", Type("long long")),
        ("row", Type("__half", 1, const=True)),
        ("row[1]", Type("__half", const=True)),
        ("moved[1]", Type("__half", const=True)),
        ("x[1]", Type("float")),
        ("&x[1]", Type("float", 1)),
        ("v.x", Type("unsigned int")),
        ("pair.y", Type("__half")),
        ("c + c", Type("int")),
        ("n * u", Type("unsigned int")),
        ("u * l", Type("long long")),
        ("n * 1.5f", Type("float")),
        ("one * one", Type("__half")),
        ("one * n", None),
        ("n < u", Type("bool")),
        ("!n", Type("bool")),
        ("n ? 1.0f : 2.0f", Type("float")),
        ("__half2float(row[0])", Type("float")),
        ("__ldg(row + 1)", Type("__half")),
        ("__shfl_xor_sync(0xffffffffu, x[0], 1)", Type("float")),
        ("fmaxf(1, 2)", Type("float")),
        ("make_float4(1, 2, 3, 4)", Type("float4")),
        ("min(n, 3)", Type("int")),
        ("own(3)", Type("double")),
        ("same(3)", None),
        ("unknown(3)", None),
        ("twice", None),
        ("threadIdx.x * 4", Type("unsigned int")),
        ("(size_t)n", Type("size_t")),
        ("sizeof(int)", Type("size_t")),
        ("n += 2", Type("int")),
    ],
)
def test_the_type_of_an_expression(text: str, type_: Type | None):
    source = source_of(f"{_HEAD}__device__ void f(const __half *h, int n) {{ {_BODY} return {text}; }}")
    function = source.functions[-1]
    value = next(s.value for s in statements_in(function.body) if isinstance(s, Return))

    found = type_of(value, declared_types(function), source.functions)

    assert found == type_


def test_opencl_indices_are_wide():
    function = function_of("__kernel void k(__global int *p) { return get_local_id(0); }", "opencl")
    (stmt,) = function.body

    assert isinstance(stmt, Return)
    assert type_of(stmt.value, {}, language="opencl") == Type("size_t")
