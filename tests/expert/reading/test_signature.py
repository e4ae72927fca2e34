"""Whether a problem lists the kernel's own arguments, as far as reading the source can tell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.wording import says
from tunesmith.expert.reading.source import missing_entry, signature_faults
from tunesmith.problem.problem import Accuracy, Argument, Contract, Kernel, Launch, Problem, Role
from tunesmith.space.expr import parse

CUDA = "__global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }"
OPENCL = "__kernel void k(__global float* out, __global const float* x, int n) { out[n] = x[n]; }"


def array(name: str, type: str = "float32", role: Role = "input") -> Argument:
    return Argument(name, type, role, (parse("n"),))


def scalar(name: str, type: str = "int32") -> Argument:
    return Argument(name, type, "scalar", value=parse("n") if "int" in type else 0.5)


OUT, X, N = array("out", role="output"), array("x"), scalar("n")


def problem_of(text: str, *arguments: Argument, language: str = "cuda", entry: str = "k") -> Problem:
    launch = Launch(entry, (parse(1),), (parse(1),), tuple(argument.name for argument in arguments))
    kernel = Kernel("kernel.cu", text, entry, language)
    return Problem("p", kernel, arguments, (launch,), Contract(()), (), Accuracy(0, 0))


def faults(text: str, *arguments: Argument, language: str = "cuda", entry: str = "k") -> list[str]:
    return signature_faults(problem_of(text, *arguments, language=language, entry=entry))


@pytest.mark.parametrize(("text", "language"), [(CUDA, "cuda"), (CUDA, "hip"), (OPENCL, "opencl")])
def test_arguments_as_the_kernel_takes_them(text: str, language: str) -> None:
    assert faults(text, OUT, X, N, language=language) == []


def test_another_order_is_reported_with_both() -> None:
    (fault,) = faults(CUDA, X, OUT, N)
    says(fault, "arguments of k", "order", "kernel.cu:1")
    says(fault, "kernel takes (out, x, n)", "problem gives (x, out, n)")


@pytest.mark.parametrize(("given", "count"), [((OUT, X), 2), ((OUT, X, N, scalar("m")), 4)])
def test_another_count(given: tuple[Argument, ...], count: int) -> None:
    (fault,) = faults(CUDA, *given)
    assert fault.startswith(f"k takes 3 arguments, {count} are given")


def test_other_names_in_the_same_places_are_fine() -> None:
    assert faults(CUDA, array("y", role="output"), array("input"), scalar("count")) == []


def test_a_scalar_where_the_kernel_has_an_array() -> None:
    (fault,) = faults(CUDA, OUT, scalar("a"), N)
    says(fault, "argument 2 of k", "x is an array", "a is a scalar")


def test_an_array_where_the_kernel_has_a_scalar() -> None:
    (fault,) = faults(CUDA, OUT, X, array("lengths", "int32"))
    says(fault, "argument 3 of k", "n is a scalar", "lengths is an array")


def test_every_argument_is_looked_at() -> None:
    assert len(faults(CUDA, scalar("a"), scalar("b"), array("c"))) == 3


@pytest.mark.parametrize(
    ("own", "given", "fine"),
    [
        ("float", "float32", True),
        ("float", "float64", False),
        ("float", "int32", False),
        ("float", "float16", False),
        ("double", "float64", True),
        ("double", "int64", False),
        ("int", "int32", True),
        ("int", "uint32", True),  # the same bytes; which sign they have is the kernel's business
        ("int", "int64", False),
        ("size_t", "int64", True),
        ("size_t", "int32", False),
        ("unsigned short", "float16", True),  # halves are often passed as what stores them
        ("ushort", "float16", True),
        ("short", "bfloat16", True),
        ("ushort", "float32", False),
        ("half", "float16", True),
        ("half", "int16", True),
        ("half", "float32", False),
        ("unsigned char", "int8", True),
        ("char", "float8_e4m3", True),
        ("float4", "float32", True),
        ("float4", "float16", True),  # sixteen bytes at a time, of whatever it is
        ("uint4", "bfloat16", True),
        ("uint8_t", "float32", True),  # plain bytes
        ("uint32_t", "int4", True),  # eight at a time
        ("uint32_t", "int16", False),
        ("Mystery", "float32", True),  # only the compiler knows
        ("void", "float32", True),
    ],
)
def test_element_types(own: str, given: str, fine: bool) -> None:
    text = f"__global__ void k({own}* out) {{ out[0] = 0; }}"
    found = faults(text, array("out", given, "output"))
    assert (found == []) == fine, found
    if not fine:
        assert f"out is {given}" in found[0]


@pytest.mark.parametrize(
    ("own", "given", "fine"), [("float", "float32", True), ("long long", "int32", False)]
)
def test_scalar_types(own: str, given: str, fine: bool) -> None:
    text = f"__global__ void k(float* out, {own} a) {{ out[0] = a; }}"
    assert (faults(text, OUT, scalar("a", given)) == []) == fine


GATED = """
namespace ops {
template <typename E, E (*GATE)(const E&), bool FIRST>
__global__ void gated(
    E* __restrict__ out,
    const E* __restrict__ halves,
    const int d) { out[0] = GATE(halves[d]); }
}
"""


class TestTemplates:
    """Entries are instances of C++ templates; what their types become is the compiler's to know."""

    @pytest.mark.parametrize(
        ("text", "entry"),
        [
            ("template <typename T> KERNEL(T* out, T const* __restrict__ x, int n) {}", "k<__half>"),
            ("template <class T, int N = 4> KERNEL(T* const out, const T* x, int n) {}", "k<half, 8>"),
            ("template <typename P> KERNEL(P out, P x, int n) {}", "k<__half*>"),
            ("using Ptr = __half*;\nKERNEL(Ptr out, Ptr x, int n) {}", "k"),
            ("template <class T> KERNEL(typename T::type* out, Vec<T, 8> const* x, int n) {}", "k<A>"),
            ("typedef double T;\ntemplate <class T> KERNEL(T* out, T* x, int n) {}", "k<__half>"),
            ("template <class T> KERNEL(T* out, std::enable_if_t<1, T> const* x, int n) {}", "k<A>"),
            (GATED, "ops::gated<__half, ops::silu<__half>, true>"),
            (GATED, "gated<c10::Half, silu_kernel<c10::Half>, true>"),
        ],
    )  # fmt: skip
    def test_types_that_only_the_compiler_knows(self, text: str, entry: str) -> None:
        text = text.replace("KERNEL", "__global__ void k")
        given = (array("out", "float16", "output"), array("x", "float16"), scalar("n"))
        assert faults(text, *given, entry=entry) == []
        assert missing_entry(problem_of(text, *given, entry=entry)) is None

    def test_what_is_certain_is_still_reported(self) -> None:
        (fault,) = faults(GATED, OUT, N, entry="ops::gated<float, f, true>")
        assert fault.startswith("gated takes 3 arguments, 2 are given")
        (fault,) = faults(GATED, OUT, X, array("d"), entry="ops::gated<float, f, true>")
        assert "d is a scalar in the kernel" in fault

    def test_a_null_pointer_is_an_integer_of_its_size(self) -> None:
        assert faults(CUDA, OUT, scalar("x", "uint64"), N) == []
        assert faults(OPENCL, OUT, scalar("x", "uint64"), N, language="opencl") != []


def test_a_vector_by_value_is_not_a_number() -> None:
    text = "__global__ void k(float* out, float4 a) { out[0] = a.x; }"
    (fault,) = faults(text, OUT, scalar("a", "float32"))
    says(fault, "a is float4", "scalar", "single number")


def test_a_typedef_is_followed() -> None:
    text = "typedef unsigned short half_bits;\n__global__ void k(half_bits* out) { out[0] = 0; }"
    assert faults(text, array("out", "float16", "output")) == []
    (fault,) = faults(text, array("out", "float32", "output"))
    assert "(kernel.cu:2)" in fault


def test_local_memory_is_another_kind_of_array() -> None:
    text = "__kernel void k(__global float* out, __local float* tile) { tile[0] = out[0]; }"
    assert faults(text, OUT, array("tile", role="local"), language="opencl") == []
    (fault,) = faults(text, OUT, array("tile"), language="opencl")
    says(fault, "tile is local memory", "tile has role input")
    (fault,) = faults(text, array("out", role="local"), array("tile", role="local"), language="opencl")
    says(fault, "out is global memory", "out has role local")


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void k(float* out\n#ifdef WIDE\n, int n\n#endif\n) { out[0] = 0; }",
        "#ifdef A\n__global__ void k(int a) { }\n#else\n__global__ void k(int a, int b) { }\n#endif",
        "#define ARGS float* a\n__global__ void other(ARGS) { a[0] = 0; }",
        "int no_kernel_at_all;",
        "",
        "MAKE_KERNEL(k)",
    ],
)
def test_what_the_preprocessor_decides_is_left_to_the_compiler(text: str) -> None:
    assert faults(text, X, OUT, N, scalar("m")) == []


def test_a_language_without_a_reader_is_left_alone() -> None:
    assert faults(CUDA, X, language="fake") == []


def test_every_launch_is_compared_with_its_own_kernel() -> None:
    text = (
        "__global__ void first(float* out, int n) { out[n] = 0; }\n"
        "__global__ void second(float* out, const float* x) { out[0] = x[0]; }\n"
    )
    launches = [
        Launch("first", (parse(1),), (parse(1),), ("out", "n")),
        Launch("second", (parse(1),), (parse(1),), ("x", "out")),
    ]
    problem = replace(problem_of(text, OUT, X, N), launches=tuple(launches))
    (fault,) = signature_faults(problem)
    says(fault, "arguments of second", "order", "kernel.cu:2")
    assert signature_faults(replace(problem, launches=(launches[0],))) == []


@pytest.mark.parametrize("entry", ["k<float>", "k<float, 4>", " k ", "::k", "k<ns::Type>"])
def test_the_entry_is_a_name_expression(entry: str) -> None:
    text = "template <typename T> __global__ void k(T* out, int n) { out[n] = 0; }"
    assert faults(text, OUT, N, entry=entry) == []
    assert len(faults(text, N, OUT, entry=entry)) == 1


TWO = (
    "namespace a { __global__ void k(float* out) { out[0] = 0; } }\n"
    "namespace b { __global__ void k(float* out, int n) { out[n] = 0; } }\n"
)


def test_a_name_that_two_namespaces_have() -> None:
    assert faults(TWO, OUT, entry="a::k") == []
    assert faults(TWO, OUT, N, entry="b::k") == []
    assert len(faults(TWO, OUT, N, entry="a::k")) == 1
    assert len(faults(TWO, OUT, entry="b::k")) == 1
    assert faults(TWO, OUT, entry="k") == []  # which one is meant is not known here


def test_a_conditional_kernel_is_not_taken_for_its_namesake() -> None:
    text = TWO.replace("k(float* out)", "k(float* out\n#ifdef X\n, int y\n#endif\n)", 1)
    assert faults(text, OUT, N, scalar("m"), entry="a::k") == []


@pytest.mark.parametrize("entry", ["scale", "ns::scale<float>", "K"])
def test_an_entry_that_stands_nowhere(entry: str) -> None:
    fault = missing_entry(problem_of(CUDA, OUT, X, N, entry=entry))
    says(fault, f"entry '{entry}'", "nowhere in kernel.cu", "defines k")


@pytest.mark.parametrize(
    "text",
    [
        CUDA.replace(" k(", " scale("),
        f"#define k scale\n{CUDA}",
        f'#include "scale.cuh"\n{CUDA}',
        f"#define PASTE(a, b) a##b\n{CUDA}",
        "int no_kernel_at_all;",
    ],
)
def test_an_entry_that_may_stand_somewhere(text: str) -> None:
    assert missing_entry(problem_of(text, OUT, X, N, entry="scale")) is None


def test_an_entry_that_the_build_makes() -> None:
    problem = problem_of(CUDA, OUT, X, N, entry="scale")
    kernel = problem.kernel
    assert missing_entry(replace(problem, kernel=replace(kernel, flags=("-Dk=scale",)))) is None
    assert missing_entry(replace(problem, kernel=replace(kernel, defines=(("k", "scale"),)))) is None
    assert missing_entry(replace(problem, kernel=replace(kernel, language="fake"))) is None
    assert missing_entry(problem_of(CUDA, OUT, X, N, entry="scale_{d}")) is None


@pytest.mark.parametrize(
    ("entry", "wrong"),
    [
        ("k<float, 8>", 0), ("k<__half, 8>", 2), ("k<double, 8>", 2), ("k<int, 8>", 0),
        ("k<unsigned char, 8>", 0),
        ("k<own::pack, 8>", 0), ("k<float4, 1>", 0), ("k<{t}, 8>", 0), ("k", 0),
    ],
)  # fmt: skip
def test_arrays_of_a_type_that_the_entry_says_have_elements_as_wide(entry: str, wrong: int) -> None:
    text = "template <typename T, int N> " + CUDA.replace("float*", "T*")
    found = faults(text, OUT, X, N, entry=entry)
    assert len(found) == wrong
    assert all(f"by the entry {entry}, " in fault for fault in found)
